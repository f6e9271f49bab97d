package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"heed/internal/base/memo"
	"heed/internal/check/why"
	"heed/internal/control"
	"heed/internal/judge"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/internal/output/console"
	"heed/internal/pace"
	"heed/rules"
)

// Judge decides about URLs as the proxy does. It is safe for concurrent use.
type Judge struct {
	Now     func() time.Time
	Explain bool // judgements contain the steps to the verdict

	Rules  *acl.Rules // the operator's settings, with the flags
	Client string     // the [[client]] entry to judge as; empty: the one that matches the User-Agent

	// Held returns the files that are held for clients with a name, as cache.Cache.Held; nil:
	// none are.
	Held func(rules.Origin) []*rules.Policy
	// Self are the addresses that heed listens on; nil: none. Destinations are those that it
	// may reach; nil: all.
	Self         *acl.Addrs
	Destinations *acl.Destinations

	Delays   bool          // judgements contain the delay between two requests
	Pacing   pace.Settings // the operator's; MaxDelay 0: there is no longest delay
	Sitemaps bool          // judgements contain the sitemaps that robots.txt names

	uses *uses // what a site states about the use of a page is judged as well; nil: not

	agents memo.Map[string, *rules.Agent]
}

// NewJudge returns a Judge by the settings. They may be those of no file, with flags alone;
// they are not nil.
func NewJudge(now func() time.Time, settled *acl.Rules) *Judge {
	return &Judge{Now: now, Rules: settled}
}

// policyOf returns the policy that governs an origin for a User-Agent, the file or
// URL it was read from, and its source (By of a Judgement).
type policyOf func(ctx context.Context, o rules.Origin, userAgent string) (p *rules.Policy, robots, by string)

// Ask judges one URL for one agent. An error means that address is not the URL of a
// site.
func (j *Judge) Ask(ctx context.Context, userAgent, address string, policy policyOf) (*control.Judgement, error) {
	return j.ask(ctx, userAgent, address, true, policy)
}

// ask is Ask; without ofSite the Judgement has no delay and no sitemaps, which are the same for
// all URLs of a site.
func (j *Judge) ask(ctx context.Context, userAgent, address string, ofSite bool, policy policyOf) (*control.Judgement, error) {
	origin, target, err := rules.ParseURL(address)
	if err != nil {
		return nil, err
	}
	a := &control.Judgement{URL: address, Agent: userAgent}
	t := j.terms(userAgent, origin)
	if a.Client = t.Name(); t.Mode == acl.Observe {
		a.Mode = t.Mode.String()
	}
	id := t.Identity(userAgent, j.agent)
	if j.Explain {
		a.Terms = termsOf(t, id, origin, j.Now())
	}
	if j.Delays {
		a.Names = id.Own.Names()
	}
	barred, why := j.Barred(origin, target)
	t.Terms = t.Terms.For(j.Rules.Flags.Purpose) // statements count for those of the flags alone
	q := judge.Question{Query: judge.Query{Effective: t, Names: id, Target: rules.NewTarget(target), HTTPS: acl.Intercept, Now: j.Now()}}
	q.Barred = barred
	v, err := j.Decide(ctx, a, &q, origin, policy)
	by := cmp.Or(v.Policy, q.Policy, &rules.Policy{})
	if j.Explain {
		a.Road = new(by.Explain(v.Agent, rules.NewTarget(target)))
	}
	if q.Policy != nil {
		a.Profile = by.Profile().String()
		setSource(a, by.Source(), j.Now())
		if ofSite {
			j.delay(a, by, id, t)
			j.sitemaps(a, by)
		}
	}
	a.Allowed, a.Reason, a.Settled = v.Verdict == rules.Allow, v.Reason, v.OperatorReason
	a.Group, a.Rule, a.Line, a.Token, a.Variant = v.Group, v.Rule, v.Line, v.Token, v.Variant
	if a.Token != "" {
		a.Role = v.Role.String()
	}
	switch {
	case why != "":
		a.Detail = why
	case v.Self:
		a.Detail = ownAddress
	case v.Refusal != nil && !v.Excepted:
		a.Detail = refusalText(*v.Refusal)
	}
	if j.uses != nil && a.Signals == nil {
		a.Purpose, a.Signals = strings.Join(t.PurposeNames(), ","), &signal.Verdict{Profile: by.Profile().String()}
	}
	return a, err
}

// termsOf returns the settings in force for a client at a site, in words, without those that
// are as they are by default. Which rules and exceptions there are, the verdict shows.
func termsOf(t acl.Effective, id acl.Identity, o rules.Origin, now time.Time) (all []string) {
	add := func(format string, values ...any) { all = append(all, fmt.Sprintf(format, values...)) }
	if id.Own != nil && id.Own.Role == rules.Declared {
		add("judged as %s", console.Quoted(strings.Join(id.Own.Names(), ", ")))
		if id.Seen != nil {
			add("and as what its own User-Agent names, since the site does not see that name")
		}
	}
	if names := id.Also.List(); names != nil {
		add("also obeys the groups that name %s", console.Quoted(strings.Join(names, ", ")))
	}
	if c := t.Client; c != nil && c.SendUserAgent != "" {
		add("sends User-Agent: %s", console.Quoted(c.SendUserAgent))
	}
	if id.From != "" {
		add("sends From: %s", console.Quoted(id.From))
	}
	if t.Signer != nil {
		add("signed: %s", t.Signature(o, now))
	}
	if t.Mode != acl.Enforce {
		add("mode %s", t.Mode)
	}
	all = append(all, t.Words()...)
	if reference := t.Licence(now); reference != "" {
		add("licence %s: what the licences of the site ask for counts as met", console.Quoted(reference))
	}
	if t.Site.NeverAllow {
		add("no exception may allow what the rules refuse (never_allow)")
	}
	return all
}

