package cache

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	"heed/rules"
)

// Held is what a Cache has of one origin for one kind of client, for people to
// look at.
type Held struct {
	Policy *rules.Policy
	// For says which clients it is for, by their product tokens; empty: for all.
	For string
	// AskAt is when the site is asked again, at the next request from then on.
	AskAt time.Time
	// WaitAt is from when on that request waits for the site's answer; until
	// then the policy still answers, and the site is asked beside it.
	WaitAt time.Time
	// Failures is how often in a row the site could not be asked.
	Failures int
	// Bytes is about how much memory it takes.
	Bytes int
	// Shared is set when the other heeds of the fleet have it too.
	Shared bool

	key string // of its entry
}

// Held returns what memory holds, fresh or not, in no order.
func (c *Cache) Held() iter.Seq[Held] {
	return func(yield func(Held) bool) {
		for _, p := range c.store.places() {
			for key, e := range p.entries() {
				if !yield(held(key, e)) {
					return
				}
			}
		}
	}
}

func held(key string, e *entry) Held {
	return Held{
		key: key, For: kindOf(key), Policy: e.policy, AskAt: e.askAt, WaitAt: e.waitAt,
		Failures: e.failures, Bytes: e.size(), Shared: e.version != 0,
	}
}

// kindOf puts the key of an entry into words.
func kindOf(key string) string {
	if key == agentMark {
		return "clients without a name"
	}
	return strings.TrimPrefix(key, agentMark+" ")
}

// Find returns what is held of o: in memory, or else on disk or by the fleet,
// and then in memory from now on. The site is not asked. The first is what
// holds for all, if it is known.
func (c *Cache) Find(o rules.Origin) []Held {
	o.Host = strings.Clone(o.Host)
	if p := c.store.find(o); p == nil || p.common.Load() == nil {
		c.fetchKept(o)
	}
	p := c.store.find(o)
	if p == nil {
		return nil
	}
	var all []Held
	for key, e := range p.entries() {
		all = append(all, held(key, e))
	}
	return all
}

// fetchKept puts into memory what disk or fleet have of o for all clients.
func (c *Cache) fetchKept(o rules.Origin) {
	p := c.store.pin(o, c.now())
	e := c.load(p, o, "")
	if c.shared != nil {
		t := &turn{cache: c, place: p, origin: o, entry: e}
		t.look(context.Background())
	}
	c.store.unpin(p)
	if p.common.Load() == nil {
		c.store.remove(p)
	}
}

// Snapshot returns the answer that was received from o, for h, one of the
// results of Find; ok is false when its bytes are not kept.
func (c *Cache) Snapshot(o rules.Origin, h Held) (s *rules.Snapshot, ok bool) {
	var text []byte
	if c.keeper != nil {
		_, text, _ = c.keeper.Load(keeperKey(o, h.key))
	}
	if len(text) == 0 && c.shared != nil {
		_, _, text = c.shared.Newer(context.Background(), tagOf(o), h.key, 0)
	}
	s, _, err := readAnswer(o, text)
	return s, err == nil
}

// Purge forgets o in memory, on disk and in the fleet, what it told single
// clients too, and reports whether anything was known of it. The next request
// asks the site. The error says that the disk does not take it, or that the
// others of the fleet could not be told.
func (c *Cache) Purge(ctx context.Context, o rules.Origin) (had bool, err error) {
	had = len(c.Find(o)) > 0
	p := c.store.pin(o, c.now())
	if !c.forget(p, o) {
		err = fmt.Errorf("what is kept of %s on disk cannot be removed now, and may be used after a restart", o)
	}
	c.store.unpin(p)
	c.store.remove(p)
	if c.shared == nil {
		return had, err
	}
	shared, untold := c.shared.Drop(ctx, tagOf(o))
	return had || shared, errors.Join(err, untold)
}

// forget drops all that memory and disk have of o, whose place is p. It reports
// whether the disk will.
func (c *Cache) forget(p *place, o rules.Origin) bool {
	p.clear()
	// What is kept for all clients is the head of the family.
	return c.keeper == nil || c.keeper.Drop(keeperKey(o, ""))
}

// forgetOne is forget for what is under as; the entry for all takes the others
// with it.
func (c *Cache) forgetOne(p *place, o rules.Origin, as string) {
	if as == "" {
		c.forget(p, o)
		return
	}
	p.mu.Lock()
	delete(p.variants, as)
	p.mu.Unlock()
	if c.keeper != nil {
		c.keeper.Drop(keeperKey(o, as))
	}
}

// entries returns what p holds, by kind of client, that for all first. What is
// set meanwhile may be missing.
func (p *place) entries() iter.Seq2[string, *entry] {
	return func(yield func(string, *entry) bool) {
		if e := p.common.Load(); e != nil && !yield("", e) {
			return
		}
		p.mu.RLock()
		all := maps.Clone(p.variants)
		p.mu.RUnlock()
		for key, v := range all {
			if !yield(key, v.entry) {
				return
			}
		}
	}
}

// origin returns whose place p is; ok is false while it holds nothing.
func (p *place) origin() (o rules.Origin, ok bool) {
	for _, e := range p.entries() {
		return e.policy.Source().Origin, true
	}
	return o, false
}

// clear makes p hold nothing.
func (p *place) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.common.Store(nil)
	p.hide()
	p.variants = nil
	p.kept.Store(false)
}

// replace is set, unless the entry is not old any more.
func (p *place) replace(as string, old, e *entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var is *entry
	if as == "" {
		is = p.common.Load()
	} else if v := p.variants[as]; v != nil {
		is = v.entry
	}
	if is != old {
		return false
	}
	p.setLocked(as, e)
	return true
}

// remove gives p up, unless somebody waits for it.
func (m *Memory) remove(p *place) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.pins == 0 && p.slot < len(m.slots) && m.slots[p.slot] == p {
		m.removeLocked(p)
	}
}
