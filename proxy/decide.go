package proxy

import (
	"context"
	"errors"
	"strings"
	"time"

	"heed/internal/acl"
	"heed/internal/audit"
	"heed/internal/judge"
	"heed/internal/memo"
	"heed/internal/safetext"
	"heed/proxy/refusal"
	"heed/rules"
)

// verdict is the verdict on a request, with what the record has of it.
type verdict struct {
	judge.Verdict
	judged audit.Judged
	age    time.Duration // of the policy
	waited time.Duration // for the policy
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
	if v.Decision.Verdict != rules.Refuse {
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

// judge answers what package judge asks about x, and returns its verdict.
func (x *exchange) judge(ctx context.Context) verdict {
	r := &x.req
	r.asked = *rules.NewTarget(r.target)
	q := judge.Question{Query: acl.Query{
		Effective: r.effective, Target: &r.asked, HTTPS: r.https, Uninspected: r.unseen, Names: r.names, Now: x.proxy.config.Now(),
	}}
	q.OwnService, q.Mismatch = x.proxy.config.OwnServices.serves(r), r.mismatch != ""
	q.PageSpeaks, q.Annotate = r.reads, r.settings.Signals.Annotate
	if c := r.effective.Client; c != nil && c.AllowSubresources {
		q.Part = x.proxy.pages.partOf(r, x.entry.Time)
	}
	v := verdict{judged: audit.ByPath}
	if r.https != acl.Intercept {
		v.judged = audit.ByHost
	}
	for {
		var need judge.Need
		if v.Verdict, need = q.Decide(); need == judge.NeedsNothing {
			break
		}
		x.find(ctx, need, &q, &v)
	}
	r.own = q.OwnService
	x.describeVerdict(&q, &v)
	if c := r.effective.Client; c != nil && c.AllowSubresources && v.Decision.Verdict == rules.Allow && v.judged == audit.ByPath {
		x.proxy.pages.saw(visitor(r), r.origin.Scheme+"://"+r.host+r.target, x.entry.Time)
	}
	return v
}

// find fills in what q needs.
func (x *exchange) find(ctx context.Context, need judge.Need, q *judge.Question, v *verdict) {
	r := &x.req
	switch need {
	case judge.NeedsPolicy:
		x.findPolicy(ctx, q, v)
	case judge.NeedsHeld:
		q.Held = append([]*rules.Policy{}, r.settings.Policies.Held(r.origin)...)
	case judge.NeedsStatements:
		x.findStatements(ctx, q, v)
	case judge.NeedsSelf:
		reach := func() error { return r.settings.Policies.Policy(ctx, r.origin, r.names.Shown).Source().Err }
		q.Self = judge.Knows(x.proxy.config.Self.IsName(r.origin, r.settings.Destinations, reach))
	}
}

// findPolicy fills in the policy that governs x, or why there is none.
func (x *exchange) findPolicy(ctx context.Context, q *judge.Question, v *verdict) {
	p := x.policy(ctx, q)
	now := time.Now()
	v.waited = now.Sub(x.entry.Time)
	switch {
	case p == nil:
		q.NoPolicy = rules.ReasonRulesPending
		return
	case clientLeft(ctx, p):
		q.NoPolicy = rules.ReasonClientLeft
		return
	}
	q.Policy, q.Unreached, q.Now = p, refusal.Unreached(p), x.proxy.config.Now()
}

// describeVerdict adds to v what the record has of it beside the decision.
func (x *exchange) describeVerdict(q *judge.Question, v *verdict) {
	if v.Policy != nil {
		if source := v.Policy.Source(); source.State != rules.Unreachable {
			v.age = max(0, x.entry.Time.Add(v.waited).Sub(source.FetchedAt))
		}
	}
	if v.Unjudged {
		v.judged = audit.NotJudged
	}
	if v.use != nil {
		v.use.refusal, v.use.settled = v.Refusal, v.Excepted
	}
	switch {
	case v.Reason == rules.ReasonHostMismatch:
		v.detail = x.req.mismatch
	case v.Self:
		v.detail = ownAddress
	case v.Refusal != nil && !v.Excepted:
		v.detail = refusal.UseText(v.Refusal)
	case v.Decision.Verdict == rules.Refuse:
		v.detail = policyError(v.Policy)
	}
}

// policy returns the policy that governs x; nil when x is observed only and its
// verdict will follow.
func (x *exchange) policy(ctx context.Context, q *judge.Question) *rules.Policy {
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

// adopt makes v the decision on x.
func (x *exchange) adopt(v *verdict) {
	e := &x.entry
	e.Judged, e.Policy, e.PolicyAge, e.Outcome.Waited = v.judged, v.Policy, v.age, v.waited
	e.Unseen, e.Settled, e.Detail, e.Decision = v.Unseen, v.OperatorReason, v.detail, v.Decision
	answer := refusal.Case{Reason: v.Reason}
	if x.use = v.use; x.use != nil {
		e.Signals, e.Said = recorded(x.use.verdict), said(x.use.verdict)
		answer.Use = x.use.refusalOf(v.Reason)
	}
	if v.Decision.Verdict == rules.Refuse {
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
