// Package uses reads what a record has about the use of pages (heed/internal/judge/signal), and
// judges recorded requests by it: for the purposes that their clients stated, and for
// others.
//
// It has no other source than the record. A statement that was not read at the time of a
// request is unknown, and is never taken for a permission.
package uses

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"heed/internal/base/memo"
	"heed/internal/judge/signal"
	"heed/internal/judge/signal/page"
	"heed/rules"
)

// maxRead is the number of verdicts that a Reader remembers.
const maxRead = 2048

// Reader reads the verdicts in a record. It remembers those that it read last, since most
// pages of a site have the same one. The zero value is ready; it is safe for concurrent
// use.
type Reader struct {
	known memo.Map[string, *signal.Verdict]
}

// Read returns the verdict that a record has as JSON; nil for an empty text. It must not be
// changed.
func (r *Reader) Read(text string) (*signal.Verdict, error) {
	if text == "" {
		return nil, nil
	}
	return r.known.Load(text, maxRead, func() (*signal.Verdict, error) {
		v := &signal.Verdict{}
		if err := json.Unmarshal([]byte(text), v); err != nil {
			return nil, fmt.Errorf("what the site states about the use of its pages cannot be read from the record: %w", err)
		}
		return v, nil
	})
}

// Both returns the verdict of a request and its answer, of which a record has the two parts
// as JSON; nil when it has neither.
func (r *Reader) Both(request, answer string) (*signal.Verdict, error) {
	before, err := r.Read(request)
	if err != nil {
		return nil, err
	}
	after, err := r.Read(answer)
	return signal.Combine(before, after), err
}

// Purposes returns the purposes with the names that a record has.
func Purposes(names []string) (all []signal.Purpose, err error) {
	for _, name := range names {
		p := signal.Purpose(name)
		if p.Category() == "" {
			return nil, fmt.Errorf("the client stated the purpose %q, which this heed does not know", name)
		}
		all = append(all, p)
	}
	return all, nil
}

// BySignal reports whether a reason of the record is a statement on the use of pages.
func BySignal(reason string) bool {
	return reason == string(rules.ReasonSignal) || reason == string(rules.ReasonLicence)
}

// Request is a recorded request that the robots.txt of the site allows.
type Request struct {
	Stated []signal.Purpose // by the client; nil: none
	Before *signal.Verdict  // what was known before it was sent; nil: nothing is recorded
	After  *signal.Verdict  // what the answer states; nil: nothing is recorded
	// Robots is the verdict by the recorded robots.txt alone, for a request without Before;
	// it may be nil.
	Robots  *signal.Verdict
	Profile *rules.Profile // that statements are read under; nil: the recorded one

	Sent   bool // it was sent to the site
	Ended  bool // the answer is recorded
	NoPage bool // the answer is no page
}

// Answer is the result of judging a Request.
type Answer string

// The answers.
const (
	Allowed     Answer = "allowed"      // nothing refuses it, and all that could was read
	Refused     Answer = "refused"      // a statement of the site refuses it
	Unknown     Answer = "unknown"      // something that could refuse it was not read
	Silent      Answer = "silent"       // all that could refuse it was read, and the site states nothing
	NotRecorded Answer = "not-recorded" // the record has no statement, and does not say that there was none
)

// Result is an Answer and what it rests on.
type Result struct {
	Answer  Answer
	Refusal signal.Refusal // of Refused
	Why     string         // of Unknown, in words
}

// Judge judges the request for purposes: each must be allowed.
func (q *Request) Judge(purposes ...signal.Purpose) Result {
	v := signal.Combine(cmp.Or(q.Before, q.Robots), q.After).Obeyed()
	if q.Profile != nil {
		v = v.Under(*q.Profile)
	}
	if r, refused := v.Refuses(purposes...); refused {
		return Result{Answer: Refused, Refusal: r}
	}
	switch {
	case !q.Sent:
		return Result{Answer: Unknown, Why: "the page was not requested"}
	case !q.Ended:
		return Result{Answer: Unknown, Why: "the end of the exchange is not recorded"}
	}
	switch why := q.unread(v, purposes); {
	case why != "":
		return Result{Answer: Unknown, Why: why}
	case v != nil && len(v.Statements) > 0:
		return Result{Answer: Allowed}
	case v == nil && len(q.Stated) == 0: // no page, and heeds of long ago did not read its header
		return Result{Answer: NotRecorded}
	}
	return Result{Answer: Silent}
}

// unread returns what could refuse purposes and was not read; empty: nothing.
func (q *Request) unread(v *signal.Verdict, purposes []signal.Purpose) string {
	if why := q.unreadPage(v); why != "" {
		return why
	}
	need, had := signal.NeedsOf(purposes...), signal.NeedsOf(q.Stated...)
	if _, refused := q.Before.Refuses(q.Stated...); refused {
		had = signal.Needs{} // nothing was requested that could not change the verdict
	}
	if v == nil {
		v = &signal.Verdict{}
	}
	switch {
	case need.Licences && v.LacksLicence():
		return "a licence of the site was not requested"
	case need.Licences && slices.ContainsFunc(v.Statements, func(s signal.Statement) bool { return s.Protocol == signal.RSL && s.Fault != "" }):
		return "a licence of the site could not be read"
	case need.TDMRep && !had.TDMRep && !slices.ContainsFunc(v.Statements, overridesFile):
		return "the site's TDMRep file was not requested"
	case slices.ContainsFunc(purposes, v.Unclear):
		return "a statement of the site is not understood"
	}
	return ""
}

// unreadPage returns why the head of the page is not known; empty: it is, or there is none.
// A page that is not mentioned in the record of a client with a purpose has none.
func (q *Request) unreadPage(v *signal.Verdict) string {
	head := ""
	if v != nil {
		head = v.Page
	}
	switch page.Why(head) {
	case "whole", page.NoBody, page.NoPage:
		return ""
	case "":
		if q.NoPage || len(q.Stated) > 0 {
			return ""
		}
		return "the head of the page was not read"
	}
	return "the head of the page could not be read (" + head + ")"
}

// overridesFile reports whether a statement counts in place of the site's TDMRep file.
func overridesFile(s signal.Statement) bool {
	return s.Protocol == signal.TDMRepP && s.Source != signal.SourceTDMRep && s.Says[signal.TDM] != ""
}

// OfRobots returns what a recorded robots.txt states about the use of a target for an
// agent; nil when it states nothing.
func OfRobots(robots *signal.Robots, p *rules.Policy, agent *rules.Agent, target string) *signal.Verdict {
	if robots == nil {
		return nil
	}
	o := p.Source().Origin
	v := signal.Judge(signal.Input{
		URL: o.String() + target, Origin: o, Target: rules.NewTarget(target), Agent: agent, Profile: p.Profile(), Crawl: true, Robots: robots,
	})
	if len(v.Statements) == 0 {
		return nil
	}
	return v
}
