package report

import (
	"context"
	"fmt"
	"time"
)

// builder makes a Report out of records.
type builder struct {
	query   *Query
	agents  numbered[agentKey]
	origins numbered[origin]
	ways    numbered[way]
	cells   map[place]*cell
	clients []map[string]*int64 // by agent: requests by the address they came from
	trouble map[troubled]*Unreachable
	answers []answer // the robots.txt files, as they came
	records int      // how many have been begun
	line    timeline
	trails  map[pair]*trail // for conduct
	back    int64           // how often the clock went back

	known              map[string]bool // rows of exempt that have been counted
	exempt, unrecorded int64

	before, first, all int64 // for the progress
}

// place is where a decision is counted: numbers of agent, origin and way.
type place struct{ agent, origin, way int }

// pair is an agent at a site.
type pair struct{ agent, origin int }

// New reads the records and returns what the query asks about.
func New(records []Record, query Query, now time.Time) (*Report, error) {
	records, release, err := frozen(context.Background(), records)
	if err != nil {
		return nil, err
	}
	defer release()
	b := &builder{query: &query, cells: map[place]*cell{}, trouble: map[troubled]*Unreachable{}, trails: map[pair]*trail{}, known: map[string]bool{}}
	rep := &Report{Made: now.UTC().Truncate(time.Second), Query: query}
	extents := make([]extent, len(records))
	for i, r := range records {
		f, x, err := fileOf(r)
		if err != nil {
			return nil, err
		}
		rep.Records = append(rep.Records, f)
		extents[i] = x
		b.all += x.last - x.first + 1
		b.line.cover(x, &query)
	}
	b.line.begin()
	for i, r := range records {
		b.first = extents[i].first
		if err := b.record(r); err != nil {
			return nil, err
		}
		b.before += extents[i].last - extents[i].first + 1
	}
	if err := b.finish(rep, records); err != nil {
		return nil, err
	}
	return rep, nil
}

// record counts the decisions of one record.
func (b *builder) record(r Record) error {
	n, err := b.names(r)
	if err != nil {
		return err
	}
	if err := b.snapshots(r, n); err != nil {
		return err
	}
	if err := b.uncounted(r); err != nil {
		return err
	}
	b.clients = append(b.clients, make([]map[string]*int64, len(b.agents.keys)-len(b.clients))...)
	k := &delays{record: r, names: n}
	last := int64(-1 << 62)
	return b.scan(r, func(e *entry) error {
		a, s, g := n.askers[e.asker], n.sites[e.site], n.grounds[e.ground]
		if a == nil {
			return fmt.Errorf("decision %d is of asker %d, which is not there\nSee `heed audit verify`", e.seq, e.asker)
		}
		decided := e.time + e.waited.Int64
		if decided+clockSlack < last {
			b.back++
		}
		if last = decided; a.skip || s.skip {
			return nil
		}
		if e.late != 0 {
			g = n.grounds[e.late]
		}
		b.count(e, a, s, g)
		b.troubled(e, s, g, n)
		if b.query.Conduct {
			return b.follow(e, a, s, g, k)
		}
		return nil
	})
}

// clockSlack is how much later than the next in the record a request may have been
// decided on, in microseconds, before a clock is said to have gone back: a thread
// may rest between the decision and its row.
const clockSlack = 5_000_000

// uncounted adds the requests of which only the number was recorded.
func (b *builder) uncounted(r Record) error {
	if b.query.Client != "" || b.query.Host != "" {
		return nil // nobody knows whose they were
	}
	from, to := b.query.window()
	return each(r, "SELECT (SELECT value FROM about WHERE key = 'store') || id, count, why IS NULL FROM exempt WHERE time >= ? AND time < ?", func(scan scanner) error {
		var id string // of one row, also where a copy of the record has it again
		var n int64
		var exempt bool
		if err := scan(&id, &n, &exempt); err != nil || b.known[id] {
			return err
		}
		if b.known[id] = true; exempt {
			b.exempt += n
		} else {
			b.unrecorded += n
		}
		return nil
	}, from, to)
}

// count counts one decision.
func (b *builder) count(e *entry, a *asker, s site, g ground) {
	p := place{a.number, s.number, g.number}
	c := b.cells[p]
	if c == nil {
		c = &cell{}
		b.cells[p] = c
	}
	c.add(e)
	b.line.add(e.time, b.ways.keys[g.number].class())
	clients := b.clients[a.number]
	if clients == nil {
		clients = map[string]*int64{}
		b.clients[a.number] = clients
	}
	if clients[a.client] == nil {
		clients[a.client] = new(int64)
	}
	*clients[a.client]++
}

// troubled is what the robots.txt of a site was in place of a file.
type troubled struct {
	origin int
	state  string
}

// troubled notes a decision that an old copy, or the lack of one, stands behind.
func (b *builder) troubled(e *entry, s site, g ground, n *names) {
	p := n.policies[g.policy]
	if p == nil || p.own || !p.stale && p.state != "unreachable" {
		return
	}
	k := troubled{s.number, p.state}
	if p.stale {
		k.state = "stale"
	}
	u := b.trouble[k]
	if u == nil {
		u = &Unreachable{Site: b.origins.keys[s.number].String(), State: k.state, First: micros(e.time), Last: micros(e.time)}
		b.trouble[k] = u
	}
	if at := micros(e.time); at.Before(u.First) {
		u.First = at
	} else if !at.Before(u.Last) {
		u.Last, u.Error = at, p.err
	}
	u.Requests++
	if b.ways.keys[g.number].class() == classRefused {
		u.Refused++
	}
}
