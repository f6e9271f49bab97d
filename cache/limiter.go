package cache

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"

	"heed/internal/base/memo"
)

// fetchLimiter limits the number of fetches, in total and for one site, so that no site takes
// the tickets of others. A fetch that has a ticket for longer than slowAfter is cancelled when
// others wait because the limit is reached: a slow site delays others for no longer than that.
type fetchLimiter struct {
	most, mostOfSite int // at a time
	mostWaiting      int
	mostWaitingSite  int
	slowAfter        time.Duration

	mu      sync.Mutex
	running int
	ending  int                  // running ones that were cancelled
	sites   map[string]*siteLoad // those with any
	slow    []*ticket            // running for longer than slowAfter, the longest first
	waiting []*ticket            // in order of arrival
}

// siteLoad counts the fetches of one site in a fetchLimiter.
type siteLoad struct{ running, waiting int }

// ticket is the permission of one fetch. Its fields are guarded by fetchLimiter.mu.
type ticket struct {
	by     *fetchLimiter
	site   string
	end    context.CancelCauseFunc
	in     chan struct{} // closed when it is granted
	timer  *time.Timer   // fires when the fetch becomes slow
	ending bool          // it was cancelled
	left   bool
}

// errFull is the error of a fetch that was not admitted.
var errFull = publicErrorf(nil, "could not be asked for, since too many others are being fetched")

// errTooSlow is the cause of a cancelled fetch.
var errTooSlow = errors.New("given up, because it was slow and others were waiting")

// enter waits for a ticket for a fetch from site. The caller must call leave on it. end may be
// called with errTooSlow meanwhile.
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
		memo.Set(&l.sites, p.site, t)
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

// withdraw removes a waiting ticket whose fetch will not begin.
func (l *fetchLimiter) withdraw(p *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, p); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.sites[p.site].waiting--
		l.forgetLocked(p.site)
		return
	}
	l.leaveLocked(p) // it was granted at the same moment
}

// leave passes the ticket to the first eligible one that waits.
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

// eligibleLocked reports whether p waits for the total limit, and not for that of its own
// site.
func (l *fetchLimiter) eligibleLocked(p *ticket) bool { return l.sites[p.site].running < l.mostOfSite }

func (l *fetchLimiter) forgetLocked(site string) {
	if *l.sites[site] == (siteLoad{}) {
		delete(l.sites, site)
	}
}

// markSlow records that p has been running for longer than slowAfter.
func (p *ticket) markSlow() {
	l := p.by
	l.mu.Lock()
	defer l.mu.Unlock()
	if !p.left { // at the same moment
		l.slow = append(l.slow, p)
		l.cancelSlowLocked()
	}
}

// cancelSlowLocked cancels slow fetches, one for each eligible ticket that waits. Tickets that
// wait for the limit of their own site do not count.
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

// siteOf returns the site of a host for limits: the registered domain, or the network of an
// address. Names below a domain are free for its owner, so they share one limit.
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
