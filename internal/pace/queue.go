package pace

import (
	"context"
	"slices"
	"time"

	"heed/rules"
)

// ticket is a request that waits at a site. What is below ready is guarded by the
// site's lock until ready is closed, and not at all from then on.
type ticket struct {
	ask   *Ask
	came  time.Time
	steps []step
	lanes string // the key of its fleetTicket; empty without a fleet
	site  *site

	round, inner uint64    // the fair order: among clients, and among the names of this one
	from         time.Time // Visit-time: not before
	visit        rules.Field
	due          time.Time // estimated time of its turn
	limit        time.Time // the end of its wait
	returning    bool      // it has returned at its reserved time

	ready       chan struct{} // closed when the wait is over
	turn        *permit       // given; nil: not yet
	fleetTicket *fleetTicket  // that it was given through; nil: there is no fleet
	answered    chan struct{} // closed when the fleet has answered; nil: it was not asked
	refused     bool
	retry       time.Duration
	position    Position // when it came
}

// wait waits for the end of the wait, or of ctx.
func (k *ticket) wait(ctx context.Context, a *Answer) {
	select {
	case <-k.ready:
	case <-ctx.Done():
		if k.site.leave(k) {
			a.Left, a.Owed = true, max(0, time.Until(k.due))
			return
		}
	}
	if ctx.Err() != nil && k.turn != nil {
		k.turn.End() // it left at the moment its turn came
		a.Left = true
		return
	}
	if k.turn != nil {
		a.Turn = k.turn
	}
	a.Refused, a.RetryAfter = k.refused, k.retry
	if k.refused {
		if a.Store = k.position.Store; a.Store != "" {
			a.addNote("the fleet's store " + a.Store + " was never reached")
		}
		a.Ended = k.site.scheduler.closing.Load()
		a.Owed = max(0, time.Until(k.due))
	}
}

// insert gives a ticket its place: the turns of a lane alternate between clients, and
// within a client between its names. The first request of a client waits for at most
// one turn of each other client.
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
	if k.returning {
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
	for ; k.returning && at > 0 && s.queue[at-1].round == k.round && !s.queue[at-1].returning; at-- {
		s.queue[at-1], s.queue[at] = k, s.queue[at-1] // which has no reservation
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

// leave removes a ticket whose client has left; false when its wait was over.
func (s *site) leave(k *ticket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, k)
	if i < 0 {
		return false
	}
	s.remove(i)
	s.advance(time.Now())
	return true
}

// plan estimates the time of each ticket's turn. Granted turns that have not started are
// assumed to start now.
func (s *site) plan(now time.Time) {
	for _, l := range s.lanes {
		free := l.next
		if l.pending != nil {
			free = now.Add(l.delay)
		}
		l.plan = gap{from: free, free: free}
	}
	for _, k := range s.queue {
		if s.planBetween(k, now) {
			continue
		}
		k.due = s.possible(k, now)
		for _, st := range k.steps {
			k.due = later(k.due, st.plan.free)
		}
		for _, st := range k.steps {
			after := k.due.Add(time.Duration(1+st.others)*st.delay + s.lag)
			switch g := &st.plan; {
			case k.due.After(g.free):
				*g = gap{from: g.free, until: k.due, free: after}
			case g.until.IsZero():
				*g = gap{from: after, free: after}
			default:
				g.free = after
			}
		}
	}
}

// possible returns when k may start if there were no other tickets of this heed.
func (s *site) possible(k *ticket, now time.Time) time.Time {
	at := s.earliest(k, now)
	if len(s.fleetTickets) > 0 {
		if ft := s.fleetTickets[k.lanes]; ft != nil {
			at = later(at, ft.due)
		}
	}
	return at
}

// planBetween plans the turn of k before one that is planned already, and reports
// whether its delays end by then. A request that waits for several lanes leaves such
// room in those that are free before the others.
func (s *site) planBetween(k *ticket, now time.Time) (fits bool) {
	due := s.possible(k, now)
	for _, st := range k.steps {
		due = later(due, st.plan.from)
	}
	for _, st := range k.steps {
		if g := st.plan; !g.until.IsZero() {
			fits = true
			if due.Add(time.Duration(1+st.others)*st.delay + s.lag).After(g.until) {
				return false
			}
		}
	}
	if !fits {
		return false
	}
	k.due = due
	for _, st := range k.steps {
		g := &st.plan
		g.from = due.Add(time.Duration(1+st.others)*st.delay + s.lag)
		if g.until.IsZero() {
			g.free = g.from
		}
	}
	return true
}

// earliest returns when k may start by what holds for the whole site.
func (s *site) earliest(k *ticket, now time.Time) time.Time {
	at := later(later(now, k.from), s.pause.until)
	for _, st := range k.steps {
		if !s.robots.sent.IsZero() {
			at = later(at, s.robots.sent.Add(st.delay))
		}
	}
	return at
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
