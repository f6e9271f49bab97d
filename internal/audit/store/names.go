package store

import (
	"maps"
	"weak"

	"heed/rules"
)

// Bounds of what is remembered of names that have a row already. A name that is
// forgotten gets another row when it comes again.
const (
	maxNames      = 1 << 15 // of one table, in each of two halves
	maxNameOctets = 4 << 20
)

// names gives rows their numbers, and knows the rows that names have, by how
// the rows are spelt behind their number. Not safe for concurrent use.
type names struct {
	last     [len(tables)]int64 // the last number given out, by table
	known    [lastTable]halves[string]
	policies halves[weak.Pointer[rules.Policy]] // so that no policy is kept alive
	scratch  []byte
}

// halves is a memory of bounded size that forgets what was not asked for lately.
type halves[K comparable] struct {
	young, old map[K]int64
	octets     int // of the young
}

// get returns the number of key.
func (h *halves[K]) get(key K) (id int64, ok bool) {
	if id, ok = h.young[key]; !ok {
		if id, ok = h.old[key]; ok {
			h.put(key, id, 0)
		}
	}
	return id, ok
}

// put remembers the number of key, which takes octets of memory.
func (h *halves[K]) put(key K, id int64, octets int) {
	if h.young == nil || len(h.young) >= maxNames || h.octets > maxNameOctets {
		h.old, h.young, h.octets = h.young, map[K]int64{}, 0
	}
	h.young[key] = id
	h.octets += octets
}

// forget forgets all names.
func (n *names) forget() { *n = names{last: n.last, scratch: n.scratch[:0]} }

// back takes last as the numbers given out, and forgets the names that have later
// ones: their rows were not written.
func (n *names) back(last [len(tables)]int64) {
	for t := range n.known {
		if n.last[t] > last[t] {
			n.known[t].back(last[t])
		}
	}
	if n.last[Policy] > last[Policy] {
		n.policies.back(last[Policy])
	}
	n.last = last
}

func (h *halves[K]) back(last int64) {
	later := func(_ K, id int64) bool { return id > last }
	maps.DeleteFunc(h.young, later)
	maps.DeleteFunc(h.old, later)
}

// next gives out a number.
func (n *names) next(t Table) int64 {
	n.last[t]++
	return n.last[t]
}

// id returns the number of the row of t that is spelt so behind its number. A
// new one is added to rows.
func (n *names) id(rows *[]byte, t Table, spelt []byte) int64 {
	h := &n.known[t]
	if id, ok := h.young[string(spelt)]; ok { // without an allocation
		return id
	}
	key := string(spelt)
	if id, ok := h.get(key); ok {
		return id
	}
	id := n.next(t)
	*rows = append(appendInteger(append(*rows, byte(t)), id), spelt...)
	h.put(key, id, len(key))
	return id
}
