package pace

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"heed/rules"
)

// site holds the turns at one origin.
type site struct {
	scheduler *Scheduler
	origin    rules.Origin

	mu           sync.Mutex
	gone         bool // it is not in the list any more
	lanes        map[string]*lane
	queue        []*ticket // in the order they are served
	timer        *time.Timer
	robots       robotsRequests
	running      int           // granted turns that have not ended
	lag          time.Duration // from a turn's being given to its start, smoothed
	pause        pause
	mayWait      atomic.Bool // there is or was a pause that matters, or requests wait; it may stay true a little too long
	reservations reservations
	fleetTickets map[string]*fleetTicket // positions among the requests of other heeds
}

// Turn is the permission to start one request. It is safe for concurrent use.
type Turn interface {
	// Going reports that the request is written next, also when its client leaves: the
	// turn is not given back any more. It returns false when it is too late for that: the
	// request must not be written, and needs another turn.
	Going() bool
	// Started reports that the request's header section has been written: the
	// delays begin. It is called again for a request that is sent again.
	Started()
	// End ends the turn, and gives it back when its request was not on its way. It
	// may be called more than once.
	End()
}

// permit is a Turn at one site.
type permit struct {
	site        *site
	steps       []step
	fleetTicket *fleetTicket // that it was given through; nil: there is no fleet
	given       time.Time
	first       bool // for robots.txt, before all others
	going       bool // guarded by site.mu
	started     bool // likewise
	ended       bool // likewise
}

// Going implements Turn.
func (t *permit) Going() bool {
	t.site.mu.Lock()
	defer t.site.mu.Unlock()
	if t.fleetTicket.tooLate(time.Now()) {
		return false
	}
	t.going = true
	return true
}

// Started implements Turn.
func (t *permit) Started() {
	t.site.mu.Lock()
	defer t.site.mu.Unlock()
	t.startLocked(time.Now())
}

func (t *permit) startLocked(now time.Time) {
	s := t.site
	if !t.started {
		t.started = true
		s.lag = (3*s.lag + now.Sub(t.given)) / 4
	}
	for _, st := range t.steps {
		if st.pending == t {
			st.pending = nil
		}
		if next := now.Add(st.delay); next.After(st.next) {
			st.next, st.lane.delay = next, st.delay
		}
	}
	if t.first {
		s.robots.started(now)
		s.scheduler.moved(s.origin)
	}
	t.fleetTicket.started(s, now)
	s.scheduler.changed()
	s.advance(now)
}

// End implements Turn.
func (t *permit) End() {
	s := t.site
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.ended {
		return
	}
	t.ended = true
	s.running--
	if t.going && !t.started {
		t.startLocked(time.Now())
	}
	for _, st := range t.steps {
		if st.pending == t {
			st.pending = nil
		}
	}
	if !t.started {
		t.fleetTicket.giveBack(s)
	}
	s.advance(time.Now())
}

// arrive lets a ticket in, or refuses it.
func (s *site) arrive(k *ticket, lanes []Lane, now time.Time) {
	k.site = s
	if k.ask.RobotsTxt && s.robots.goesFirst(now, lanes) {
		s.robots.first = now
		s.give(k, now)
		return
	}
	k.steps = s.stepsOf(lanes, now)
	if s.scheduler.Shared != nil {
		k.lanes = k.lanesKey()
	}
	s.robots.fetched(k.ask.Fetched, now)
	k.from = now
	if k.ask.ObeyVisits {
		k.from, k.visit = k.ask.visitStart(now)
	}
	patience := k.ask.patience()
	k.limit = now.Add(patience)
	if k.returning = s.reservations.claim(k, now); k.returning {
		k.limit = now.Add(max(2*patience, patience+returnSlack))
	}
	if s.scheduler.closing.Load() {
		k.limit = now
	}
	s.insert(k)
	s.plan(now)
	k.position = s.positionOf(k, now)
	if k.due.After(k.limit) {
		s.refuse(k, now)
	} else if len(s.queue) > s.scheduler.bounds.queue {
		s.refuse(s.queue[len(s.queue)-1], now)
	}
	s.advance(now)
}

// refuse ends a wait that would be too long, and sets the time to return.
func (s *site) refuse(k *ticket, now time.Time) {
	i := slices.Index(s.queue, k)
	if i < 0 {
		return
	}
	if k.unanswered() {
		k.position = s.positionOf(k, now)
	}
	k.position.Store = s.unreached(k)
	s.remove(i)
	k.refused, k.retry = true, wholeSeconds(s.reservations.reserve(k, now).Sub(now))
	if k.position.Store != "" {
		k.retry = max(k.retry, retryUnreached)
	}
	close(k.ready)
}

// stepsOf returns the lanes of a request, making those that are new.
func (s *site) stepsOf(lanes []Lane, now time.Time) []step {
	if l := s.lanes[pauseLane]; len(lanes) == 0 && (s.pause.holds(now) || l != nil && l.waiting > 0) {
		lanes = []Lane{{Name: pauseLane, Delay: afterPause}}
	}
	steps := make([]step, 0, len(lanes))
	for _, l := range lanes {
		steps = append(steps, step{s.lane(l.Name, l.Delay, now), l.Delay})
	}
	return steps
}

