package judge

import (
	"cmp"
	"time"

	"heed/internal/judge/acl"
	"heed/rules"
)

// Query is the question whether an agent may fetch a target now, with everything except the
// rules of the site that the answer depends on. A recorded Query has the same answer later.
type Query struct {
	Effective acl.Effective
	Names     acl.Identity
	// Target is path and query as they are sent; "*" stands for the whole site.
	Target *rules.Target
	// HTTPS is the handling of a CONNECT; Intercept for other requests.
	HTTPS acl.HTTPS
	// Uninspected is why a tunnel passes although it should be intercepted; empty: the settings
	// let it pass.
	Uninspected rules.Reason
	Now         time.Time
	// Judge judges a target by a policy; nil: the method Decide of the policy. A Query
	// about all targets that begin with Target has another one.
	Judge func(p *rules.Policy, agent *rules.Agent, target *rules.Target) rules.Decision
}

// judge judges a target by a policy. A target that asks about the whole site is
// judged as its root.
func (q *Query) judge(p *rules.Policy, agent *rules.Agent, target *rules.Target) rules.Decision {
	switch {
	case target.String() == wholeSite:
		return p.Decide(agent, rules.NewTarget("/"))
	case q.Judge != nil:
		return q.Judge(p, agent, target)
	}
	return p.Decide(agent, target)
}

// wholeSite is the target of a request about the whole site (RFC 9110 §7.1).
const wholeSite = "*"

// Result is a Decision with further facts for the record.
type Result struct {
	rules.Decision
	Unjudged       bool   // nothing was judged, for Reason
	Unseen         int    // rules for paths, which are not visible in a tunnel
	OperatorReason string // the operator's reason for an exception that decided
	Blocked        bool   // by the operator while heed runs: refused in every mode except exempt
}

// WithoutRules answers q when the settings alone decide; ok is false when the rules of the
// site are needed. /robots.txt itself is always allowed (RFC 9309 §2.2.2).
func (q *Query) WithoutRules() (o Result, ok bool) {
	if o, ok = q.blocked(); ok {
		return o, true
	}
	if q.HTTPS == acl.Tunnel && q.Effective.Mode != acl.Exempt {
		return q.WithoutSite(cmp.Or(q.Uninspected, rules.ReasonTunnel)), true
	}
	if o.Decision, o.OperatorReason, ok = q.settled(); !ok {
		return Result{}, false
	}
	o.Unjudged = o.Reason == rules.ReasonExempt || o.Reason == rules.ReasonNotACrawl
	return o, true
}

// WithoutSite answers q when the rules of the site do not count, for the reason given: it
// is allowed and not judged, unless an exception of the operator refuses it.
func (q *Query) WithoutSite(reason rules.Reason) (o Result) {
	allowed := rules.Decision{Verdict: rules.Allow, Reason: reason}
	o.Decision, o.OperatorReason = q.Except(allowed)
	o.Unjudged = o.Decision == allowed
	return o
}

// blocked answers q when the operator has blocked the target at run time. Then not even
// the robots.txt of the site is fetched: the site may have requested the block.
func (q *Query) blocked() (o Result, ok bool) {
	if q.Effective.Mode == acl.Exempt || q.HTTPS == acl.Intercept && q.Target.NamesRobots() {
		return o, false
	}
	for e := range q.Effective.Exceptions(q.Now) {
		if rule, ok := q.match(e); ok && e.Block() {
			return Result{Decision: e.Decision(rule), OperatorReason: e.Reason, Blocked: true}, true
		}
	}
	return o, false
}

// Decide answers q by p, the rules of the site or their replacement by the operator, and by
// the exceptions. Each of the names must be allowed: by is the first that is refused, else
// the client's own.
func (q *Query) Decide(p *rules.Policy) (o Result, by *rules.Agent) {
	by = q.Names.Own
	for name := range q.Names.Each {
		d, unseen := q.evaluate(p, name)
		if o.Unseen = max(o.Unseen, unseen); name == by || d.Verdict == rules.Refuse {
			o.Decision, by = d, name
		}
		if d.Verdict == rules.Refuse {
			break
		}
	}
	if o.Reason == rules.ReasonRobotsUnreachable && p.Source().NoConnection {
		o.Reason = rules.ReasonOriginUnreachable
	}
	o.Decision, o.OperatorReason = q.Except(o.Decision)
	return o, by
}

