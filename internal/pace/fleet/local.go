package fleet

import (
	"sync"
	"time"

	"heed/internal/base/memo"
	"heed/internal/pace"
)

// maxKnown is the maximum number of remembered starts of this heed.
const maxKnown = 100_000

// history is what this heed knows without the store: its own starts, and the pauses it has
// received. It is safe for concurrent use.
type history struct {
	mu    sync.Mutex
	last  map[string]start        // by laneKey
	holds memo.Kept[string, hold] // of a host
	lost  time.Time               // when starts that may still count were removed; zero: never
}

// start is the time of a start, and how long it counts.
type start struct {
	at    time.Time
	delay time.Duration
}

// hold is a pause: its end, and when this heed received it.
type hold struct{ till, heard time.Time }

// of returns the pause of a host, and the last starts in its lanes, zero where none is known.
func (m *history) of(key string, lanes []pace.Lane) (h hold, starts []time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, lane := range lanes {
		at := m.last[laneKey(key, lane.Name)].at
		if m.lost.After(at) {
			at = m.lost
		}
		starts = append(starts, at)
	}
	h, _ = m.holds.Get(key, time.Now())
	return h, starts
}

// started records a start.
func (m *history) started(key string, lanes []pace.Lane, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = map[string]start{}
	}
	if len(m.last)+len(lanes) > maxKnown {
		m.makeRoomLocked()
	}
	for _, lane := range lanes {
		if name := laneKey(key, lane.Name); at.After(m.last[name].at) {
			m.last[name] = start{at, lane.Delay}
		}
	}
}

// makeRoomLocked removes starts that no longer count. If too many are left, it removes all,
// and lost then counts as a start in every lane.
func (m *history) makeRoomLocked() {
	now := time.Now()
	for name, s := range m.last {
		if now.Sub(s.at) > hostTTL+2*s.delay {
			delete(m.last, name)
		}
	}
	if len(m.last) > maxKnown/2 {
		clear(m.last)
		m.lost = now
	}
}

// hold records a pause until till.
func (m *history) hold(key string, till time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if latest := now.Add(maxPause); till.After(latest) {
		till = latest
	}
	if known, _ := m.holds.Get(key, now); till.After(known.till) {
		m.holds.Put(key, hold{till, now}, till, 0, maxKnown, 0)
	}
}

// release removes a pause.
func (m *history) release(key string) {
	if _, known := m.holds.Get(key, time.Now()); known { // another would make room for one that is not
		m.holds.Put(key, hold{}, time.Time{}, 0, maxKnown, 0)
	}
}

// laneKey returns the name of a lane among those of all hosts.
func laneKey(key, name string) string { return key + "\n" + name }

const (
	// noticeTime is how long it takes until all heeds have noticed that the store is
	// unreachable: the interval to the next heartbeat, and its timeout.
	noticeTime = heartbeatInterval + opTimeout + 500*time.Millisecond
	// settleTime is how long it takes until all heeds have noticed that it is back.
	settleTime = probeEvery + opTimeout + 500*time.Millisecond
	// clusterSettleTime is how long it takes until all heeds have noticed that a Cluster has
	// moved keys to another master: they read its slots at an interval, and may query a node
	// first that hangs.
	clusterSettleTime = settleTime + slotsInterval + opTimeout
	// spareShare is the part of a delay, as a divisor, that is left free between the slots of
	// heeds.
	spareShare = 4
)

// times returns when the part of the store that has key became unreachable, zero when it is
// reachable, and when it was last back, zero if never.
func (s *Store) times(key string) (away, back time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, back := s.parts.of(key), s.parts.back(key)
	switch {
	case p.away:
		return p.since, back
	case s.closed:
		return s.opened, back
	}
	return time.Time{}, back
}

// unsure returns the time before which other heeds may have started requests that the store
// does not contain; zero: none.
func (t *Lanes) unsure(key string) time.Time {
	if _, back := t.store.times(key); !back.IsZero() {
		return back.Add(t.store.settle)
	}
	return time.Time{}
}

