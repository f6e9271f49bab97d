package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"heed/internal/audit/store"
	"heed/internal/reason"
	"heed/rules"
)

// Bounds of what a page reads of the record.
const (
	dayBudget  = 100 * time.Millisecond  // for what is shown about the last 24 hours
	wideBudget = 1800 * time.Millisecond // for a wider search with the wait for its reader; its page comes within 2 s
	maxReaders = 4                       // pages that read at the same time
	readerWait = time.Second             // for one of them to end
	totalsStep = 2_500                   // decisions that are counted at a time
	totalsAge  = 30 * time.Second        // for which counts are shown again
	totalsKept = 5 * time.Minute         // for which they are preferred to counts of less
	dayGrace   = 50 * time.Millisecond   // for the step that is counted at that time
	dayTime    = time.Second / 2         // for counting on after the page was sent
	seedBudget = 20 * time.Second        // for counting the record of before the start
	maxKept    = 1 << 16                 // names that are remembered, of each kind

	oneDay = 24 * time.Hour
)

// record reads the record for pages. The zero value with a path and a clock is ready.
type record struct {
	path string
	now  func() time.Time

	mu      sync.Mutex
	open    *store.Record // nil: not opened yet
	readers chan struct{}

	ctx    context.Context // ends what is counted in the background
	cancel context.CancelFunc
	work   sync.WaitGroup
	log    *slog.Logger

	counting sync.Mutex // held for one step of counting: it takes no more than one CPU

	totals struct {
		sync.Mutex
		made   time.Time
		latest *totals
		err    error
		first  chan struct{} // closed with the first result of a count; nil: nothing is counted
	}
	seed struct {
		once sync.Once
		done chan struct{}
		// Set when done is closed: the requests before the start, by the beginning of
		// their period in microseconds, and why they could not be counted.
		periods map[int64]*reason.Counts
		err     error
	}
	names struct {
		sync.Mutex
		bases   map[int64]basis
		clients map[int64]*store.Client
	}
}

// basis is what the pages show of a store.Basis.
type basis struct {
	class reason.Class
	store.Verdict
}

// acquire returns the record when not too many pages read it. The caller calls release.
func (d *record) acquire(ctx context.Context) (r *store.Record, release func(), err error) {
	if d.path == "" {
		return nil, nil, errNoRecord
	}
	d.mu.Lock()
	if d.readers == nil {
		d.readers = make(chan struct{}, maxReaders)
	}
	if d.open == nil {
		d.open, err = store.OpenRecord(d.path)
	}
	r = d.open
	d.mu.Unlock()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &shownError{404, "The record cannot be found.\nIt is made when heed starts; see heed status."}
	}
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readerWait)
	defer cancel()
	select {
	case d.readers <- struct{}{}:
		return r, func() { <-d.readers }, nil
	case <-ctx.Done():
		return nil, nil, errBusy
	}
}

// prepare opens the record, which takes longer than a page may when it is large. An error
// is that of the first page.
func (d *record) prepare() {
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if _, release, err := d.acquire(context.Background()); err == nil {
		release()
	}
}

// background runs a task beside the pages until close. A fault in it is logged, and does
// not end heed.
func (d *record) background(task func()) {
	d.work.Go(func() {
		defer logFault(d.log, "the dashboard could not count the record")
		task()
	})
}

// totals are the requests of the last 24 hours, or of the later part of them, as far as
// they could be counted in time.
type totals struct {
	Requests int64
	Since    time.Time // of the first request that was counted
	Whole    bool      // all of the 24 hours were counted
	Pending  bool      // nothing was counted in time; the next page has it
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

// close ends what is counted in the background.
func (d *record) close() {
	d.cancel()
	d.work.Wait()
}

// day returns the totals, at most totalsAge old, for a page that was requested at a time:
// as far as they can be counted within dayBudget from then on. Counting goes on for dayTime,
// for the next page.
func (d *record) day(ctx context.Context, requested time.Time) (*totals, error) {
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
		d.background(func() { d.countDay(requested.Add(dayBudget)) })
	}
	t.Unlock()
	select {
	case <-first:
	case <-time.After(time.Until(requested.Add(dayBudget + dayGrace))):
		return &totals{Pending: true}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	t.Lock()
	defer t.Unlock()
	return t.latest, t.err
}

// countDay counts the last 24 hours, and makes the result known at soon and at the end.
func (d *record) countDay(soon time.Time) {
	t, known := &d.totals, false
	defer func() {
		t.Lock()
		t.first = nil
		t.Unlock()
	}()
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
	publish(d.readDay(func(part func() (*totals, error)) {
		if !known && time.Now().After(soon) {
			publish(part())
		}
	}))
}

// readDay counts the last 24 hours, for at most dayTime. step is called after each
// part of them, with a function that returns the totals until then.
func (d *record) readDay(step func(func() (*totals, error))) (*totals, error) {
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
	return s.read(step)
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

// read counts from the end of the record back, until the day or the time is over.
func (s *sums) read(step func(func() (*totals, error))) (*totals, error) {
	deadline, from := time.Now().Add(dayTime), s.now().Add(-oneDay)
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
		if time.Now().After(deadline) || s.ctx.Err() != nil {
			t.Whole = false
			break
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
		step(func() (*totals, error) { return s.listed(t) })
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
