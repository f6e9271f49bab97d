// Package pace delays requests to sites.
//
// A request goes through these files: Scheduler.Take (scheduler.go) finds the lanes in which
// it takes turns (ask.go) and its position in the queue of the site (queue.go), and returns
// when its turn has come, or immediately when the wait would be too long (site.go). Requests
// for robots.txt go first (robots.go). All names of one address may share a delay
// (address.go). An answer of the site may pause it (hold.go). Shared (shared.go) coordinates
// several heeds; Checkpoint (status.go) keeps delays across a restart. The types pause
// (hold.go), reservations (reservation.go) and robotsRequests (robots.go) are parts of a site,
// guarded by its lock.
package pace

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heed/rules"
)

// bounds are limits of memory.
type bounds struct {
	sites    int   // origins whose turns are known
	lanes    int   // of one origin
	allLanes int64 // of all origins; those beyond share one each
	queue    int   // requests that wait at one origin
}

// Config configures a Scheduler. The zero value is valid.
type Config struct {
	// Shared coordinates turns with other heeds. Nil: there are none.
	Shared Shared
	// Changed is called when a Checkpoint may have changed. It must be fast. Nil:
	// changes are not reported.
	Changed func()
}

// Scheduler decides when requests to sites may start. Make it with New; it is safe for
// concurrent use.
type Scheduler struct {
	Config
	bounds  bounds
	count   counters
	closing atomic.Bool // no request waits any more

	known    atomic.Int64 // of sites
	lanes    atomic.Int64 // of them
	reserved atomic.Int64 // at them
	mu       sync.RWMutex
	sites    map[rules.Origin]*site
	tickets  atomic.Uint64 // given to Shared so far
	calls    atomic.Int64  // of Shared that no request waits for, now
	swept    int           // how many were left when those of no use were last dropped
	sweptAt  time.Time     // and when: looking through all of them takes its time
	since    time.Time     // lanes begin with one delay from here; zero: without
}

// New returns a Scheduler without any requests.
func New(c Config) *Scheduler {
	return &Scheduler{
		Config: c, sites: map[rules.Origin]*site{},
		bounds: bounds{sites: 1 << 16, lanes: 256, allLanes: 1 << 18, queue: 1024},
	}
}

// Answer is the result of an Ask.
type Answer struct {
	Position
	Turn   Turn          // the permission to start; nil: there is none, or it needs no report
	Waited time.Duration // until now
	Note   string        // what is to be recorded of the wait beside the delay; empty: nothing

	// Refused reports that the request may not start, since its turn is too far off;
	// Left that it may not since its context has ended.
	Refused, Left bool
	// Ended reports that the refusal is due to EndWaits.
	Ended bool
	// Owed is how long it would have had to wait still.
	Owed time.Duration
	// RetryAfter is when asking again will be served, for a request that was
	// refused, in whole seconds.
	RetryAfter time.Duration

	taken bool // a place in a queue, so that it is counted
}

// Paced reports whether requests to o under these hints and settings may have
// to wait. It costs next to nothing, and every other request nothing more.
func (t *Scheduler) Paced(o rules.Origin, hints []*rules.RateHint, s *Settings) bool {
	return len(hints) > 0 || s.MinDelay > 0 || s.MaxParallel > 0 || t.mayWait(o)
}

// mayWait reports whether a request to o may have to wait although neither its hints nor
// the settings ask for it: the site is paused, or other requests wait.
func (t *Scheduler) mayWait(o rules.Origin) bool {
	if t.known.Load() == 0 {
		return false
	}
	s := t.find(o)
	return s != nil && s.mayWait.Load()
}

// find returns the site of o; nil when nothing is known of it.
func (t *Scheduler) find(o rules.Origin) *site {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.sites[o]
}

// Take waits for the request's turn. The Turn is to be ended, whatever becomes of
// the request.
func (t *Scheduler) Take(ctx context.Context, a *Ask) (answer Answer) {
	t.take(ctx, a, &answer)
	if answer.taken {
		t.count.add(&answer)
	}
	return answer
}

// take is Take without counting. The answer is not returned but filled in: copies of it would
// double the stack of each request that waits.
func (t *Scheduler) take(ctx context.Context, a *Ask, answer *Answer) {
	if a.RobotsTxt && !a.exempt() && a.Rules != nil && t.fetchedBefore(a.Origin) {
		a.Hints = a.Rules()
	}
	now := time.Now()
	lanes := a.laneDelays(now, &answer.Position)
	answer.Note = a.note(now, &answer.Position)
	if a.exempt() || !a.RobotsTxt && len(lanes) == 0 && a.MaxParallel == 0 && !a.ObeyVisits && !t.mayWait(a.Origin) {
		return
	}
	tk := &ticket{ask: a, came: now, ready: make(chan struct{})}
	var heard <-chan struct{}
	full := t.at(a.Origin, func(s *site) {
		if a.RobotsTxt {
			lanes = robotsLanes(s.lanes, lanes, &answer.Position)
		}
		s.arrive(tk, lanes, now)
		heard = tk.answered
	})
	if full {
		if !a.RobotsTxt {
			answer.Refused, answer.RetryAfter = true, retryWhenFull
		}
		return
	}
	refused := tk.site.awaitPosition(ctx, tk, heard, &answer.Position)
	if answer.Wait > 0 {
		t.count.waits.Add(1)
		if a.Waiting != nil && !refused {
			a.Waiting(answer.Position)
		}
	}
	tk.wait(ctx, answer)
	answer.Waited, answer.taken = time.Since(now), true
}

