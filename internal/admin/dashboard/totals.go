package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heed/internal/audit/store"
	"heed/internal/reason"
	"heed/rules"
)

// totals are the requests of the last 24 hours, or of the later part of them.
type totals struct {
	Requests int64
	Since    time.Time // of the first request that was counted
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

// day returns the totals, at most totalsAge old: of at least the last firstMost decisions.
// Up to totalsMost are counted for the next page.
func (d *record) day(ctx context.Context) (*totals, error) {
	if d.path == "" {
		return nil, errNoRecord
	}
	t := &d.totals
	t.Lock()
	if t.latest != nil && d.now().Sub(t.made) < totalsAge {
		defer t.Unlock()
		return t.latest, nil
	}
	first := t.first
	if first == nil {
		first = make(chan struct{})
		t.first = first
		d.background(d.countDay)
	}
	t.Unlock()
	select {
	case <-first:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	t.Lock()
	defer t.Unlock()
	return t.latest, t.err
}

// countDay counts the last 24 hours, and publishes the result of firstMost decisions and that
// of all.
func (d *record) countDay() {
	t, known := &d.totals, false
	publish := func(next *totals, err error) {
		t.Lock()
		defer t.Unlock()
		if err != nil {
			t.latest, t.err = nil, err
		} else if t.latest == nil || next.Requests >= t.latest.Requests || d.now().Sub(t.made) > totalsKept {
			t.made, t.latest, t.err = d.now(), next, nil
		}
		if !known {
			known = true
			close(t.first)
		}
	}
	defer func() {
		if !known {
			publish(nil, errFault)
		}
		t.Lock()
		t.first = nil
		t.Unlock()
	}()
	publish(d.readDay(publish))
}

// readDay counts the last 24 hours. first is called with the totals of firstMost decisions
// when there are more.
func (d *record) readDay(first func(*totals, error)) (*totals, error) {
	r, release, err := d.acquire(d.ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	reader, err := r.Read(d.ctx)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	s := sums{record: d, Reader: reader, clients: map[int64]*clientTotal{}, sites: map[int64]*reason.Counts{}, rules: map[ruleKey]*reason.Counts{}}
	return s.read(first)
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
	*record
	*store.Reader
	clients map[int64]*clientTotal
	sites   map[int64]*reason.Counts
	rules   map[ruleKey]*reason.Counts
}

// read counts from the end of the record back, until the day is over or totalsMost decisions
// are counted.
func (s *sums) read(soon func(*totals, error)) (*totals, error) {
	from := s.now().Add(-oneDay)
	first, err := s.SeqAt(from)
	if err != nil {
		return nil, err
	}
	_, last, err := s.Range()
	if err != nil {
		return nil, err
	}
	t, revised := totals{Whole: true}, [][]byte{}
	for top := last; top >= first; top -= totalsStep {
		if last-top >= totalsMost || s.ctx.Err() != nil {
			t.Whole = false
			break
		}
		if last-top == firstMost {
			t.Whole = false
			soon(s.listed(t))
		}
		window := store.Filter{From: from, First: max(first, top-totalsStep+1), Last: top}
		ids, err := s.Revised(window.First, window.Last) // which are earlier
		if err != nil {
			return nil, err
		}
		revised = append(revised, ids...)
		if err := s.count(&window, revised, &t); err != nil {
			return nil, err
		}
		t.Whole = window.First == first
	}
	return s.listed(t)
}

// count adds the requests in a window to t.
func (s *sums) count(window *store.Filter, revised [][]byte, t *totals) (bad error) {
	s.counting.Lock()
	defer s.counting.Unlock()
	err := s.Totals(window, 0, revised, func(n *store.Total) {
		if e := s.add(n); e != nil {
			bad = e
		}
		t.Requests += n.Requests
		if at := time.UnixMicro(n.First).UTC(); t.Since.IsZero() || at.Before(t.Since) {
			t.Since = at
		}
	})
	return errors.Join(err, bad)
}

// add adds the requests of n.
func (s *sums) add(n *store.Total) error {
	b, err := s.basis(s.Reader, n.Basis)
	if err != nil {
		return err
	}
	class := b.class
	if class == reason.Allowed && n.Failed {
		class = reason.Failed
	}
	c := s.clients[n.Client]
	if c == nil {
		who, err := s.client(s.Reader, n.Client)
		if err != nil {
			return err
		}
		c = &clientTotal{Client: who}
		s.clients[n.Client] = c
	}
	c.Classes[class] += n.Requests
	if last := time.UnixMicro(n.Last).UTC(); last.After(c.Last) {
		c.Last = last
	}
	count(s.sites, n.Site)[class] += n.Requests
	if b.Rule != "" || class != reason.Allowed {
		count(s.rules, ruleKey{n.Site, b.Reason, b.Rule, b.Line, class})[class] += n.Requests
	}
	return nil
}

// count returns the counts of a key, which it adds when necessary.
func count[K comparable](all map[K]*reason.Counts, key K) *reason.Counts {
	c := all[key]
	if c == nil {
		c = &reason.Counts{}
		all[key] = c
	}
	return c
}

// mostListed is how many sites, agents and rules the overview lists.
const mostListed = 8

// listed returns t with its lists.
func (s *sums) listed(t totals) (*totals, error) {
	sites := map[int64]string{}
	name := func(id int64) (string, error) {
		if text, ok := sites[id]; ok || id == 0 {
			return cmp.Or(text, "(no host)"), nil
		}
		o, err := s.Site(id)
		sites[id] = o.String()
		return sites[id], err
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
		t.Clients = append(t.Clients, *c)
		count(agents, store.AgentName(c.Configured(), c.Tokens)).Add(&c.Classes)
	}
	for agent, c := range top(agents) {
		t.Agents = append(t.Agents, counted{agent, "", *c})
	}
	slices.SortFunc(t.Clients, func(a, b clientTotal) int {
		return cmp.Or(cmp.Compare(b.Requests(), a.Requests()), cmp.Compare(a.ID, b.ID))
	})
	return &t, nil
}
