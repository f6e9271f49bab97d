package cache

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
	"unsafe"

	gocache "github.com/patrickmn/go-cache"

	"heed/rules"
)

const (
	// evictionSample is of how many places the one to give up is chosen.
	evictionSample = 16
	// evictionTries is how often a sample is drawn when all in it are in use.
	evictionTries = 4
	// reuseBonus is by how much younger a place counts that was used again
	// after its fetch: those asked for once, by a walk through names, go first.
	reuseBonus = 10 * time.Minute
)

// store keeps places by origin, within a number and a size. It is safe for
// concurrent use.
//
// go-cache holds them. Its own expiry is not used, since what has expired
// cannot be had from it any more and a stale copy is still of use: age lives
// in the entry. It knows no bound, and tells of neither replaced nor flushed
// items, so the count and the choice of what goes are kept beside it.
type store struct {
	items      *gocache.Cache // key of an origin -> *place
	maxEntries int
	maxBytes   int64

	mu    sync.Mutex
	slots []*place // all in items, for drawing at random
	bytes int64    // sum of their sizes
}

func newStore(maxEntries int, maxBytes int64) *store {
	return &store{
		items:      gocache.New(gocache.NoExpiration, 0),
		maxEntries: maxEntries,
		maxBytes:   maxBytes,
	}
}

// find returns the place of o, or nil. It does not allocate.
func (s *store) find(o rules.Origin) *place {
	var room [288]byte // on the stack, and enough for any valid host
	key := appendKey(room[:0], o)
	// Get compares the key and does not keep it, so it may be read where it is.
	v, ok := s.items.Get(unsafe.String(unsafe.SliceData(key), len(key)))
	if !ok {
		return nil
	}
	return v.(*place)
}

// pin returns the place of o, made if there is none, and keeps it from being
// given up until unpin.
func (s *store) pin(o rules.Origin, now time.Time) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.find(o)
	if p == nil {
		p = &place{key: string(appendKey(nil, o)), slot: len(s.slots)}
		p.lastUsed.Store(now.UnixNano())
		s.slots = append(s.slots, p)
		// NoExpiration is -1: any negative duration means for ever.
		s.items.Set(p.key, p, gocache.NoExpiration)
	}
	p.pins++
	return p
}

// unpin counts what p holds by now, and makes room when it is too much.
func (s *store) unpin(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := p.size()
	p.pins--
	s.bytes += size - p.counted
	p.counted = size
	for len(s.slots) > s.maxEntries || s.bytes > s.maxBytes {
		victim := s.victimLocked()
		if victim == nil {
			return // all in use: the next unpin makes room
		}
		s.removeLocked(victim)
	}
}

// victimLocked draws the place to give up: the one of a sample that nobody has
// used for longest. Places that are pinned are left alone.
func (s *store) victimLocked() *place {
	var victim *place
	for try := 0; try < evictionTries && victim == nil; try++ {
		for range evictionSample {
			p := s.slots[rand.IntN(len(s.slots))]
			if p.pins == 0 && (victim == nil || p.worth() < victim.worth()) {
				victim = p
			}
		}
	}
	return victim
}

func (s *store) removeLocked(p *place) {
	last := len(s.slots) - 1
	s.slots[p.slot] = s.slots[last]
	s.slots[p.slot].slot = p.slot
	s.slots[last] = nil
	s.slots = s.slots[:last]
	s.bytes -= p.counted
	s.items.Delete(p.key)
}

// size returns how many places there are and how many bytes they hold.
func (s *store) size() (entries int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.slots), s.bytes
}

// places returns all places, in no order.
func (s *store) places() []*place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*place(nil), s.slots...)
}

// appendKey appends what o is stored under. The host comes last and so needs
// no mark at its end.
func appendKey(b []byte, o rules.Origin) []byte {
	b = append(b, o.Scheme...)
	b = append(b, ' ')
	b = strconv.AppendUint(b, uint64(o.Port), 10)
	b = append(b, ' ')
	return append(b, o.Host...)
}
