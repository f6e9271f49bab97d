package proxy

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"heed/internal/audit"
	"heed/internal/base/memo"
	"heed/internal/base/safetext"
	"heed/internal/judge"
	"heed/internal/judge/acl"
	"heed/internal/pace"
	"heed/internal/trust/passport"
	"heed/proxy/refusal"
	"heed/proxy/upstream"
	"heed/rules"
)

// decision is what is decided about a request, and its record. It knows nothing of what is sent.
// It is a context: that of the request.
type decision struct {
	context.Context
	proxy    *Proxy
	req      request              // what was asked
	entry    audit.Entry          // the record
	recorded bool                 // the Recorder has accepted the entry
	refusal  *refusal.Answer      // the answer when heed itself answers; nil: the site's
	turn     atomic.Pointer[turn] // that was taken last; nil: none so far
	paced    *pace.Answer         // the last answer of the Pacer when the turn was too far off; nil: none was
	use      *use                 // what the site says of the use of its pages; nil: it is not asked
	deferred chan judge.Verdict   // brings the verdict on a request that was let through before it; else nil
}

// Value implements context.Context: for the fetch of policies it has what signs the requests of
// the client.
func (x *decision) Value(key any) any {
	if key == (upstream.SignerKey{}) {
		return x.req.signer()
	}
	return x.Context.Value(key)
}

// decide answers "may this agent fetch this target, now?" and records the answer.
// Afterwards either x.refusal is set or the request may leave.
func (x *decision) decide(ctx context.Context) {
	q := &x.req
	q.identify(x.proxy)
	if q.https != acl.Intercept || q.conn.asked != nil { // heed rewrites nothing there: the site sees the client's own name
		q.names = q.effective.TunnelIdentity(q.names, q.userAgent, x.proxy.agents.agentOf)
	}
	x.describe()
	if err := q.settings.Destinations.CheckOrigin(q.origin); err != nil {
		x.deny(forbidden(err))
		x.record()
		return
	}
	if d := x.unseenUse(); d.reason != "" {
		x.deny(d)
		x.record()
		return
	}
	x.judge(ctx)
	if x.entry.Decision.Verdict != rules.Refuse {
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
	q.signature = q.effective.Signer != nil && passport.Signed(q.header)
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

// judge answers what package judge asks about x, and makes its verdict the decision on x.
func (x *decision) judge(ctx context.Context) {
	r := &x.req
	r.asked = *rules.NewTarget(r.target)
	q := judge.Question{Query: judge.Query{
		Effective: r.effective, Target: &r.asked, HTTPS: r.https, Uninspected: r.unseen, Names: r.names, Now: x.proxy.config.Now(),
	}}
	if s := x.proxy.config.OwnServices; s != nil {
		q.OwnService = s.serves(r)
	}
	q.Mismatch, q.PageSpeaks, q.Annotate = r.mismatch != "", r.reads, r.settings.Signals.Annotate
	c := r.effective.Client
	if c != nil && c.AllowSubresources {
		q.Part = x.proxy.pages.partOf(r, x.entry.Time)
	}
	var v judge.Verdict
	for need := q.Decide(&v); need != judge.NeedsNothing; need = q.Decide(&v) {
		x.find(ctx, need, &q, &v)
	}
	r.own = v.Own
	x.adopt(&v)
	if c != nil && c.AllowSubresources && v.Decision.Verdict == rules.Allow && x.entry.Judged == audit.ByPath {
		x.proxy.pages.saw(visitor(r), r.origin.Scheme+"://"+r.host+r.target, x.entry.Time)
	}
}

// find fills in what q needs. v is the verdict so far.
func (x *decision) find(ctx context.Context, need judge.Need, q *judge.Question, v *judge.Verdict) {
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
		q.Self, q.SelfKnown = x.proxy.config.Self.IsName(r.origin, r.settings.Destinations, reach), true
	}
}

// findPolicy fills in the policy that governs x, or why there is none.
func (x *decision) findPolicy(ctx context.Context, q *judge.Question, v *judge.Verdict) {
	p := q.Effective.Site.Robots
	switch {
	case p != nil:
	case q.Effective.Mode == acl.Observe:
		p = x.policyOrDefer(ctx, q, v)
	default:
		p = x.req.settings.Policies.Policy(ctx, x.req.origin, q.Names.Shown)
	}
	x.entry.Outcome.Waited = time.Since(x.entry.Time)
	switch {
	case p == nil: // it is observed only, and its verdict will follow
		q.NoPolicy = rules.ReasonRulesPending
	case clientLeft(ctx, p):
		q.NoPolicy = rules.ReasonClientLeft
	default:
		q.Policy, q.Now = p, x.proxy.config.Now()
	}
}

// clientLeft reports whether p is not there because the client left before it
// came: that is no statement of the site's.
func clientLeft(ctx context.Context, p *rules.Policy) bool {
	source := p.Source()
	return ctx.Err() != nil && source.State == rules.Unreachable && errors.Is(source.Err, context.Cause(ctx))
}

// adopt makes v the decision on x, and writes into the record what it rests on.
func (x *decision) adopt(v *judge.Verdict) {
	e, use := &x.entry, x.use
	e.Policy, e.Unseen, e.Settled, e.Decision, e.Detail = v.Policy, int32(v.Unseen), v.OperatorReason, v.Decision, x.detail(v)
	switch {
	case v.Unjudged:
		e.Judged = audit.NotJudged
	case x.req.https != acl.Intercept:
		e.Judged = audit.ByHost
	default:
		e.Judged = audit.ByPath
	}
	if p := v.Policy; p != nil && p.Source().State != rules.Unreachable {
		e.PolicyAge = max(0, e.Time.Add(e.Outcome.Waited).Sub(p.Source().FetchedAt))
	}
	answer := refusal.Case{Reason: v.Reason}
	if use != nil {
		use.refusal, use.settled = v.Refusal, v.Excepted
		e.Signals, e.Said = recorded(use.verdict), said(use.verdict)
		answer.Use = use.refusalOf(v.Reason)
	}
	if v.Decision.Verdict == rules.Refuse {
		x.reply(answer)
	}
}

// detail returns what the record has of v beside the decision; empty for nothing.
func (x *decision) detail(v *judge.Verdict) string {
	switch {
	case v.Reason == rules.ReasonHostMismatch:
		return x.req.mismatch
	case v.Self:
		return ownAddress
	case v.Refusal != nil && !v.Excepted:
		return refusal.UseText(v.Refusal)
	case v.Decision.Verdict == rules.Refuse:
		return policyError(v.Policy)
	}
	return ""
}

// policyError returns why a policy could not be had, for the record; empty when it
// could.
func policyError(p *rules.Policy) string {
	if p == nil || p.Source().State != rules.Unreachable || p.Source().Err == nil {
		return ""
	}
	return safetext.Error(p.Source().Err)
}
