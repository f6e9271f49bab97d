package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"heed/internal/audit/store"
	"heed/internal/memo"
	"heed/internal/reason"
	"heed/rules"
)

// totals are the requests of the last 24 hours, or of the later part of them.
type totals struct {
	Requests int64
	Since    time.Time // the beginning of what was counted
	Whole    bool      // all of the 24 hours were counted
	Sites    []counted
	Agents   []counted
	Rules    []counted
	Clients  []clientTotal
}

// counted is the number of requests that have something in common.
type counted struct {
	Name    string
	More    string // a second line; empty: none
	Classes reason.Counts
}

// Requests returns their number.
func (c *counted) Requests() int64 { return c.Classes.Sum() }

// clientTotal is the requests of one client of the record.
type clientTotal struct {
	*store.Client
	Classes reason.Counts
	Last    time.Time
}

// Requests returns their number.
func (c *clientTotal) Requests() int64 { return c.Classes.Sum() }

// day returns the totals, at most totalsAge old.
func (d *record) day(ctx context.Context) (*totals, error) {
	if d.path == "" {
		return nil, errNoRecord
	}
	t := &d.totals
	t.Lock()
	defer t.Unlock()
	now := d.now()
	if t.latest != nil && now.Sub(t.made) < totalsAge {
		return t.latest, nil
	}
	err := d.read(ctx, func(r *store.Reader) (err error) {
		s := sums{record: d, reader: r, clients: map[int64]*clientTotal{}, sites: map[int64]*reason.Counts{}, rules: map[ruleKey]*reason.Counts{}}
		t.latest, err = s.read(now)
		return err
	})
	if err != nil {
		t.latest = nil
	}
	t.made = now
	return t.latest, err
}

// ruleKey is what decided, and where.
type ruleKey struct {
	site   int64
	reason string
	rule   string
	line   int
	class  reason.Class
}

// sums adds up totals.
type sums struct {
	record  *record
	reader  *store.Reader
	clients map[int64]*clientTotal
	sites   map[int64]*reason.Counts
	rules   map[ruleKey]*reason.Counts
}

// read adds up the last 24 hours.
func (s *sums) read(now time.Time) (*totals, error) {
	t, bad := totals{}, error(nil)
	since, whole, err := s.reader.Totals(now.Add(-oneDay), totalsMost, func(n *store.Total) {
		t.Requests += n.Requests
		bad = cmp.Or(bad, s.add(n))
	})
	if err := cmp.Or(err, bad); err != nil {
		return nil, err
	}
	t.Since, t.Whole = since, whole
	return s.listed(t)
}

// add adds the requests of n.
func (s *sums) add(n *store.Total) error {
	c := s.clients[n.Client]
	if c == nil {
		who, err := s.record.clients.Load(n.Client, maxKept, func() (*store.Client, error) { return s.reader.Client(n.Client) })
		if err != nil {
			return err
		}
		c = &clientTotal{Client: who}
		s.clients[n.Client] = c
	}
	class := classOf(&n.Verdict, n.Failed)
	c.Classes[class] += n.Requests
	if last := time.UnixMicro(n.Last).UTC(); last.After(c.Last) {
		c.Last = last
	}
	if n.Requests == 0 {
		return nil
	}
	memo.At(s.sites, n.Site)[class] += n.Requests
	if n.Verdict.Rule != "" || class != reason.Allowed {
		memo.At(s.rules, ruleKey{n.Site, n.Verdict.Reason, n.Verdict.Rule, n.Verdict.Line, class})[class] += n.Requests
	}
	return nil
}

// mostListed is how many sites, agents and rules the overview lists.
const mostListed = 8

// listed returns t with its lists.
func (s *sums) listed(t totals) (*totals, error) {
	name := func(id int64) (string, error) {
		if id == 0 {
			return "(no host)", nil
		}
		o, err := s.reader.Site(id)
		return o.String(), err
	}
	for id, c := range top(s.sites) {
		text, err := name(id)
		if err != nil {
			return nil, err
		}
		t.Sites = append(t.Sites, counted{text, "", *c})
	}
	for k, c := range top(s.rules) {
		text, err := name(k.site)
		if err != nil {
			return nil, err
		}
		what := reason.Of(rules.Reason(k.reason)).Words
		if k.rule != "" {
			what = k.rule
			if k.line > 0 {
				what = fmt.Sprintf("%s (line %d)", k.rule, k.line)
			}
		}
		t.Rules = append(t.Rules, counted{what, text, *c})
	}
	agents := map[string]*reason.Counts{}
	for _, c := range s.clients {
		if c.Requests() == 0 { // others took their place
			continue
		}
		t.Clients = append(t.Clients, *c)
		memo.At(agents, store.AgentName(c.Configured(), c.Tokens)).Add(&c.Classes)
	}
	for agent, c := range top(agents) {
		t.Agents = append(t.Agents, counted{agent, "", *c})
	}
	slices.SortFunc(t.Clients, func(a, b clientTotal) int {
		return cmp.Or(cmp.Compare(b.Requests(), a.Requests()), cmp.Compare(a.ID, b.ID))
	})
	return &t, nil
}

// verdicts are the verdicts by their names in the record.
var verdicts = map[string]rules.Verdict{
	rules.Allow.String(): rules.Allow, rules.Refuse.String(): rules.Refuse, rules.WouldRefuse.String(): rules.WouldRefuse,
}

// classOf returns the class of a recorded verdict; failed is as for reason.ClassOf.
func classOf(v *store.Verdict, failed bool) reason.Class {
	return reason.ClassOf(verdicts[v.Verdict], rules.Reason(v.Reason), failed)
}

// top yields the mostListed keys with the most requests, the largest number first.
func top[K comparable](all map[K]*reason.Counts) func(func(K, *reason.Counts) bool) {
	type entry struct {
		key K
		n   int64
	}
	before := func(a, b entry) int {
		if c := cmp.Compare(b.n, a.n); c != 0 {
			return c
		}
		return cmp.Compare(fmt.Sprint(a.key), fmt.Sprint(b.key)) // the same ones each time
	}
	var best []entry
	for k, c := range all {
		e := entry{k, c.Sum()}
		if len(best) == mostListed && before(e, best[mostListed-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, e, before)
		best = slices.Insert(best, at, e)
		best = best[:min(len(best), mostListed)]
	}
	return func(yield func(K, *reason.Counts) bool) {
		for _, e := range best {
			if !yield(e.key, all[e.key]) {
				return
			}
		}
	}
}
