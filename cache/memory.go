package cache

import (
	"cmp"
	"crypto/sha256"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	gocache "github.com/patrickmn/go-cache"

	"heed/rules"
)

const (
	// evictionSample is the number of slots from which the one to evict is chosen.
	evictionSample = 16
	// maxDrawn is the number of slots that are drawn at most when all of them are in use.
	maxDrawn = 4 * evictionSample
)

// Memory holds the policies of any number of caches, within one limit. Make one with
// NewMemory; it is safe for concurrent use.
//
// go-cache holds the slots. Its expiry is not used, because it does not return expired items,
// and heed uses stale copies: the age is in the entry. It has no limit, and reports neither
// replaced nor flushed items, so Memory counts and chooses what is evicted.
type Memory struct {
	items      *gocache.Cache // key -> *originSlot
	maxEntries int
	maxBytes   int64

	mu    sync.Mutex
	slots map[*originSlot]struct{} // all in items; the order of a range over a map is random
	bytes int64                    // sum of their counted sizes
	// states counts origins by the state of their policy.
	states [rules.Available + 1]int
	now    time.Time // of the last pin

	compact func(*rules.Policy) *rules.Policy // (*rules.Policy).Compact
}

// Defaults of NewMemory.
const (
	defaultMaxEntries = 250_000
	defaultMaxBytes   = 256 << 20
)

// NewMemory returns a Memory for maxEntries origins and maxBytes; zero means the default.
func NewMemory(maxEntries int, maxBytes int64) *Memory {
	return &Memory{
		items:      gocache.New(gocache.NoExpiration, 0),
		slots:      map[*originSlot]struct{}{},
		maxEntries: cmp.Or(maxEntries, defaultMaxEntries),
		maxBytes:   cmp.Or(maxBytes, defaultMaxBytes),
		compact:    (*rules.Policy).Compact,
	}
}

// store is the part of a Memory that belongs to one cache.
type store struct {
	*Memory
	route string // prefix of the keys; see Config.Route
}

// storeOf returns the store for config.
func storeOf(config Config) *store {
	s := &store{Memory: config.Memory}
	if config.Route != "" {
		sum := sha256.Sum256([]byte(config.Route))
		s.route = "\x00" + string(sum[:routeLen-1]) // no scheme begins so
	}
	return s
}

// routeLen is the length of store.route when it is not empty.
const routeLen = 8

// find returns the slot of o, or nil. It does not allocate.
func (s *store) find(o rules.Origin) *originSlot {
	var room [routeLen + 3 + 256]byte // on the stack, enough for any valid host
	key := appendKey(append(room[:0], s.route...), o)
	// Get compares the key and does not keep it, so no copy is needed.
	v, ok := s.items.Get(unsafe.String(unsafe.SliceData(key), len(key)))
	if !ok {
		return nil
	}
	return v.(*originSlot)
}

// pin returns the slot of o, which it creates if there is none, and prevents its eviction
// until unpin.
func (s *store) pin(o rules.Origin, now time.Time) *originSlot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
	p := s.find(o)
	if p == nil {
		p = &originSlot{key: string(appendKey([]byte(s.route), o))}
		p.lastUsed.Store(now.UnixNano())
		s.slots[p] = struct{}{}
		// NoExpiration is -1: any negative duration means for ever.
		s.items.Set(p.key, p, gocache.NoExpiration)
	}
	p.pins++
	return p
}

// unpin counts the size of p, and evicts slots when the limit is exceeded.
func (m *Memory) unpin(p *originSlot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.pins--
	m.countLocked(p)
	if _, held := m.slots[p]; held {
		m.recountLocked(p, true)
	}
	m.makeRoomLocked(p)
}

// countLocked counts the size of p.
func (m *Memory) countLocked(p *originSlot) {
	size := p.size()
	m.bytes += size - p.counted
	p.counted = size
}

// makeRoomLocked evicts slots, or makes them smaller, until the limits are kept. last was used
// last. It gives the lock up at times.
func (m *Memory) makeRoomLocked(last *originSlot) {
	for len(m.slots) > m.maxEntries || m.bytes > m.maxBytes {
		victim := m.victimLocked(last)
		if victim == nil {
			return // all in use: the next unpin makes room
		}
		if m.bytes > m.maxBytes && m.compactLocked(victim) {
			continue
		}
		m.removeLocked(victim)
	}
}

