package rules_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// hints returns what a robots.txt asks of an agent at an hour of the day, group
// by group.
func hints(agent, at string, lines ...string) string {
	p := rules.New(rules.Source{Origin: rules.Origin{Scheme: "https", Host: "site.test", Port: 443}, State: rules.Available}, []byte(strings.Join(lines, "\n")))
	now, err := time.Parse("15:04", at)
	if err != nil {
		panic(err)
	}
	var all []string
	for _, w := range p.RateHints(rules.Identify(agent)) {
		d, by := w.Delay(now)
		text := fmt.Sprintf("%s: %v (line %d)", w.Group, d, by.Line)
		if from, by := w.NextVisit(now); by.Line > 0 {
			text += fmt.Sprintf(", from %s on (line %d)", from.Format("15:04"), by.Line)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// What a group asks is the longest of its lines; a group that names the agent
// inherits nothing from the star group.
func TestConner_RateHintsOfTheGroupsThatGovern(t *testing.T) {
	t.Parallel()
	file := []string{
		"User-agent: *", "Crawl-delay: 5", "Request-rate: 1/30s 0600-0845", "Disallow: /p", // 1 to 4
		"User-agent: Fast", "User-agent: quick", "Crawl-delay: 1", "Crawl-delay: 2", "Crawl-delay: soon", "Disallow: /p", // 5 to 10
		"User-agent: Free", "Disallow: /p", // 11, 12
		"User-agent: Night", "Visit-time: 2200-0400", "Visit-time: 0500-0530", "Disallow:", // 13 to 16
		"User-agent: fast", "Request-rate: 1/10", "Disallow:", // 17 to 19
	}
	for _, c := range []struct{ agent, at, want string }{
		{"Other/1", "12:00", "*: 5s (line 2)"},
		{"Other/1", "07:00", "*: 30s (line 3)"},
		{"Other/1", "08:45", "*: 5s (line 2)"},
		{"quick/1", "12:00", "fast,quick: 2s (line 8)"},
		{"Fast/1", "12:00", "fast,quick: 2s (line 8); fast: 10s (line 18)"},
		{"Free/1", "12:00", ""},
		{"Night/1", "23:00", "night: 0s (line 0)"},
		{"Night/1", "12:00", "night: 0s (line 0), from 22:00 on (line 14)"},
		{"Night/1", "04:30", "night: 0s (line 0), from 05:00 on (line 15)"},
		{"Night/1 quick/1", "23:00", "night: 0s (line 0); fast,quick: 2s (line 8)"},
	} {
		must.Equal(t, hints(c.agent, c.at, file...), c.want, "%s at %s", c.agent, c.at)
	}
}

// Lines before any group are meant for everybody; nonsense asks for nothing.
func TestHeed_RateHintsOutsideAnyGroup(t *testing.T) {
	t.Parallel()
	must.Equal(t, hints("Any/1", "12:00", "Crawl-delay: 3", "User-agent: *", "Disallow: /p"), ": 3s (line 1)")
	for _, line := range []string{"Crawl-delay: -1", "Crawl-delay: soon", "Crawl-delay: 0", "Request-rate: 0/5", "Visit-time: 0900-0900", "Visit-time: now"} {
		must.Equal(t, hints("Any/1", "12:00", "User-agent: *", line, "Disallow: /p"), "", line)
	}
}

// What a file asks is bounded, however many lines and names it has.
func TestHeed_RateHintsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for n := range 500 {
		fmt.Fprintf(&b, "User-agent: one\nUser-agent: %s%d\nCrawl-delay: %d\nDisallow:\n", strings.Repeat("x", 100), n, n+1)
	}
	p := rules.New(rules.Source{State: rules.Available}, []byte(b.String()))
	all := p.RateHints(rules.Identify("one/1"))
	must.Equal(t, len(all), 16, "groups")
	for _, w := range all {
		must.True(t, len(w.Group) <= 80, "a name of %d octets", len(w.Group))
	}
}

// Once the agent is known, asking costs nothing.
func TestHeed_RateHintsAllocateNothing(t *testing.T) {
	p := rules.New(rules.Source{State: rules.Available}, []byte("User-agent: one\nCrawl-delay: 3\n\nUser-agent: *\nDisallow: /p\n"))
	agents := []*rules.Agent{rules.Identify("one/1"), rules.Identify("two/1")}
	if n := testing.AllocsPerRun(100, func() {
		must.Equal(t, len(p.RateHints(agents[0])), 1, "no rate hint")
		p.RateHints(agents[1])
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
