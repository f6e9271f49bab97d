package rules

import (
	"strings"
	"sync"
	"sync/atomic"
)

// MaxRemembered is how many bytes a policy takes at most to remember what
// governs the agents that asked. An agent it has no room for is looked up again
// each time.
const MaxRemembered = 4 << 10

// agentMemo remembers what governs the agents that asked. Readers take no lock.
type agentMemo struct {
	known atomic.Pointer[map[agentKey][]chosen]
	mu    sync.Mutex // held by who replaces known
	size  int        // of known; guarded by mu
}

// governing returns what governs agent.
func (e *engine) governing(agent *Agent) []chosen {
	if agent == nil || len(agent.Tokens) == 0 || !e.calls {
		return e.star
	}
	if known := e.agents.known.Load(); known != nil {
		if all, ok := (*known)[agent.key]; ok {
			return all
		}
	}
	all := e.choose(agent.Tokens)
	for i, c := range all {
		if c.token.Name != "" { // which shall not hold on to the whole User-Agent string
			all[i].token = Token{Name: strings.Clone(c.token.Name), Piece: strings.Clone(c.token.Piece)}
		}
	}
	if agent.key != (agentKey{}) {
		e.agents.remember(agent.key, all, e.costs(all))
	}
	return all
}

// costs returns about how many bytes it takes to remember all.
func (e *engine) costs(all []chosen) int {
	const slot, each, wish, line = 56, 136, 120, 112 // of a map, a chosen, a Wish, a line of it
	n := slot
	if len(all) > 0 && len(e.star) > 0 && &all[0] == &e.star[0] {
		return n // shared by all agents that no name is for
	}
	for _, c := range all {
		n += each + len(c.token.Name) + len(c.token.Piece)
		for _, w := range c.wishes {
			n += wish + line*cap(w.lines)
		}
	}
	return n
}

// remember adds an agent. When there is no room it forgets all: that is cheaper
// than keeping an order, and rare.
func (m *agentMemo) remember(key agentKey, all []chosen, size int) {
	const room = MaxRemembered / 2 // a map has up to twice the slots that it needs
	if size > room {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	next := map[agentKey][]chosen{key: all}
	if known := m.known.Load(); known != nil && m.size+size <= room {
		for k, v := range *known {
			next[k] = v
		}
	} else {
		m.size = 0
	}
	m.size += size
	m.known.Store(&next)
}
