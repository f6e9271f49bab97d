// Package plan sums up what a crawl will get: for each site of a list of URLs which pages are
// allowed, by which rules others are not, and how long it takes at the delay that applies.
//
// Memory grows with the sites, not with the URLs: those that are not judged yet wait in a
// temporary file. The package has no network; a Judge answers for it.
package plan

import (
	"cmp"
	"context"
	"sync"
	"time"

	"heed/internal/control"
	"heed/rules"
)

// Judge judges the URLs of one site; one goroutine at a time calls it. check.Site is one.
type Judge interface {
	// Check judges URLs together no longer than control.MaxSiteURLs. With first, the first
	// Judgement has what is the same for all of them, the delay included.
	Check(ctx context.Context, agent string, urls []string, first bool) ([]*control.Judgement, error)
	// Size returns about how much memory the Judge takes, in bytes.
	Size() int
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

	TempDir  string        // of the file for URLs that wait; empty: that of os.TempDir
	Waiting  int           // octets of URLs that wait in memory
	Held     int           // octets of rules that are held before the list has ended
	MaxSites int           // that are planned together; more are planned in further rounds
	AtOnce   int           // sites whose rules are waited for at the same time, without slow ones
	AtMost   int           // with slow ones
	Slow     time.Duration // after which a site whose rules have not come leaves its place to another one
}

func (o *Options) setDefaults() {
	o.Waiting = cmp.Or(o.Waiting, 64<<20)
	o.Held = cmp.Or(o.Held, 256<<20)
	o.MaxSites = cmp.Or(o.MaxSites, 1_000_000)
	o.AtOnce = cmp.Or(o.AtOnce, 64)
	o.AtMost = cmp.Or(o.AtMost, 480) // of the 512 fetches that a cache makes at a time
	o.Slow = cmp.Or(o.Slow, time.Second)
}

// Site is one site of the list.
type Site struct {
	Origin  rules.Origin
	Columns []Column
	Partial bool // the plan was ended before all of its pages were judged

	waiting []byte // URLs in memory, each with a newline
	last    int64  // the last block of those in the file, or noBlock
	judge   Judge  // nil: it was not begun, or is done
	size    int    // of judge, as counted
	running bool   // a goroutine works on it
	known   bool   // its rules are: its first page is judged
	queued  bool
	lost    bool // pages were not judged, since the plan was ended
	done    bool
}

// Plan is a plan in the making. Add and Progress may be called by any goroutine.
type Plan struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	changed  sync.Cond // a site is done, or the plan is ended
	sites    map[rules.Origin]*Site
	fresh    []*Site // not begun, in the order of the list
	again    []*Site // begun, with URLs that wait, or to be finished
	file     spill
	beyond   spill // URLs of sites beyond MaxSites
	further  int64 // how many those are
	last     int64 // the last block of beyond
	gather   []byte
	waiting  int // octets in Site.waiting
	held     int // octets of the judges
	quick    int // places taken, without those of slow sites
	slow     int
	finished int  // sites of this round
	ended    bool // nothing is added any more in this round
	cut      bool // the context ended before that: pages may be missing
	err      error

	progress Progress
	judging  chan struct{} // has room for each site that is judged by rules that are known
	totals   []Total
	doneMu   sync.Mutex // Done is called with it, and totals are changed
	pageMu   sync.Mutex // Page is called with it
}

// Progress is how far a Plan is.
type Progress struct {
	Sites  int64 `json:"sites"`
	Done   int64 `json:"sites_done"` // with all of their pages
	URLs   int64 `json:"pages"`      // that were added
	Judged int64 `json:"-"`
	Rounds int64 `json:"-"` // beyond the first, of MaxSites each
}

// New returns a plan. The end of ctx ends it early.
func New(ctx context.Context, o Options) *Plan {
	o.setDefaults()
	p := &Plan{judging: make(chan struct{}, judgeAtOnce), o: o, sites: map[rules.Origin]*Site{}, last: noBlock, totals: make([]Total, len(o.Agents))}
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.changed.L = &p.mu
	p.file.dir, p.beyond.dir = o.TempDir, o.TempDir
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
	if p.ctx.Err() == nil {
		p.progress.URLs++
		p.add(o, address)
	}
	return nil
}

