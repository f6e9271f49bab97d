package replay

import (
	"bytes"
	"context"
	"encoding/hex"
	"strings"
	"time"

	"heed/internal/audit/store"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/rules"
)

// Explained is a decision with everything it rests on, and the result of judging it
// again.
type Explained struct {
	*Decision
	// Age is the age of the policy in seconds. Policy is the policy that decided;
	// nil: none was needed.
	Age    float64          `json:"policy_age_s,omitempty"`
	Policy *ExplainedPolicy `json:"policy,omitempty"`
	// Text is the line of robots.txt that decided, with the octets that the site
	// sent; empty: none did, or the file is not in the record.
	Text string `json:"text,omitempty"`

	// Use is what the site states about the use of the page, before the request and in the
	// answer together; nil: nothing is recorded.
	Use *signal.Verdict `json:"use,omitempty"`

	// With Late, Policy, Text, Again and Now are those of Late.
	Again Class         `json:"again"`          // the result of judging it again
	Now   store.Verdict `json:"now,omitzero"`   // the verdict now; zero: it was not judged
	What  string        `json:"what,omitempty"` // the reason of Again; empty: none

	Road *rules.Explanation `json:"road,omitempty"` // the matching of rules; nil: no rules were used

	Provable bool `json:"provable"` // heed audit prove makes a proof of it

	// Robots is the robots.txt that decided, as it was received, and RobotsLine the line in
	// it, counted from 1; nil and 0: none.
	Robots     []byte `json:"-"`
	RobotsLine int    `json:"-"`
}

// ExplainedPolicy is the policy that a decision rests on.
type ExplainedPolicy struct {
	Profile string `json:"profile"`
	State   string `json:"state"`
	Stale   bool   `json:"stale,omitempty"`
	Own     bool   `json:"own,omitempty"` // the operator's file in place of the site's
	Error   string `json:"error,omitempty"`
	Note    string `json:"note,omitempty"`
	// Confirmed is when it was received or last confirmed; zero: never.
	Confirmed time.Time `json:"confirmed,omitzero"`
	// Snapshot is the response it was made of, without the body; nil: none was
	// received.
	Snapshot *rules.Snapshot `json:"snapshot,omitempty"`
}

// ExplainID explains the decision with an id, a UUID as text. parseRules is as in
// Options.
// It returns ErrNone when the record has no such decision.
func ExplainID(ctx context.Context, record *store.Record, parseRules func(string) (*acl.Rules, error), id string) (*Explained, error) {
	octets, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	if err != nil || len(octets) != 16 {
		return nil, ErrNone
	}
	return explain(ctx, record, parseRules, &store.Filter{IDs: [2][]byte{octets, octets}, Newest: true})
}

// ExplainURL explains the last decision about a URL that f selects. It returns
// ErrNone when the record has no such decision.
func ExplainURL(ctx context.Context, record *store.Record, parseRules func(string) (*acl.Rules, error), o rules.Origin, target string, f store.Filter) (*Explained, error) {
	f.URL, f.Newest = &store.Address{Origin: o, Target: target}, true
	return explain(ctx, record, parseRules, &f)
}

func explain(ctx context.Context, record *store.Record, parseRules func(string) (*acl.Rules, error), f *store.Filter) (*Explained, error) {
	r, err := record.Read(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	l := &library{parseRules: parseRules}
	t := &Explained{}
	filters, err := r.NearFirst(f)
	if err != nil {
		return nil, err
	}
	for _, f := range filters {
		if t.Decision != nil {
			break
		}
		if err := r.Entries(f, func(e *store.Entry) (err error) { t.Decision, err = l.decision(r, e); return err }); err != nil {
			return nil, err
		}
	}
	if t.Decision == nil {
		return nil, ErrNone
	}
	t.Provable = r.Provable()
	line := t.Line
	a, err := l.load(r, t.entry, t.entry.Late != 0)
	if err != nil {
		return nil, err
	}
	if err := a.loadPolicy(l, r); err != nil {
		return nil, err
	}
	if a.judge(l); a.late {
		line = a.basis.Line
	}
	t.Again, t.Now, t.What = a.class, a.verdict, a.note
	t.Use, _ = l.verdicts.Both(a.basis.Signals, string(t.PageSignals)) // Again has the reason where a verdict rests on what is left out
	if r := a.by.Refusal; a.bySignal {
		if line = 0; r != nil && r.Statement != nil && r.Statement.Source == signal.SourceRobots {
			line = r.Statement.Line
		}
	}
	if a.policy == nil {
		return t, nil
	}
	t.setAge(a)
	t.setPolicy(a.policy)
	t.Text, t.Robots, t.RobotsLine = lineOf(a.policy.body, line), a.policy.body, line
	if a.query.Names.Own != nil && !a.doubt {
		target := a.Target
		if target == "" || target == "*" {
			target = "/"
		}
		x := a.policy.Explain(a.by.Agent, rules.NewTarget(target))
		t.Road = &x
	}
	return t, nil
}

// setAge sets the age of the policy.
func (t *Explained) setAge(a *assessment) {
	switch at := a.policy.Source().FetchedAt; {
	case a.PolicyAge >= 0:
		t.Age = float64(a.PolicyAge) / 1000
	case a.policy.state != "unreachable" && !at.IsZero():
		t.Age = max(0, t.Time.Sub(at).Seconds())
	}
}

// setPolicy sets the policy that the decision rests on.
func (t *Explained) setPolicy(p *policy) {
	s := p.Source()
	t.Policy = &ExplainedPolicy{
		Profile: p.Profile().String(), State: p.state, Stale: s.Stale, Own: s.Own, Note: s.Note, Confirmed: s.FetchedAt, Snapshot: s.Snapshot,
	}
	if s.Err != nil {
		t.Policy.Error = s.Err.Error()
	}
}

// lineOf returns line n of a file, counted from 1, without its end (CR, LF or
// CRLF). It is empty when there is no such line, or the file is in UTF-16.
func lineOf(body []byte, n int) string {
	if bytes.HasPrefix(body, []byte("\xFF\xFE")) || bytes.HasPrefix(body, []byte("\xFE\xFF")) {
		return ""
	}
	for i, line := range rules.Lines(string(body)) {
		if i == n {
			return line
		}
	}
	return ""
}
