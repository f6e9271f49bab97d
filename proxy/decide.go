package proxy

import (
	"context"
	"errors"
	"strings"
	"time"

	"heed/internal/acl"
	"heed/internal/audit"
	"heed/internal/memo"
	"heed/internal/safetext"
	"heed/proxy/refusal"
	"heed/proxy/upstream"
	"heed/rules"
)

// verdict is what the rules say of a request, with what that rests on.
type verdict struct {
	acl.Result
	judged audit.Judged
	policy *rules.Policy // nil: none was needed
	age    time.Duration // of policy
	waited time.Duration // for policy
	detail string        // for the record; empty: nothing beside the decision
	use    *use          // nil: see exchange
}

// decide answers "may this agent fetch this target, now?" and records the answer.
// Afterwards either x.refusal is set or the request may leave.
func (x *exchange) decide(ctx context.Context) {
	q := &x.req
	q.identify(x.proxy)
	if q.https != acl.Intercept { // heed rewrites nothing in such a tunnel: the site sees the client's own name
		q.names = q.effective.TunnelIdentity(q.names, q.userAgent, x.proxy.agents.agentOf)
	}
	x.describe()
	if err := q.settings.Destinations.CheckOrigin(q.origin); err != nil {
		x.deny(forbidden(err))
		x.record()
		return
	}
	v := x.judge(ctx)
	x.adopt(&v)
	if v.Verdict != rules.Refuse {
		x.waitTurn(ctx)
	}
	x.record()
}

// identify sets the settings that apply to the client at this site, the names that q is
// judged by and those that the site will see. It does so once.
func (q *request) identify(p *Proxy) {
	if q.identified {
		return
	}
	q.client.UserAgent = q.userAgent
	q.effective = q.settings.Rules.For(q.settings.Rules.ClientOf(q.client), q.origin, p.config.Now())
	q.names = q.effective.Identity(q.userAgent, p.agents.agentOf)
	q.identified = true
}

// Bounds of an agentMemo: User-Agent strings are the client's to choose.
const (
	maxAgents      = 4096
	maxAgentLength = 1024 // octets; longer strings are identified each time
)

// agentMemo holds the Agents that User-Agent strings name. The zero value is ready.
type agentMemo struct{ memo.Map[string, *rules.Agent] }

// agentOf returns the Agent that a User-Agent names.
func (m *agentMemo) agentOf(userAgent string) *rules.Agent {
	a, ok := m.Get(userAgent)
	if ok {
		return a
	}
	a = rules.Identify(userAgent)
	if len(userAgent) <= maxAgentLength {
		m.Put(strings.Clone(userAgent), a, maxAgents)
	}
	return a
}

// judge decides by the operator's settings for the site or the client, where they
// suffice, and by the origin's policy otherwise.
func (x *exchange) judge(ctx context.Context) verdict {
	r := &x.req
	r.asked = *rules.NewTarget(r.target)
	q := acl.Query{Effective: r.effective, Target: &r.asked, HTTPS: r.https, Uninspected: r.unseen, Names: r.names, Now: x.proxy.config.Now()}
	v := verdict{judged: audit.ByPath}
	if r.https != acl.Intercept {
		v.judged = audit.ByHost
	}
	var settled bool
	v.Result, settled = q.WithoutRules()
	if own := x.proxy.config.OwnServices; !settled && own != nil {
		settled = own.judge(r, &q, &v)
	}
	if !settled {
		x.judgeByPolicy(ctx, &q, &v)
	}
	reach := func() error { return r.settings.Policies.Policy(ctx, r.origin, r.names.Shown).Source().Err }
	if v.Verdict == rules.Allow && !r.own && x.proxy.config.Self.IsName(r.origin, r.settings.Destinations, reach) {
		v.Result, v.policy, v.detail = acl.Result{Decision: rules.Decision{Reason: rules.ReasonLoop}, Unjudged: true}, nil, ownAddress
	}
	if v.Unjudged {
		v.judged = audit.NotJudged
	}
	if c := r.effective.Client; c != nil && c.AllowSubresources {
		x.proxy.pages.allowSubresource(r, &v, x.entry.Time)
	}
	if r.mismatch != "" && r.effective.Mode == acl.Observe {
		v.Decision, v.detail = rules.Decision{Reason: rules.ReasonHostMismatch}, r.mismatch
	}
	v.Result = r.effective.Apply(v.Result)
	if v.Verdict == rules.Refuse && v.detail == "" {
		v.detail = policyError(v.policy)
	}
	return v
}

