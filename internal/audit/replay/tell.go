package replay

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"strings"
	"time"

	"heed/internal/terms"
	"heed/rules"
)

// Told is one decision with all that it rests on, and judged again.
type Told struct {
	*Decision
	// Age is how old the policy was, in seconds; Policy what there was to judge
	// by; nil: none was asked for.
	Age    float64     `json:"policy_age_s,omitempty"`
	Policy *PolicyTold `json:"policy,omitempty"`
	// Text is the line that decided, byte for byte as the site sent it; empty:
	// none did, or its bytes are not in the record.
	Text string `json:"text,omitempty"`

	// Late is the verdict that followed a request which was let through before
	// there were rules; nil: none did. Policy, Text, Again and Now are of it then.
	Late *Verdict `json:"late,omitempty"`

	Again Class   `json:"again"`          // what came of judging it again
	Now   Verdict `json:"now,omitzero"`   // when it was judged
	What  string  `json:"what,omitempty"` // what Again alone does not say

	Road *rules.Explanation `json:"road,omitempty"` // from the names to the verdict; nil: no rules were asked
}

// PolicyTold is what a decision rests on.
type PolicyTold struct {
	Profile string `json:"profile"`
	State   string `json:"state"`
	Stale   bool   `json:"stale,omitempty"`
	Own     bool   `json:"own,omitempty"` // the operator's file in place of the site's
	Error   string `json:"error,omitempty"`
	Note    string `json:"note,omitempty"`
	// Confirmed is when it was received or last confirmed; zero: never.
	Confirmed time.Time `json:"confirmed,omitzero"`
	// Snapshot is the answer it was made of, without its bytes; nil: none was
	// received.
	Snapshot *rules.Snapshot `json:"snapshot,omitempty"`
}

// Tell tells of the decision with an id, a UUID as text. It returns ErrNone when
// the record has none.
func Tell(ctx context.Context, db *sql.DB, books func(string) (*terms.Book, error), id string) (*Told, error) {
	octets, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	if err != nil || len(octets) != 16 {
		return nil, ErrNone
	}
	return tell(ctx, db, books, Filter{id: octets, newest: true})
}

// TellURL tells of the last decision about an address that f means. It returns
// ErrNone when the record has none.
func TellURL(ctx context.Context, db *sql.DB, books func(string) (*terms.Book, error), o rules.Origin, target string, f Filter) (*Told, error) {
	f.url, f.newest = &place{o, target}, true
	return tell(ctx, db, books, f)
}

func tell(ctx context.Context, db *sql.DB, books func(string) (*terms.Book, error), f Filter) (*Told, error) {
	t := &Told{}
	if err := List(ctx, db, f, func(d *Decision) error { t.Decision = d; return nil }); err != nil {
		return nil, err
	}
	if t.Decision == nil {
		return nil, ErrNone
	}
	l := newLibrary(books)
	ground, line := t.entry.ground, t.Line
	if t.late.Valid {
		ground = t.late.Int64
	}
	a, err := l.gather(ctx, db, &t.entry, ground, t.late.Valid)
	if err != nil {
		return nil, err
	}
	if a.judge(l); a.late {
		t.Late, line = &a.ground.verdict, a.ground.verdict.Line
	}
	t.Again, t.Now, t.What = a.class, a.verdict, a.said
	if a.policy == nil {
		return t, nil
	}
	if err := t.age(ctx, db, a); err != nil {
		return nil, err
	}
	t.rests(a.policy)
	t.Text = lineOf(a.policy.body, line)
	if a.question.Names.Judged != nil {
		t.Road = road(a)
	}
	return t, nil
}

// age finds out how old the policy was.
func (t *Told) age(ctx context.Context, db *sql.DB, a *again) error {
	var age sql.NullInt64
	if err := db.QueryRowContext(ctx, "SELECT policy_age FROM entry WHERE seq = ?", t.seq).Scan(&age); err != nil {
		return err
	}
	switch at := a.policy.Source().FetchedAt; {
	case age.Valid:
		t.Age = float64(age.Int64) / 1000
	case a.policy.state != rules.Unreachable && !at.IsZero():
		t.Age = max(0, t.Time.Sub(at).Seconds())
	}
	return nil
}

// rests fills in what the decision rests on.
func (t *Told) rests(p *policy) {
	s := p.Source()
	t.Policy = &PolicyTold{
		Profile: p.Profile().String(), Stale: s.Stale, Own: s.Own, Note: s.Note, Confirmed: s.FetchedAt, Snapshot: s.Snapshot,
	}
	for name, state := range states {
		if state == p.state {
			t.Policy.State = name
		}
	}
	if s.Err != nil {
		t.Policy.Error = s.Err.Error()
	}
}

// road explains the verdict under the name that led to it: that which the site
// sees, where the one declared would be allowed.
func road(a *again) *rules.Explanation {
	names, target := a.question.Names, a.target
	if target == "" || target == "*" {
		target = "/"
	}
	x := a.policy.Explain(names.Judged, target)
	if names.Visible != nil && x.Decision.Verdict == rules.Allow {
		if seen := a.policy.Explain(names.Visible, target); seen.Decision.Verdict == rules.Refuse {
			x = seen
		}
	}
	return &x
}

// lineOf returns line n of a file, counted from 1, without its end (CR, LF or
// CRLF); empty for no line, and of a file in UTF-16.
func lineOf(body []byte, n int) string {
	if n < 1 || bytes.HasPrefix(body, []byte("\xFF\xFE")) || bytes.HasPrefix(body, []byte("\xFE\xFF")) {
		return ""
	}
	for ; ; n-- {
		end := bytes.IndexAny(body, "\r\n")
		switch {
		case n == 1 && end >= 0:
			return string(body[:end])
		case n == 1:
			return string(body)
		case end < 0:
			return ""
		case bytes.HasPrefix(body[end:], []byte("\r\n")):
			end++
		}
		body = body[end+1:]
	}
}
