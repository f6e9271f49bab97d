package rules

import (
	"bytes"
	"sync"
	"time"
)

// State says what is known of an origin's robots.txt. The zero value is
// Unreachable, which refuses.
type State uint8

// The states of RFC 9309 §2.3.1.
const (
	Unreachable State = iota // could not be had: everything is refused (§2.3.1.4)
	Unavailable              // the site answered that there is none: everything is allowed (§2.3.1.3)
	Available                // read and parsed (§2.3.1.1)
)

// Source tells how and when a Policy was obtained. It is data: rules has no
// clock and fetches nothing.
type Source struct {
	Origin     Origin
	State      State
	Status     int       // of the final answer; 0 when there was none
	FetchedAt  time.Time // when the bytes were received or last revalidated
	FreshUntil time.Time // when the copy should be asked for again
	// RetryAt is when an Unreachable origin is asked again; zero otherwise.
	RetryAt time.Time
	// Stale is set when the rules are an older copy, served because the site
	// cannot be asked (RFC 9309 §2.4).
	Stale bool
	// Err says why the policy is Unreachable or Stale; nil otherwise. It wraps
	// the network's error, for the proxy to classify.
	Err error
	// NoConnection is set when the origin itself was never reached (DNS,
	// connect, TLS on the first hop): the site is down, not only its robots.txt.
	NoConnection bool
	// RetriedAs is the User-Agent under which the file was asked for again
	// after a 401 or 403; empty when it was not.
	RetriedAs string
	// Note is a remark for people, such as "HTML without a rule"; often empty.
	Note string
}

// Policy is what one origin's robots.txt says. It is immutable and safe for
// concurrent use.
type Policy struct {
	source Source
	*compiled
}

// compiled is what a file says, shared by all policies made of it.
type compiled struct {
	groups []group
	names  []*named
	size   int

	mu     sync.RWMutex
	agents map[string]governing // what governs the agents that asked
}

// maxAgents bounds how many agents a policy remembers.
const maxAgents = 256

// New returns the policy that source and body make: body is parsed when
// source.State is Available and ignored otherwise. body is not kept. A page of
// HTML without a rule counts as no file.
func New(source Source, body []byte) *Policy {
	c := &compiled{size: 512}
	if source.State == Available {
		c.groups = parse(body, source.Origin)
		c.names = indexNames(c.groups)
		for _, g := range c.groups {
			c.size += 64
			for _, r := range g.rules {
				c.size += 64 + len(r.pattern) + len(r.text)
			}
		}
		if len(c.groups) == 0 && looksLikeHTML(body) {
			source.State = Unavailable
			source.Note = "HTML without a rule"
		}
	}
	return &Policy{source: source, compiled: c}
}

func looksLikeHTML(body []byte) bool {
	head := bytes.ToLower(body[:min(len(body), 1024)])
	return bytes.Contains(head, []byte("<html")) || bytes.Contains(head, []byte("<!doctype"))
}

// With returns a policy of the same rules that was obtained as source says: a
// revalidated or a stale copy. It costs no parse.
func (p *Policy) With(source Source) *Policy { return &Policy{source: source, compiled: p.compiled} }

// Source returns how and when the policy was obtained.
func (p *Policy) Source() Source { return p.source }

// Size returns about how many bytes of memory the policy holds.
func (p *Policy) Size() int { return p.size }

// Decide judges target, the path and query exactly as they are sent
// ("/a%2Fb?q=1"), for agent. A nil agent is judged under the star group.
func (p *Policy) Decide(agent *Agent, target string) Decision {
	switch {
	case target == "/robots.txt":
		return Decision{Verdict: Allow, Reason: ReasonRobotsTxt}
	case p.source.State == Unavailable:
		return Decision{Verdict: Allow, Reason: ReasonRobotsUnavailable}
	case p.source.State != Available:
		return Decision{Verdict: Refuse, Reason: ReasonRobotsUnreachable}
	}
	g := p.governing(agent)
	d := p.judge(g, string(appendCanonical(nil, target, false)))
	if d.Verdict == Refuse {
		return d
	}
	names, readings := variants(target)
	for i, reading := range readings {
		if reading == "/robots.txt" {
			continue
		}
		if v := p.judge(g, string(appendCanonical(nil, reading, false))); v.Verdict == Refuse {
			v.Variant = names[i]
			return v
		}
	}
	return d
}

// governing returns what governs agent, remembered per agent.
func (c *compiled) governing(agent *Agent) governing {
	if agent == nil {
		agent = &Agent{}
	}
	c.mu.RLock()
	g, ok := c.agents[agent.key]
	c.mu.RUnlock()
	if ok {
		return g
	}
	g = choose(c.names, agent.Tokens)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.agents == nil || len(c.agents) >= maxAgents {
		c.agents = make(map[string]governing)
	}
	c.agents[agent.key] = g
	return g
}

// judge asks every set that governs: the first that refuses decides.
func (c *compiled) judge(g governing, target string) Decision {
	allowed := Decision{Verdict: Allow, Reason: ReasonNoRule}
	for i, set := range g.sets {
		d := Decision{Verdict: Allow, Reason: ReasonNoRule, Group: set.named.text, Token: set.token.Name, Piece: set.token.Piece}
		if r := c.longest(set.named, target); r != nil {
			d.Reason, d.Rule, d.Line = ReasonRule, r.text, r.line
			if !r.allow {
				d.Verdict = Refuse
				return d
			}
		}
		if i == 0 {
			allowed = d
		}
	}
	return allowed
}

// longest returns the most specific rule that matches (RFC 9309 §2.2.2): the
// one of most octets, Allow among equals.
func (c *compiled) longest(n *named, target string) *rule {
	var best *rule
	for _, i := range n.groups {
		for j := range c.groups[i].rules {
			r := &c.groups[i].rules[j]
			if best != nil && (len(r.pattern) < len(best.pattern) || len(r.pattern) == len(best.pattern) && (best.allow || !r.allow)) {
				continue
			}
			if matches(r.pattern, target) {
				best = r
			}
		}
	}
	return best
}
