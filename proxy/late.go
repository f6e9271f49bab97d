package proxy

import (
	"context"
	"runtime/debug"
	"time"

	"heed/internal/terms"
	"heed/rules"
)

// Bounds of judging after the fact.
const (
	latePatience = 2 * time.Second  // for a policy, before a request that is observed only leaves without a verdict
	lateTime     = 30 * time.Second // for the policy from then on
	maxLate      = 1024             // requests that wait for a verdict at a time; more get none
)

// verdict is one that came after its request, with what it rests on.
type verdict struct {
	terms.Opinion
	policy *rules.Policy
}

// policyFor returns the policy that governs x. Observing costs nobody an
// answer: where the policy is not here soon it returns nil, and the verdict
// follows the request.
func (x *exchange) policyFor(ctx context.Context, q *terms.Question) *rules.Policy {
	if own := x.terms.Site.Robots; own != nil {
		return own
	}
	shown := q.Names.Shown
	if x.terms.Mode != terms.Observe {
		return x.settings.Policies.Policy(ctx, x.origin, shown)
	}
	soon, cancel := context.WithTimeout(ctx, latePatience)
	defer cancel()
	p := x.settings.Policies.Policy(soon, x.origin, shown)
	if soon.Err() == nil || ctx.Err() != nil || p.Source().State != rules.Unreachable {
		return p
	}
	if n := x.proxy.late.Add(1); n > maxLate {
		x.proxy.late.Add(-1)
		return nil
	}
	x.proxy.running.Add(1) // until the record is closed
	x.late = make(chan verdict, 1)
	go x.judgeLate(*q)
	return nil
}

// judgeLate judges a request that has left, when the policy comes.
func (x *exchange) judgeLate(q terms.Question) {
	defer x.proxy.late.Add(-1)
	defer close(x.late)
	defer func() {
		if v := recover(); v != nil {
			x.proxy.Log.Error("a verdict after the fact failed inside heed", "id", x.entry.ID, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(x.proxy.lasting, lateTime)
	defer cancel()
	p := x.settings.Policies.Policy(ctx, x.origin, q.Names.Shown)
	if ctx.Err() != nil && p.Source().State == rules.Unreachable {
		return // it never came
	}
	q.Now = x.proxy.Now()
	o := under(&q, p)
	if o.Verdict == rules.Refuse {
		o.Verdict = rules.WouldRefuse
	}
	x.late <- verdict{o, p}
}

// ended tells the Recorder that x is over, at once or when the verdict has
// followed.
func (x *exchange) ended() {
	if x.late != nil {
		go x.endLate()
	} else if x.recorded {
		x.proxy.Recorder.Ended(&x.entry)
	}
}

func (x *exchange) endLate() {
	defer x.proxy.running.Add(-1)
	if d, ok := <-x.late; ok {
		o := &x.entry.Outcome
		o.Late, o.LatePolicy, o.LateSettled = &d.Decision, d.policy, d.Settled
	}
	if x.recorded {
		x.proxy.Recorder.Ended(&x.entry)
	}
}
