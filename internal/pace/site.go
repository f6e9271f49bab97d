package pace

import (
	"sync"
	"sync/atomic"
	"time"

	"heed/rules"
)

// site is the turns at one origin.
type site struct {
	turns  *Turns
	origin rules.Origin

	mu      sync.Mutex
	gone    bool // it is not in the list any more
	lanes   map[string]*lane
	queue   []*ticket // in the order they are served
	timer   *time.Timer
	moved   time.Time     // when a request for robots.txt went out last that waited for nobody
	robots  time.Time     // likewise, or was let go before all others
	running int           // turns that have been given and not ended
	lag     time.Duration // from a turn's being given to its start, smoothed
	pause   pause
	held    atomic.Bool // there is a pause, or somebody waits; true a little too long
	booked  map[uint64]booking
	shares  map[string]*share // where requests stand among those of other heeds
}

// Turn is the permission to start. Nil is one of which nothing has to be told.
type Turn struct {
	site    *site
	steps   []step
	share   *share // of other heeds' turns; nil: there are none
	given   time.Time
	first   bool // for robots.txt, before all others
	going   bool // guarded by site.mu
	started bool // likewise
	ended   bool // likewise
}

// Going tells that the request may be written from now on, also when its client
// leaves: the turn is not given back any more.
func (t *Turn) Going() {
	if t == nil {
		return
	}
	t.site.mu.Lock()
	defer t.site.mu.Unlock()
	t.going = true
}

// Started tells that the request's header section has been written: the delays
// begin. A request that is sent again is told again.
func (t *Turn) Started() {
	if t == nil {
		return
	}
	t.site.mu.Lock()
	defer t.site.mu.Unlock()
	t.startLocked(time.Now())
}

func (t *Turn) startLocked(now time.Time) {
	s := t.site
	if !t.started {
		t.started = true
		s.lag = (3*s.lag + now.Sub(t.given)) / 4
	}
	for _, st := range t.steps {
		if st.held == t {
			st.held = nil
		}
		if next := now.Add(st.delay); next.After(st.next) {
			st.next, st.lane.delay = next, st.delay
		}
	}
	if t.first {
		s.move(now)
	}
	t.share.started(s, now)
	s.turns.changed()
	s.turn(now)
}

// End gives the turn back if its request was not on its way, and its place among those that
// run. It may be called more than once.
func (t *Turn) End() {
	if t == nil {
		return
	}
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
		if st.held == t {
			st.held = nil
		}
	}
	if !t.started {
		t.share.back(s)
	}
	s.turn(time.Now())
}

// arrive lets a ticket in, or refuses it.
func (s *site) arrive(k *ticket, strides []stride, now time.Time) {
	k.site = s
	if k.ask.RobotsTxt && s.goesFirst(now, longest(strides)) {
		s.robots = now
		s.give(k, now)
		return
	}
	k.steps = s.stepsOf(strides, now)
	if s.turns.Shared != nil {
		k.lanes = k.shareKey()
	}
	s.fetched(k.ask.Fetched, now)
	k.from = now
	if k.ask.ObeyVisits {
		k.from, k.visit = k.ask.welcome(now)
	}
	k.limit = now.Add(k.ask.MaxWait)
	if k.booked = s.comesBack(k, now); k.booked {
		k.limit = now.Add(max(2*k.ask.MaxWait, k.ask.MaxWait+jostle))
	}
	if s.turns.ended.Load() {
		k.limit = now
	}
	s.insert(k)
	s.plan(now)
	k.place = s.placeOf(k, now)
	if k.due.After(k.limit) {
		s.refuse(k, now)
	} else if len(s.queue) > maxQueue {
		s.refuse(s.queue[len(s.queue)-1], now)
	}
	s.turn(now)
}

// fetched takes note of when heed asked for the site's robots.txt, by the wall
// clock.
func (s *site) fetched(at, now time.Time) {
	if age := now.Round(0).Sub(at); !at.IsZero() && age >= 0 && age < maxPause {
		s.moved = later(s.moved, now.Add(-age))
	}
}

// stepsOf returns the lanes of a request, making those that are new.
func (s *site) stepsOf(strides []stride, now time.Time) []step {
	if l := s.lanes[pauseLane]; len(strides) == 0 && (s.pause.holds(now) || l != nil && l.waiting > 0) {
		strides = []stride{{pauseLane, afterPause}}
	}
	steps := make([]step, 0, len(strides))
	for _, st := range strides {
		steps = append(steps, step{s.lane(st, now), st.delay})
	}
	return steps
}