// lane returns the lane with that name, which it creates if there is none. When there
// are too many lanes, new names share otherLane. While that lane exists every new name
// uses it, since the last request of that name may have started in it.
func (s *site) lane(name string, delay time.Duration, now time.Time) *lane {
	bounds := &s.scheduler.bounds
	full := func() bool {
		return len(s.lanes) >= bounds.lanes || s.scheduler.lanes.Load() >= bounds.allLanes || s.lanes[otherLane] != nil
	}
	if s.lanes[name] == nil && full() {
		s.sweepLanes(now)
		if full() {
			name = otherLane
		}
	}
	if l := s.lanes[name]; l != nil {
		return l
	}
	l := &lane{name: name, delay: delay}
	if since := s.scheduler.since; !since.IsZero() {
		l.next = since.Add(delay)
	}
	s.addLane(l)
	return l
}

func (s *site) addLane(l *lane) {
	s.lanes[l.name] = l
	s.scheduler.lanes.Add(1)
}

// positionOf returns the position of a ticket that has been planned.
func (s *site) positionOf(k *ticket, now time.Time) Position {
	p := Position{Wait: max(0, k.due.Sub(now)), Others: len(s.queue) - 1, Visit: k.visit, Store: s.unreached(k)}
	if s.pause.until.After(now) {
		p.Pause = s.pause.until.Sub(now)
	}
	if ft := s.fleetTickets[k.lanes]; ft != nil && ft.pauseEnd.After(later(now, s.pause.until)) {
		p.Pause = ft.pauseEnd.Sub(now)
	}
	for _, o := range s.queue {
		if o == k {
			break
		}
		p.Ahead++
	}
	return p
}

// advance grants the turns that are due, refuses requests that would wait too long, and sets
// the timer.
func (s *site) advance(now time.Time) {
	s.plan(now)
	s.dispatch(now)
	s.plan(now)
	for i := len(s.queue) - 1; i >= 0; i-- {
		if k := s.queue[i]; now.After(k.end()) || k.due.After(k.end()) {
			s.refuse(k, now)
		}
	}
	s.leaveFleet()
	s.schedule(now)
	s.mayWait.Store(s.pause.matters(now) || len(s.queue) > 0)
}

// end returns when an accepted ticket is refused after all. Its estimate was a promise, so it
// gets some more time.
func (k *ticket) end() time.Time {
	return k.limit.Add(time.Second + k.limit.Sub(k.came)/10)
}

// dispatch gives the turns that have come, in the order of the queue. A request starts
// before an earlier one, which waits for another lane still, only if that does not
// delay the planned turn of the earlier one.
func (s *site) dispatch(now time.Time) {
	for _, l := range s.lanes {
		l.promise = time.Time{}
	}
	for i := 0; i < len(s.queue); {
		k := s.queue[i]
		switch {
		case k.ask.MaxParallel > 0 && s.running >= k.ask.MaxParallel:
			return // the next ones wait for the same
		case s.ready(k, now) && s.admitted(k, now):
			s.remove(i)
			s.give(k, now)
			continue
		}
		for _, st := range k.steps {
			if st.promise.IsZero() || k.due.Before(st.promise) {
				st.promise = k.due
			}
		}
		i++
	}
}

// ready reports whether k may start now.
func (s *site) ready(k *ticket, now time.Time) bool {
	for _, st := range k.steps {
		over := now.Add(st.delay + s.lag)
		if st.pending != nil || st.next.After(now) || !st.promise.IsZero() && over.After(st.promise) {
			return false
		}
	}
	return !s.earliest(k, now).After(now)
}

// give grants k its turn.
func (s *site) give(k *ticket, now time.Time) {
	k.turn = &permit{site: s, steps: k.steps, fleetTicket: k.fleetTicket, given: now, first: k.ask.RobotsTxt && k.steps == nil}
	for _, st := range k.steps {
		st.pending = k.turn
		st.round = max(st.round, k.round)
		st.lane.delay = st.delay
	}
	s.running++
	close(k.ready)
}

// schedule sets the timer to the next time at which something may change; it stops the timer
// while no request waits.
func (s *site) schedule(now time.Time) {
	var next time.Time
	for _, k := range s.queue {
		for _, t := range []time.Time{k.due, k.end()} {
			if t.After(now) && (next.IsZero() || t.Before(next)) {
				next = t
			}
		}
	}
	for _, ft := range s.fleetTickets {
		if !ft.asking && (next.IsZero() || ft.again.Before(next)) {
			next = later(ft.again, now)
		}
	}
	switch {
	case next.IsZero():
		if s.timer != nil {
			s.timer.Stop()
			s.timer = nil
		}
	case s.timer == nil:
		s.timer = time.AfterFunc(next.Sub(now), s.tick)
	default:
		s.timer.Reset(next.Sub(now))
	}
}

// tick is called by the timer.
func (s *site) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(time.Now())
}

// release ends the pause of the site; the fleet is to be asked anew.
func (s *site) release(now time.Time) {
	s.pause = pause{}
	for _, ft := range s.fleetTickets {
		ft.again, ft.due, ft.pauseEnd = now, now, time.Time{}
	}
}

// free returns when a request may start in l: a delay after the last one, and after a request
// for robots.txt.
func (s *site) free(l *lane) time.Time { return later(l.next, s.robots.sent.Add(l.delay)) }

// sweepLanes removes the lanes in which any request may start.
func (s *site) sweepLanes(now time.Time) {
	for name, l := range s.lanes {
		if l.waiting == 0 && l.pending == nil && !s.free(l).After(now) {
			delete(s.lanes, name)
			s.scheduler.lanes.Add(-1)
		}
	}
}

// forget reports whether the site is no longer needed, and marks it.
func (s *site) forget(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweepLanes(now)
	s.gone = s.running == 0 && len(s.queue) == 0 && len(s.fleetTickets) == 0 && len(s.lanes) == 0 && !s.pause.matters(now) &&
		len(s.reservations.live(now)) == 0 && now.Sub(s.robots.sent) > robotsMemory
	return s.gone
}