// compactLocked makes the policies of p smaller. It reports whether p is another one then: smaller,
// or pinned, changed or removed by others, who have the lock meanwhile: compressing a large file
// takes tens of milliseconds. p counts as nothing for them, so that they make no room for it as
// well.
func (m *Memory) compactLocked(p *originSlot) (changed bool) {
	p.packing, m.bytes, p.counted = true, m.bytes-p.counted, 0
	var before, after []*variant
	func() {
		m.mu.Unlock()
		defer m.mu.Lock()
		before, after = p.compacted(m.compact)
	}()
	p.packing = false
	if _, held := m.slots[p]; !held {
		return true
	}
	changed = p.pins > 0 || p.exchange(before, after)
	m.countLocked(p)
	return changed
}

// victimLocked returns the slot to evict: the one of lowest value in a sample, and of last, which
// may be large and the cause. Pinned slots are skipped, because a request waits for them, and so
// are those that another goroutine makes smaller.
func (m *Memory) victimLocked(last *originSlot) *originSlot {
	var victim *originSlot
	var least int64
	consider := func(p *originSlot) {
		if p.pins > 0 || p.packing {
			return
		}
		if worth := p.value(m.now); victim == nil || worth < least {
			victim, least = p, worth
		}
	}
	drawn := 0
	for p := range m.slots {
		if drawn++; drawn > evictionSample && victim != nil || drawn > maxDrawn {
			break
		}
		consider(p)
	}
	if _, held := m.slots[last]; held {
		consider(last)
	}
	return victim
}

func (m *Memory) removeLocked(p *originSlot) {
	delete(m.slots, p)
	m.recountLocked(p, false)
	m.bytes -= p.counted
	m.items.Delete(p.key)
}

// size returns the number of slots and their octets, of all caches that share m.
func (m *Memory) size() (entries int, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.slots), m.bytes
}

// slotsOf returns all slots of this cache, in no order.
func (s *store) slotsOf() []*originSlot {
	s.mu.Lock()
	defer s.mu.Unlock()
	var mine []*originSlot
	for p := range s.slots {
		if strings.HasPrefix(p.key, s.route) && (s.route != "" || p.key[0] != 0) {
			mine = append(mine, p)
		}
	}
	return mine
}

// appendKey appends the key of o, which is short so that it takes few cache lines. The host is
// last and needs no delimiter.
func appendKey(b []byte, o rules.Origin) []byte {
	scheme := byte('p') // http: the last letters differ
	if o.Scheme == "https" {
		scheme = 's'
	}
	b = append(b, scheme, byte(o.Port>>8), byte(o.Port))
	return append(b, o.Host...)
}

const (
	// maxVariants is the maximum number of variants of one origin.
	maxVariants = 16
	// slotOverhead is about the size of a slot and its entry, without the policy and the key.
	slotOverhead = 640
	// variantOverhead is about the size of a variant, without its policy and name.
	variantOverhead = 350
)

// Differences in the value of slots (see value), as times by which a slot counts as used
// later.
const (
	// reuseBonus is for slots that were used again after their fetch: a crawler that walks
	// through names uses each once.
	reuseBonus = 10 * time.Minute
	// fetchBonus is for slots whose site would have to be requested again: others are on the
	// disk.
	fetchBonus = 5 * time.Minute
	// sizePenalty is for each doubling of a size of 4 KiB: a large slot takes the room of many.
	sizePenalty = time.Minute
	// emptyPenalty is for slots without a copy that could be used in place of a fetch.
	emptyPenalty = 24 * time.Hour
)

// originSlot holds the entries of one origin: one for all clients, and when the origin answers
// each client differently one for each kind of them. It is safe for concurrent use.
type originSlot struct {
	key       string
	lastUsed  atomic.Int64 // nanoseconds since 1970
	reused    atomic.Bool  // after its fetch
	persisted atomic.Bool  // the PolicyStore has the last entry
	// The next five are guarded by Memory.mu.
	counted int64       // size as counted in Memory.bytes
	pins    int         // fetches under way
	packing bool        // compactLocked makes it smaller
	state   rules.State // as counted in Memory.states
	stated  bool        // it is counted in Memory.states

	mu       sync.RWMutex
	variants []*variant // the first is that for all clients, which has no name
	newNames int        // new names under which the site was requested since namesAt
	namesAt  time.Time
}

// namesTime is the time within which a site is requested under at most maxVariants new names:
// a client chooses its name, and each new one costs the site a request.
const namesTime = time.Hour

// admit counts a new name, and reports whether the site may be requested under it.
func (p *originSlot) admit(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since := now.Sub(p.namesAt); since >= namesTime || since < 0 {
		p.newNames, p.namesAt = 0, now
	}
	p.newNames++
	return p.newNames <= maxVariants
}

