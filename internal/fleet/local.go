package fleet

import (
	"sync"
	"time"

	"heed/internal/pace"
)

// maxKnown bounds the remembered starts of this heed.
const maxKnown = 100_000

// history contains the turns that this heed can use without the store: its own starts
// and the pauses it has received. It is safe for concurrent use.
type history struct {
	mu    sync.Mutex
	last  map[string]start // of a line: its key and name
	holds map[string]hold  // of a host
	lost  time.Time        // when starts were forgotten that may still count; zero: never
}

// start is when a request started, and for how long that counts.
type start struct {
	at    time.Time
	delay time.Duration
}

// hold is until when a host is to be left alone.
type hold struct{ till, heard time.Time }

// of returns the pause of a host, and the last starts in its lanes, zero where none
// is known.
func (m *history) of(key string, turns []pace.Lane) (h hold, starts []time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, turn := range turns {
		at := m.last[line(key, turn.Name)].at
		if m.lost.After(at) {
			at = m.lost
		}
		starts = append(starts, at)
	}
	return m.holds[key], starts
}

// started notes a start.
func (m *history) started(key string, turns []pace.Lane, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = map[string]start{}
	}
	if len(m.last)+len(turns) > maxKnown {
		m.makeRoomLocked()
	}
	for _, turn := range turns {
		if name := line(key, turn.Name); at.After(m.last[name].at) {
			m.last[name] = start{at, turn.Delay}
		}
	}
}

// makeRoomLocked forgets starts that do not count any more; if all do, all of
// them, and then a start at this moment counts for every line.
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

// hold notes a pause: the host is to be left alone till then.
func (m *history) hold(key string, till time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holds == nil {
		m.holds = map[string]hold{}
	}
	now := time.Now()
	if latest := now.Add(maxPause); till.After(latest) {
		till = latest
	}
	if len(m.holds) >= maxKnown {
		for key, h := range m.holds {
			if h.till.Before(now) {
				delete(m.holds, key)
			}
		}
	}
	if till.After(m.holds[key].till) && len(m.holds) < maxKnown {
		m.holds[key] = hold{till, now}
	}
}

// release forgets a pause.
func (m *history) release(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.holds, key)
}

// line is the name of a line among those of all hosts.
func line(key, name string) string { return key + "\n" + name }

const (
	// noticeTime is by when all heeds have noticed that the store is unreachable: the
	// next beat, and an answer that does not come.
	noticeTime = heartbeatInterval + opTimeout + 500*time.Millisecond
	// settleTime is by when all have noticed that it is back.
	settleTime = probeEvery + opTimeout + 500*time.Millisecond
	// clusterSettleTime is by when all have noticed that a Cluster has given keys to
	// another master: they read its slots in between, and may ask a node first that hangs.
	clusterSettleTime = settleTime + slotsInterval + opTimeout
	// spareShare is which part of a delay is spared between the slots of heeds.
	spareShare = 4
)

// times returns since when the part of the store that has key is unreachable, zero when
// it is not, and when it was last found back, zero if never.
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

// unsure is until when others may have started what the store does not contain;
// zero: they cannot.
func (t *Lanes) unsure(key string) time.Time {
	if _, back := t.store.times(key); !back.IsZero() {
		return back.Add(t.store.settle)
	}
	return time.Time{}
}

// askAlone answers without the store.
func (t *Lanes) askAlone(key string, turns []pace.Lane) pace.SharedAnswer {
	now := time.Now()
	away, _ := t.store.times(key)
	if away.IsZero() { // back again in this moment
		return pace.SharedAnswer{Again: 50 * time.Millisecond, Away: true}
	}
	t.mu.Lock()
	p := t.member
	t.mu.Unlock()
	if !p.known() {
		return pace.SharedAnswer{Again: probeEvery, Wait: probeEvery, Away: true, Unreached: t.store.hosts}
	}
	a := localState{turns: turns, since: away}
	held, starts := t.history.of(key, turns)
	a.hold, a.starts = held.till, starts
	wait := p.waitAlone(&a, now)
	if wait > 0 {
		return pace.SharedAnswer{Again: wait, Wait: wait, Pause: max(0, a.hold.Sub(now)), Others: p.others(), Away: true}
	}
	t.history.started(key, turns, now) // until Started
	return pace.SharedAnswer{Now: true, Others: p.others(), Away: true}
}

// others is how many delays pass between two starts of an isolated heed,
// beside its own.
func (p *member) others() int {
	if p.Size == 1 {
		return 0
	}
	return (p.Size*(spareShare+1)+spareShare-1)/spareShare - 1
}

// localState is the state of a heed while the store is unreachable.
type localState struct {
	turns  []pace.Lane
	starts []time.Time // the last start of this heed, for each turn; zero: none
	hold   time.Time   // until when the site wants to be left alone
	since  time.Time   // the store is unreachable
}

// waitAlone returns for how long to wait when each heed is isolated; 0: not at all.
//
// Time by the store's clock, which all heeds know, is cut into slots: a delay
// and what the heeds' clocks and connections may differ by. They take turns in
// these, and a request starts at the beginning of one, so that what two heeds
// start is a delay apart and each keeps as many delays as there are heeds. With
// delays that differ, a request keeps the longest.
func (p *member) waitAlone(a *localState, now time.Time) (wait time.Duration) {
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
	// In a Cluster others may come while a node is unreachable: they have all heard of
	// that by then, and what one has started by the old count is a delay away.
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

// slot returns the first moment from a given one on that lies in a slot of this
// heed, not later than open after its beginning.
func (p *member) slot(from time.Time, length, open time.Duration) time.Time {
	round := length * time.Duration(p.Size)
	into := time.Duration(p.now(from).UnixNano()%int64(round)) - length*time.Duration(p.Place)
	if into < 0 {
		into += round
	}
	if into <= open {
		return from
	}
	return from.Add(round - into)
}
