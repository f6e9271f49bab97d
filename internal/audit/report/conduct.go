package report

import (
	"cmp"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/base/memo"
	"heed/internal/output/figures"
	"heed/rules"
)

// Conduct is the behaviour of a client at a site, as requested, whatever heed's
// verdicts.
type Conduct struct {
	Agent string `json:"agent"`
	Site  string `json:"site"`
	Counts

	// RobotsAsked is how often it requested /robots.txt. A client need not, since
	// heed fetches the file as well.
	RobotsAsked       int64      `json:"robots_asked"`
	RobotsFirst       *time.Time `json:"robots_first"` // nil: never
	RobotsLast        *time.Time `json:"robots_last"`
	RobotsBeforePages bool       `json:"robots_before_pages"` // before its first page
	Tunnels           int64      `json:"tunnels"`             // of its requests, of which no path was seen

	// BreachShare is the share of what it asked for that the rules of the site do not
	// let it have, of the pages that these rules were applied to; nil: there were none.
	BreachShare *float64 `json:"breach_share"`
	Pages       int64    `json:"pages_judged"` // that the rules were applied to
	Breaches    int64    `json:"breaches"`     // of these, against them

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
	Median *Seconds `json:"median_s"` // nil: there are none
	P5     *Seconds `json:"p5_s"`     // the 5th percentile: 95 % are longer

	Delay *Seconds `json:"crawl_delay_s"` // the longest delay asked for, by Crawl-delay or Request-rate; nil: none
	Kept  *float64 `json:"kept_share"`    // the share of gaps not shorter than the delay asked for; nil: none was

	Limited   int64 `json:"limited"` // gaps while a delay was asked for
	KeptCount int64 `json:"kept"`    // of these, not shorter than it
}

// start is when a request began, and the delay that was asked for then.
type start struct{ at, delay int64 } // microseconds; delay 0: none

// trail is what an agent did at a site: its Conduct as far as it is counted, and the starts,
// times and names from which conclude derives the rest.
type trail struct {
	Conduct
	asked, sent            []start
	addresses              []uint64 // hashes of those asked for by GET
	robotsFirst, robotsEnd time.Time
	page                   int64 // the first; 0: none yet
	agents                 map[string]bool
}

// mostAgents bounds the User-Agents listed of one client at one site.
const mostAgents = 20

var seed = maphash.MakeSeed()

// follow adds a decision to its trail.
func (b *builder) follow(q *store.Request, a *client, s site, x basis, d *delays) error {
	t := memo.At(b.trails, pair{a.agent, s.origin})
	if len(t.agents) < mostAgents {
		memo.Set(&t.agents, a.UserAgent, true)
	}
	if q.Target == "/robots.txt" {
		t.RobotsAsked++
		extend(&t.robotsFirst, &t.robotsEnd, moment(q.Time))
		return nil
	}
	if t.page == 0 || q.Time < t.page {
		t.page = q.Time
	}
	if audit.IsTunnel(q.Method, q.Target) {
		t.Tunnels++
	}
	if k := &b.kinds[x.way]; k.byRules {
		t.Pages++
		if k.breach {
			t.Breaches++
		}
	}
	if q.Method == "GET" {
		t.addresses = append(t.addresses, maphash.String(seed, q.Target))
	}
	if b.ways.keys[x.way].Verdict == refuse {
		return nil
	}
	hints, err := d.of(q, a, x)
	if err != nil {
		return err
	}
	t.asked = append(t.asked, start{q.Time, delayAt(q, hints, q.Time)})
	t.sent = append(t.sent, start{q.Time + q.Waited, delayAt(q, hints, q.Time+q.Waited)})
	return nil
}

// conduct returns the Conduct of each trail; nil without any.
func (b *builder) conduct(pairs map[pair]*Counts) (list []Conduct) {
	for at, t := range b.trails {
		t.Agent, t.Site, t.Counts = b.agents.keys[at.agent].String(), b.siteName(at.origin), *pairs[at]
		t.conclude()
		list = append(list, t.Conduct)
	}
	return list
}

// conclude sets the fields of the Conduct that are not counted.
func (t *trail) conclude() {
	t.Asked, t.Sent, t.Fastest = gaps(t.asked), gaps(t.sent), fastest(t.sent)
	slices.Sort(t.addresses)
	t.Repeated = int64(len(t.addresses) - len(slices.Compact(t.addresses)))
	t.Agents = slices.Sorted(maps.Keys(t.agents))
	if t.RobotsAsked > 0 {
		t.RobotsFirst, t.RobotsLast = &t.robotsFirst, &t.robotsEnd
		t.RobotsBeforePages = t.page == 0 || t.robotsFirst.UnixMicro() <= t.page
	}
	t.BreachShare = figures.Share(t.Breaches, t.Pages)
}

// gaps measures the times between starts, which it sorts.
func gaps(starts []start) (g Gaps) {
	slices.SortFunc(starts, func(x, y start) int { return cmp.Compare(x.at, y.at) })
	var list []int64
	for i := 1; i < len(starts); i++ {
		gap, delay := starts[i].at-starts[i-1].at, starts[i].delay
		list = append(list, gap)
		if delay == 0 {
			continue
		}
		if g.Limited++; figures.Keeps(gap, delay) {
			g.KeptCount++
		}
		if s := Seconds(delay); g.Delay == nil || s > *g.Delay {
			g.Delay = &s
		}
	}
	if g.N = int64(len(list)); g.N == 0 {
		return g
	}
	slices.Sort(list)
	median, p5 := Seconds(math.Round(figures.Median(list))), Seconds(figures.Percentile(list, 5))
	g.Median, g.P5, g.Kept = &median, &p5, figures.Share(g.KeptCount, g.Limited)
	return g
}

// fastest returns the most starts, in order, within a minute.
func fastest(starts []start) int64 {
	var f figures.Fastest
	for _, s := range starts {
		f.Add(s.at)
	}
	return f.Most
}

// delays looks up which time between requests a site asked of an agent.
type delays struct {
	reader *store.Reader
	names  *names
	known  memo.Map[fileFor, []*rules.RateHint]
}

// maxHints bounds the files that delays remembers, by agent.
const maxHints = 1 << 18

// fileFor is an agent under a file.
type fileFor struct {
	body   int64
	tokens string
}

// of returns what the robots.txt that was in force asks of the agent of q; nil when the
// decision notes the delay itself.
func (d *delays) of(q *store.Request, c *client, x basis) ([]*rules.RateHint, error) {
	p := d.names.policies[x.policy]
	if q.Delay > 0 || p == nil || p.Answer.Body == 0 {
		return nil, nil
	}
	return d.known.Load(fileFor{p.Answer.Body, c.tokens}, maxHints, func() ([]*rules.RateHint, error) {
		text, err := d.reader.Body(p.Answer.Body)
		if err != nil {
			return nil, err
		}
		return rules.New(rules.Source{State: rules.Available}, text).RateHints(rules.Declare(c.Tokens...)), nil
	})
}

// delayAt returns the delay, in microseconds, that applied to q at a time; 0: none. It is
// what the decision notes, else what hints, the Crawl-delay and Request-rate lines, require.
func delayAt(q *store.Request, hints []*rules.RateHint, at int64) int64 {
	if q.Delay > 0 {
		return q.Delay
	}
	return rules.LongestDelay(hints, time.UnixMicro(at)).Microseconds()
}
