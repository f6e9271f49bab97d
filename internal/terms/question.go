package terms

import (
	"cmp"
	"strings"
	"time"

	"heed/rules"
)

// Question is "may this agent fetch this target, now?" with all that the answer
// depends on beside the site's rules. It is the same question a year later.
type Question struct {
	Terms Terms
	Names Identity
	// Target is path and query as they are sent; "*" asks about the whole site.
	Target string
	// HTTPS is what becomes of a CONNECT; Intercept for everything else.
	HTTPS HTTPS
	// Unlooked is why a tunnel passes although it should be looked into; empty:
	// the terms let it pass.
	Unlooked rules.Reason
	Now      time.Time
}

// Opinion is a Decision with what the record says beside it.
type Opinion struct {
	rules.Decision
	Unjudged bool   // nothing was judged; the reason says why
	Unseen   int    // rules that might have refused what a tunnel hides
	Settled  string // the operator's reason for an exception that decided
	Stopped  bool   // the operator stopped it while heed ran: it is refused in every mode but exempt
}

// WithoutRules answers q where what was settled with the site or the client says
// all; ok is false when the site's rules count. /robots.txt itself needs
// neither: it is always allowed (RFC 9309 §2.2.2).
func (q *Question) WithoutRules() (o Opinion, ok bool) {
	if o, ok = q.stopped(); ok {
		return o, true
	}
	if q.HTTPS == Tunnel && q.Terms.Mode != Exempt {
		unseen := rules.Decision{Verdict: rules.Allow, Reason: cmp.Or(q.Unlooked, rules.ReasonTunnel)}
		o.Decision, o.Settled = q.override(unseen)
		o.Unjudged = o.Decision == unseen // else by the operator, who knows the host
		return o, true
	}
	if o.Decision, o.Settled, ok = q.Terms.Settled(q.Target, q.Names.Shown); !ok {
		return Opinion{}, false
	}
	o.Unjudged = o.Reason == rules.ReasonExempt || o.Reason == rules.ReasonNotACrawl
	return o, true
}

// stopped answers q where the operator has stopped what it asks about. That needs
// nothing of the site, which may have asked for it: not even its robots.txt is
// fetched.
func (q *Question) stopped() (o Opinion, ok bool) {
	if q.Terms.Mode == Exempt || q.HTTPS == Intercept && q.Target == "/robots.txt" {
		return o, false
	}
	for _, e := range q.Terms.Site.Exceptions {
		if !e.Stop() || !e.holds(q.Terms.Name(), q.Now) {
			continue
		}
		rule, fits := e.whole()
		if q.HTTPS == Intercept {
			rule, fits = e.match(cmp.Or(strings.TrimPrefix(q.Target, "*"), "/"))
		}
		if fits {
			return Opinion{Decision: e.Verdict(rule), Settled: e.Reason, Stopped: true}, true
		}
	}
	return o, false
}

// By answers q by p, the rules of the site or those that the operator put in
// their place, and the exceptions from them. A name that the site will not see
// can only add refusals.
func (q *Question) By(p *rules.Policy) (o Opinion) {
	o.Decision, o.Unseen = q.ask(p, q.Names.Judged)
	if q.Names.Visible != nil && o.Verdict == rules.Allow {
		seen, unseen := q.ask(p, q.Names.Visible)
		if o.Unseen = max(o.Unseen, unseen); seen.Verdict == rules.Refuse {
			o.Decision = seen
		}
	}
	if o.Reason == rules.ReasonRobotsUnreachable && p.Source().NoConnection {
		o.Reason = rules.ReasonOriginUnreachable
	}
	o.Decision, o.Settled = q.override(o.Decision)
	return o
}

// ask asks the policy about the target, or about the host of a tunnel.
func (q *Question) ask(p *rules.Policy, agent *rules.Agent) (d rules.Decision, unseen int) {
	switch {
	case q.HTTPS == HostOnly:
		return p.DecideHost(agent)
	case q.Target == "*":
		return p.Decide(agent, "/"), 0
	}
	return p.Decide(agent, q.Target), 0
}

// override lets an exception decide in place of d where one fits: one that
// refuses always, one that allows when d refuses for want of permission. Of a
// tunnel no target is seen: there only what is about the whole site counts. It
// returns the exception's reason, too.
func (q *Question) override(d rules.Decision) (rules.Decision, string) {
	var exception *Exception
	var rule string
	switch {
	case q.HTTPS != Intercept:
		exception, rule = q.Terms.OverrideHost(Overrides(d), q.Now)
	case q.Target == "*":
		exception, rule = q.Terms.Override("/", Overrides(d), q.Now)
	default:
		exception, rule = q.Terms.Override(q.Target, Overrides(d), q.Now)
	}
	if exception == nil {
		return d, ""
	}
	return exception.Verdict(rule), exception.Reason
}

// Observed returns o as it takes effect: where nothing is to be refused, a
// refusal is only told, with the reason of the break that it is due to. What
// cannot be let through at all is refused all the same.
func (t Terms) Observed(o Opinion) Opinion {
	if o.Verdict != rules.Refuse || t.Mode != Observe || o.Stopped || o.Reason == rules.ReasonDestination || o.Reason == rules.ReasonLeft {
		return o
	}
	o.Verdict = rules.WouldRefuse
	if b := t.Break; b != nil {
		o.Settled = cmp.Or(o.Settled, b.Reason)
	}
	return o
}

// MayBePart reports whether the part of a page that o refuses may be loaded all
// the same, if it is one of a page that the client may read: the terms say so,
// and the site's rules alone are in the way.
func (t Terms) MayBePart(o Opinion) bool {
	return t.Client != nil && t.Client.AllowParts && o.Reason == rules.ReasonRule && o.Verdict == rules.Refuse &&
		!t.Site.NeverAllow && t.Mode == Enforce
}

// AsPart returns o for a part that may be loaded, of the kind that
// Sec-Fetch-Dest tells.
func (t Terms) AsPart(o Opinion, kind string) Opinion {
	o.Settled = "a part (" + kind + ") of a page that " + t.Client.Name + " may read"
	o.Verdict, o.Reason = rules.Allow, rules.ReasonPart
	return o
}

// InTunnel returns the names of a client whose tunnel nothing is changed in, so
// that the site sees who it says it is. id is what Identity returned.
func (t Terms) InTunnel(id Identity, userAgent string, identify func(string) *rules.Agent) Identity {
	id.Shown, id.From, id.Visible = userAgent, "", nil
	if own := identify(userAgent); t.Client != nil && !Names(own, id.Judged) {
		id.Visible = own
	}
	return id
}