// ownAddress is the detail of a request that would come back to heed.
const ownAddress = "the address is one that heed itself listens on"

// Barred returns why no request for a target may be sent to o, as far as its name shows, and in
// words.
func (j *Judge) Barred(o rules.Origin, target string) (reason rules.Reason, why string) {
	if j.Self != nil && j.Self.HasHost(o.Host, o.Port) {
		return rules.ReasonLoop, ownAddress
	}
	if fault := rules.TargetFault(target); fault != "" {
		return rules.ReasonMalformed, fault
	}
	if err := j.Destinations.CheckOrigin(o); err != nil {
		return rules.ReasonDestination, err.Error()
	}
	return "", ""
}

// Decide answers what package judge asks about q, and returns its verdict. It fills in where
// the rules are from, and what the site states of the use of the page.
func (j *Judge) Decide(ctx context.Context, a *control.Judgement, q *judge.Question, o rules.Origin, policy policyOf) (v judge.Verdict, err error) {
	for {
		switch q.Decide(&v) {
		case judge.NeedsNothing:
			return v, nil
		case judge.NeedsPolicy:
			if q.Policy, a.Robots, a.By = q.Effective.Site.Robots, o.RobotsURL(), why.ByOperator; q.Policy == nil {
				q.Policy, a.Robots, a.By = policy(ctx, o, q.Names.Shown)
			}
		case judge.NeedsHeld:
			if q.Held = []*rules.Policy{}; j.Held != nil {
				q.Held = append(q.Held, j.Held(o)...)
			}
		case judge.NeedsStatements:
			if err = j.uses.find(ctx, a, q, v.Policy, o); err != nil {
				return v, err
			}
		case judge.NeedsSelf:
			reach := func() error {
				p, _, _ := policy(ctx, o, q.Names.Shown)
				return p.Source().Err
			}
			q.Self, q.SelfKnown = j.Self != nil && j.Self.IsName(o, j.Destinations, reach), true
		}
	}
}

// terms returns the settings in force for the client and the origin.
func (j *Judge) terms(userAgent string, o rules.Origin) acl.Effective {
	c := j.Rules.ClientNamed(j.Client)
	if j.Client == "" {
		c = j.Rules.ClientOf(acl.ClientInfo{UserAgent: userAgent})
	}
	return j.Rules.For(c, o, j.Now())
}

// maxSitemaps bounds the sitemaps of a judgement.
const maxSitemaps = 1000

// sitemaps adds the sitemaps that p names to a, if Sitemaps is set.
func (j *Judge) sitemaps(a *control.Judgement, p *rules.Policy) {
	if !j.Sitemaps {
		return
	}
	for _, f := range p.Fields(nil, rules.Sitemap) {
		if len(a.Sitemaps) < maxSitemaps {
			a.Sitemaps = append(a.Sitemaps, f.Value)
		}
	}
}

// delay adds the time between two requests to a, if Delays is set.
func (j *Judge) delay(a *control.Judgement, p *rules.Policy, names acl.Identity, t acl.Effective) {
	if !j.Delays {
		return
	}
	d := judge.DelayOf(p, names, j.Pacing.MinDelay, j.Pacing.MaxDelay, j.Now())
	a.Delay = &control.Delay{Seconds: d.Kept.Seconds(), Asked: d.Asked.Seconds(), MaxWait: j.Pacing.MaxWait.Seconds(), Unkept: t.Mode == acl.Observe && !j.Pacing.PaceObserve}
	if t.Client != nil && t.Client.MaxWait != nil {
		a.Delay.MaxWait = t.Client.MaxWait.Seconds()
	}
	if j.Pacing.ObeyVisits {
		a.Delay.Visits, a.Delay.Open = visits(names, p)
	}
	if d.By.Line > 0 {
		a.Delay.Line, a.Delay.Rule, a.Delay.Group = d.By.Line, d.By.Kind.String()+": "+d.By.Value, d.Group
	}
	for _, f := range d.Ignored {
		a.Delay.Ignored = append(a.Delay.Ignored, fmt.Sprintf("line %d, %s: %s", f.Line, f.Kind, f.Value))
	}
}

// visits returns the lines about the time of day outside of which requests of a client with
// some names wait, and the share of the day that they leave.
func visits(names acl.Identity, p *rules.Policy) (lines []string, open float64) {
	for _, f := range names.Fields(p, rules.VisitTime) {
		if s, ok := f.Speed(); ok && s.Window.From != s.Window.To {
			lines = append(lines, fmt.Sprintf("line %d, %s: %s", f.Line, f.Kind, f.Value))
		}
	}
	if len(lines) == 0 {
		return nil, 0
	}
	const day = 24 * 60
	minutes, hints := 0, names.RateHints(p)
	for m := range day {
		at := time.Unix(int64(m)*60, 0)
		closed := func(w *rules.RateHint) bool { from, _ := w.NextVisit(at); return from.After(at) }
		if !slices.ContainsFunc(hints, closed) {
			minutes++
		}
	}
	return lines, float64(minutes) / day
}

// setSource fills in how the policy was obtained.
func setSource(a *control.Judgement, s rules.Source, now time.Time) {
	a.State = rules.StateNames[s.State]
	if !s.FetchedAt.IsZero() {
		a.Age = max(0, now.Sub(s.FetchedAt).Seconds())
	}
	a.Stale, a.Detail = s.Stale, s.Note
	if s.State != rules.Unreachable {
		return
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
	a, _ := j.agents.Load(userAgent, maxAgents, func() (*rules.Agent, error) { return rules.Identify(userAgent), nil })
	return a
}
