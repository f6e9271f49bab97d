package rules

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// engine answers questions about a file. It is immutable except for agents.
type engine struct {
	file
	indexes  map[string]*index // by the groups that a name merges, if they have many rules
	hasNames bool              // there are names other than "*"
	paced    bool              // there are lines about speed
	general  []*RateHint       // of those, the lines before any group
	star     []ruleSet         // what governs agents that no name in the file matches
	agents   agentMemo         // what governs the agents of earlier decisions
}

// finish prepares the engine when all lines are read.
func (e *engine) finish() {
	e.file.finish()
	e.makeIndexes()
	e.paced = slices.ContainsFunc(e.fields, func(f fieldLine) bool { return f.kind.pacing() })
	lines := e.hintLines(nil)
	e.general = e.hintsOf(lines, e.groupNames(lines))
	e.star = e.choose(nil)
	e.hasNames = len(e.names) > 0 && (e.nameText(0) != "*" || e.nameEnd(0) < len(e.names))
}

// makeIndexes makes an index for each list of groups that some name merges, if
// it has many rules. Lists may overlap: together they take at most twice the
// rules of the file, and beyond that each rule of a list is tried.
func (e *engine) makeIndexes() {
	e.indexes = make(map[string]*index)
	room := 2 * len(e.rules)
	var key []byte
	for i := 0; i < len(e.names); i = e.nameEnd(i) {
		groups := e.groupsOf(i)
		count := 0
		for _, g := range groups {
			count += int(e.groupEnd(g) - e.groups[g])
		}
		key = indexKey(key[:0], groups)
		if count <= fewRules || count > room || e.indexes[string(key)] != nil {
			continue
		}
		room -= count
		e.indexes[string(key)] = newIndex(&e.file, e.rulesOf(groups))
	}
}

// size returns how many bytes of memory e takes.
func (e *engine) size() int {
	n := e.file.size()
	for key, x := range e.indexes {
		n += 64 + len(key) + x.size()
	}
	return n
}

// MaxRemembered is the most memory, in bytes, in which a policy remembers the
// groups of agents. An agent that does not fit is looked up again each time.
const MaxRemembered = 4 << 10

// agentMemo remembers the groups that govern agents. Readers take no lock.
type agentMemo struct {
	known atomic.Pointer[map[agentKey][]ruleSet]
	mu    sync.Mutex // held while known is replaced
	size  int        // of known; guarded by mu
}

// governing returns the groups that govern agent.
func (e *engine) governing(agent *Agent) []ruleSet {
	if agent == nil || len(agent.Tokens) == 0 || !e.hasNames {
		return e.star
	}
	if known := e.agents.known.Load(); known != nil {
		if all, ok := (*known)[agent.key]; ok {
			return all
		}
	}
	all := e.choose(agent.Tokens)
	for i, c := range all {
		if c.token.Name != "" { // a copy, so that the whole User-Agent string can be freed
			all[i].token = Token{Name: strings.Clone(c.token.Name), Piece: strings.Clone(c.token.Piece)}
		}
	}
	if agent.key != (agentKey{}) {
		e.agents.remember(agent.key, all, e.costs(all))
	}
	return all
}

// costs returns about how many bytes it takes to remember all.
func (e *engine) costs(all []ruleSet) int {
	const slot, each, hint, line = 56, 136, 120, 112 // of a map, a ruleSet, a RateHint, a line of it
	n := slot
	if len(all) > 0 && len(e.star) > 0 && &all[0] == &e.star[0] {
		return n // shared by all agents that no name matches
	}
	for _, c := range all {
		n += each + len(c.token.Name) + len(c.token.Piece)
		for _, w := range c.hints {
			n += hint + line*cap(w.lines)
		}
	}
	return n
}

// remember adds an agent. When there is no room it forgets all: that is cheaper
// than keeping an order, and rare.
func (m *agentMemo) remember(key agentKey, all []ruleSet, size int) {
	const room = MaxRemembered / 2 // a map has up to twice the slots that it needs
	if size > room {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	next := map[agentKey][]ruleSet{key: all}
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
