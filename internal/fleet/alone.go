package fleet

import "time"

const (
	// noticeTime is by when all heeds have noticed that the store is away: the
	// next beat, and an answer that does not come.
	noticeTime = beatEvery + opTimeout + 500*time.Millisecond
	// settleTime is by when all have noticed that it is back.
	settleTime = probeEvery + opTimeout + 500*time.Millisecond
	// spareShare is which part of a delay is spared between the slots of heeds.
	spareShare = 4
)

// times returns since when the store is away, zero when it is not, and when it
// was last found back, zero if never.
func (s *Store) times() (away, back time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.health.Away:
		return s.health.Since, s.back
	case s.closed:
		return s.opened, s.back
	}
	return time.Time{}, s.back
}

// unsure is until when others may have started what the store does not know of;
// zero: they cannot.
func (t *Turns) unsure() time.Time {
	if _, back := t.store.times(); !back.IsZero() {
		return back.Add(settleTime)
	}
	return time.Time{}
}

// alone answers without the store.
func (t *Turns) alone(key string, turns []Turn) Answer {
	now := time.Now()
	away, _ := t.store.times()
	if away.IsZero() { // back again in this moment
		return Answer{Again: 50 * time.Millisecond, Away: true}
	}
	t.mu.Lock()
	p := t.place
	t.mu.Unlock()
	a := alone{turns: turns, since: away}
	held, starts := t.known.of(key, turns)
	a.hold, a.starts = held.till, starts
	wait := p.alone(&a, now)
	if wait > 0 {
		return Answer{Again: wait, Wait: wait, Held: max(0, a.hold.Sub(now)), Others: p.others(), Away: true}
	}
	t.known.started(key, turns, now) // until it is told when
	return Answer{Now: true, Others: p.others(), Away: true}
}

// others is how many delays pass between two starts of a heed that is by itself,
// beside its own.
func (p *place) others() int {
	if p.Size == 1 {
		return 0
	}
	return (p.Size*(spareShare+1)+spareShare-1)/spareShare - 1
}

// alone is what a heed knows that has to do without the store.
type alone struct {
	turns  []Turn
	starts []time.Time // the last of its own, for each turn; zero: none
	hold   time.Time   // until when the site wants to be left alone
	since  time.Time   // the store is away
}

// alone returns for how long to wait when each heed is by itself; 0: not at all.
//
// Time by the store's clock, which all heeds know, is cut into slots: a delay
// and what the heeds' clocks and connections may differ by. They take turns in
// these, and a request starts at the beginning of one, so that what two heeds
// start is a delay apart and each keeps as many delays as there are heeds. With
// delays that differ, a request keeps the longest.
func (p *place) alone(a *alone, now time.Time) (wait time.Duration) {
	longest := time.Duration(0)
	from := a.hold
	for i, turn := range a.turns {
		longest = max(longest, turn.Delay)
		if next := a.starts[i].Add(time.Duration(p.Size) * turn.Delay); !a.starts[i].IsZero() && next.After(from) {
			from = next
		}
	}
	// What others started with the store's leave is a delay away then, and all
	// have noticed that there is no more leave to be had.
	spare := min(max(longest/spareShare, 100*time.Millisecond), 2*time.Second)
	if quiet := a.since.Add(max(longest+spare, noticeTime)); quiet.After(from) {
		from = quiet
	}
	if now.After(from) {
		from = now
	}
	if p.Size > 1 && !p.clock.IsZero() {
		from = p.slot(from, longest+spare, spare/4)
	}
	return max(0, from.Sub(now))
}

// slot returns the first moment from a given one on that lies in a slot of this
// heed, not later than open after its beginning.
func (p *place) slot(from time.Time, length, open time.Duration) time.Time {
	round := length * time.Duration(p.Size)
	into := time.Duration(p.now(from).UnixNano()%int64(round)) - length*time.Duration(p.Mine)
	if into < 0 {
		into += round
	}
	if into <= open {
		return from
	}
	return from.Add(round - into)
}
