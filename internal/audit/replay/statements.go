package replay

import (
	"errors"

	"heed/internal/audit/store"
	"heed/internal/audit/uses"
	"heed/internal/signal"
	"heed/rules"
)

// errNoStatements is why a decision by statements cannot be judged again without them.
var errNoStatements = errors.New("the record does not have what the site states about the use of its pages")

// statements returns what the site stated of the use of the page, as far as it was known
// when a was decided, and the purposes of the client.
func (a *assessment) statements(l *library) (v *signal.Verdict, stated []signal.Purpose, err error) {
	page := ""
	if a.late && a.Outcome != nil {
		page = a.Outcome.Signals
	}
	if v, err = l.verdicts.Both(a.basis.Signals, page); err != nil {
		return nil, nil, err
	}
	if v == nil {
		return nil, nil, errNoStatements
	}
	stated, err = uses.Purposes(a.client.Purposes)
	return v, stated, err
}

// bySignal reports whether what the site states of the use of the page decided.
func (a *assessment) bySignal(l *library) bool {
	reason := rules.Reason(a.basis.Reason)
	if reason != rules.ReasonTooComplex && reason != rules.ReasonOverride {
		return uses.BySignal(a.basis.Reason)
	}
	v, stated, err := a.statements(l)
	if err != nil {
		return false
	}
	refusal, refused := v.Refuses(stated...) // an exception may have allowed it
	return refused && (reason == rules.ReasonOverride || refusal.Reason == rules.ReasonTooComplex)
}

// judgeStatements judges a decision by what the site stated of the use of the page: the
// rules must allow it, and the recorded statements must refuse the recorded purposes. It
// sets class, verdict and note; a is prepared.
func (a *assessment) judgeStatements(l *library) {
	v, stated, err := a.statements(l)
	if err != nil {
		a.class, a.note = Incomplete, err.Error()
		return
	}
	if a.policy == nil {
		a.class, a.note = Incomplete, "the record does not have the robots.txt that allowed it"
		return
	}
	q := a.question(a.policy.Policy)
	q.Effective.Purposes, q.Statements = stated, v
	o, _ := q.Decide()
	switch {
	case o.Refusal != nil:
	case o.Rules.Verdict != rules.Allow:
		a.note = "the rules do not allow it"
	default:
		a.note = "what is recorded of the site's statements does not refuse the purposes of the client"
	}
	a.class, a.verdict = Same, verdictOf(&o.Result)
	switch {
	case a.verdict != a.basis.Verdict:
		a.class = Different
	case q.Effective.Mode.String() != a.client.Mode || !a.sameNames():
		a.class, a.note = Different, "by these settings it has another mode, or is judged under other names"
	}
	if a.class == Different && a.basis.Engine != rules.Engine {
		a.class = OtherEngine
	}
}

// use returns the entry as a request whose use is judged; nil when the robots.txt of the
// site did not allow it, or did not count. a is judged and not late.
func (a *assessment) use(l *library, r *store.Reader) (*uses.Request, error) {
	b := a.basis
	if a.Late != 0 {
		late, err := l.basis(r, a.Late)
		if err != nil {
			return nil, err
		}
		if !uses.BySignal(late.Reason) {
			b = late // of a request that did not wait for it
		}
	}
	bySignal := uses.BySignal(b.Reason)
	if b.Judged != "path" || b.Policy == 0 || !bySignal && b.Verdict.Verdict != rules.Allow.String() {
		return nil, nil
	}
	stated, err := uses.Purposes(a.client.Purposes)
	if err != nil {
		return nil, nil // it is counted among the others
	}
	q := &uses.Request{Stated: stated, Sent: !bySignal || b.Verdict.Verdict != rules.Refuse.String()}
	if q.Before, err = l.verdicts.Read(b.Signals); err != nil {
		return nil, nil
	}
	if o := a.Outcome; o != nil {
		status := o.Status
		if o.SiteStatus != 0 {
			status = o.SiteStatus
		}
		q.Ended = true
		q.NoPage = status != 304 && (status < 200 || status > 299)
		if q.After, err = l.verdicts.Read(o.Signals); err != nil {
			return nil, nil
		}
	}
	if q.Before == nil && !a.Redacted {
		q.Robots, err = l.ofRobots(r, a, b.Policy)
	}
	return q, err
}

// robotsKey identifies the usage signals of a policy for a client.
type robotsKey struct{ policy, client int64 }

// maxRobots is the number of files whose usage signals are remembered.
const maxRobots = 1 << 14

// ofRobots returns what the recorded robots.txt states about the use of the target.
func (l *library) ofRobots(r *store.Reader, a *assessment, id int64) (*signal.Verdict, error) {
	p, err := l.policy(r, id)
	if err != nil || p.err != nil || p.body == nil {
		return nil, err
	}
	key, agent := robotsKey{id, a.client.ID}, rules.Declare(a.client.Tokens...)
	robots, known := l.robots.Get(key)
	if !known {
		robots = signal.ReadRobots(p.Policy, agent, a.origin.RobotsURL())
		l.robots.Put(key, robots, maxRobots)
	}
	return uses.OfRobots(robots, p.Policy, agent, a.Target), nil
}
