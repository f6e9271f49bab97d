package replay

import (
	"cmp"
	"errors"

	"heed/internal/audit/store"
	"heed/internal/audit/uses"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/rules"
)

// errNoStatements is why a decision by statements cannot be judged again without them.
var errNoStatements = errors.New("the record does not have what the site states about the use of its pages")

// findStatements sets bySignal, and where what the site states of the use of the page decided,
// statements and purposes: what was known of them when a was decided. An error means that the
// record does not have it.
func (a *assessment) findStatements(l *library) error {
	reason, page := rules.Reason(a.basis.Reason), ""
	sure := uses.BySignal(a.basis.Reason)
	if !sure && reason != rules.ReasonTooComplex && reason != rules.ReasonOverride {
		return nil
	}
	if a.late && a.Outcome != nil {
		page = a.Outcome.Signals
	}
	v, err := l.verdicts.Both(a.basis.Signals, page)
	if err == nil && v == nil {
		err = errNoStatements
	}
	stated, unknown := uses.Purposes(a.client.Purposes)
	if err = cmp.Or(err, unknown); err == nil && !sure {
		refusal, refused := v.Refuses(stated...) // an exception may have allowed it
		sure = refused && (reason == rules.ReasonOverride || refusal.Reason == rules.ReasonTooComplex)
	} else if err != nil && !sure {
		return nil
	}
	if sure {
		a.bySignal, a.statements, a.purposes = true, v, stated
	}
	return err
}

// withheldNow reports whether the page that was delivered would be withheld now, by a
// statement of its answer that the heed of then did not obey. a is judged.
func (a *assessment) withheldNow(l *library) bool {
	if a.Outcome == nil || !a.Outcome.FromSite || a.Outcome.SiteStatus != 0 || a.client.Mode != acl.Enforce.String() || a.excepted() {
		return false
	}
	answer, err := l.verdicts.Read(a.Outcome.Signals)
	if err != nil || answer == nil || answer.Obeyed() == answer {
		return false
	}
	both, err := l.verdicts.Both(a.basis.Signals, a.Outcome.Signals)
	stated, unknown := uses.Purposes(a.client.Purposes)
	if err != nil || unknown != nil {
		return false
	}
	_, refused := both.Obeyed().Refuses(stated...)
	return refused
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
	robots, err := l.robots.Load(key, maxRobots, func() (*signal.Robots, error) {
		return signal.ReadRobots(p.Policy, agent, a.origin.RobotsURL()), nil
	})
	return uses.OfRobots(robots, p.Policy, agent, a.Target), err
}