// variant is the entry for one kind of client.
type variant struct {
	*entry
	name     string // rules.NameKey of the client; empty: for all
	lastUsed atomic.Int64
}

// entry returns the entry for one kind of client, or nil.
func (p *originSlot) entry(as string, now time.Time) *entry {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, v := range p.variants {
		if v.name == as {
			v.lastUsed.Store(now.UnixNano())
			return v.entry
		}
	}
	return nil
}

// all returns the variants of p, that for all clients first.
func (p *originSlot) all() []*variant {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Clone(p.variants)
}

// set replaces the entry for one kind of client. When there are too many variants, the least
// recently used one is removed; when the site answers all clients alike again, all variants
// are.
func (p *originSlot) set(as string, e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setLocked(as, e)
}

func (p *originSlot) setLocked(as string, e *entry) {
	v := &variant{entry: e, name: as}
	v.lastUsed.Store(e.MadeAt.UnixNano())
	if as == "" {
		p.dropLocked(func(o *variant) bool { return o.name == "" || !e.personal() })
		p.variants = slices.Insert(p.variants, 0, v)
		return
	}
	p.dropLocked(func(o *variant) bool { return o.name == as })
	if len(p.variants) > maxVariants {
		oldest := slices.MinFunc(p.variants[1:], func(a, b *variant) int { return cmp.Compare(a.lastUsed.Load(), b.lastUsed.Load()) })
		p.dropLocked(func(o *variant) bool { return o == oldest })
	}
	p.variants = append(p.variants, v)
}

func (p *originSlot) dropLocked(goes func(*variant) bool) {
	p.variants = slices.DeleteFunc(p.variants, goes)
}

// replace stores e in place of old, and reports whether old was still the entry.
func (p *originSlot) replace(as string, old, e *entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.variants, func(v *variant) bool { return v.name == as })
	if at < 0 && old != nil || at >= 0 && p.variants[at].entry != old {
		return false
	}
	p.setLocked(as, e)
	return true
}

// drop removes the entry for one kind of client, and with that for all clients every other.
func (p *originSlot) drop(as string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked(func(v *variant) bool { return as == "" || v.name == as })
}

// touch records that p was used at now, without a fetch.
func (p *originSlot) touch(now time.Time) {
	p.lastUsed.Store(now.UnixNano())
	p.reused.Store(true)
}

// compacted returns the variants of p, and in their order those with smaller policies; nil for
// one whose policies cannot be smaller.
func (p *originSlot) compacted(compact func(*rules.Policy) *rules.Policy) (before, after []*variant) {
	before = p.all()
	for _, v := range before {
		e, smaller := *v.entry, (*variant)(nil)
		if e.policy = compact(e.policy); e.lastGood != nil {
			e.lastGood = compact(e.lastGood)
		}
		if e.policy != v.policy || e.lastGood != v.entry.lastGood {
			smaller = &variant{entry: &e, name: v.name}
		}
		after = append(after, smaller)
	}
	return before, after
}

// exchange puts what compacted has returned in its place, unless the variants of p are others by
// now. It reports whether p has changed in one way or the other.
func (p *originSlot) exchange(before, after []*variant) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.variants, before) {
		return true
	}
	for i, v := range after {
		if v != nil {
			v.lastUsed.Store(before[i].lastUsed.Load())
			changed, p.variants[i] = true, v
		}
	}
	return changed
}

// value returns the value of keeping p: slots of lower value are evicted first. p.counted must
// not change meanwhile.
func (p *originSlot) value(now time.Time) int64 {
	w := p.lastUsed.Load() - int64(sizePenalty)*int64(bits.Len64(uint64(p.counted)>>12))
	if p.reused.Load() {
		w += int64(reuseBonus)
	}
	switch e := p.entry("", now); {
	case e == nil, e.copy() == nil && e.use(now) == expired:
		w -= int64(emptyPenalty)
	case e.Failures == 0 && !p.persisted.Load():
		w += int64(fetchBonus)
	}
	return w
}

// size returns about how many octets p holds.
func (p *originSlot) size() int64 {
	n := int64(slotOverhead + 2*len(p.key)) // policies contain the host again
	for _, v := range p.all() {
		n += int64(v.size())
		if v.name != "" {
			n += int64(variantOverhead + len(v.name))
		}
	}
	return n
}

// remove removes p, unless a request waits for it.
func (m *Memory) remove(p *originSlot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, held := m.slots[p]; held && p.pins == 0 {
		m.removeLocked(p)
	}
}