// evaluate judges the target, or the host of a tunnel, by the policy.
func (q *Query) evaluate(p *rules.Policy, agent *rules.Agent) (d rules.Decision, unseen int) {
	if q.HTTPS == acl.HostOnly {
		return p.DecideHost(agent)
	}
	return q.judge(p, agent, q.Target), 0
}

// Except returns the decision of the exception that applies in place of d, and its reason; d
// itself when none does. An exception that refuses always applies; one that allows applies when d refuses and
// is exceptable.
func (q *Query) Except(d rules.Decision) (rules.Decision, string) {
	exception, rule := q.Exception(exceptable(d))
	if exception == nil {
		return d, ""
	}
	return exception.Decision(rule), exception.Reason
}

// match returns the pattern of e that matches the target of q, and whether one does. The
// targets in a tunnel are not visible: there only a pattern for the whole site matches.
func (q *Query) match(e *acl.Exception) (string, bool) {
	if q.HTTPS != acl.Intercept {
		return e.WholeSite()
	}
	return e.Match(q.judge, q.Effective.Profile, q.Target)
}

// Apply returns the effect of o: in observe mode a refusal becomes would-refuse, with the
// reason of the ModeOverride, if one set the mode. What can never be sent is refused all the
// same.
func Apply(t acl.Effective, o Result) Result {
	if o.Verdict != rules.Refuse || t.Mode != acl.Observe || o.Blocked || o.Reason == rules.ReasonDestination || o.Reason == rules.ReasonLoop || o.Reason == rules.ReasonClientLeft {
		return o
	}
	o.Verdict = rules.WouldRefuse
	if b := t.ModeOverride; b != nil {
		o.OperatorReason = cmp.Or(o.OperatorReason, b.Reason)
	}
	return o
}

// MayBeSubresource reports whether a target that o refuses may be loaded as part of a page
// that the client may read: the settings of the client allow parts, and only a rule of the
// site refuses.
func MayBeSubresource(t acl.Effective, o Result) bool {
	return t.Client != nil && t.Client.AllowSubresources && o.Reason == rules.ReasonRule && o.Verdict == rules.Refuse &&
		!t.Site.NeverAllow && t.Mode == acl.Enforce
}

// AsSubresource returns o for a part that may be loaded, of the kind that
// Sec-Fetch-Dest names.
func AsSubresource(t acl.Effective, o Result, kind string) Result {
	o.OperatorReason = "a part (" + kind + ") of a page that " + t.Client.Name + " may read"
	o.Verdict, o.Reason = rules.Allow, rules.ReasonSubresource
	return o
}

// settled returns the decision when the settings alone decide, and the operator's reason
// for it. ok is false when the rules of the site are needed. /robots.txt itself is always
// allowed (RFC 9309 §2.2.2).
func (q *Query) settled() (d rules.Decision, reason string, ok bool) {
	d.Verdict = rules.Allow
	switch t, c := &q.Effective, q.Effective.Client; {
	case t.Mode == acl.Exempt:
		d.Reason = rules.ReasonExempt
	case q.Target.NamesRobots():
		d.Reason = rules.ReasonRobotsTxt
	case t.Site.Service != "" && !t.Site.NeverAllow:
		d.Reason, reason = rules.ReasonNotACrawl, t.Site.Service
	case c != nil && c.RefuseUnnamed && q.Names.Shown == "":
		d = rules.Decision{Reason: rules.ReasonNoAgent}
	default:
		return rules.Decision{}, "", false
	}
	return d, reason, true
}

// Exception returns the exception that decides about the target, and its pattern as a rule;
// nil when none applies. An exception that refuses has precedence. One that allows applies
// only when refused is set: the rules of the site refuse.
func (q *Query) Exception(refused bool) (*acl.Exception, string) {
	for _, refuse := range []bool{true, false} {
		if !refuse && (!refused || q.Effective.Site.NeverAllow) {
			break
		}
		for e := range q.Effective.Exceptions(q.Now) {
			if e.Refuse != refuse {
				continue
			}
			if rule, ok := q.match(e); ok {
				return e, rule
			}
		}
	}
	return nil, ""
}

// exceptable reports whether an exception that allows could replace d: a refusal by rules, or
// for lack of them. That the site is unreachable or its address forbidden cannot be excepted.
func exceptable(d rules.Decision) bool {
	return d.Verdict == rules.Refuse && d.Reason != rules.ReasonOriginUnreachable && d.Reason != rules.ReasonDestination
}
