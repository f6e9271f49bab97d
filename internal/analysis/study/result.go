package study

import (
	"time"

	"heed/internal/analysis/accesslog"
	"heed/internal/output/figures"
	"heed/rules"
)

// Result is the finished tables.
type Result struct {
	Made      time.Time
	Heed      string // the version that made it
	Partial   bool   // reading was interrupted
	First     time.Time
	Last      time.Time
	Requests  int64
	Robots    int64 // requests of programs that name themselves
	Agents    int64 // their tokens, each counted once however many sites it was at
	Unnamed   int64 // requests without a User-Agent
	Sites     []string
	Judged    int64
	Refused   int64
	Tables    []*Table
	Chart     *figures.Chart // of the requests by class; nil: there is nothing to see in it
	Hidden    bool           // addresses are keyed hashes
	WithRules bool
	Known     bool // of a site, a robots.txt or its state
}

// chart counts requests by period. When there are too many periods, two become one.
type chart struct {
	width int64 // microseconds
	bins  map[int64][classes]int64
}

const maxBins = 2048

func (c *chart) add(t int64, k class) {
	if len(c.bins) > maxBins {
		c.widen()
	}
	bin := c.bins[t/c.width]
	bin[k]++
	c.bins[t/c.width] = bin
}

// widen doubles the width of the periods.
func (c *chart) widen() {
	old := c.bins
	c.width, c.bins = 2*c.width, map[int64][classes]int64{}
	for at, bin := range old {
		to := c.bins[at/2]
		for k, n := range bin {
			to[k] += n
		}
		c.bins[at/2] = to
	}
}

// draw returns the chart from first to last in at most 100 periods; nil for a single one.
func (c *chart) draw(first, last int64) *figures.Chart {
	width := time.Duration(figures.Period(last-first, c.width, 100)) * time.Microsecond
	from := time.UnixMicro(first).UTC().Truncate(width)
	periods := make([][]figures.Part, min(2000, (last-from.UnixMicro())/width.Microseconds()+1))
	if len(periods) < 2 {
		return nil
	}
	for i := range periods {
		for _, k := range classStyles {
			periods[i] = append(periods[i], figures.Part{Style: k.style, Name: k.class.String()})
		}
	}
	for at, bin := range c.bins {
		i := max(0, (at*c.width-from.UnixMicro())/width.Microseconds())
		i = min(i, int64(len(periods)-1))
		for n, k := range classStyles {
			periods[i][n].N += bin[k.class]
		}
	}
	return figures.NewChart(from, width, "", periods)
}

// Finish returns the tables of all requests that were added. counts are what the reader
// counted, and partial is set when it was interrupted. The study must not be used afterwards.
func (s *Study) Finish(counts accesslog.Counts, partial bool, now time.Time) *Result {
	s.takeCounts(counts)
	for _, a := range s.actors {
		a.endSession()
	}
	r := &Result{Made: now, Heed: s.Heed, Partial: partial, Requests: s.total.requests, Hidden: s.Hashed}
	if partial {
		s.total.notes = append(s.total.notes, "reading was interrupted: the tables are of what had been read")
	}
	tokens := map[string]bool{}
	for _, x := range s.all {
		if programs(x) {
			if x.category == catUnnamed {
				r.Unnamed += x.requests
			} else {
				r.Robots += x.requests
				tokens[x.token] = true
			}
			r.Judged += x.classes[classAllowed] + x.classes[classRefused] + x.classes[classGrace]
			r.Refused += x.classes[classRefused]
		}
	}
	r.Agents = int64(len(tokens))
	for _, x := range s.siteList {
		r.Sites = append(r.Sites, x.name)
		for _, v := range x.versions() {
			r.WithRules, r.Known = r.WithRules || v.state == rules.Available, true
		}
	}
	for _, d := range Definitions() {
		t := &Table{Definition: d}
		if s.total.requests > 0 || d.Name == "coverage" {
			d.build(s, t)
		}
		r.Tables = append(r.Tables, t)
	}
	if s.total.requests > 0 {
		r.First, r.Last = time.UnixMicro(s.total.first).UTC(), time.UnixMicro(s.total.last).UTC()
		r.Chart = s.chart.draw(s.total.first, s.total.last)
	}
	return r
}
