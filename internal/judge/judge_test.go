package judge

import (
	"testing"
	"time"

	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// ask returns the verdict on q, which lacks nothing, and how often it asked for something.
func ask(t *testing.T, q Question) Verdict {
	t.Helper()
	var v Verdict
	must.Is(t, q.Decide(&v), NeedsNothing, "what it needs")
	again := v
	need := q.Decide(&again)
	must.True(t, need == NeedsNothing && again.Decision == v.Decision, "asked again it is %+v, %+v before", again, v)
	return v
}

// question is about /a of a site without settings, whose file disallows /private.
func question(target string) Question {
	p := rules.New(rules.Source{State: rules.Available}, []byte("User-agent: *\nDisallow: /private\n"))
	return Question{
		Query: Query{
			Effective: (&acl.Rules{}).For(nil, rules.Origin{Scheme: "http", Host: "site.test", Port: 80}, time.Now()),
			Target:    rules.NewTarget(target), Names: acl.Identity{Own: rules.Identify("TestBot/1"), Shown: "TestBot/1"}, Now: time.Now(),
		},
		Policy: p, Held: []*rules.Policy{}, SelfKnown: true,
	}
}

func TestHeed_DecideAsksForWhatItNeeds(t *testing.T) {
	t.Parallel()
	q := question("/a")
	policy := q.Policy
	q.Policy, q.Held, q.SelfKnown, q.Names.Shown = nil, nil, false, ""
	q.Effective.Terms = q.Effective.Terms.For([]signal.Purpose{signal.PurposeTraining})
	refuses := signal.Judge(signal.Input{Target: q.Target, Crawl: true, Agent: q.Names.Own,
		Robots: signal.ReadRobots(rules.New(rules.Source{State: rules.Available}, []byte("Content-Usage: train-ai=n\n")), q.Names.Own, "u")})
	var v Verdict
	for _, step := range []struct {
		need Need
		find func()
	}{
		{NeedsPolicy, func() { q.Policy = policy }},
		{NeedsHeld, func() { q.Held = []*rules.Policy{} }},
		{NeedsStatements, func() { q.Statements = &signal.Verdict{Crawl: true} }},
		{NeedsSelf, func() { q.SelfKnown = true }},
	} {
		need := q.Decide(&v)
		must.Need(t, need == step.need, "it needs %d, not %d", need, step.need)
		step.find()
	}
	need := q.Decide(&v)
	must.True(t, need == NeedsNothing && v.Verdict == rules.Allow, "%+v, %d", v, need)
	q = question("/a")
	q.Effective.Terms, q.Statements = q.Effective.Terms.For([]signal.Purpose{signal.PurposeTraining}), refuses
	if v := ask(t, q); v.Reason != rules.ReasonSignal || v.Refusal == nil || v.Line != 1 || v.Rules.Reason != rules.ReasonNoRule {
		t.Errorf("%+v", v)
	}
}

// notAsked has q be of a client under whose name the site was not asked, while it told
// another one that /a is disallowed.
func notAsked(q *Question) {
	q.Policy = q.Policy.With(rules.Source{State: rules.Available, NameNotAsked: true})
	q.Held = []*rules.Policy{rules.New(rules.Source{State: rules.Available}, []byte("User-agent: *\nDisallow: /a\n"))}
}

func TestHeed_TheOrderOfADecision(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		target string
		change func(*Question)
		want   rules.Reason
		refuse bool
	}{
		"a rule":                           {"/private", func(q *Question) {}, rules.ReasonRule, true},
		"no rule":                          {"/a", func(q *Question) {}, rules.ReasonNoRule, false},
		"a destination":                    {"/robots.txt", func(q *Question) { q.Barred = rules.ReasonDestination }, rules.ReasonDestination, true},
		"a destination, observed":          {"/a", func(q *Question) { q.Barred, q.Effective.Mode = rules.ReasonDestination, acl.Observe }, rules.ReasonDestination, true},
		"heed's own":                       {"/a", func(q *Question) { q.Self = true }, rules.ReasonLoop, true},
		"heed's own, a service":            {"/a", func(q *Question) { q.Self, q.OwnService = true, true }, rules.ReasonOwnService, false},
		"heed's own, exempt":               {"/a", func(q *Question) { q.Self, q.Effective.Mode = true, acl.Exempt }, rules.ReasonLoop, true},
		"heed's own, refused":              {"/private", func(q *Question) { q.Self = true }, rules.ReasonRule, true},
		"a part":                           {"/private", func(q *Question) { q.Part = "image"; q.Effective.Client = &acl.Client{AllowSubresources: true} }, rules.ReasonSubresource, false},
		"a name that was not asked":        {"/a", notAsked, rules.ReasonRule, true},
		"a name that was not asked, freed": {"/b", notAsked, rules.ReasonNoRule, false},
		"no rules yet":                     {"/private", func(q *Question) { q.Policy, q.NoPolicy = nil, rules.ReasonRulesPending }, rules.ReasonRulesPending, false},
		"the client left":                  {"/a", func(q *Question) { q.Policy, q.NoPolicy = nil, rules.ReasonClientLeft }, rules.ReasonClientLeft, true},
		"the client left later": {"/a", func(q *Question) {
			q.Effective.Terms, q.NoStatements = q.Effective.Terms.For([]signal.Purpose{signal.PurposeTraining}), rules.ReasonClientLeft
		}, rules.ReasonClientLeft, true},
		"two places, observed": {"/a", func(q *Question) { q.Mismatch, q.Effective.Mode = true, acl.Observe }, rules.ReasonHostMismatch, false},
		"what an exception alone allows": {"/private", func(q *Question) {
			e, _ := acl.NewException(acl.Exception{Patterns: []string{"/private"}, Reason: "letter 7"})
			q.Effective.Site = &acl.Site{Exceptions: []*acl.Exception{e}}
			q.Effective.Terms = q.Effective.Terms.For([]signal.Purpose{signal.PurposeTraining}) // has no usage verdict
		}, rules.ReasonOverride, false},
	} {
		q := question(c.target)
		c.change(&q)
		v := ask(t, q)
		must.True(t, v.Reason == c.want && c.refuse == (v.Verdict == rules.Refuse), "%s: %+v", name, v)
	}
}
