package proxy

import (
	"context"
	"runtime/debug"
	"time"

	"heed/internal/judge"
	"heed/proxy/upstream"
	"heed/rules"
)

// Bounds of a verdict that follows its request.
const (
	observePatience = 2 * time.Second  // for a policy, before a request that is observed only leaves without a verdict
	deferredTime    = 30 * time.Second // for the policy from then on
	maxDeferred     = 1024             // requests that wait for a verdict at a time; more get none
)

// policyOrDefer returns the policy that governs x, which is observed only. That
// costs no client an answer: where the policy does not come soon it returns nil,
// and the verdict follows the request.
func (x *decision) policyOrDefer(ctx context.Context, q *judge.Question, v *judge.Verdict) *rules.Policy {
	soon, cancel := context.WithTimeout(ctx, observePatience)
	defer cancel()
	p := x.req.settings.Policies.Policy(soon, x.req.origin, q.Names.Shown)
	if soon.Err() == nil || ctx.Err() != nil || p.Source().State != rules.Unreachable {
		return p
	}
	if n := x.proxy.deferred.Add(1); n > maxDeferred {
		x.proxy.deferred.Add(-1)
		return nil
	}
	x.proxy.running.Add(1) // until the record is closed
	x.deferred = make(chan judge.Verdict, 1)
	later := *q
	later.Target = rules.NewTarget(x.req.target)
	go x.judgeDeferred(context.WithValue(x.proxy.lasting, upstream.SignerKey{}, x.req.signer()), later, *v)
	return nil
}

// judgeDeferred judges a request that has left, when the policy comes. It runs
// beside the handler and reads nothing of x that the handler changes.
func (x *decision) judgeDeferred(lasting context.Context, q judge.Question, v judge.Verdict) {
	defer x.proxy.deferred.Add(-1)
	defer close(x.deferred)
	defer func() {
		if fault := recover(); fault != nil {
			x.proxy.config.Log.Error("a verdict after the fact failed inside heed", "id", x.entry.ID, "panic", fault, "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(lasting, deferredTime)
	defer cancel()
	p := x.req.settings.Policies.Policy(ctx, x.req.origin, q.Names.Shown)
	if ctx.Err() != nil && p.Source().State == rules.Unreachable {
		return // it never came
	}
	q.Now, q.Policy, q.SelfKnown = x.proxy.config.Now(), p, true
	q.Effective.Terms, q.Annotate, q.Part, q.Mismatch = nil, false, "", false // the rules alone count
	if q.Decide(&v) == judge.NeedsHeld {
		q.Held = append([]*rules.Policy{}, x.req.settings.Policies.Held(x.req.origin)...)
		q.Decide(&v)
	}
	if v.Decision.Verdict == rules.Refuse { // it has left all the same
		v.Decision.Verdict = rules.WouldRefuse
	}
	x.deferred <- v
}

// endDeferred closes the record when the verdict has followed.
func (x *decision) endDeferred() {
	defer x.proxy.running.Add(-1)
	if v, ok := <-x.deferred; ok {
		o := &x.entry.Outcome
		o.Late, o.LatePolicy, o.LateSettled = &v.Decision, v.Policy, v.OperatorReason
	}
	if x.recorded {
		x.proxy.config.Recorder.Ended(&x.entry)
	}
}
