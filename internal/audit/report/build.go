package report

import (
	"context"
	"fmt"
	"math"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/base/memo"
	"heed/rules"
)

// builder makes a Report out of records.
type builder struct {
	query   *Query
	agents  numbered[agentKey]
	origins numbered[rules.Origin]
	ways    numbered[Way]
	kinds   []kind // by way
	cells   map[place]*Counts
	clients map[from]int64          // requests
	obeyed  map[int]map[string]bool // by agent: product tokens besides its own
	trouble map[troubled]*Unreachable
	answers []answer // the robots.txt files, as they came
	readers []*store.Reader
	line    timeline
	trails  map[pair]*trail // for conduct
	use     usage
	back    int64 // how often the clock went back

	counted map[string]bool  // numbers of requests that have been added
	sums    map[string]int64 // of them, by store.Counted.What
	gaps    []audit.Gap

	before, first, all int64 // for the progress
}

// place is where a decision is counted: numbers of agent, origin and way.
type place struct{ agent, origin, way int }

// from is an agent at an address.
type from struct {
	agent   int
	address string
}

// pair is an agent at a site.
type pair struct{ agent, origin int }

// New reads the records and returns the report that the query selects.
func New(records []*store.Record, query Query, now time.Time) (*Report, error) {
	all, release, err := readers(context.Background(), records)
	if err != nil {
		return nil, err
	}
	defer release()
	b := &builder{query: &query, readers: all, cells: map[place]*Counts{}, clients: map[from]int64{}, obeyed: map[int]map[string]bool{}, trouble: map[troubled]*Unreachable{}, trails: map[pair]*trail{}, counted: map[string]bool{}, sums: map[string]int64{},
		line: timeline{from: math.MaxInt64, to: math.MinInt64, periods: []Period{}}, use: newUsage()}
	rep := &Report{Made: now.UTC().Truncate(time.Second), Query: query}
	for _, r := range all {
		f, err := r.File()
		if err != nil {
			return nil, err
		}
		rep.Records = append(rep.Records, f)
		b.all += f.LastSeq - f.FirstSeq + 1
		b.line.cover(&f, &query)
	}
	b.line.begin()
	for i := range all {
		b.first = rep.Records[i].FirstSeq
		if err := b.record(i); err != nil {
			return nil, err
		}
		b.before += rep.Records[i].LastSeq - b.first + 1
	}
	return rep, b.finish(rep)
}

// record counts the decisions of record i.
func (b *builder) record(i int) error {
	r := b.readers[i]
	n, err := b.names(r)
	if err != nil {
		return err
	}
	if err := b.snapshots(i, n); err != nil {
		return err
	}
	if err := b.uncounted(r); err != nil {
		return err
	}
	if err := b.requests(r, n); err != nil {
		return err
	}
	for _, c := range n.clients {
		if c.asked > 0 {
			b.clients[from{c.agent, c.Address}] += c.asked
			for _, token := range c.AlsoObey {
				if b.obeyed[c.agent] == nil {
					b.obeyed[c.agent] = map[string]bool{}
				}
				b.obeyed[c.agent][token] = true
			}
		}
	}
	return nil
}

// progressEvery is how many decisions are read between two calls of Progress.
const progressEvery = 8192

// requests counts the requests of one record.
func (b *builder) requests(r *store.Reader, n *names) error {
	d := &delays{reader: r, names: n}
	last, read := int64(-1<<62), 0
	return r.Requests(&b.query.Filter, b.query.Conduct, func(q *store.Request) error {
		if read++; read%progressEvery == 0 && b.query.Progress != nil {
			b.query.Progress(b.before+q.Seq-b.first, b.all)
		}
		c, s, x := n.clients[q.Client], n.sites[q.Site], n.bases[q.Basis]
		if c == nil {
			return fmt.Errorf("decision %d is of client %d, which is missing\nSee `heed audit verify`", q.Seq, q.Client)
		}
		decided := q.Time + q.Waited
		if decided+clockSlack < last {
			b.back++
		}
		if last = decided; !c.Selected || !s.selected {
			return nil
		}
		b.count(q, c, s, x)
		b.use.count(q, c, s, &x, b.siteName)
		b.troubled(q, s, x, n)
		if b.query.Conduct {
			return b.follow(q, c, s, x, d)
		}
		return nil
	})
}

// siteName returns the name of the origin with a number.
func (b *builder) siteName(origin int) string { return siteName(b.origins.keys[origin]) }

// clockSlack is how much later than the next in the record a request may have been
// decided on, in microseconds, before a clock is said to have gone back: a thread
// may rest between the decision and its row.
const clockSlack = 5_000_000

// uncounted adds the requests of which only the number was recorded. Their clients and hosts are
// not known.
func (b *builder) uncounted(r *store.Reader) error {
	if b.query.Client != "" || b.query.Host != "" {
		return nil
	}
	return r.Counted(&b.query.Filter, func(n *store.Counted) {
		switch {
		case b.counted[n.ID]:
		case n.Gap != nil:
			b.gaps = append(b.gaps, *n.Gap)
		default:
			b.sums[n.What] += n.Count
		}
		b.counted[n.ID] = true
	})
}

// count counts one decision.
func (b *builder) count(q *store.Request, a *client, s site, x basis) {
	k := &b.kinds[x.way]
	memo.At(b.cells, place{a.agent, s.origin, x.way}).count(q, k, b.ways.keys[x.way].Judged == judgedHost)
	b.line.add(q.Time, k.result, k.of(q))
	a.asked++
}

// troubled is a site without a fresh robots.txt, and the state of its policy.
type troubled struct {
	origin int
	state  string
}

// troubled counts a decision that rests on a stale copy, or on no copy at all.
func (b *builder) troubled(q *store.Request, s site, x basis, n *names) {
	p := n.policies[x.policy]
	if p == nil || p.Source.Own || !p.Source.Stale && p.State != "unreachable" {
		return
	}
	k := troubled{s.origin, p.State}
	if p.Source.Stale {
		k.state = "stale"
	}
	u, at := memo.At(b.trouble, k), moment(q.Time)
	if !at.Before(u.Last) {
		u.Error = ""
		if p.Source.Err != nil {
			u.Error = p.Source.Err.Error()
		}
	}
	extend(&u.First, &u.Last, at)
	u.Requests++
	u.Classes[b.kinds[x.way].of(q)]++
	if b.kinds[x.way].result == 1 {
		u.Refused++
	}
}
