package acl

import (
	"cmp"
	"slices"
	"time"

	"heed/rules"
)

// Query is the question whether an agent may fetch a target now, with everything except the
// rules of the site that the answer depends on. A recorded Query has the same answer later.
type Query struct {
	Effective Effective
	Names     Identity
	// Target is path and query as they are sent; "*" stands for the whole site.
	Target *rules.Target
	// HTTPS is the handling of a CONNECT; Intercept for other requests.
	HTTPS HTTPS
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
	if q.HTTPS == Tunnel && q.Effective.Mode != Exempt {
		return q.WithoutSite(cmp.Or(q.Uninspected, rules.ReasonTunnel)), true
	}
	if o.Decision, o.OperatorReason, ok = q.Effective.DecideWithoutRules(q.Target, q.Names.Shown); !ok {
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
	if q.Effective.Mode == Exempt || q.HTTPS == Intercept && q.Target.NamesRobots() {
		return o, false
	}
	for _, e := range q.Effective.Site.Exceptions {
		if !e.Block() || !e.applies(q.Effective.Name(), q.Now) {
			continue
		}
		if rule, ok := q.match(e); ok {
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
	if q.HTTPS == HostOnly {
		return p.DecideHost(agent)
	}
	return q.judge(p, agent, q.Target), 0
}

// Except returns the decision of the exception that applies in place of d, and its reason; d
// itself when none does. An exception that refuses always applies; one that allows applies when d refuses and
// is Exceptable.
func (q *Query) Except(d rules.Decision) (rules.Decision, string) {
	exception, rule := q.Effective.exception(Exceptable(d), q.Now, q.match)
	if exception == nil {
		return d, ""
	}
	return exception.Decision(rule), exception.Reason
}

// match returns the pattern of e that matches the target of q, and whether one does. The
// targets in a tunnel are not visible: there only a pattern for the whole site matches.
func (q *Query) match(e *Exception) (string, bool) {
	if q.HTTPS != Intercept {
		return e.wholeSite()
	}
	return e.match(q.judge, q.Effective.Profile, q.Target)
}

// Apply returns the effect of o: in observe mode a refusal becomes would-refuse, with the
// reason of the ModeOverride, if one set the mode. What can never be sent is refused all the
// same.
func (t Effective) Apply(o Result) Result {
	if o.Verdict != rules.Refuse || t.Mode != Observe || o.Blocked || o.Reason == rules.ReasonDestination || o.Reason == rules.ReasonLoop || o.Reason == rules.ReasonClientLeft {
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
func (t Effective) MayBeSubresource(o Result) bool {
	return t.Client != nil && t.Client.AllowSubresources && o.Reason == rules.ReasonRule && o.Verdict == rules.Refuse &&
		!t.Site.NeverAllow && t.Mode == Enforce
}

// AsSubresource returns o for a part that may be loaded, of the kind that
// Sec-Fetch-Dest names.
func (t Effective) AsSubresource(o Result, kind string) Result {
	o.OperatorReason = "a part (" + kind + ") of a page that " + t.Client.Name + " may read"
	o.Verdict, o.Reason = rules.Allow, rules.ReasonSubresource
	return o
}

// TunnelIdentity returns the names of a client in a tunnel that is not intercepted: the
// site sees its own User-Agent. id is the result of Identity.
func (t Effective) TunnelIdentity(id Identity, userAgent string, identify func(string) *rules.Agent) Identity {
	id.Shown, id.From, id.Seen = userAgent, "", nil
	if seen := identify(userAgent); t.Client != nil && !HasTokens(seen, id.Own) {
		id.Seen = seen
	}
	return id
}

// Identity holds the names of a request: each of them must be allowed. The list is fields of
// a struct, so that making one for each request allocates nothing.
type Identity struct {
	Own   *rules.Agent // declared, or seen by the site; recorded as the client's. Nil: the star group's
	Seen  *rules.Agent // what the site sees, where Own has not all of its tokens; nil: the same
	Shown string       // the User-Agent that the site sees; empty: none
	From  string       // sent in the From field; empty: the client's own
}

// Each calls yield with each of the names, Own first, until that returns false.
func (id *Identity) Each(yield func(*rules.Agent) bool) {
	if yield(id.Own) && id.Seen != nil {
		yield(id.Seen)
	}
}

// List returns the names that are not nil.
func (id *Identity) List() (all []*rules.Agent) {
	for a := range id.Each {
		if a != nil {
			all = append(all, a)
		}
	}
	return all
}

// RateHints returns the delays that the groups of p for these names ask for, those of each
// group once.
func (id *Identity) RateHints(p *rules.Policy) (hints []*rules.RateHint) {
	for a := range id.Each {
		more := p.RateHints(a)
		if hints == nil {
			hints = more[:len(more):len(more)] // it belongs to p
			continue
		}
		for _, w := range more {
			if !slices.ContainsFunc(hints, func(o *rules.RateHint) bool { return o.Group == w.Group }) {
				hints = append(hints, w)
			}
		}
	}
	return hints
}

// Fields returns the lines of some kinds that concern any of the names, in the order of the
// file.
func (id *Identity) Fields(p *rules.Policy, kinds ...rules.FieldKind) (all []rules.Field) {
	for a := range id.Each {
		for _, f := range p.Fields(a, kinds...) {
			known := slices.ContainsFunc(all, func(o rules.Field) bool { return o.Line == f.Line })
			if f.Scope != rules.ScopeOther && !known {
				all = append(all, f)
			}
		}
	}
	slices.SortFunc(all, func(f, g rules.Field) int { return cmp.Compare(f.Line, g.Line) })
	return all
}

// Identity returns the names of a request with the User-Agent field given.
// identify returns the names in such a field.
func (t Effective) Identity(userAgent string, identify func(string) *rules.Agent) Identity {
	c := t.Client
	if c == nil {
		return Identity{Own: identify(userAgent), Shown: userAgent}
	}
	id := Identity{Own: c.Agent, Shown: cmp.Or(c.SendUserAgent, userAgent), From: c.SendFrom}
	seen := identify(id.Shown)
	if id.Own == nil {
		id.Own = seen
	} else if !HasTokens(seen, id.Own) {
		id.Seen = seen
	}
	return id
}

// HasTokens reports whether a has all the tokens of other.
func HasTokens(a, other *rules.Agent) bool {
	return !slices.ContainsFunc(other.Tokens, func(t rules.Token) bool {
		return !slices.ContainsFunc(a.Tokens, func(own rules.Token) bool { return own.Name == t.Name })
	})
}

// DecideWithoutRules returns the decision when the settings alone decide, and the operator's
// reason for it. shown is the User-Agent that the site sees. ok is false when the rules of the
// site are needed. /robots.txt itself is always allowed (RFC 9309 §2.2.2).
func (t Effective) DecideWithoutRules(target *rules.Target, shown string) (d rules.Decision, reason string, ok bool) {
	d.Verdict = rules.Allow
	switch c := t.Client; {
	case t.Mode == Exempt:
		d.Reason = rules.ReasonExempt
	case target.NamesRobots():
		d.Reason = rules.ReasonRobotsTxt
	case t.Site.Service != "" && !t.Site.NeverAllow:
		d.Reason, reason = rules.ReasonNotACrawl, t.Site.Service
	case c != nil && c.RefuseUnnamed && shown == "":
		d = rules.Decision{Reason: rules.ReasonNoAgent}
	default:
		return rules.Decision{}, "", false
	}
	return d, reason, true
}

// Exception returns the exception that decides about the target at the time now, and its
// pattern as a rule; nil when none applies. An exception that refuses has precedence. One that
// allows applies only when refused is set: the rules of the site refuse.
func (t Effective) Exception(target *rules.Target, refused bool, now time.Time) (*Exception, string) {
	return t.exception(refused, now, func(e *Exception) (string, bool) { return e.match((&Query{}).judge, t.Profile, target) })
}

func (t Effective) exception(refused bool, now time.Time, fits func(*Exception) (string, bool)) (*Exception, string) {
	for _, refuse := range []bool{true, false} {
		if !refuse && (!refused || t.Site.NeverAllow) {
			break
		}
		for _, e := range t.Site.Exceptions {
			if e.Refuse != refuse || !e.applies(t.Name(), now) {
				continue
			}
			if rule, ok := fits(e); ok {
				return e, rule
			}
		}
	}
	return nil, ""
}

// Exceptable reports whether an exception that allows could replace d: a refusal by rules, or
// for lack of them. That the site is unreachable or its address forbidden cannot be excepted.
func Exceptable(d rules.Decision) bool {
	return d.Verdict == rules.Refuse && d.Reason != rules.ReasonOriginUnreachable && d.Reason != rules.ReasonDestination
}

// Decision returns the exception's decision, with its pattern as the rule.
func (e *Exception) Decision(rule string) rules.Decision {
	d := rules.Decision{Reason: rules.ReasonOverride, Rule: rule}
	if !e.Refuse {
		d.Verdict = rules.Allow
	}
	return d
}

// wholeSite returns the pattern that is for all of a site, and whether there is one.
func (e *Exception) wholeSite() (string, bool) {
	field := "Allow: "
	if e.Refuse {
		field = "Disallow: "
	}
	for _, p := range e.Patterns {
		if p == "/" || p == "*" || p == "/*" {
			return field + p, true
		}
	}
	return "", false
}
