package fleet

import (
	"sync"
	"time"
)

// maxKnown bounds what a heed remembers of its own starts.
const maxKnown = 100_000

// memory is what this heed knows of turns without the store: its own starts, and
// pauses of which it has heard. It is safe for concurrent use.
type memory struct {
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

// of returns what holds a host, and the last starts in its lines, zero where none
// is known.
func (m *memory) of(key string, turns []Turn) (h hold, starts []time.Time) {
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
func (m *memory) started(key string, turns []Turn, at time.Time) {
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
func (m *memory) makeRoomLocked() {
	now := time.Now()
	for name, s := range m.last {
		if now.Sub(s.at) > turnsKept+2*s.delay {
			delete(m.last, name)
		}
	}
	if len(m.last) > maxKnown/2 {
		clear(m.last)
		m.lost = now
	}
}

// leave notes a pause: the host is to be left alone till then.
func (m *memory) leave(key string, till time.Time) {
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
func (m *memory) release(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.holds, key)
}

// line is the name of a line among those of all hosts.
func line(key, name string) string { return key + "\n" + name }
