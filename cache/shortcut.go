package cache

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// shortcutsAtFirst is for how many places there is room in the beginning; a
	// power of two, as it stays.
	shortcutsAtFirst = 256
	// shortcutsPerPlace is how many there are for each place at the least: of the
	// places that lead to the same one, the last has it.
	shortcutsPerPlace = 4
	// shortcutBytes is how much of them a place takes: twice the least, after they
	// were doubled.
	shortcutBytes = 2 * 8 * shortcutsPerPlace
)

// shortcuts lead most look-ups to their place without a lock, and past the
// three or four loads, each depending on the one before, that a map of many
// strings needs: of an origin not asked for lately each of those has to come
// from memory. What they do not lead to, go-cache finds. Reading them needs
// nothing, all else the lock of their Memory.
type shortcuts struct {
	seed maphash.Seed
	all  atomic.Pointer[[]atomic.Pointer[place]]
}

func newShortcuts() *shortcuts {
	s := &shortcuts{seed: maphash.MakeSeed()}
	all := make([]atomic.Pointer[place], shortcutsAtFirst)
	s.all.Store(&all)
	return s
}

// of returns the one that leads to the place under key, if any does.
func (s *shortcuts) of(key []byte) *atomic.Pointer[place] {
	all := *s.all.Load()
	return &all[maphash.Bytes(s.seed, key)&uint64(len(all)-1)]
}

// addLocked has one lead to p. places are all there are, and p one of them.
func (s *shortcuts) addLocked(p *place, places []*place) {
	if all := *s.all.Load(); len(places)*shortcutsPerPlace > len(all) {
		s.doubleLocked(places)
		return
	}
	s.of([]byte(p.key)).Store(p)
}

func (s *shortcuts) doubleLocked(places []*place) {
	all := make([]atomic.Pointer[place], 2*len(*s.all.Load()))
	for _, p := range places {
		all[maphash.String(s.seed, p.key)&uint64(len(all)-1)].Store(p)
	}
	s.all.Store(&all)
}

// removeLocked has none lead to p.
func (s *shortcuts) removeLocked(p *place) { s.of([]byte(p.key)).CompareAndSwap(p, nil) }