// judgeByPolicy decides by the rules of the site, or those that the operator put
// in their place, and the exceptions from them.
func (x *exchange) judgeByPolicy(ctx context.Context, q *acl.Query, v *verdict) {
	p := x.policy(ctx, q)
	now := time.Now()
	v.waited = now.Sub(x.entry.Time)
	if p == nil {
		v.Result = acl.Result{Decision: rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonRulesPending}, Unjudged: true}
		return
	}
	if clientLeft(ctx, p) {
		v.Result = acl.Result{Decision: rules.Decision{Reason: rules.ReasonClientLeft}, Unjudged: true}
		return
	}
	q.Now = x.proxy.config.Now()
	v.Result, v.policy = x.req.evaluate(q, p)
	if source := v.policy.Source(); source.State != rules.Unreachable {
		v.age = max(0, now.Sub(source.FetchedAt))
	}
	if v.Verdict == rules.Allow && q.HTTPS == acl.Intercept {
		x.judgeUse(ctx, q, v)
	}
}

// evaluate returns the decision on query under p, and the policy that decided. Of an
// origin that answers clients differently, a request without a User-Agent is refused when
// any of the files refuses it that are held for clients with a name: otherwise a client
// would get by leaving its name out what the site refuses to it.
func (q *request) evaluate(query *acl.Query, p *rules.Policy) (acl.Result, *rules.Policy) {
	r := evaluate(query, p)
	if query.Names.Shown != "" || query.Effective.Site.Robots != nil || r.Verdict == rules.Refuse {
		return r, p
	}
	for _, held := range q.settings.Policies.Held(q.origin) {
		if strict := evaluate(query, held); strict.Verdict == rules.Refuse {
			return strict, held
		}
	}
	return r, p
}

// policy returns the policy that governs x; nil when x is observed only and its
// verdict will follow.
func (x *exchange) policy(ctx context.Context, q *acl.Query) *rules.Policy {
	switch s := x.req.settings; {
	case q.Effective.Site.Robots != nil:
		return q.Effective.Site.Robots
	case q.Effective.Mode == acl.Observe:
		return x.policyOrDefer(ctx, q)
	default:
		return s.Policies.Policy(ctx, x.req.origin, q.Names.Shown)
	}
}

// clientLeft reports whether p is not there because the client left before it
// came: that is no statement of the site's.
func clientLeft(ctx context.Context, p *rules.Policy) bool {
	source := p.Source()
	return ctx.Err() != nil && source.State == rules.Unreachable && errors.Is(source.Err, context.Cause(ctx))
}

// evaluate returns the decision on q under p.
func evaluate(q *acl.Query, p *rules.Policy) acl.Result {
	o := q.Decide(p)
	if o.Reason != rules.ReasonOriginUnreachable {
		return o
	}
	switch err := p.Source().Err; {
	case errors.Is(err, upstream.ErrDestination):
		o.Reason = rules.ReasonDestination
	case errors.Is(err, upstream.ErrSelf):
		o.Reason, o.Unjudged = rules.ReasonLoop, true
	}
	return o
}

// adopt makes v the decision on x.
func (x *exchange) adopt(v *verdict) {
	e := &x.entry
	e.Judged, e.Policy, e.PolicyAge, e.Outcome.Waited = v.judged, v.policy, v.age, v.waited
	e.Unseen, e.Settled, e.Detail, e.Decision = v.Unseen, v.OperatorReason, v.detail, v.Decision
	answer := refusal.Case{Reason: v.Reason}
	if x.use = v.use; x.use != nil {
		e.Signals, e.Said = recorded(x.use.verdict), said(x.use.verdict)
		answer.Use = x.use.refusalOf(v.Reason)
	}
	if v.Verdict == rules.Refuse {
		x.reply(answer)
	}
}

// policyError returns why a policy could not be had, for the record; empty when it
// could.
func policyError(p *rules.Policy) string {
	if p == nil || p.Source().State != rules.Unreachable || p.Source().Err == nil {
		return ""
	}
	return safetext.Error(p.Source().Err)
}
