package pace

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"heed/rules"
)

// Bounds of what a site's failing answers do.
const (
	maxPause   = time.Hour       // of what Retry-After asks for
	firstPause = time.Second     // where a site says "not now" and no more
	mostGrown  = 5 * time.Minute // of pauses that grow
)

// pause is a time in which nobody may start at a site. The zero value is none.
type pause struct {
	began time.Time
	until time.Time
	asked bool          // for, with Retry-After; otherwise the site only failed
	grown time.Duration // of the last pause that nobody asked for; 0: there was none lately
}

func (p *pause) holds(now time.Time) bool { return p.until.After(now) }

// matters reports whether the pause, or what has grown, makes a difference still.
func (p *pause) matters(now time.Time) bool {
	return p.holds(now) || p.grown > 0 && now.Sub(p.until) < mostGrown
}

// Answered takes note of a site's answer to a request that was sent at sent. 429
// and 503 hold everybody back: until the time that Retry-After names, at most an
// hour; without one for a while that doubles each time, and halves with each
// answer of another kind. note is what is to be recorded of it; often empty.
func (t *Turns) Answered(o rules.Origin, status int, h http.Header, sent time.Time) (note string) {
	busy := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	if !busy && !t.held(o) {
		return ""
	}
	now := time.Now()
	var held time.Duration
	t.at(o, func(s *site) {
		switch asked, ok := RetryAfter(h, now); {
		case !busy:
			s.pause.grown /= 2
			if s.pause.grown < firstPause {
				s.pause.grown = 0
			}
			return
		case ok:
			held = min(asked, maxPause)
			s.hold(held, true, now)
			if note = fmt.Sprintf("the site asks everybody to wait for %v (Retry-After)", asked); asked > held {
				note += fmt.Sprintf("; it is kept for %v", held)
				t.count.clamped.Add(1)
			}
		case sent.After(s.pause.began) && !s.pause.holds(sent):
			s.pause.grown = min(max(firstPause, 2*s.pause.grown), mostGrown)
			held = s.pause.grown
			s.hold(held, false, now)
			note = fmt.Sprintf("the site has enough for now, and says no time: nobody starts there for %v", held)
		}
		s.turn(now)
	})
	if held > 0 {
		t.count.holds.Add(1)
		t.changed()
		t.share(func(ctx context.Context, f Shared) { f.Hold(ctx, o.String(), held) })
	}
	return note
}

// Hold has nobody start at o for d, since another heed was told so; 0 ends it,
// since another heed was.
func (t *Turns) Hold(o rules.Origin, d time.Duration) {
	now := time.Now()
	t.at(o, func(s *site) {
		if s.hold(min(d, maxPause), true, now); d <= 0 {
			s.release(now)
		}
		s.turn(now)
	})
}

func (s *site) hold(d time.Duration, asked bool, now time.Time) {
	if until := now.Add(d); until.After(s.pause.until) {
		s.pause.began, s.pause.until, s.pause.asked = now, until, asked
		s.held.Store(true)
	}
}

// RetryAfter returns how long after now an answer's Retry-After (RFC 9110
// §10.2.3) wants the client to wait: a number of seconds, or a date, which is
// read by the clock that the answer's own Date shows. ok is false when it asks
// for no wait.
func RetryAfter(h http.Header, now time.Time) (d time.Duration, ok bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil { // too long for a number: longer than anything
			n = 1<<31 - 1
		}
		return time.Duration(n) * time.Second, n > 0
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	from := now
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		from = date
	}
	d = at.Sub(from)
	return d, d > 0
}
