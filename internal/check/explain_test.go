package check

import (
	"context"
	"strings"
	"testing"
	"time"

	"heed/internal/check/why"
	"heed/internal/judge/acl"
	"heed/internal/pace"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// The explanation says how long the delay is, whose it is, and which lines have no effect.
func TestHeed_TheExplanationSaysTheDelay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines       string
		least, most time.Duration
		want        string
	}{
		{"", 0, time.Hour, "none is asked for"},
		{"Crawl-delay: 10\n", 0, time.Hour, "10 s between two requests: line 2, crawl-delay: 10, group *"},
		{"Crawl-delay: 0,5\n", 0, time.Hour, "0.5 s between two requests: line 2, crawl-delay: 0,5, group *"},
		{"Request-rate: 1/10m\n", 0, time.Hour, "600 s between two requests: line 2, request-rate: 1/10m, group *"},
		{"Crawl-delay: 1e5\n", 0, time.Hour, "3600 s between two requests: line 2, crawl-delay: 1e5, group *|100000 s is asked for; max_delay in the settings is the longest that is kept"},
		{"Crawl-delay: 1\n", 2 * time.Second, time.Hour, "2 s between two requests: min_delay in the settings"},
		{"Crawl-delay: soon\nCrawl-delay: -1\n", 0, time.Hour, "none is asked for|line 2, crawl-delay: soon has no effect: its value cannot be understood|line 3, crawl-delay: -1 has no effect: its value cannot be understood"},
		{"Crawl-delay: 10s\n", 0, time.Hour, "10 s between two requests: line 2, crawl-delay: 10s, group *"},
		{"Disallow: /x\nUser-agent: OtherBot\nCrawl-delay: 10s\nCrawl-delay: 9\n", 0, time.Hour, "none is asked for"},
	} {
		j := &Judge{Now: time.Now, Rules: &acl.Rules{}, Explain: true, Delays: true, Pacing: pace.Settings{MinDelay: c.least, MaxDelay: c.most}}
		p := rules.New(rules.Source{State: rules.Available}, []byte("User-agent: *\n"+c.lines))
		a, err := j.Ask(t.Context(), "TestBot/1", "http://site.test/a", func(context.Context, rules.Origin, string) (*rules.Policy, string, string) {
			return p, "robots.txt", why.ByFile
		})
		must.OK(t, err)
		steps := why.Judgement(a, nil)
		got := strings.Join(steps[len(steps)-1].Lines, "|")
		must.True(t, got == c.want && steps[len(steps)-1].Label == "Delay", "%q: %q, want %q", c.lines, got, c.want)
	}
}
