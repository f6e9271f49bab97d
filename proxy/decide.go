package proxy

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/terms"
	"heed/rules"
)

// decide answers "may this agent fetch this target, now?" and records the
// answer. Afterwards either x.refusal is set or the request may leave. The
// steps: access, identify, policy, rules, pace, record.
func (x *exchange) decide(r *http.Request) {
	x.identify()
	if x.https != terms.Intercept {
		x.asItIs()
	}
	e := &x.entry
	if err := x.access(); err != nil {
		x.refuseDestination(err)
		x.record()
		return
	}
	e.Judged = audit.ByPath
	o := x.part(x.judge(r.Context()))
	if x.mismatch != "" && x.terms.Mode == terms.Observe {
		o.Decision, e.Detail = rules.Decision{Reason: rules.ReasonHostMismatch}, x.mismatch
	}
	o = x.terms.Observed(o)
	e.Unseen, e.Settled = o.Unseen, o.Settled
	if e.Decision = o.Decision; o.Verdict == rules.Refuse {
		x.refuse(o.Decision, firstOf(e.Detail, refusalDetail(e.Policy)))
	} else {
		x.pace(r.Context())
	}
	x.record()
}

// access says why the place may not be asked for, as far as its name tells: its
// addresses are looked at when it is dialled.
func (x *exchange) access() error {
	d := x.settings.Destinations
	if d == nil || len(d.Refuse) == 0 && !mayBeAddress(x.origin.Host) {
		return nil
	}
	_, placed := d.Placed[x.origin.HostPort()]
	_, err := d.visit(x.origin.Host, x.origin.Port, placed)
	return err
}

// mayBeAddress reports whether a canonical host may be an IP address; it is
// sure of those that are not.
func mayBeAddress(host string) bool {
	last := host[len(host)-1]
	return last >= '0' && last <= '9' || strings.IndexByte(host, ':') >= 0
}

// judge decides by what was settled with the site or the client, where that
// says all, and asks the origin's policy otherwise.
func (x *exchange) judge(ctx context.Context) terms.Opinion {
	e, q := &x.entry, x.question()
	if x.https != terms.Intercept {
		e.Judged = audit.ByHost
	}
	o, ok := q.WithoutRules()
	if !ok {
		o = x.judgePolicy(ctx, &q)
	}
	if o.Unjudged {
		e.Judged = audit.NotJudged
	}
	return o
}

// question is what x asks, but for the rules of the site.
func (x *exchange) question() terms.Question {
	e := &x.entry
	return terms.Question{
		Terms: x.terms, Target: e.Target, HTTPS: x.https, Unlooked: x.unseen, Now: x.proxy.Now(),
		Names: terms.Identity{Judged: e.Agent, Visible: x.visible, Shown: cmp.Or(e.Sent, e.UserAgent), From: e.SentFrom},
	}
}

// judgePolicy asks the rules of the site, or those that the operator put in
// their place, and the exceptions from them.
func (x *exchange) judgePolicy(ctx context.Context, q *terms.Question) terms.Opinion {
	e := &x.entry
	p := x.policyFor(ctx, q)
	now := time.Now()
	e.Outcome.Waited = now.Sub(e.Time)
	if p == nil {
		return terms.Opinion{Decision: rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonLate}, Unjudged: true}
	}
	if leftFirst(ctx, p) {
		return terms.Opinion{Decision: rules.Decision{Reason: rules.ReasonLeft}, Unjudged: true}
	}
	e.Policy = p
	if source := p.Source(); source.State != rules.Unreachable {
		e.PolicyAge = max(0, now.Sub(source.FetchedAt))
	}
	q.Now = x.proxy.Now()
	return under(q, p)
}

// leftFirst reports whether p is not there because the client left before it
// came: that says nothing of the site.
func leftFirst(ctx context.Context, p *rules.Policy) bool {
	source := p.Source()
	return ctx.Err() != nil && source.State == rules.Unreachable && errors.Is(source.Err, context.Cause(ctx))
}

// under judges q by p.
func under(q *terms.Question, p *rules.Policy) terms.Opinion {
	o := q.By(p)
	if o.Reason == rules.ReasonOriginUnreachable && errors.Is(p.Source().Err, ErrDestination) {
		o.Reason = rules.ReasonDestination
	}
	return o
}

// asItIs undoes what was settled about names that a site is shown: in a tunnel
// nothing is changed, so that the site sees who the client says it is.
func (x *exchange) asItIs() {
	e := &x.entry
	id := x.terms.InTunnel(terms.Identity{Judged: e.Agent}, e.UserAgent, x.proxy.agents.identify)
	e.Sent, e.SentFrom, x.visible = "", "", id.Visible
}

// refusalDetail says why a policy is not there, for the record.
func refusalDetail(p *rules.Policy) string {
	if p == nil || p.Source().State != rules.Unreachable || p.Source().Err == nil {
		return ""
	}
	return errorText(p.Source().Err)
}
