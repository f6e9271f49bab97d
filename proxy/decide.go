package proxy

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"heed/internal/audit"
	"heed/rules"
)

// decide answers "may this agent fetch this target, now?" and records the
// answer. Afterwards either x.refusal is set or the request may leave. The
// steps: identify, policy, rules, record.
func (x *exchange) decide(r *http.Request) {
	e := &x.entry
	e.Agent = x.proxy.Agent
	if e.Agent == nil {
		e.Agent = x.proxy.agents.identify(e.UserAgent)
	}
	if own := x.proxy.UserAgent; own != e.UserAgent {
		e.Sent = own
	}
	e.Judged = audit.ByPath
	d := x.judge(r.Context())
	if e.Decision = d; d.Verdict != rules.Allow {
		x.refuse(d, refusalDetail(e.Policy))
	}
	x.record()
}

// judge asks the origin's policy. /robots.txt itself needs none: it is always
// allowed (RFC 9309 §2.2.2).
func (x *exchange) judge(ctx context.Context) rules.Decision {
	e := &x.entry
	if e.Target == "/robots.txt" {
		return rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonRobotsTxt}
	}
	e.Policy = x.proxy.Policies.Policy(ctx, x.origin, cmp.Or(x.proxy.UserAgent, e.UserAgent))
	now := time.Now()
	e.Outcome.Waited = now.Sub(e.Time)
	source := e.Policy.Source()
	if source.State != rules.Unreachable {
		e.PolicyAge = max(0, now.Sub(source.FetchedAt))
	}
	target := e.Target
	if target == "*" {
		target = "/" // OPTIONS * asks about the whole site
	}
	d := e.Policy.Decide(e.Agent, target)
	if d.Reason == rules.ReasonRobotsUnreachable && source.NoConnection {
		d.Reason = rules.ReasonOriginUnreachable
	}
	return d
}

// refusalDetail says why a policy is not there, for the record.
func refusalDetail(p *rules.Policy) string {
	if p == nil || p.Source().State != rules.Unreachable || p.Source().Err == nil {
		return ""
	}
	return errorText(p.Source().Err)
}