// askAlone is Ask without the store.
func (t *Lanes) askAlone(key string, lanes []pace.Lane) pace.SharedAnswer {
	now := time.Now()
	away, _ := t.store.times(key)
	if away.IsZero() { // it is just back
		return pace.SharedAnswer{Again: 50 * time.Millisecond, Away: true}
	}
	t.mu.Lock()
	p := t.member
	t.mu.Unlock()
	if !p.known() {
		return pace.SharedAnswer{Again: probeEvery, Wait: probeEvery, Away: true, Unreached: t.store.hosts}
	}
	a := localState{lanes: lanes, since: away}
	held, starts := t.history.of(key, lanes)
	a.hold, a.starts = held.till, starts
	if wait := p.waitAlone(&a, now); wait > 0 {
		return pace.SharedAnswer{Again: wait, Wait: wait, Pause: max(0, a.hold.Sub(now)), Others: p.others(), Away: true}
	}
	t.history.started(key, lanes, now) // until Started
	return pace.SharedAnswer{Now: true, Until: p.lastStart(lanes, now), Others: p.others(), Away: true}
}

// others returns how many delays an isolated heed waits between two starts, in addition to its
// own.
func (p *member) others() int {
	if p.Size == 1 {
		return 0
	}
	return (p.Size*(spareShare+1)+spareShare-1)/spareShare - 1
}

// localState is the state of a heed while the store is unreachable.
type localState struct {
	lanes  []pace.Lane
	starts []time.Time // the last start by this heed for each turn; zero: none
	hold   time.Time   // the end of the site's pause
	since  time.Time   // when the store became unreachable
}

// waitAlone returns how long to wait while each heed is isolated; 0: not at all.
//
// Time by the store's clock, which all heeds know, is divided into slots: a delay plus the
// possible differences of clocks and connections. The heeds use the slots in turn, and a
// request starts at the beginning of one. So the starts of two heeds are at least a delay
// apart, and each heed uses the delay multiplied by the number of heeds. When the delays of a
// request differ, the longest counts.
func (p *member) waitAlone(a *localState, now time.Time) (wait time.Duration) {
	from := a.hold
	for i, lane := range a.lanes {
		if next := a.starts[i].Add(time.Duration(p.Size) * lane.Delay); !a.starts[i].IsZero() && next.After(from) {
			from = next
		}
	}
	// By then the starts that the store has granted are a delay ago, and all heeds have noticed
	// that it grants none.
	longest, spare := slotTimes(a.lanes)
	if quiet := a.since.Add(max(longest+spare, noticeTime)); quiet.After(from) {
		from = quiet
	}
	// In a Cluster a heed may join while a node is unreachable. Until all heeds know the new
	// number of heeds, and for the longest delay after that, none starts in its slot: the last
	// start of a heed that used the old number may be that recent.
	if quiet := p.changed.Add(noticeTime + longest + spare); !p.changed.IsZero() && quiet.After(from) {
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

// slotTimes returns the parts of a slot for requests in lanes: the longest delay, and the time
// that is left free.
func slotTimes(lanes []pace.Lane) (longest, spare time.Duration) {
	for _, lane := range lanes {
		longest = max(longest, lane.Delay)
	}
	return longest, min(max(longest/spareShare, 100*time.Millisecond), 2*time.Second)
}

// into returns how long before a time the last slot of this heed began.
func (p *member) into(at time.Time, length time.Duration) time.Duration {
	round := length * time.Duration(p.Size)
	into := time.Duration(p.now(at).UnixNano()%int64(round)) - length*time.Duration(p.Place)
	if into < 0 {
		into += round
	}
	return into
}

// lastStart returns until when a request may start that waitAlone lets go now; zero: as late
// as it likes. A quarter of the free time is left for the differences of clocks.
func (p *member) lastStart(lanes []pace.Lane, now time.Time) time.Time {
	if p.Size <= 1 || p.clock.IsZero() {
		return time.Time{}
	}
	longest, spare := slotTimes(lanes)
	return now.Add(spare - spare/4 - p.into(now, longest+spare))
}

// slot returns the first time from a given one on that is in a slot of this heed, at most open
// after its beginning.
func (p *member) slot(from time.Time, length, open time.Duration) time.Time {
	into := p.into(from, length)
	if into <= open {
		return from
	}
	return from.Add(length*time.Duration(p.Size) - into)
}
