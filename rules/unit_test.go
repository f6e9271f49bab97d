package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func standard(file string) *rules.Policy {
	return rules.New(rules.Source{State: rules.Available}, []byte(file))
}

// TestHeed_TooManyWildcardsRefuse holds a file just under the cap against one
// over it.
func TestHeed_TooManyWildcardsRefuse(t *testing.T) {
	t.Parallel()
	line := "Disallow: /" + strings.Repeat("*a", 4096) + "\n"
	file := "User-agent: *\nAllow: /\n" + strings.Repeat(line, rules.MaxWildcards/4096)
	p := standard(file)
	d := p.Decide(nil, rules.NewTarget("/b"))
	must.True(t, d.Verdict == rules.Allow && p.Source().State == rules.Available, "%d wildcards: %+v", rules.MaxWildcards, d)
	p = standard(file + "Disallow: /*b\n")
	for _, p := range []*rules.Policy{p, p.With(rules.Source{State: rules.Available})} {
		d := p.Decide(nil, rules.NewTarget("/c"))
		must.True(t, d.Verdict == rules.Refuse && d.Reason == rules.ReasonRobotsUnreachable, "one more: %+v", d)
		s := p.Source()
		must.True(t, errors.Is(s.Err, rules.ErrTooManyWildcards) && s.Note != "", "one more: the source is %+v", s)
	}
	must.Equal(t, p.Decide(nil, rules.NewTarget("/robots.txt")).Verdict, rules.Allow, "robots.txt")
}

// TestHeed_MalformedTargetsAreRefused asks what no request may ask.
func TestHeed_MalformedTargetsAreRefused(t *testing.T) {
	t.Parallel()
	p := standard("User-agent: *\nDisallow: /private\nDisallow: /?\n")
	for target, want := range map[string]rules.Verdict{
		"": rules.Allow, "?q": rules.Refuse, "*": rules.Refuse, "private": rules.Refuse,
		"http://site.test/": rules.Refuse, "/%zz": rules.Allow, "/%": rules.Allow, "/private%": rules.Refuse,
		"/\x00\xff": rules.Allow, "/private\x00": rules.Refuse,
	} {
		must.Equal(t, p.Decide(nil, rules.NewTarget(target)).Verdict, want, "%q", target)
	}
}

// People read the name of the robot, and not the platform or the language that its
// User-Agent string begins with. What it is judged by stays the same.
func TestHeed_AnAgentIsShownByTheNameOfTheRobot(t *testing.T) {
	for header, want := range map[string]string{
		"Mozilla/5.0 (Windows; U; Windows NT 5.1; fr; rv:1.8.1) VoilaBot BETA 1.2 (support.voilabot@orange-ftgroup.com)": "voilabot",
		"SAMSUNG-SGH-E250/1.0 Profile/MIDP-2.0 (compatible; ExampleBot-Mobile/2.1; +http://bot.example/)":                "examplebot-mobile",
		"Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:8.0) Gecko/20100101 Crawlery/1":                                      "crawlery",
		"Example web spider/4.0":        "example web spider",
		"python-requests/2.32":          "python-requests",
		"Mozilla/5.0 (X11; Ubuntu; en)": "ubuntu",
		"":                              "",
	} {
		must.Equal(t, rules.Identify(header).Name(), want, "%q is shown as", header)
	}
	must.Equal(t, rules.Declare("fetcher", "otherbot").Name(), "fetcher", "declared")
	a := rules.Identify("Mozilla/5.0 (Windows; fr) VoilaBot")
	must.True(t, len(a.Tokens) == 2 && a.Tokens[0].Name == "fr", "judged as %v: that is another engine", a.Tokens)
}

// TestHeed_AnAgentOfTooManyNamesIsRefused stays quick and closed where a
// User-Agent names most groups of a file.
func TestHeed_AnAgentOfTooManyNamesIsRefused(t *testing.T) {
	t.Parallel()
	var file, agent strings.Builder
	for i := range rules.MaxGoverning + 1 {
		fmt.Fprintf(&file, "User-agent: n%d\nAllow: /\n", i)
		fmt.Fprintf(&agent, "n%d/1 ", i)
	}
	p := standard(file.String())
	d := p.Decide(rules.Identify(agent.String()), rules.NewTarget("/"))
	must.True(t, d.Verdict == rules.Refuse && d.Reason == rules.ReasonTooComplex, "%+v", d)
	d = p.Decide(rules.Identify(agent.String()[len("n0/1 "):]), rules.NewTarget("/"))
	must.True(t, d.Verdict == rules.Allow, "one name less: %+v", d)
}

// TestHeed_ConcurrentDecisionsForManyAgents lets agents come and go while others ask.
func TestHeed_ConcurrentDecisionsForManyAgents(t *testing.T) {
	t.Parallel()
	p := standard("User-agent: n7\nDisallow: /7\n\nUser-agent: *\nDisallow: /x\n")
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 500 {
				n := (i*7 + worker) % 200
				d := p.Decide(rules.Identify(fmt.Sprintf("n%d/1", n)), rules.NewTarget("/7"))
				must.Equal(t, d.Verdict == rules.Refuse, n == 7, "n%d: %+v", n, d)
			}
		})
	}
	all.Wait()
}

// TestRFC9309_StatesDecideWithoutRules holds the states of §2.3.1.
func TestRFC9309_StatesDecideWithoutRules(t *testing.T) {
	t.Parallel()
	body := []byte("User-agent: *\nDisallow: /\n")
	for state, want := range map[rules.State]rules.Decision{
		rules.Unreachable: {Verdict: rules.Refuse, Reason: rules.ReasonRobotsUnreachable},
		rules.Unavailable: {Verdict: rules.Allow, Reason: rules.ReasonRobotsUnavailable},
	} {
		p := rules.New(rules.Source{State: state}, body)
		must.Equal(t, p.Decide(nil, rules.NewTarget("/")), want, "state %d", state)
		d := p.Decide(nil, rules.NewTarget("/robots.txt"))
		must.True(t, d.Reason == rules.ReasonRobotsTxt && d.Verdict == rules.Allow, "state %d: robots.txt: %+v", state, d)
	}
	var zero rules.Policy
	must.Equal(t, zero.Decide(nil, rules.NewTarget("/")).Verdict, rules.Refuse, "zero policy")
	stale := standard("User-agent: *\nDisallow: /a\n").With(rules.Source{State: rules.Available, Stale: true})
	d := stale.Decide(nil, rules.NewTarget("/a"))
	must.True(t, d.Verdict == rules.Refuse && stale.Source().Stale, "stale copy: %+v", d)
}
