package pace

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"heed/internal/pace/retryafter"
	"heed/rules"
)

// Limits of pauses.
const (
	maxPause   = time.Hour       // of what Retry-After asks for
	firstPause = time.Second     // without Retry-After
	maxBackoff = 5 * time.Minute // of pauses that grow
)

// pause is a time in which no request may start at a site. The zero value is none.
type pause struct {
	began   time.Time
	until   time.Time
	asked   bool          // with Retry-After; otherwise the site only failed
	backoff time.Duration // of the last pause without Retry-After; 0: there was none lately
}

func (p *pause) holds(now time.Time) bool { return p.until.After(now) }

// matters reports whether the pause, or the length of the next one, still has an effect.
func (p *pause) matters(now time.Time) bool {
	return p.holds(now) || p.backoff > 0 && now.Sub(p.until) < maxBackoff
}

// extend begins a pause of d, unless one is in force that lasts longer.
func (p *pause) extend(d time.Duration, asked bool, now time.Time) {
	if until := now.Add(d); until.After(p.until) {
		p.began, p.until, p.asked = now, until, asked
	}
}

// Answered records a site's answer to a request that was sent at sent. 429
// and 503 pause the site: until the time that Retry-After names, at most an
// hour; without one for a while that doubles each time, and halves with each
// answer of another kind. note is a remark for the record; often empty.
func (t *Scheduler) Answered(o rules.Origin, status int, h http.Header, sent time.Time) (note string) {
	busy := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	if !busy && !t.mayWait(o) {
		return ""
	}
	now := time.Now()
	var paused time.Duration
	t.at(o, func(s *site) {
		switch asked, ok := retryafter.Parse(h, now); {
		case !busy:
			s.pause.backoff /= 2
			if s.pause.backoff < firstPause {
				s.pause.backoff = 0
			}
			return
		case ok && asked > 0:
			paused = min(asked, maxPause)
			s.pause.extend(paused, true, now)
			if note = fmt.Sprintf("the site asks all clients to wait for %v (Retry-After)", asked); asked > paused {
				note += fmt.Sprintf("; it is kept for %v", paused)
				t.count.clamped.Add(1)
			}
		case sent.After(s.pause.began) && !s.pause.holds(sent):
			s.pause.backoff = min(max(firstPause, 2*s.pause.backoff), maxBackoff)
			paused = s.pause.backoff
			s.pause.extend(paused, false, now)
			note = fmt.Sprintf("the site is overloaded and %s: no request starts there for %v", without(h, asked, ok), paused)
		}
		s.advance(now)
	})
	if paused > 0 {
		t.count.holds.Add(1)
		t.changed()
		t.callFleet(o, func(ctx context.Context, f Shared, origin string) error { return f.Hold(ctx, origin, paused) })
	}
	return note
}

// without returns a note on the answer of a site without a time to wait for; ok reports that
// its Retry-After, which asks for no time, was understood.
func without(h http.Header, asked time.Duration, ok bool) string {
	switch value := retryafter.Unread(h); {
	case value != "":
		return fmt.Sprintf("sent a Retry-After that cannot be understood (%q)", value)
	case ok && asked < 0:
		return "sent a Retry-After that has passed"
	case ok:
		return "sent a Retry-After of 0"
	}
	return "sent no Retry-After"
}

// Hold stops requests from starting at o for d, since another heed was asked to
// wait; 0 ends it.
func (t *Scheduler) Hold(o rules.Origin, d time.Duration) {
	now := time.Now()
	t.at(o, func(s *site) {
		if s.pause.extend(min(d, maxPause), true, now); d <= 0 {
			s.release(now)
		}
		s.advance(now)
	})
}

// Release ends the pauses of a host: those that it asked for, and those that its failing
// answers caused. The delays that its robots.txt asks for stay. host is a host, with its
// port or without, or an origin. It returns the origins that were paused.
func (t *Scheduler) Release(host string) []string {
	now := time.Now()
	released := []string{}
	for _, s := range t.all() {
		o := s.origin
		if host != o.Host && host != o.Authority() && host != o.String() {
			continue
		}
		s.mu.Lock()
		if s.pause.holds(now) {
			released = append(released, o.String())
		}
		s.release(now)
		s.scheduler.callFleet(s.origin, func(ctx context.Context, f Shared, origin string) error { return f.Release(ctx, origin) })
		s.advance(now)
		s.mu.Unlock()
	}
	slices.Sort(released)
	t.changed()
	return released
}
