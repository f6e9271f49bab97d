package report

import (
	"cmp"
	"hash/maphash"
	"slices"
	"time"
)

// Conduct is what a client did at a site of its own accord, whatever heed made
// of it.
type Conduct struct {
	Agent string `json:"agent"`
	Site  string `json:"site"`
	Counts

	// RobotsAsked is how often it asked for /robots.txt itself. heed does that
	// too, on its behalf, so that a client which does not is no worse for it.
	RobotsAsked       int64      `json:"robots_asked"`
	RobotsFirst       *time.Time `json:"robots_first"` // nil: never
	RobotsLast        *time.Time `json:"robots_last"`
	RobotsBeforePages bool       `json:"robots_before_pages"` // before its first page

	// BreachShare is the share of what it asked for, pages alone, that the
	// rules do not let it have: refused and would-refuse; nil: no page was judged.
	BreachShare *float64 `json:"breach_share"`

	Asked Gaps `json:"gaps_asked"` // between its requests, as it made them
	Sent  Gaps `json:"gaps_sent"`  // as they went on to the site, after they waited for their turn

	Fastest  int64    `json:"fastest_minute"` // most requests that went to the site in any 60 seconds
	Repeated int64    `json:"repeated"`       // GETs for an address that it had asked for before
	Agents   []string `json:"user_agents"`    // the User-Agents it used, at most 20
}

// Gaps are the times between requests that were let through to a site, its
// robots.txt apart.
type Gaps struct {
	N      int64    `json:"n"`
	Median *float64 `json:"median_s"` // nil: there are none
	P5     *float64 `json:"p5_s"`     // the 5th percentile: 95 % are longer

	Delay *float64 `json:"crawl_delay_s"` // the longest delay asked for; nil: none
	Kept  *float64 `json:"kept_share"`    // the share of gaps not shorter than the delay asked for; nil: none was
}

// start is when a request began, and the delay that was asked for then.
type start struct{ at, delay int64 } // microseconds; delay 0: none

// trail is what an agent did at a site.
type trail struct {
	asked, sent            []start
	pages                  []uint64 // hashes of the addresses asked for by GET
	robots                 int64
	robotsFirst, robotsEnd int64
	page                   int64 // the first; 0: none yet
	agents                 map[string]bool
}

// mostAgents is how many User-Agents are told of one client at one site.
const mostAgents = 20

var seed = maphash.MakeSeed()

// follow adds a decision to its trail.
func (b *builder) follow(e *entry, a *asker, s site, g ground, d *delays) error {
	k := pair{a.number, s.number}
	t := b.trails[k]
	if t == nil {
		t = &trail{agents: map[string]bool{}}
		b.trails[k] = t
	}
	if len(t.agents) < mostAgents {
		t.agents[a.userAgent] = true
	}
	if string(e.target) == "/robots.txt" {
		if t.robots++; t.robots == 1 || e.time < t.robotsFirst {
			t.robotsFirst = e.time
		}
		t.robotsEnd = max(t.robotsEnd, e.time)
		return nil
	}
	if t.page == 0 || e.time < t.page {
		t.page = e.time
	}
	if string(e.method) == "GET" {
		t.pages = append(t.pages, maphash.Bytes(seed, e.target))
	}
	if b.ways.keys[g.number].verdict == refuse {
		return nil
	}
	delay, err := d.of(e, a, g)
	t.asked = append(t.asked, start{e.time, delay})
	t.sent = append(t.sent, start{e.time + e.waited.Int64, delay})
	return err
}

// conduct returns what the trails come to; nil without any.
func (b *builder) conduct() []Conduct {
	pairs := map[pair]*Conduct{}
	for p, c := range b.cells {
		at := pair{p.agent, p.origin}
		if b.trails[at] == nil {
			continue
		}
		if pairs[at] == nil {
			pairs[at] = &Conduct{Agent: b.agents.keys[p.agent].agent().String(), Site: b.origins.keys[p.origin].String()}
		}
		pairs[at].add(c.counts(&b.ways.keys[p.way]))
	}
	var list []Conduct
	for at, c := range pairs {
		c.conclude(b.trails[at])
		list = append(list, *c)
	}
	return list
}

// conclude fills in what the trail tells.
func (c *Conduct) conclude(t *trail) {
	c.Asked, c.Sent = gaps(t.asked), gaps(t.sent)
	c.Fastest = fastest(t.sent)
	slices.Sort(t.pages)
	c.Repeated = int64(len(t.pages) - len(slices.Compact(t.pages)))
	for agent := range t.agents {
		c.Agents = append(c.Agents, agent)
	}
	slices.Sort(c.Agents)
	if c.RobotsAsked = t.robots; t.robots > 0 {
		first, last := micros(t.robotsFirst), micros(t.robotsEnd)
		c.RobotsFirst, c.RobotsLast = &first, &last
		c.RobotsBeforePages = t.page == 0 || t.robotsFirst <= t.page
	}
	if judged := c.Requests - c.NotJudged - t.robots; judged > 0 {
		share := float64(c.Refused+c.WouldRefuse) / float64(judged)
		c.BreachShare = &share
	}
}

// gaps measures the times between starts, which it sorts.
func gaps(starts []start) (g Gaps) {
	slices.SortFunc(starts, func(x, y start) int { return cmp.Compare(x.at, y.at) })
	var list []int64
	var limited, kept int64
	for i := 1; i < len(starts); i++ {
		gap, delay := starts[i].at-starts[i-1].at, starts[i].delay
		list = append(list, gap)
		if delay == 0 {
			continue
		}
		if limited++; gap >= delay {
			kept++
		}
		if s := seconds(delay); g.Delay == nil || s > *g.Delay {
			g.Delay = &s
		}
	}
	if g.N = int64(len(list)); g.N == 0 {
		return g
	}
	slices.Sort(list)
	median, p5 := seconds(percentile(list, 50)), seconds(percentile(list, 5))
	g.Median, g.P5 = &median, &p5
	if limited > 0 {
		share := float64(kept) / float64(limited)
		g.Kept = &share
	}
	return g
}

// percentile returns the value at or below which p percent of a sorted list
// lie, by the nearest rank.
func percentile(list []int64, p int) int64 {
	return list[max(0, (len(list)*p+99)/100-1)]
}

// fastest returns the most starts, in order, within a minute.
func fastest(starts []start) (most int64) {
	from := 0
	for i := range starts {
		for starts[i].at-starts[from].at >= time.Minute.Microseconds() {
			from++
		}
		most = max(most, int64(i-from+1))
	}
	return most
}
