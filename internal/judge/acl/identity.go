package acl

import (
	"cmp"
	"slices"

	"heed/rules"
)

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
	Also  *Obeyed      // the names of purposes that it obeys; nil: none
	Shown string       // the User-Agent that the site sees; empty: none
	From  string       // sent in the From field; empty: the client's own
}

// Each calls yield with each of the names, Own first, until that returns false.
func (id *Identity) Each(yield func(*rules.Agent) bool) {
	if !yield(id.Own) || id.Seen != nil && !yield(id.Seen) || id.Also == nil {
		return
	}
	for _, a := range id.Also.agents {
		if !yield(a) {
			return
		}
	}
}

// Speaking returns the names that are not nil, and of those of purposes only the ones that a
// group of p names.
func (id *Identity) Speaking(p *rules.Policy) (all []*rules.Agent) {
	for a := range id.Each {
		if a != nil && (a.Role != rules.Obeyed || p.Names(a)) {
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
		return Identity{Own: identify(userAgent), Shown: userAgent, Also: t.Obeyed}
	}
	id := Identity{Own: c.Agent, Shown: cmp.Or(c.SendUserAgent, userAgent), From: c.SendFrom, Also: t.Obeyed}
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
