package cache

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// lane admits so many fetches at a time, and so many of one site, so that no
// site takes the place of others. One that is let in may stay; but once it has
// stayed for longer than patience and others wait because the lane is full, it
// is told to end: a slow site is cut short by others, and never holds them up
// for longer than that.
type lane struct {
	most, mostOfSite int // at a time
	mostWaiting      int
	mostWaitingSite  int
	patience         time.Duration

	mu      sync.Mutex
	running int
	ending  int                 // of those, told to end
	sites   map[string]*traffic // those with any
	slow    []*pass             // running for longer than patience, the longest first
	waiting []*pass             // in order of arrival
}

// traffic is what one site has in a lane.
type traffic struct{ running, waiting int }

// pass is one fetch's place in a lane. Its fields are guarded by lane.mu.
type pass struct {
	lane   *lane
	site   string
	end    context.CancelCauseFunc
	in     chan struct{} // closed when it is let in
	timer  *time.Timer   // runs until it counts as slow
	ending bool          // it was told to
	left   bool
}

// errFull is why a fetch never began.
var errFull = tell(nil, "could not be asked for, since too many others are being fetched")

// errTooSlow is why a fetch was told to end.
var errTooSlow = errors.New("given up, because it was slow and others were waiting")

// enter waits for a place for a fetch from site. The pass must leave at the
// end. end may be called with errTooSlow from then on.
func (l *lane) enter(ctx context.Context, site string, end context.CancelCauseFunc) (*pass, error) {
	p := &pass{lane: l, site: site, end: end, in: make(chan struct{})}
	if err := l.queue(p); err != nil {
		return nil, err
	}
	select {
	case <-p.in:
		return p, nil
	case <-ctx.Done():
		l.withdraw(p)
		return nil, context.Cause(ctx)
	}
}

func (l *lane) queue(p *pass) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.sites[p.site]
	if t == nil {
		t = &traffic{}
		if l.sites == nil {
			l.sites = map[string]*traffic{}
		}
		l.sites[p.site] = t
	}
	if l.running < l.most && t.running < l.mostOfSite {
		l.admitLocked(p)
		return nil
	}
	if len(l.waiting) >= l.mostWaiting || t.waiting >= l.mostWaitingSite {
		l.forgetLocked(p.site)
		return errFull
	}
	t.waiting++
	l.waiting = append(l.waiting, p)
	l.hurryLocked()
	return nil
}

func (l *lane) admitLocked(p *pass) {
	l.running++
	l.sites[p.site].running++
	p.timer = time.AfterFunc(l.patience, p.slows)
	close(p.in)
}

// withdraw takes back a pass whose fetch will not begin.
func (l *lane) withdraw(p *pass) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, p); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.sites[p.site].waiting--
		l.forgetLocked(p.site)
		return
	}
	l.leaveLocked(p) // it was let in at the same moment
}

// leave gives the place to the first of those waiting who may have it.
func (p *pass) leave() {
	p.lane.mu.Lock()
	defer p.lane.mu.Unlock()
	p.lane.leaveLocked(p)
}

func (l *lane) leaveLocked(p *pass) {
	p.timer.Stop()
	p.left = true
	if i := slices.Index(l.slow, p); i >= 0 {
		l.slow = slices.Delete(l.slow, i, i+1)
	}
	if p.ending {
		l.ending--
	}
	l.running--
	l.sites[p.site].running--
	l.forgetLocked(p.site)
	if i := slices.IndexFunc(l.waiting, l.eligibleLocked); i >= 0 && l.running < l.most {
		first := l.waiting[i]
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.sites[first.site].waiting--
		l.admitLocked(first)
	}
}

// eligibleLocked reports whether p waits for the lane, not for its own site.
func (l *lane) eligibleLocked(p *pass) bool { return l.sites[p.site].running < l.mostOfSite }

func (l *lane) forgetLocked(site string) {
	if *l.sites[site] == (traffic{}) {
		delete(l.sites, site)
	}
}

// slows notes that p has been running for longer than patience.
func (p *pass) slows() {
	l := p.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if !p.left { // at the same moment
		l.slow = append(l.slow, p)
		l.hurryLocked()
	}
}

// hurryLocked tells slow fetches to end, one for each that waits for the lane.
// Those who have their site's share already wait for their own.
func (l *lane) hurryLocked() {
	if len(l.slow) == 0 {
		return
	}
	wanted := 0
	for _, t := range l.sites {
		wanted += min(t.waiting, l.mostOfSite-t.running)
	}
	for ; l.ending < wanted && len(l.slow) > 0; l.ending++ {
		p := l.slow[0]
		l.slow = l.slow[1:]
		p.ending = true
		p.end(errTooSlow)
	}
}
