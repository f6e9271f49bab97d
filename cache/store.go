package cache

import (
	"crypto/sha256"
	"math/rand/v2"
	"strings"
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
)

// Memory is room for the policies of any number of caches: one bound for all.
// Make one with NewMemory; it is safe for concurrent use.
//
// go-cache holds the places. Its own expiry is not used, since what has expired
// cannot be had from it any more and a stale copy is still of use: age lives
// in the entry. It knows no bound, and tells of neither replaced nor flushed
// items, so the count and the choice of what goes are kept beside it.
type Memory struct {
	items      *gocache.Cache // key -> *place
	shortcuts  *shortcuts     // to most of them
	maxEntries int
	maxBytes   int64

	mu    sync.Mutex
	slots []*place  // all in items, for drawing at random
	bytes int64     // sum of what they count for
	now   time.Time // of the last pin
}

// NewMemory returns room for maxEntries origins that hold maxBytes; for either,
// zero means the default.
func NewMemory(maxEntries int, maxBytes int64) *Memory {
	if maxEntries <= 0 {
		maxEntries = DefaultMaxEntries
	}
	if maxBytes <= 0 {
		maxBytes = DefaultMaxBytes
	}
	return &Memory{
		items:      gocache.New(gocache.NoExpiration, 0),
		shortcuts:  newShortcuts(),
		maxEntries: maxEntries,
		maxBytes:   maxBytes,
	}
}

// store keeps the places of one cache by origin.
type store struct {
	*Memory
	way string // begins the keys; see Config.Way
}

func newStore(maxEntries int, maxBytes int64) *store {
	return &store{Memory: NewMemory(maxEntries, maxBytes)}
}

// storeOf returns the store that config asks for.
func storeOf(config Config) *store {
	if config.Memory == nil {
		return newStore(config.MaxEntries, config.MaxBytes)
	}
	s := &store{Memory: config.Memory}
	if config.Way != "" {
		sum := sha256.Sum256([]byte(config.Way))
		s.way = "\x00" + string(sum[:wayLen-1]) // no scheme begins so
	}
	return s
}

// wayLen is how long store.way is when it is not empty.
const wayLen = 8

// find returns the place of o, or nil. It does not allocate.
func (s *store) find(o rules.Origin) *place {
	var room [wayLen + 3 + 256]byte // on the stack, and enough for any valid host
	key := appendKey(append(room[:0], s.way...), o)
	if p := s.shortcuts.of(key).Load(); p != nil && p.key == string(key) {
		return p
	}
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
	s.now = now
	p := s.find(o)
	if p == nil {
		p = newPlace(appendKey([]byte(s.way), o), now)
		p.slot = len(s.slots)
		s.slots = append(s.slots, p)
		// NoExpiration is -1: any negative duration means for ever.
		s.items.Set(p.key, p, gocache.NoExpiration)
	}
	s.shortcuts.addLocked(p, s.slots)
	p.pins++
	return p
}

// unpin counts what p holds by now, and makes room when it is too much.
func (m *Memory) unpin(p *place) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.pins--
	m.countLocked(p)
}

func (m *Memory) countLocked(p *place) {
	size := p.size()
	m.bytes += size - p.counted
	p.counted = size
	for len(m.slots) > m.maxEntries || m.bytes > m.maxBytes {
		victim := m.victimLocked()
		if victim == nil {
			return // all in use: the next unpin makes room
		}
		m.removeLocked(victim)
	}
}

// victimLocked draws the place to give up: the one of a sample that would be
// missed least. Places that are pinned are left alone: somebody waits for them.
func (m *Memory) victimLocked() *place {
	var victim *place
	var least int64
	for try := 0; try < evictionTries && victim == nil; try++ {
		for range evictionSample {
			p := m.slots[rand.IntN(len(m.slots))]
			if p.pins > 0 {
				continue
			}
			if worth := p.worth(m.now); victim == nil || worth < least {
				victim, least = p, worth
			}
		}
	}
	return victim
}

func (m *Memory) removeLocked(p *place) {
	last := len(m.slots) - 1
	m.slots[p.slot] = m.slots[last]
	m.slots[p.slot].slot = p.slot
	m.slots[last] = nil
	m.slots = m.slots[:last]
	m.bytes -= p.counted
	m.items.Delete(p.key)
	m.shortcuts.removeLocked(p)
}

// size returns how many places there are and how many bytes they hold, of all
// caches that share m.
func (m *Memory) size() (entries int, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.slots), m.bytes
}

// places returns all places of this cache, in no order.
func (s *store) places() []*place {
	s.mu.Lock()
	defer s.mu.Unlock()
	var mine []*place
	for _, p := range s.slots {
		if strings.HasPrefix(p.key, s.way) && (s.way != "" || p.key[0] != 0) {
			mine = append(mine, p)
		}
	}
	return mine
}

// appendKey appends what o is stored under: short, so that it lies in few cache
// lines. The host comes last and so needs no mark at its end.
func appendKey(b []byte, o rules.Origin) []byte {
	scheme := byte('p') // http: the last letters tell the two apart
	if o.Scheme == "https" {
		scheme = 's'
	}
	b = append(b, scheme, byte(o.Port>>8), byte(o.Port))
	return append(b, o.Host...)
}
