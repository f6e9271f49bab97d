package cache

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"
)

// fetchLimiter admits so many fetches at a time, and so many of one site, so that no
// site takes the tickets of others. One that is let in may stay; but once it has
// stayed for longer than slowAfter and others wait because the limit is reached, it
// is cancelled: a slow site is cut short by others, and never delays them
// for longer than that.
type fetchLimiter struct {
	most, mostOfSite int // at a time
	mostWaiting      int
	mostWaitingSite  int
	slowAfter        time.Duration

	mu      sync.Mutex
	running int
	ending  int                  // of those, cancelled
	sites   map[string]*siteLoad // those with any
	slow    []*ticket            // running for longer than slowAfter, the longest first
	waiting []*ticket            // in order of arrival
}

// siteLoad is what one site has in a fetchLimiter.
type siteLoad struct{ running, waiting int }

// ticket is one fetch's permission by a fetchLimiter. Its fields are guarded by fetchLimiter.mu.
type ticket struct {
	by     *fetchLimiter
	site   string
	end    context.CancelCauseFunc
	in     chan struct{} // closed when it is let in
	timer  *time.Timer   // runs until it counts as slow
	ending bool          // it was cancelled
	left   bool
}

// errFull is why a fetch never began.
var errFull = publicErrorf(nil, "could not be asked for, since too many others are being fetched")

// errTooSlow is why a fetch was cancelled.
var errTooSlow = errors.New("given up, because it was slow and others were waiting")

// enter waits for a ticket for a fetch from site. The ticket must leave at the
// end. end may be called with errTooSlow from then on.
func (l *fetchLimiter) enter(ctx context.Context, site string, end context.CancelCauseFunc) (*ticket, error) {
	p := &ticket{by: l, site: site, end: end, in: make(chan struct{})}
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

func (l *fetchLimiter) queue(p *ticket) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.sites[p.site]
	if t == nil {
		t = &siteLoad{}
		if l.sites == nil {
			l.sites = map[string]*siteLoad{}
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
	l.cancelSlowLocked()
	return nil
}

func (l *fetchLimiter) admitLocked(p *ticket) {
	l.running++
	l.sites[p.site].running++
	p.timer = time.AfterFunc(l.slowAfter, p.markSlow)
	close(p.in)
}

// withdraw takes back a ticket whose fetch will not begin.
func (l *fetchLimiter) withdraw(p *ticket) {
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

// leave gives the ticket to the first of those waiting who may have it.
func (p *ticket) leave() {
	p.by.mu.Lock()
	defer p.by.mu.Unlock()
	p.by.leaveLocked(p)
}

func (l *fetchLimiter) leaveLocked(p *ticket) {
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

// eligibleLocked reports whether p waits for the fetchLimiter, not for its own site.
func (l *fetchLimiter) eligibleLocked(p *ticket) bool { return l.sites[p.site].running < l.mostOfSite }

func (l *fetchLimiter) forgetLocked(site string) {
	if *l.sites[site] == (siteLoad{}) {
		delete(l.sites, site)
	}
}

// markSlow notes that p has been running for longer than slowAfter.
func (p *ticket) markSlow() {
	l := p.by
	l.mu.Lock()
	defer l.mu.Unlock()
	if !p.left { // at the same moment
		l.slow = append(l.slow, p)
		l.cancelSlowLocked()
	}
}

// cancelSlowLocked cancels slow fetches, one for each that waits.
// Those who have their site's share already wait for their own.
func (l *fetchLimiter) cancelSlowLocked() {
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

// siteOf returns the site that a host belongs to, by its name: the domain
// that was registered, or the neighbourhood of an address. Names cost nothing
// to the owner of a domain, so bounds count by it.
func siteOf(host string) string {
	if a, err := netip.ParseAddr(host); err == nil {
		bits := 24
		if a.Is6() {
			bits = 48
		}
		near, err := a.Prefix(bits)
		if err != nil {
			return host
		}
		return near.String()
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil { // a suffix itself, such as a name without a dot
		return host
	}
	return domain
}
