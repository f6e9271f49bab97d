package pace

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heed/rules"
)

// Bounds of what is held.
const (
	maxSites = 1 << 16 // origins whose turns are known
	maxLanes = 256     // of one origin
	allLanes = 1 << 18 // of all origins; those beyond share one each
	maxQueue = 1024    // requests that wait at one origin
)

// Config says what Turns are made of. The zero value will do.
type Config struct {
	// Shared is where other heeds take turns at the same sites. Nil: there are
	// no others.
	Shared Shared
	// Changed is called when a Mark may have changed. It must be fast. Nil:
	// nobody wants to know.
	Changed func()
}

// Turns is who may start when, at all sites. Make it with New; it is safe for
// concurrent use.
type Turns struct {
	Config
	count counters
	ended atomic.Bool // nobody waits any more

	known   atomic.Int64 // of sites
	lanes   atomic.Int64 // of them
	booked  atomic.Int64 // at them
	mu      sync.RWMutex
	sites   map[rules.Origin]*site
	tickets atomic.Uint64 // that other heeds were shown
	swept   int           // how many were left when those of no use were last dropped
	sweptAt time.Time     // and when: looking through all of them takes its time
	since   time.Time     // lanes begin with one delay from here; zero: at once
}

// New returns Turns in which nobody has started yet.
func New(c Config) *Turns { return &Turns{Config: c, sites: map[rules.Origin]*site{}} }

// Answer is what became of an Ask.
type Answer struct {
	Place
	Turn   *Turn         // the permission to start; nil: there is none, or nothing to be told of it
	Waited time.Duration // until now
	Note   string        // what is to be recorded of the site's wishes beside the delay; empty: nothing

	// Refused says that the request may not start, since its turn is too far off;
	// Left that it may not since its context has ended.
	Refused, Left bool
	// Ended says of a refusal that nobody may wait any more.
	Ended bool
	// Owed is how long it would have had to wait still.
	Owed time.Duration
	// RetryAfter is when asking again will be served, for a request that was
	// refused, in whole seconds.
	RetryAfter time.Duration
}

// Paced reports whether requests to o under these wishes and settings may have
// to wait. It costs next to nothing, and every other request nothing more.
func (t *Turns) Paced(o rules.Origin, wishes []*rules.Wish, s *Settings) bool {
	return len(wishes) > 0 || s.MinDelay > 0 || s.MaxParallel > 0 || t.held(o)
}

// held reports whether something holds at o beyond what robots.txt asks for.
func (t *Turns) held(o rules.Origin) bool {
	if t.known.Load() == 0 {
		return false
	}
	s := t.find(o)
	return s != nil && s.held.Load()
}

// find returns the site of o; nil when nothing is known of it.
func (t *Turns) find(o rules.Origin) *site {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.sites[o]
}

// Take waits for the request's turn. The Turn is to be ended, whatever becomes of
// the request.
func (t *Turns) Take(ctx context.Context, a *Ask) Answer {
	if a.RobotsTxt && !a.NoWait && a.Rules != nil && t.robotsAgain(a.Origin) {
		a.Wishes = a.Rules()
	}
	now := time.Now()
	strides, p := a.strides(now)
	answer := Answer{Place: p, Note: a.note(now, &p)}
	if a.NoWait || !a.RobotsTxt && len(strides) == 0 && a.MaxParallel == 0 && !a.ObeyVisits && !t.held(a.Origin) {
		return answer
	}
	tk := newTicket(a, now)
	var heard <-chan struct{}
	full := t.at(a.Origin, func(s *site) {
		if a.RobotsTxt {
			strides = s.stridesOfAll(strides, &answer.Place)
		}
		s.arrive(tk, strides, now)
		heard = tk.heard
	})
	if full && a.RobotsTxt {
		return answer
	} else if full {
		answer.Refused, answer.RetryAfter = true, fullHouse
		return answer
	}
	place, refused := tk.site.heardOf(ctx, tk, heard)
	answer.Place = answer.Place.with(place)
	if place.Wait > 0 {
		t.count.waits.Add(1)
		if a.Waiting != nil && !refused {
			a.Waiting(answer.Place)
		}
	}
	tk.wait(ctx, &answer)
	answer.Waited = time.Since(now)
	t.count.tell(&answer)
	return answer
}

// EndWaits refuses who waits, and whoever would have to from now on: for a heed that
// is to end.
func (t *Turns) EndWaits() {
	t.ended.Store(true)
	for _, s := range t.all() {
		now := time.Now()
		s.mu.Lock()
		for len(s.queue) > 0 {
			s.refuse(s.queue[len(s.queue)-1], now)
		}
		s.turn(now)
		s.mu.Unlock()
	}
}

// fullHouse is when asking again may help where too many sites are paced at a time.
const fullHouse = time.Minute

// at calls f with the site of o, locked and in the list; full reports that there
// is no room for one more.
func (t *Turns) at(o rules.Origin, f func(*site)) (full bool) {
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
func (t *Turns) site(o rules.Origin) *site {
	if s := t.find(o); s != nil {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sites[o]; s != nil {
		return s
	}
	if now := time.Now(); len(t.sites) >= max(64, 2*t.swept) || len(t.sites) >= maxSites && now.Sub(t.sweptAt) >= time.Second {
		t.sweepLocked(now)
	}
	if len(t.sites) >= maxSites {
		return nil
	}
	o.Host = strings.Clone(o.Host) // it may be part of a whole request
	s := &site{turns: t, origin: o, lanes: map[string]*lane{}}
	t.sites[o] = s
	t.known.Store(int64(len(t.sites)))
	return s
}

// sweepLocked drops the sites at which anybody may start.
func (t *Turns) sweepLocked(now time.Time) {
	for o, s := range t.sites {
		if s.forget(now) {
			delete(t.sites, o)
		}
	}
	t.swept, t.sweptAt = len(t.sites), now
	t.known.Store(int64(t.swept))
}

// note tells what is to be recorded beside the delay: what was clamped, and a
// Visit-time that is only noted.
func (a *Ask) note(now time.Time, p *Place) (text string) {
	if p.Asked > p.Delay {
		what := "pacing.min_delay"
		if p.By.Line > 0 {
			what = fmt.Sprintf("robots.txt line %d", p.By.Line)
		}
		text = fmt.Sprintf("%s asks for %v between requests; pacing.max_delay makes it %v", what, p.Asked, p.Delay)
	}
	if _, by := a.welcome(now); by.Line > 0 && !a.ObeyVisits {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("outside of the Visit-time %.40q (robots.txt line %d)", by.Value, by.Line)
	}
	return text
}

// with returns p with what the queue knows.
func (p Place) with(q Place) Place {
	q.Asked, q.Delay, q.By, q.RobotsTxt = p.Asked, p.Delay, p.By, p.RobotsTxt
	return q
}
