package cache

import (
	"net/http"

	"heed/rules"
)

// Outcomes of a fetch, for Config.Fetched.
const (
	fetchedFile   = "available"    // a robots.txt was read
	fetchedSame   = "not_modified" // the copy is still valid (304)
	fetchedNone   = "unavailable"  // the site has none: everything is allowed
	fetchedFailed = "unreachable"  // it could not be read, with or without an older copy
	fetchedLocal  = "not_asked"    // the limits of fetches prevented it
)

// FetchOutcomes returns all outcomes.
func FetchOutcomes() []string {
	return []string{fetchedFile, fetchedSame, fetchedNone, fetchedFailed, fetchedLocal}
}

// fetchOutcome returns the outcome of the fetch a, from which e was made.
func (a *answer) fetchOutcome(e *entry) string {
	source := e.policy.Source()
	switch {
	case a.local:
		return fetchedLocal
	case a.err != nil, source.Stale, source.State == rules.Unreachable:
		return fetchedFailed
	case a.status == http.StatusNotModified:
		return fetchedSame
	case source.State == rules.Unavailable:
		return fetchedNone
	}
	return fetchedFile
}

// MemoryCounts counts the policies in a Memory.
type MemoryCounts struct {
	States map[rules.State]int // origins by the state of their policy for all clients
	Bytes  int64               // of all of them
}

// Counts counts the policies in m as they were at the end of the last fetch of each origin.
func (m *Memory) Counts() MemoryCounts {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := MemoryCounts{States: map[rules.State]int{}, Bytes: m.bytes}
	for state, n := range m.states {
		c.States[rules.State(state)] = n
	}
	return c
}

// recountLocked counts p under the state of its policy for all clients, or under none.
func (m *Memory) recountLocked(p *originSlot, held bool) {
	if p.stated {
		m.states[p.state]--
	}
	p.stated = false
	if all := p.all(); held && len(all) > 0 {
		p.state, p.stated = all[0].policy.Source().State, true
		m.states[p.state]++
	}
}