// lane returns the lane of a name, new or not; where there are too many, one that
// others have, too. While that one is in use, the last start of a new name may have
// been there.
func (s *site) lane(st stride, now time.Time) *lane {
	full := func() bool {
		return len(s.lanes) >= maxLanes || s.turns.lanes.Load() >= allLanes || s.lanes[otherLane] != nil
	}
	if s.lanes[st.name] == nil && full() {
		s.sweepLanes(now)
		if full() {
			st.name = otherLane
		}
	}
	if l := s.lanes[st.name]; l != nil {
		return l
	}
	l := &lane{name: st.name, delay: st.delay}
	if since := s.turns.since; !since.IsZero() {
		l.next = since.Add(st.delay)
	}
	s.keep(l)
	return l
}

func (s *site) keep(l *lane) {
	s.lanes[l.name] = l
	s.turns.lanes.Add(1)
}

// placeOf returns where a ticket stands that has been planned.
func (s *site) placeOf(k *ticket, now time.Time) Place {
	p := Place{Wait: max(0, k.due.Sub(now)), Others: len(s.queue) - 1, Visit: k.visit}
	if s.pause.until.After(now) {
		p.Held = s.pause.until.Sub(now)
	}
	if sh := s.shares[k.lanes]; sh != nil && sh.held.After(later(now, s.pause.until)) {
		p.Held = sh.held.Sub(now)
	}
	for _, o := range s.queue {
		if o == k {
			break
		}
		p.Ahead++
	}
	return p
}

// turn gives the turns that have come, refuses who would wait in vain, and sets
// the clock for what comes next.
func (s *site) turn(now time.Time) {
	s.plan(now)
	s.dispatch(now)
	s.plan(now)
	for i := len(s.queue) - 1; i >= 0; i-- {
		if k := s.queue[i]; now.After(k.end()) || k.due.After(k.end()) {
			s.refuse(k, now)
		}
	}
	s.leaveShares()
	s.schedule(now)
	s.held.Store(s.pause.matters(now) || len(s.queue) > 0)
}

// end is when a ticket that was let in is refused after all. What was promised to
// it was an estimate, so that it is given a little more.
func (k *ticket) end() time.Time {
	return k.limit.Add(time.Second + k.limit.Sub(k.came)/10)
}

// dispatch gives each turn that has come to the first in the queue that wants it,
// as planned: what others in a lane have been promised stays theirs.
func (s *site) dispatch(now time.Time) {
	for _, l := range s.lanes {
		l.promise = time.Time{}
	}
	for i := 0; i < len(s.queue); {
		k := s.queue[i]
		switch {
		case k.ask.MaxParallel > 0 && s.running >= k.ask.MaxParallel:
			return // whoever comes next waits for the same
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
		if st.held != nil || st.next.After(now) || !st.promise.IsZero() && over.After(st.promise) {
			return false
		}
	}
	return !s.earliest(k, now).After(now)
}

// give gives k its turn.
func (s *site) give(k *ticket, now time.Time) {
	k.turn = &Turn{site: s, steps: k.steps, share: k.share, given: now, first: k.ask.RobotsTxt && k.steps == nil}
	for _, st := range k.steps {
		st.held = k.turn
		st.round = max(st.round, k.round)
		st.lane.delay = st.delay
	}
	s.running++
	close(k.ready)
}

// schedule sets the timer to when something may be done next; there is none
// while nobody waits.
func (s *site) schedule(now time.Time) {
	var next time.Time
	for _, k := range s.queue {
		for _, t := range []time.Time{k.due, k.end()} {
			if t.After(now) && (next.IsZero() || t.Before(next)) {
				next = t
			}
		}
	}
	for _, sh := range s.shares {
		if !sh.asking && (next.IsZero() || sh.again.Before(next)) {
			next = later(sh.again, now)
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

// tick is the timer's.
func (s *site) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(time.Now())
}

// sweepLanes drops the lanes in which anybody may start.
func (s *site) sweepLanes(now time.Time) {
	for name, l := range s.lanes {
		if l.waiting == 0 && l.held == nil && !l.next.After(now) {
			delete(s.lanes, name)
			s.turns.lanes.Add(-1)
		}
	}
}

// forget reports whether the site is of no use any more, and marks it so.
func (s *site) forget(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweepLanes(now)
	s.gone = s.running == 0 && len(s.queue) == 0 && len(s.shares) == 0 && len(s.lanes) == 0 && !s.pause.matters(now) &&
		len(s.live(now)) == 0 && now.Sub(s.moved) > movedMatters
	return s.gone
}

// movedMatters is how long a request that waits for nobody is remembered at a
// site where nothing else is.
const movedMatters = time.Minute

func (t *Turns) changed() {
	if t.Changed != nil {
		t.Changed()
	}
}
