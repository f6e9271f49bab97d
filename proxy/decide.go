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
// steps: access, identify, policy, rules, record.
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
	d := x.part(x.judge(r.Context()))
	if x.mismatch != "" && x.terms.Mode == terms.Observe {
		d, e.Detail = rules.Decision{Reason: rules.ReasonHostMismatch}, x.mismatch
	}
	if d.Verdict == rules.Refuse && x.terms.Mode == terms.Observe && d.Reason != rules.ReasonDestination && d.Reason != rules.ReasonLeft {
		d.Verdict = rules.WouldRefuse
		if b := x.terms.Break; b != nil && e.Settled == "" {
			e.Settled = b.Reason
		}
	}
	if e.Decision = d; d.Verdict == rules.Refuse {
		x.refuse(d, firstOf(e.Detail, refusalDetail(e.Policy)))
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
// says all, and asks the origin's policy otherwise. /robots.txt itself needs
// neither: it is always allowed (RFC 9309 §2.2.2).
func (x *exchange) judge(ctx context.Context) rules.Decision {
	e := &x.entry
	if x.https == terms.Tunnel && x.terms.Mode != terms.Exempt {
		e.Judged = audit.ByHost // by the operator alone
		unseen := rules.Decision{Verdict: rules.Allow, Reason: cmp.Or(x.unseen, rules.ReasonTunnel)}
		d, reason := x.override(unseen, "")
		if e.Settled = reason; d == unseen {
			e.Judged = audit.NotJudged
		}
		return d
	}
	if d, reason, ok := x.terms.Settled(e.Target, cmp.Or(e.Sent, e.UserAgent)); ok {
		if e.Settled = reason; d.Reason == rules.ReasonExempt || d.Reason == rules.ReasonNotACrawl {
			e.Judged = audit.NotJudged
		}
		return d
	}
	target := e.Target
	if target == "*" {
		target = "/" // OPTIONS * asks about the whole site
	}
	return x.judgePolicy(ctx, target)
}

// judgePolicy asks the rules of the site, or those that the operator put in
// their place, and the exceptions from them.
func (x *exchange) judgePolicy(ctx context.Context, target string) rules.Decision {
	e := &x.entry
	p := x.policyFor(ctx, target)
	now := time.Now()
	e.Outcome.Waited = now.Sub(e.Time)
	if p == nil {
		e.Judged = audit.NotJudged
		return rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonLate}
	}
	if leftFirst(ctx, p) {
		e.Judged = audit.NotJudged
		return rules.Decision{Reason: rules.ReasonLeft}
	}
	e.Policy = p
	if source := p.Source(); source.State != rules.Unreachable {
		e.PolicyAge = max(0, now.Sub(source.FetchedAt))
	}
	if x.https == terms.HostOnly {
		e.Judged = audit.ByHost
	}
	o := x.under(p, target)
	e.Unseen, e.Settled = o.unseen, o.settled
	return o.Decision
}

// leftFirst reports whether p is not there because the client left before it
// came: that says nothing of the site.
func leftFirst(ctx context.Context, p *rules.Policy) bool {
	source := p.Source()
	return ctx.Err() != nil && source.State == rules.Unreachable && errors.Is(source.Err, context.Cause(ctx))
}

// opinion is a Decision with what the Entry says beside it.
type opinion struct {
	rules.Decision
	unseen  int    // rules that might have refused what a tunnel hides
	settled string // the operator's reason for an exception that decided
}

// under judges x by p. A name that the site will not see can only add refusals.
// It changes nothing of x.
func (x *exchange) under(p *rules.Policy, target string) (o opinion) {
	o.Decision, o.unseen = x.ask(p, x.entry.Agent, target)
	if x.visible != nil && o.Verdict == rules.Allow {
		seen, unseen := x.ask(p, x.visible, target)
		if o.unseen = max(o.unseen, unseen); seen.Verdict == rules.Refuse {
			o.Decision = seen
		}
	}
	if source := p.Source(); o.Reason == rules.ReasonRobotsUnreachable && source.NoConnection {
		o.Reason = rules.ReasonOriginUnreachable
		if errors.Is(source.Err, ErrDestination) {
			o.Reason = rules.ReasonDestination
		}
	}
	o.Decision, o.settled = x.override(o.Decision, target)
	return o
}

// ask asks the policy about a target, or about the host of a tunnel.
func (x *exchange) ask(p *rules.Policy, agent *rules.Agent, target string) (d rules.Decision, unseen int) {
	if x.https != terms.HostOnly {
		return p.Decide(agent, target), 0
	}
	return p.DecideHost(agent)
}

// asItIs undoes what was settled about names that a site is shown: in a tunnel
// nothing is changed, so that the site sees who the client says it is.
func (x *exchange) asItIs() {
	e := &x.entry
	e.Sent, e.SentFrom, x.visible = "", "", nil
	if own := x.proxy.agents.identify(e.UserAgent); x.terms.Client != nil && !terms.Names(own, e.Agent) {
		x.visible = own
	}
}

// override lets an exception decide in place of d where one fits: one that
// refuses always, one that allows when d refuses for want of permission. Of a
// tunnel no target is seen: there only what is about the whole site counts. It
// returns the exception's reason, too.
func (x *exchange) override(d rules.Decision, target string) (rules.Decision, string) {
	var exception *terms.Exception
	var rule string
	if now := x.proxy.Now(); x.https == terms.Intercept {
		exception, rule = x.terms.Override(target, terms.Overrides(d), now)
	} else {
		exception, rule = x.terms.OverrideHost(terms.Overrides(d), now)
	}
	if exception == nil {
		return d, ""
	}
	return exception.Verdict(rule), exception.Reason
}

// refusalDetail says why a policy is not there, for the record.
func refusalDetail(p *rules.Policy) string {
	if p == nil || p.Source().State != rules.Unreachable || p.Source().Err == nil {
		return ""
	}
	return errorText(p.Source().Err)
}
