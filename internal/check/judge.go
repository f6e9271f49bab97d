package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heed/internal/acl"
	"heed/internal/control"
	"heed/internal/memo"
	"heed/internal/pageurl"
	"heed/proxy/upstream"
	"heed/rules"
)

// Judge decides about URLs as the proxy does. It is safe for concurrent use.
type Judge struct {
	Now     func() time.Time
	Explain bool // judgements contain the steps to the verdict

	Rules  *acl.Rules // the operator's settings; nil: none
	Client string     // the [[client]] entry to judge as; empty: the one that matches the User-Agent

	uses *uses // what a site states about the use of a page is judged as well; nil: not

	agents memo.Map[string, *rules.Agent]
}

// policyOf returns the policy that governs an origin for a User-Agent, the file or
// URL it was read from, and its source (By of a Judgement).
type policyOf func(ctx context.Context, o rules.Origin, userAgent string) (p *rules.Policy, robots, by string)

// Ask judges one URL for one agent. An error means that address is not the URL of a
// site.
func (j *Judge) Ask(ctx context.Context, userAgent, address string, policy policyOf) (*control.Judgement, error) {
	origin, target, err := pageurl.Parse(address)
	if err != nil {
		return nil, err
	}
	a := &control.Judgement{URL: address, Agent: userAgent}
	t := j.terms(userAgent, origin)
	if a.Client = t.Name(); t.Mode == acl.Observe {
		a.Mode = t.Mode.String()
	}
	id := t.Identity(userAgent, j.agent)
	if fault := pageurl.Fault(target); fault != "" {
		a.Detail = fault
		j.explain(a, &rules.Policy{}, id.Judged, target)
		return setDecision(a, rules.Decision{Reason: rules.ReasonMalformed}), nil
	}
	q := acl.Query{Effective: t, Names: id, Target: rules.NewTarget(target), HTTPS: acl.Intercept, Now: j.Now()}
	if o, ok := q.WithoutRules(); ok {
		j.explain(a, &rules.Policy{}, id.Judged, target)
		a.Settled = o.OperatorReason
		return setDecision(a, o.Decision), nil
	}
	p, robots, by := t.Site.Robots, "", ByOperator
	if p == nil {
		p, robots, by = policy(ctx, origin, id.Shown)
	} else {
		robots = origin.RobotsURL()
	}
	a.Robots, a.By, a.Profile = robots, by, p.Profile().String()
	d := j.decide(a, p, id, target)
	setSource(a, p.Source(), &d, j.Now())
	if e, rule := t.Exception(target, acl.Exceptable(d), j.Now()); e != nil {
		a.Settled, d = e.Reason, e.Decision(rule)
	}
	setDecision(a, d)
	if j.uses != nil {
		err = j.uses.judge(ctx, a, &q, p, origin)
	}
	return a, err
}

// terms returns the settings in force for the client and the origin.
func (j *Judge) terms(userAgent string, o rules.Origin) acl.Effective {
	c := j.Rules.ClientNamed(j.Client)
	if j.Client == "" {
		c = j.Rules.ClientOf(acl.ClientInfo{UserAgent: userAgent})
	}
	return j.Rules.For(c, o, j.Now())
}

// decide judges target by p for the names of id, and adds the explanation for the
// name that decided.
func (j *Judge) decide(a *control.Judgement, p *rules.Policy, id acl.Identity, target string) rules.Decision {
	agent := id.Judged
	d := p.Decide(agent, target)
	if id.Visible != nil && d.Verdict == rules.Allow {
		if seen := p.Decide(id.Visible, target); seen.Verdict == rules.Refuse {
			agent, d = id.Visible, seen
		}
	}
	j.explain(a, p, agent, target)
	return d
}

// explain adds the steps to the verdict to a, if Explain is set.
func (j *Judge) explain(a *control.Judgement, p *rules.Policy, agent *rules.Agent, target string) {
	if j.Explain {
		x := p.Explain(agent, target)
		a.Road = &x
	}
}

// setDecision fills in the decision.
func setDecision(a *control.Judgement, d rules.Decision) *control.Judgement {
	a.Allowed, a.Reason = d.Verdict == rules.Allow, d.Reason
	a.Group, a.Rule, a.Line, a.Token, a.Variant = d.Group, d.Rule, d.Line, d.Token, d.Variant
	return a
}

// setSource fills in how the policy was obtained.
func setSource(a *control.Judgement, s rules.Source, d *rules.Decision, now time.Time) {
	if !s.FetchedAt.IsZero() {
		a.Age = max(0, now.Sub(s.FetchedAt).Seconds())
	}
	a.Stale, a.Detail = s.Stale, s.Note
	if s.State != rules.Unreachable {
		return
	}
	if s.NoConnection && d.Reason == rules.ReasonRobotsUnreachable {
		d.Reason = rules.ReasonOriginUnreachable
		if errors.Is(s.Err, upstream.ErrDestination) {
			d.Reason = rules.ReasonDestination
		}
	}
	if s.Err != nil {
		a.Detail = s.Err.Error()
	} else if s.Status != 0 {
		a.Detail = fmt.Sprintf("robots.txt was answered with status %d", s.Status)
	}
}

// maxAgents bounds the cached agents; a batch may contain any number.
const maxAgents = 16384

func (j *Judge) agent(userAgent string) *rules.Agent {
	a, ok := j.agents.Get(userAgent)
	if !ok {
		a = rules.Identify(userAgent)
		j.agents.Put(userAgent, a, maxAgents)
	}
	return a
}

// tooMany returns what a robots.txt that was read has too many of to be used, such as
// "more than 5 wildcards"; empty for one that is used.
func tooMany(a *control.Judgement) string {
	switch a.Detail {
	case rules.ErrTooManyWildcards.Error():
		return "more than 1,048,576 wildcards (*)"
	case rules.ErrTooManyWords.Error():
		return "more than 65,536 words in names of several words"
	}
	return ""
}
