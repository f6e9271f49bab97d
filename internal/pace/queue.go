package pace

import (
	"context"
	"slices"
	"time"

	"heed/rules"
)

// ticket is a request that waits at a site. What is below ready is guarded by the
// site's lock until ready is closed, and by nobody from then on.
type ticket struct {
	ask   *Ask
	came  time.Time
	steps []step
	lanes string // the key of its share; empty without a fleet
	site  *site

	round, inner uint64    // the fair order: among clients, and among the names of this one
	from         time.Time // Visit-time: not before
	visit        rules.Field
	due          time.Time // when its turn will be, as far as can be told
	limit        time.Time // it is not kept waiting for longer
	booked       bool      // it has come back at the time it was told

	ready   chan struct{} // closed when the wait is over
	turn    *Turn         // given
	share   *share        // that it was given through; nil: there is no fleet
	heard   chan struct{} // closed when the fleet has said where it stands; nil: it was not asked
	refused bool
	retry   time.Duration
	place   Place // when it came
}

func newTicket(a *Ask, now time.Time) *ticket {
	return &ticket{ask: a, came: now, ready: make(chan struct{})}
}

// wait waits for the end of the wait, or of ctx.
func (k *ticket) wait(ctx context.Context, a *Answer) {
	select {
	case <-k.ready:
	default:
		select {
		case <-k.ready:
		case <-ctx.Done():
			if k.site.leave(k) {
				a.Left, a.Owed = true, max(0, time.Until(k.due))
				return
			}
		}
	}
	if ctx.Err() != nil && k.turn != nil {
		k.turn.End() // it left at the moment its turn came
		a.Left = true
		return
	}
	a.Turn, a.Refused, a.RetryAfter = k.turn, k.refused, k.retry
	if k.refused {
		a.Ended = k.site.turns.ended.Load()
		a.Owed = max(0, time.Until(k.due))
	}
}

// insert gives a ticket its place: the turns of a lane go round between clients,
// and within a client between its names. Who comes for the first time waits for
// no more than one turn of each other client.
func (s *site) insert(k *ticket) {
	for _, st := range k.steps {
		k.round = max(k.round, st.round)
	}
	inner := uint64(0)
	for _, o := range s.queue {
		if !o.sameClient(k) {
			continue
		}
		k.round = max(k.round, o.round)
		if o.ask.Name == k.ask.Name {
			inner = max(inner, o.inner)
		} else if k.inner == 0 {
			k.inner = o.inner // the names of a client begin where it is
		}
	}
	k.round++
	k.inner = max(k.inner, inner+1)
	if k.booked {
		k.inner = 0
	}
	at, _ := slices.BinarySearchFunc(s.queue, k.round, func(o *ticket, round uint64) int {
		if o.round <= round {
			return -1
		}
		return 1
	})
	s.queue = slices.Insert(s.queue, at, k)
	for i := at - 1; i >= 0; i-- {
		if o := s.queue[i]; o.sameClient(k) && o.inner > k.inner {
			s.queue[i], s.queue[at] = s.queue[at], s.queue[i]
			o.round, k.round = k.round, o.round
			at = i
		}
	}
	for ; k.booked && at > 0 && s.queue[at-1].round == k.round && !s.queue[at-1].booked; at-- {
		s.queue[at-1], s.queue[at] = k, s.queue[at-1] // who was promised nothing
	}
	for _, st := range k.steps {
		st.waiting++
	}
}

// sameClient reports whether two tickets are one client's and wait in a common lane.
func (k *ticket) sameClient(o *ticket) bool {
	if k.ask.Client != o.ask.Client {
		return false
	}
	for _, st := range k.steps {
		if slices.ContainsFunc(o.steps, func(other step) bool { return other.lane == st.lane }) {
			return true
		}
	}
	return len(k.steps)+len(o.steps) == 0
}

// remove takes the ticket at i out of the queue.
func (s *site) remove(i int) {
	for _, st := range s.queue[i].steps {
		st.waiting--
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	if len(s.queue) == 0 {
		s.queue = nil // which may have been long
	}
}

// leave takes a ticket out whose client has gone; false when its wait was over
// already.
func (s *site) leave(k *ticket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, k)
	if i < 0 {
		return false
	}
	s.remove(i)
	s.turn(time.Now())
	return true
}