// TakeAt is Take for a site at an address of which all names keep MinDelay together: first the
// request takes its turn at the site, by what the site asks for, and then at the address.
// Requests for robots.txt, and those whose address is not known (the zero Addr), wait at the
// site alone.
func (t *Scheduler) TakeAt(ctx context.Context, a *Ask, at netip.Addr) Answer {
	if !at.IsValid() || a.MinDelay == 0 || a.RobotsTxt || a.exempt() {
		return t.Take(ctx, a)
	}
	return t.takeAt(ctx, a, at)
}

// takeAt is TakeAt for a request that takes two turns.
func (t *Scheduler) takeAt(ctx context.Context, a *Ask, at netip.Addr) Answer {
	site, settings := *a, *a.Settings
	settings.MinDelay = 0
	site.Settings = &settings
	var first, second Answer
	t.take(ctx, &site, &first)
	if first.Refused || first.Left {
		t.count.add(&first)
		return first
	}
	shared := *a.Settings
	shared.MaxParallel, shared.ObeyVisits = 0, false
	left := max(0, a.patience()-first.Waited)
	names := *a
	names.Settings, names.Origin, names.Hints, names.Patience = &shared, AddressOrigin(at), nil, &left
	method, target, _ := strings.Cut(a.Target, " ")
	names.Target = method + " " + a.Origin.String() + target
	if first.Wait > 0 {
		names.Waiting = nil // it was called
	}
	t.take(ctx, &names, &second)
	answer := joined(first, second, at)
	t.count.add(&answer)
	return answer
}

// EndWaits refuses all requests that wait or would have to wait from now on. It is
// called before heed exits.
func (t *Scheduler) EndWaits() {
	t.closing.Store(true)
	for _, s := range t.all() {
		now := time.Now()
		s.mu.Lock()
		for len(s.queue) > 0 {
			s.refuse(s.queue[len(s.queue)-1], now)
		}
		s.advance(now)
		s.mu.Unlock()
	}
}

// retryWhenFull is when asking again may help where too many sites are paced at a time.
const retryWhenFull = time.Minute

// at calls f with the site of o, locked and in the list; full reports that there
// is no room for one more.
func (t *Scheduler) at(o rules.Origin, f func(*site)) (full bool) {
	for {
		s := t.site(o)
		if s == nil {
			return true
		}
		s.mu.Lock()
		if s.gone { // between the look and the lock
			s.mu.Unlock()
			continue
		}
		f(s)
		s.mu.Unlock()
		return false
	}
}

// site returns the site of o, new or not; nil when there are too many.
func (t *Scheduler) site(o rules.Origin) *site {
	if s := t.find(o); s != nil {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sites[o]; s != nil {
		return s
	}
	if now := time.Now(); len(t.sites) >= max(64, 2*t.swept) || len(t.sites) >= t.bounds.sites && now.Sub(t.sweptAt) >= time.Second {
		t.sweepLocked(now)
	}
	if len(t.sites) >= t.bounds.sites {
		return nil
	}
	o.Host = strings.Clone(o.Host) // it may be part of a whole request
	s := &site{scheduler: t, origin: o, lanes: map[string]*lane{}, reservations: reservations{total: &t.reserved}}
	t.sites[o] = s
	t.known.Store(int64(len(t.sites)))
	return s
}

// sweepLocked removes the sites at which any request may start.
func (t *Scheduler) sweepLocked(now time.Time) {
	for o, s := range t.sites {
		if s.forget(now) {
			delete(t.sites, o)
		}
	}
	t.swept, t.sweptAt = len(t.sites), now
	t.known.Store(int64(t.swept))
}

// changed reports that a Checkpoint may have changed.
func (t *Scheduler) changed() {
	if t.Changed != nil {
		t.Changed()
	}
}

// addNote adds text to the Note.
func (a *Answer) addNote(text string) {
	if a.Note != "" {
		text = a.Note + "; " + text
	}
	a.Note = text
}

// note returns what is recorded beside the delay: what was clamped, and a
// Visit-time that is only noted.
func (a *Ask) note(now time.Time, p *Position) (text string) {
	if p.Asked > p.Delay {
		what := "pacing.min_delay"
		if p.By.Line > 0 {
			what = fmt.Sprintf("robots.txt line %d", p.By.Line)
		}
		text = fmt.Sprintf("%s asks for %v between requests; pacing.max_delay makes it %v", what, p.Asked, p.Delay)
	}
	if _, by := a.visitStart(now); by.Line > 0 && !a.ObeyVisits {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("outside of the Visit-time %.40q (robots.txt line %d)", by.Value, by.Line)
	}
	return text
}

// place adds what the queue knows.
func (p *Position) place(q *Position) {
	p.Wait, p.Ahead, p.Others, p.Pause, p.Visit, p.Store = q.Wait, q.Ahead, q.Others, q.Pause, q.Visit, q.Store
}
