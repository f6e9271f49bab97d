package command

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"heed/internal/terms"
	"heed/proxy"
	"heed/rules"
)

// judgement is what check says of one URL: the Decision that the proxy would
// come to, and what it rests on.
type judgement struct {
	URL     string       `json:"url"`
	Agent   string       `json:"agent"`
	Allowed bool         `json:"allowed"`
	Reason  rules.Reason `json:"reason"`
	Group   string       `json:"group"`
	Rule    string       `json:"rule"`
	Line    int          `json:"line"`
	Token   string       `json:"token,omitempty"`   // the name in Agent that led to Group
	Variant string       `json:"variant,omitempty"` // the reading of an ambiguous spelling that decided
	Robots  string       `json:"robots,omitempty"`  // where the rules are from
	By      string       `json:"by,omitempty"`      // who holds them: file, heed, store or site; see source.go
	Age     float64      `json:"age,omitempty"`     // of the rules, in seconds
	Stale   bool         `json:"stale,omitempty"`   // an older copy, since the site cannot be asked
	Detail  string       `json:"detail,omitempty"`  // what the reason alone does not say
	Client  string       `json:"client,omitempty"`  // the entry of who asks; empty: none fits
	Settled string       `json:"settled,omitempty"` // the operator's reason for what decided in place of the rules
	Mode    string       `json:"mode,omitempty"`    // what a refusal does, when it does not refuse: observe

	Profile string             `json:"profile,omitempty"` // that the rules were read under
	Road    *rules.Explanation `json:"road,omitempty"`    // to the verdict; nil: not asked for
}

// judge answers questions as the proxy would. It is safe for concurrent use.
type judge struct {
	now     func() time.Time
	explain bool // the road to the verdict is wanted

	book   *terms.Book // what was settled; nil: nothing
	client string      // the entry that asks; empty: whom the User-Agent alone tells

	mu     sync.Mutex
	agents map[string]*rules.Agent
}

// policyOf finds the policy that governs an origin for a User-Agent, and says
// where it is from and who holds it.
type policyOf func(ctx context.Context, o rules.Origin, userAgent string) (p *rules.Policy, robots, by string)

// ask judges one URL for one agent. An error means that there is no such URL.
func (j *judge) ask(ctx context.Context, userAgent, address string, policy policyOf) (*judgement, error) {
	origin, target, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	a := &judgement{URL: address, Agent: userAgent}
	t := j.terms(userAgent, origin)
	if a.Client = t.Name(); t.Mode == terms.Observe {
		a.Mode = t.Mode.String()
	}
	id := t.Identity(userAgent, j.agent)
	path, _, _ := strings.Cut(target, "?")
	if strings.Contains(path, "%00") {
		a.Detail = "the path contains a NUL octet"
		j.tell(a, &rules.Policy{}, id.Judged, target)
		return a.set(rules.Decision{Reason: rules.ReasonMalformed}), nil
	}
	q := terms.Question{Terms: t, Names: id, Target: target, HTTPS: terms.Intercept, Now: j.now()}
	if o, ok := q.WithoutRules(); ok {
		j.tell(a, &rules.Policy{}, id.Judged, target)
		a.Settled = o.Settled
		return a.set(o.Decision), nil
	}
	p, robots, by := t.Site.Robots, "", byOperator
	if p == nil {
		p, robots, by = policy(ctx, origin, id.Shown)
	} else {
		robots = origin.RobotsURL()
	}
	a.Robots, a.By, a.Profile = robots, by, p.Profile().String()
	d := j.decide(a, p, id, target)
	a.from(p.Source(), &d, j.now())
	if e, rule := t.Override(target, terms.Overrides(d), j.now()); e != nil {
		a.Settled, d = e.Reason, e.Verdict(rule)
	}
	return a.set(d), nil
}

// terms returns what was settled with who asks, about the origin.
func (j *judge) terms(userAgent string, o rules.Origin) terms.Terms {
	c := j.book.ClientNamed(j.client)
	if j.client == "" {
		c = j.book.ClientOf(terms.Who{UserAgent: userAgent})
	}
	return j.book.For(c, o, j.now())
}

// decide asks the policy in the names of id. The road told is that of the name
// which decided.
func (j *judge) decide(a *judgement, p *rules.Policy, id terms.Identity, target string) rules.Decision {
	agent := id.Judged
	d := p.Decide(agent, target)
	if id.Visible != nil && d.Verdict == rules.Allow {
		if seen := p.Decide(id.Visible, target); seen.Verdict == rules.Refuse {
			agent, d = id.Visible, seen
		}
	}
	j.tell(a, p, agent, target)
	return d
}

// tell adds the road to the verdict when it is wanted.
func (j *judge) tell(a *judgement, p *rules.Policy, agent *rules.Agent, target string) {
	if j.explain {
		x := p.Explain(agent, target)
		a.Road = &x
	}
}

// set fills in the decision.
func (a *judgement) set(d rules.Decision) *judgement {
	a.Allowed, a.Reason = d.Verdict == rules.Allow, d.Reason
	a.Group, a.Rule, a.Line, a.Token, a.Variant = d.Group, d.Rule, d.Line, d.Token, d.Variant
	return a
}

// from fills in how the policy was obtained.
func (a *judgement) from(s rules.Source, d *rules.Decision, now time.Time) {
	if !s.FetchedAt.IsZero() {
		a.Age = max(0, now.Sub(s.FetchedAt).Seconds())
	}
	a.Stale, a.Detail = s.Stale, s.Note
	if s.State != rules.Unreachable {
		return
	}
	if s.NoConnection && d.Reason == rules.ReasonRobotsUnreachable {
		d.Reason = rules.ReasonOriginUnreachable
		if errors.Is(s.Err, proxy.ErrDestination) {
			d.Reason = rules.ReasonDestination
		}
	}
	if s.Err != nil {
		a.Detail = s.Err.Error()
	} else if s.Status != 0 {
		a.Detail = fmt.Sprintf("robots.txt was answered with status %d", s.Status)
	}
}

// maxAgents bounds what judge remembers; a batch may bring any number.
const maxAgents = 16384

func (j *judge) agent(userAgent string) *rules.Agent {
	j.mu.Lock()
	defer j.mu.Unlock()
	if a := j.agents[userAgent]; a != nil {
		return a
	}
	if j.agents == nil || len(j.agents) >= maxAgents {
		j.agents = map[string]*rules.Agent{}
	}
	a := rules.Identify(userAgent)
	j.agents[userAgent] = a
	return a
}

// parseURL takes a URL apart as a client would before it asks a proxy for it.
func parseURL(address string) (o rules.Origin, target string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return o, "", fmt.Errorf("%q is not a URL: %v", address, err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return o, "", fmt.Errorf(`%q is not the URL of a site; write it out, such as "https://example.org/page"`, address)
	}
	if o, err = rules.OriginOf(u); err != nil {
		return o, "", fmt.Errorf("%q names no site: %v", address, err)
	}
	return o, u.RequestURI(), nil
}

// tooWild reports whether robots.txt was read but has too many wildcards.
func (a *judgement) tooWild() bool { return a.Detail == rules.ErrTooManyWildcards.Error() }
