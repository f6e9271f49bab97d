package cache

import (
	"sync"
	"sync/atomic"
	"time"

	"heed/rules"
)

const (
	// maxVariants is for how many User-Agents the answers of one origin are kept.
	maxVariants = 16
	// placeOverhead is about what a place and its entry take beside the policy.
	placeOverhead = 400
	// variantOverhead is about what a variant takes beside its policy and name.
	variantOverhead = 250
)

// place is where the entries of one origin are kept: one for all clients, and
// for an origin that denies us its robots.txt one for each client's
// User-Agent. It is safe for concurrent use.
type place struct {
	key      string
	lastUsed atomic.Int64 // nanoseconds since 1970
	reused   atomic.Bool
	common   atomic.Pointer[entry] // nil until the first fetch has ended

	mu       sync.RWMutex
	variants map[string]*variant // by User-Agent; nil when there are none

	slot    int   // in store.slots; guarded by store.mu, as are the next two
	counted int64 // size as it stands in store.bytes
	pins    int   // fetches under way
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
// that was not used for longest; when the site does not deny us any more, all go.
func (p *place) set(as string, e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if as == "" {
		p.common.Store(e)
		if !e.denied {
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
	p.lastUsed.Store(now.UnixNano())
	if !p.reused.Load() {
		p.reused.Store(true)
	}
}

// worth orders places by how much one would be missed.
func (p *place) worth() int64 {
	w := p.lastUsed.Load()
	if p.reused.Load() {
		w += int64(reuseBonus)
	}
	return w
}

// size returns about how many bytes p holds.
func (p *place) size() int64 {
	n := int64(placeOverhead + len(p.key))
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
