package terms

import (
	"cmp"
	"slices"
	"time"

	"heed/rules"
)

// Identity is the names that a request goes by.
type Identity struct {
	Judged  *rules.Agent // whose rules count
	Visible *rules.Agent // whom the site sees, when that is somebody else: both must be allowed; nil: the same
	Shown   string       // the User-Agent that the site sees; empty: none
	From    string       // sent in the From field; empty: the client's own
}

// Identity returns the names of a request with the User-Agent field given.
// identify says which names such a field holds.
func (t Terms) Identity(userAgent string, identify func(string) *rules.Agent) Identity {
	c := t.Client
	if c == nil {
		return Identity{Judged: identify(userAgent), Shown: userAgent}
	}
	id := Identity{Judged: c.Agent, Shown: cmp.Or(c.SendUserAgent, userAgent), From: c.SendFrom}
	visible := identify(id.Shown)
	if id.Judged == nil {
		id.Judged = visible
	} else if !Names(visible, id.Judged) {
		id.Visible = visible
	}
	return id
}

// Names reports whether a has all the tokens of other.
func Names(a, other *rules.Agent) bool {
	return !slices.ContainsFunc(other.Tokens, func(t rules.Token) bool {
		return !slices.ContainsFunc(a.Tokens, func(own rules.Token) bool { return own.Name == t.Name })
	})
}

// Settled returns the decision about a target that needs no rules of the site,
// since what was settled says all, and the operator's reason for it. shown is
// the User-Agent that the site sees. ok is false when the rules count.
// /robots.txt itself is always allowed (RFC 9309 §2.2.2).
func (t Terms) Settled(target, shown string) (d rules.Decision, reason string, ok bool) {
	d.Verdict = rules.Allow
	switch c := t.Client; {
	case t.Mode == Exempt:
		d.Reason = rules.ReasonExempt
	case target == "/robots.txt":
		d.Reason = rules.ReasonRobotsTxt
	case t.Site.Service != "" && !t.Site.NeverAllow:
		d.Reason, reason = rules.ReasonNotACrawl, t.Site.Service
	case c != nil && c.RefuseUnnamed && shown == "":
		d = rules.Decision{Reason: rules.ReasonUnnamed}
	default:
		return rules.Decision{}, "", false
	}
	return d, reason, true
}

// Override returns the exception that decides about the target at the time now,
// and its pattern as a rule; nil when none does and the site's rules count. What
// an exception refuses, none allows; one that allows only counts when the rules
// refuse, which the caller knows.
func (t Terms) Override(target string, refused bool, now time.Time) (*Exception, string) {
	return t.override(refused, now, func(e *Exception) (string, bool) { return e.match(target) })
}

// OverrideHost is Override for a tunnel whose targets cannot be seen: only an
// exception about the whole site counts.
func (t Terms) OverrideHost(refused bool, now time.Time) (*Exception, string) {
	return t.override(refused, now, (*Exception).whole)
}

func (t Terms) override(refused bool, now time.Time, fits func(*Exception) (string, bool)) (*Exception, string) {
	for _, refuse := range []bool{true, false} {
		if !refuse && (!refused || t.Site.NeverAllow) {
			break
		}
		for _, e := range t.Site.Exceptions {
			if e.Refuse != refuse || !e.holds(t.Name(), now) {
				continue
			}
			if rule, ok := fits(e); ok {
				return e, rule
			}
		}
	}
	return nil, ""
}

// Overrides reports whether an exception that allows could stand in for what
// refuses: rules, or their lack. That a site is out of reach cannot be excepted.
func Overrides(d rules.Decision) bool {
	return d.Verdict == rules.Refuse && d.Reason != rules.ReasonOriginUnreachable && d.Reason != rules.ReasonDestination
}

// Verdict returns the exception's decision, which the rule of its own made.
func (e *Exception) Verdict(rule string) rules.Decision {
	d := rules.Decision{Reason: rules.ReasonOverride, Rule: rule}
	if !e.Refuse {
		d.Verdict = rules.Allow
	}
	return d
}

// whole returns the pattern that is for all of a site, and whether there is one.
func (e *Exception) whole() (string, bool) {
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
