package main

import (
	"bytes"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// Each series runs against the real heed: every answer is the site's, and a record of
// some size is refused requests and nothing else. In the long form only, as the cases.
func TestEachSeriesRunsAgainstHeed(t *testing.T) {
	if !testkit.Full {
		t.Skip("internal/tools/bench: its cases and series against heed")
	}
	b := smallBench(t)
	b.scale.Most = 10
	b.cases, b.series = nil, growth(b.scale)
	b.series[3].points[0].workload.recorded = 100
	rep := must.Get(b.run(t.Context()))(t)
	if len(rep.Growth) != len(b.series) {
		t.Fatalf("%d of %d series are in the report", len(rep.Growth), len(b.series))
	}
	for i, g := range rep.Growth {
		if len(g.Points) != len(b.series[i].points) {
			t.Errorf("%s has %d of %d points", g.Name, len(g.Points), len(b.series[i].points))
		}
		for _, p := range g.Points {
			if p.Wrong != 0 || p.Samples[0].Requests == 0 {
				t.Errorf("%s, %d: %d requests, %d wrong answers, the first: %s", g.Name, p.N, p.Samples[0].Requests, p.Wrong, p.FirstWrong)
			}
		}
	}
}

// A file of the series "rules" is within what heed reads, and leaves the page that is
// requested to crawlers.
func TestRulesOfASeriesAllowItsPage(t *testing.T) {
	for _, n := range ruleCounts {
		text := manyRules(n)
		if lines := bytes.Count(text, []byte("\nDisallow: ")); lines != n || len(text) > 4<<20 {
			t.Errorf("%d rules in %d octets instead of %d", lines, len(text), n)
		}
		p := rules.New(rules.Source{State: rules.Available}, text)
		for target, verdict := range map[string]rules.Verdict{"/1k?7": rules.Allow, "/private/0/x": rules.Refuse} {
			if d := p.Decide(rules.Identify(userAgent), rules.NewTarget(target)); d.Verdict != verdict {
				t.Errorf("%d rules: %s is %v", n, target, d)
			}
		}
	}
}

// The chart of growth is a document that a browser accepts, with a mark for each point.
func TestGrowthChart(t *testing.T) {
	s := series{name: "hosts", title: "hosts <& more", points: []point{{n: 1}, {n: 1000}}}
	of := func(costs ...float64) *entrant {
		e := new(entrant)
		for _, c := range costs {
			e.samples = append(e.samples, sample{Cost: c, Requests: 1})
		}
		return e
	}
	r := newReport(2, 0)
	r.Growth = []growthReport{newGrowthReport(s, []*entrant{of(50, 100), of(100, 200)})}
	var table strings.Builder
	if err := r.table(&table); err != nil || !strings.Contains(table.String(), "2.00") || !strings.Contains(table.String(), "1000") {
		t.Errorf("%v in\n%s", err, &table)
	}
	text := r.growthSVG()
	marks := elements(t, text, "circle")
	if marks != 2 || strings.Contains(text, "%!") || !strings.Contains(text, "hosts &lt;&amp; more") || !strings.Contains(text, ">1k<") {
		t.Errorf("%d marks in\n%s", marks, text)
	}
}
