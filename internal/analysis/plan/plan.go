// Package plan sums up what a crawl will get: for each site of a list of URLs which pages are
// allowed, by which rules others are not, and how long it takes at the delay that applies.
//
// The list is read first, into a temporary file of SQLite; then its sites are judged, some at the
// same time. Memory grows neither with the URLs nor with the sites. The package has no network; a
// Judge answers for it.
package plan

import (
	"cmp"
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"heed/internal/control"
	"heed/rules"
)

// Judge judges the URLs of one site; one goroutine at a time calls it. check.Site is one.
type Judge interface {
	// Check judges URLs together no longer than MaxURL. With first, the first
	// Judgement has what is the same for all of them, the delay included.
	Check(ctx context.Context, agent string, urls []string, first bool) ([]*control.Judgement, error)
}

// Options are those of a Plan. Zero numbers mean the defaults.
type Options struct {
	Agents []string // at least one
	Open   func() Judge
	// Done is called with each site whose pages are all judged, by one goroutine at a time. Its
	// columns are in the order of Agents. An error ends the plan.
	Done func(s *Site) error
	// Page is called with each page and whether all agents may fetch it, in the order of the
	// list within a site; nil: it is not called. An error ends the plan.
	Page func(url string, allowed bool) error

	Recent int // octets of URLs in memory before they are written to the file
	AtOnce int // sites whose rules are waited for at the same time
}

// Site is one site of the list.
type Site struct {
	Origin  string
	Columns []Column
	Partial bool // the plan was ended before all of its pages were judged
}

// Plan is a plan in the making. Add and Progress may be called by any goroutine.
type Plan struct {
	o   Options
	ctx context.Context // its end ends the plan early

	mu       sync.Mutex // of those below
	list     list
	progress Progress
	err      error // of list; nothing is added after it

	judging chan struct{} // has room for each site that is judged by rules that are known
	out     sync.Mutex    // Done and Page are called with it, and totals are changed
	totals  []Total
}

// Progress is how far a Plan is.
type Progress struct {
	Sites  int64 `json:"sites"`      // in the file
	Done   int64 `json:"sites_done"` // with all of their pages
	URLs   int64 `json:"pages"`      // that were added
	Judged int64 `json:"-"`
}

// judgeAtOnce bounds the sites that are judged at the same time by rules that are known, which
// takes memory and no time on the network.
const judgeAtOnce = 16

// New returns a plan. The end of ctx ends it early.
func New(ctx context.Context, o Options) *Plan {
	o.Recent, o.AtOnce = cmp.Or(o.Recent, 16<<20), cmp.Or(o.AtOnce, 256)
	p := &Plan{o: o, ctx: ctx, judging: make(chan struct{}, judgeAtOnce), totals: make([]Total, len(o.Agents))}
	for i, agent := range o.Agents {
		p.totals[i] = Total{Agent: agent, Longest: []Long{}}
	}
	return p
}

// Add adds a page. An error is why its address names none.
func (p *Plan) Add(address string) error {
	for i := range len(address) {
		if address[i] < ' ' {
			return errControl
		}
	}
	if len(address) > MaxURL {
		return errLong
	}
	o, _, err := rules.ParseURL(address)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() == nil && p.err == nil {
		p.progress.URLs++
		p.err = p.list.add(o, address, p.o.Recent)
		p.progress.Sites = p.list.sites
	}
	return nil
}

// Progress returns how far p is.
func (p *Plan) Progress() Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.progress
}

// Finish judges what was added and returns the totals, by agent. left is how many pages are not
// judged, since the context ended.
func (p *Plan) Finish() (totals []Total, left int64, err error) {
	p.mu.Lock()
	p.err = cmp.Or(p.err, p.list.flush())
	p.progress.Sites = p.list.sites
	p.mu.Unlock()
	defer p.list.close()
	if p.err == nil {
		p.err = p.judgeAll()
	}
	return p.totals, p.progress.URLs - p.progress.Judged, p.err
}

// judgeAll judges the sites, until an error or the end of the plan.
func (p *Plan) judgeAll() error {
	sites, ctx := errgroup.WithContext(p.ctx)
	sites.SetLimit(p.o.AtOnce)
	for id := int64(1); id <= p.list.sites && ctx.Err() == nil; id++ {
		sites.Go(func() error { return p.judgeSite(ctx, id) })
	}
	return sites.Wait()
}

// judgeSite judges the pages of a site, adds it to the totals and passes it on.
func (p *Plan) judgeSite(ctx context.Context, id int64) error {
	s := &Site{Columns: make([]Column, len(p.o.Agents))}
	for i, agent := range p.o.Agents {
		s.Columns[i].Agent = agent
	}
	err := p.judgeRows(ctx, s, id)
	if s.Partial = err != nil; ctx.Err() != nil {
		err = nil
	}
	p.out.Lock()
	defer p.out.Unlock()
	if s.Columns[0].First == nil {
		return err
	}
	for i := range s.Columns {
		p.totals[i].add(s.Origin, &s.Columns[i])
	}
	if !s.Partial {
		p.mu.Lock()
		p.progress.Done++
		p.mu.Unlock()
	}
	return cmp.Or(err, p.o.Done(s))
}

// judgeRows judges the pages of a site.
func (p *Plan) judgeRows(ctx context.Context, s *Site, id int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	rows, err := p.list.of(id)
	if err != nil {
		return err
	}
	defer rows.Close()
	judge := p.o.Open()
	for {
		origin, urls, err := next(rows)
		if err != nil || urls == nil {
			return err
		}
		s.Origin = origin
		p.mu.Unlock()
		err = p.judgeRow(ctx, s, judge, urls)
		if p.mu.Lock(); err != nil {
			return err
		}
	}
}

// judgeRow judges pages of s that were added together. Of the first ones, the rules are waited for
// with one.
func (p *Plan) judgeRow(ctx context.Context, s *Site, judge Judge, urls []string) error {
	if s.Columns[0].First == nil {
		if err := p.judgeSome(ctx, s, judge, urls[:1]); err != nil {
			return err
		}
		urls = urls[1:]
	}
	if len(urls) == 0 {
		return nil
	}
	p.judging <- struct{}{}
	defer func() { <-p.judging }()
	return p.judgeSome(ctx, s, judge, urls)
}

// judgeSome judges a few URLs of s for all agents. They count for all of them or for none.
func (p *Plan) judgeSome(ctx context.Context, s *Site, judge Judge, urls []string) error {
	all := make([][]*control.Judgement, len(s.Columns))
	for i := range s.Columns {
		c := &s.Columns[i]
		list, err := judge.Check(ctx, c.Agent, urls, c.First == nil)
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return err
		}
		all[i] = list
	}
	for i, list := range all {
		c := &s.Columns[i]
		c.First = cmp.Or(c.First, list[0])
		for _, a := range list {
			c.add(a)
		}
	}
	p.mu.Lock()
	p.progress.Judged += int64(len(urls))
	p.mu.Unlock()
	return p.pages(urls, all)
}

// pages calls Page.
func (p *Plan) pages(urls []string, all [][]*control.Judgement) error {
	if p.o.Page == nil {
		return nil
	}
	p.out.Lock()
	defer p.out.Unlock()
	for n, url := range urls {
		allowed := true
		for _, list := range all {
			allowed = allowed && list[n].Allowed
		}
		if err := p.o.Page(url, allowed); err != nil {
			return err
		}
	}
	return nil
}