// judgeAtOnce bounds the sites that are judged at the same time by rules that are known, which
// takes memory and no time on the network.
const judgeAtOnce = 16

// maxBlock is the size from which on the URLs of a site that wait are written to the file, in
// octets. jobSize is that from which on those of a site that was begun are judged.
const (
	maxBlock = 512 << 10
	jobSize  = 32 << 10
)

// add adds a page of the site at o.
func (p *Plan) add(o rules.Origin, address string) {
	s := p.sites[o]
	switch {
	case s == nil && len(p.sites) >= p.o.MaxSites:
		p.postpone(address)
		return
	case s == nil:
		s = &Site{Origin: o, last: noBlock}
		p.sites[o] = s
		p.fresh = append(p.fresh, s)
		p.progress.Sites++
	}
	s.waiting = append(append(s.waiting, address...), '\n')
	p.waiting += len(address) + 1
	switch {
	case p.waiting > p.o.Waiting:
		for _, s := range p.sites {
			p.spill(s)
		}
		p.fail(p.file.flush())
	case len(s.waiting) >= maxBlock && (s.judge == nil || s.running):
		p.spill(s)
		p.fail(p.file.flush())
	case len(s.waiting) >= jobSize && s.judge != nil:
		p.queue(s)
	}
	p.dispatch()
}

// spill writes the URLs of s that wait in memory to the file.
func (p *Plan) spill(s *Site) {
	if len(s.waiting) == 0 {
		return
	}
	at, err := p.file.write(s.last, s.waiting)
	if err != nil {
		p.fail(err)
		return
	}
	p.waiting -= len(s.waiting)
	s.last, s.waiting = at, nil
}

// postpone keeps a page for the next round.
func (p *Plan) postpone(address string) {
	p.further++
	if p.gather = append(append(p.gather, address...), '\n'); len(p.gather) >= maxBlock {
		p.flushFurther()
	}
}

func (p *Plan) flushFurther() {
	at, err := p.beyond.write(p.last, p.gather)
	if err == nil {
		err = p.beyond.flush()
	}
	p.last, p.gather = at, p.gather[:0]
	p.fail(err)
}

// fail ends the plan with an error; nil changes nothing.
func (p *Plan) fail(err error) {
	if err != nil && p.err == nil {
		p.err = err
		p.cancel()
	}
}

// Progress returns how far p is.
func (p *Plan) Progress() Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.progress
}

// Finish judges what is left and returns the totals, by agent. left is how many pages are not
// judged, since the context ended.
func (p *Plan) Finish() (totals []Total, left int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.cancel()
	defer func() { p.file.close(); p.beyond.close() }()
	p.finishRound()
	for p.further > 0 && p.ctx.Err() == nil {
		if err := p.nextRound(); err != nil {
			p.fail(err)
		}
		p.finishRound()
	}
	return p.totals, p.progress.URLs - p.progress.Judged, p.err
}

// finishRound waits until all sites are done.
func (p *Plan) finishRound() {
	p.ended, p.cut = true, p.ctx.Err() != nil
	for _, s := range p.sites {
		if s.judge != nil && !s.running {
			p.queue(s)
		}
	}
	p.dispatch()
	for p.finished < len(p.sites) {
		p.changed.Wait()
	}
}

// nextRound adds the pages that were postponed.
func (p *Plan) nextRound() error {
	if len(p.gather) > 0 {
		p.flushFurther()
	}
	before, last := p.beyond, p.last
	p.beyond, p.last, p.gather, p.further = spill{dir: p.o.TempDir}, noBlock, nil, 0
	defer before.close()
	p.file.close()
	p.file = spill{dir: p.o.TempDir}
	p.sites, p.finished, p.ended = map[rules.Origin]*Site{}, 0, false
	p.progress.Rounds++
	for urls, err := range before.blocks(last) {
		if p.ctx.Err() != nil || err != nil {
			return err
		}
		for _, address := range urls {
			o, _, err := rules.ParseURL(address)
			if err == nil { // as it was before
				p.add(o, address)
			}
		}
	}
	return nil
}
