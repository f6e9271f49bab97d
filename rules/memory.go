package rules

import (
	"strings"
	"sync"
)

// memory is what one search among very many wildcard rules remembers: which
// runs of rules it has tried, and where in the text the pairs of octets stand,
// which shows of most rules at once that they cannot match.
type memory struct {
	tried  []uint64
	paired bool // first and last are filled in
	pairs  *pairs
}

// pairs tells where each pair of octets stands first and last in a text,
// counted from 1; 0 for a pair that does not occur.
type pairs struct{ first, last [1 << 16]uint16 }

// Pairs pay for themselves when many rules are tried on a long text, which
// they can count.
const (
	pairRules   = 1 << 10
	pairTextMin = 1 << 9
	pairTextMax = 1<<16 - 1
)

var memories = sync.Pool{New: func() any { return new(memory) }}

// newMemory returns a memory, to be given back to memories, for a search in
// text among so many rules, whose runs begin below places.
func newMemory(text string, rules, places int) *memory {
	m := memories.Get().(*memory)
	words := (places + 63) / 64
	if cap(m.tried) < words {
		m.tried = make([]uint64, words)
	}
	m.tried = m.tried[:words]
	clear(m.tried)
	m.paired = rules >= pairRules && len(text) >= pairTextMin && len(text) <= pairTextMax
	if m.paired {
		m.fill(text)
	}
	return m
}

func (m *memory) fill(text string) {
	if m.pairs == nil {
		m.pairs = new(pairs)
	}
	clear(m.pairs.first[:])
	clear(m.pairs.last[:])
	for i := len(text) - 2; i >= 0; i-- {
		m.pairs.first[pair(text, i)] = uint16(i + 1)
	}
	for i := range len(text) - 1 {
		m.pairs.last[pair(text, i)] = uint16(i + 1)
	}
}

func pair(s string, i int) int { return int(s[i])<<8 | int(s[i+1]) }

// first reports whether the run that begins at i has not been tried.
func (m *memory) first(i uint32) bool {
	word, bit := &m.tried[i>>6], uint64(1)<<(i&63)
	tried := *word&bit != 0
	*word |= bit
	return !tried
}

// possible reports whether the later pieces of a wildcard rule may stand in
// the text one after the other, as far as their first pairs tell.
func (m *memory) possible(e *engine, id uint32) bool {
	if !m.paired {
		return true
	}
	r := &e.rules[id]
	separator := r.separator()
	_, rest := cutPiece(e.pattern(r), separator)
	at := 1 // where the next piece may begin at the earliest
	for rest != "" {
		rest = rest[1:]
		size := strings.IndexByte(rest, separator)
		if size < 0 {
			size = len(rest)
		}
		if size >= 2 {
			p := pair(rest, 0)
			if int(m.pairs.last[p]) < at {
				return false
			}
			at = max(at, int(m.pairs.first[p])) + size
		}
		rest = rest[size:]
	}
	return true
}
