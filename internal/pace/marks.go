package pace

import (
	"time"

	"heed/rules"
)

// Mark is what has to outlive the process, so that a restart brings no burst:
// from when on a lane may be used again, or an origin that is held.
type Mark struct {
	Origin rules.Origin
	Lane   string        // empty with Hold
	Delay  time.Duration // of the lane; 0 with Hold
	Next   time.Time     // by the wall clock
	Hold   bool          // nobody may start at the origin before Next
}

// Marks returns what a restart has to know.
func (t *Turns) Marks() []Mark {
	now := time.Now()
	wall := func(next time.Time) time.Time { return now.Round(0).Add(next.Sub(now)) }
	var all []Mark
	for _, s := range t.all() {
		s.mu.Lock()
		if s.pause.holds(now) {
			all = append(all, Mark{Origin: s.origin, Next: wall(s.pause.until), Hold: true})
		}
		for _, l := range s.lanes {
			if l.next.After(now) {
				all = append(all, Mark{Origin: s.origin, Lane: l.name, Delay: l.delay, Next: wall(l.next)})
			}
		}
		s.mu.Unlock()
	}
	return all
}

// Restore takes up the marks of an earlier process; what they say of longer than
// an hour, or than a delay, from now on is a clock that was set. A process that
// may have started requests since the marks were written passes since, its own
// start: every lane then keeps its delay once from there. It is for Turns that
// nobody uses yet.
func (t *Turns) Restore(marks []Mark, since time.Time) {
	now := time.Now()
	t.since = since
	for _, m := range marks {
		left := m.Next.Sub(now.Round(0))
		if left <= 0 {
			continue
		}
		t.at(m.Origin, func(s *site) {
			if m.Hold {
				s.hold(min(left, maxPause), true, now)
			} else if len(s.lanes) < maxLanes {
				l := &lane{name: m.Lane, delay: m.Delay, next: now.Add(min(left, m.Delay))}
				if !since.IsZero() { // the last start may have been after the mark
					l.next = later(l.next, since.Add(m.Delay))
				}
				s.keep(l)
			}
		})
	}
}
