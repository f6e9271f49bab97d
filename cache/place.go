package cache

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"heed/rules"
)

const (
	// maxVariants is for how many kinds of clients the answers of one origin are
	// kept.
	maxVariants = 16
	// placeOverhead is about what a place and its entry take beside the policy
	// and the key.
	placeOverhead = 640 + shortcutBytes
	// variantOverhead is about what a variant takes beside its policy and name.
	variantOverhead = 350
	// keyRoom is how long a key may be to lie in its place.
	keyRoom = 56
	// touchGrain is how exactly it is known when a place was used: those of one
	// processor's cache are not taken from the others for less.
	touchGrain = 100 * time.Millisecond
)

// By how much younger a place counts than by when it was used: how much it
// would be missed.
const (
	// reuseBonus is for those used again after their fetch: others are asked for
	// once, by a walk through names.
	reuseBonus = 10 * time.Minute
	// fetchBonus is for those whose site would have to be asked again, while the
	// others can be had from the disk.
	fetchBonus = 5 * time.Minute
	// spentMalus is taken from those that hold nothing which would spare a fetch
	// or stand in for one.
	spentMalus = 24 * time.Hour
)

// place is where the entries of one origin are kept: one for all clients, and
// for an origin that tells each client something else one for each of those. It
// is safe for concurrent use.
//
// What most look-ups read is in the place itself, two neighbouring cache lines:
// of an origin not asked for lately, each line and each page that is read costs
// more than all the rest. To lie so, a place is a whole number of lines long.
type place struct {
	shown
	reused   atomic.Bool
	lastUsed atomic.Int64 // nanoseconds since 1970, to touchGrain
	key      string       // in room, if it fits
	room     [keyRoom]byte
	*holding
}

// holding is what a place holds, and what it counts for.
type holding struct {
	common atomic.Pointer[entry] // nil until the first fetch has ended
	kept   atomic.Bool           // the Keeper has what was last learned
	// The next three are guarded by Memory.mu.
	counted int64 // size as it stands in Memory.bytes
	slot    int   // in Memory.slots
	pins    int   // fetches under way

	mu       sync.RWMutex
	variants map[string]*variant // by kind of client; nil when there are none
}

func newPlace(key []byte, now time.Time) *place {
	p := &place{holding: &holding{}}
	if len(key) > keyRoom {
		p.key = string(key)
	} else {
		copy(p.room[:], key) // it stays as it is from here on, as a string must
		p.key = unsafe.String(&p.room[0], len(key))
	}
	p.lastUsed.Store(now.UnixNano())
	return p
}

// variant is the entry for one User-Agent.
type variant struct {
	entry    *entry
	lastUsed atomic.Int64
}

// entry returns the entry for one way of asking, or nil: as is the client's
// User-Agent, empty for the entry common to all.
func (p *place) entry(as string, now time.Time) *entry {
	if as == "" {
		return p.common.Load()
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	v := p.variants[as]
	if v == nil {
		return nil
	}
	v.lastUsed.Store(now.UnixNano())
	return v.entry
}

// set replaces the entry that entry returns. Of too many variants the one goes
// that was not used for longest; when the site tells all clients the same again, all go.
func (p *place) set(as string, e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setLocked(as, e)
}

func (p *place) setLocked(as string, e *entry) {
	if as == "" {
		p.common.Store(e)
		p.show(e)
		if !e.personal() {
			p.variants = nil
		}
		return
	}
	if p.variants == nil {
		p.variants = make(map[string]*variant)
	}
	if _, known := p.variants[as]; !known && len(p.variants) >= maxVariants {
		p.dropVariantLocked()
	}
	v := &variant{entry: e}
	v.lastUsed.Store(e.madeAt.UnixNano())
	p.variants[as] = v
}

func (p *place) dropVariantLocked() {
	var oldest string
	var at int64
	for name, v := range p.variants {
		if t := v.lastUsed.Load(); oldest == "" || t < at {
			oldest, at = name, t
		}
	}
	delete(p.variants, oldest)
}

// policies returns all policies p holds.
func (p *place) policies() []*rules.Policy {
	var all []*rules.Policy
	if e := p.common.Load(); e != nil {
		all = append(all, e.policy)
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, v := range p.variants {
		all = append(all, v.entry.policy)
	}
	return all
}

// touch notes that p was of use at now, without a fetch.
func (p *place) touch(now time.Time) {
	t := now.UnixNano()
	if since := t - p.lastUsed.Load(); since < int64(touchGrain) && since > -int64(touchGrain) && p.reused.Load() {
		return
	}
	p.lastUsed.Store(t)
	p.reused.Store(true)
}

// worth orders places by how much one would be missed.
func (p *place) worth(now time.Time) int64 {
	w := p.lastUsed.Load()
	if p.reused.Load() {
		w += int64(reuseBonus)
	}
	switch e := p.common.Load(); {
	case e == nil, e.copy() == nil && e.use(now) == due:
		w -= int64(spentMalus)
	case e.failures == 0 && !p.kept.Load():
		w += int64(fetchBonus)
	}
	return w
}

// size returns about how many bytes p holds.
func (p *place) size() int64 {
	n := int64(placeOverhead + len(p.key)) // the host is held once more
	if len(p.key) > keyRoom {
		n += int64(len(p.key))
	}
	if e := p.common.Load(); e != nil {
		n += int64(e.size())
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for name, v := range p.variants {
		n += int64(variantOverhead + len(name) + v.entry.size())
	}
	return n
}
