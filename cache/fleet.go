package cache

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"heed/rules"
)

// Shared stores policies for several heeds. A tag is an origin, a name one variant of its
// robots.txt. Each entry has a version, which changes with it; 0 means no entry. Its methods
// return soon, without a result, when the store is unreachable. They are called from many
// goroutines, and never for a request that memory can answer.
type Shared interface {
	// Newer returns the entry unless its version is known. An empty record means that it was
	// dropped. Version 0: there is no other entry, or the store is unreachable; -1: the store
	// has lost the known entry, which says nothing about the site.
	Newer(ctx context.Context, tag, name string, known int64) (version int64, record, snapshot []byte)
	// Lease requests the right to fetch for all heeds. When end is not nil the right is
	// granted, and end must be called with the result, which is valid for keep; an empty record
	// means that the other heeds get none. end returns the version of the stored entry, 0 when
	// none was stored. When wait is not zero, another heed fetches or has fetched: call Newer,
	// and Lease again after wait. When both are zero, each heed fetches for itself.
	Lease(ctx context.Context, tag, name string, known int64) (end func(record, snapshot []byte, keep time.Duration) (version int64), wait time.Duration)
	// Drop deletes tag in the store and notifies the other heeds. An error means that it could
	// not.
	Drop(ctx context.Context, tag string) (had bool, err error)
	// Watch calls changed with a tag that another heed has changed, or dropped, and with "" when
	// any may have changed.
	Watch(changed func(tag string, dropped bool))
}

// fleetWait is how long a fetch waits for another heed's before it requests the site itself: a
// store with wrong entries may delay no request for more than a second.
const fleetWait = 900 * time.Millisecond

// maxRechecks is the number of entries that are compared with the fleet's at a time, when
// messages of changes may have been lost.
const maxRechecks = 16

// lease is the state of the fleet's entry before a fetch.
type lease struct {
	cache *Cache
	slot  *originSlot
	variantKey
	origin rules.Origin
	entry  *entry // the best entry so far; may be nil
	known  int64  // the version last seen in the store, whether or not it is entry's
	end    func(record, snapshot []byte, keep time.Duration) int64
}

// lease reads the fleet's policy of o, and waits up to fleetWait while another heed fetches
// it. When the entry is not fresh then, the caller must fetch, and publish or abandon the
// lease.
func (c *Cache) lease(p *originSlot, o rules.Origin, as variantKey, e *entry) *lease {
	t := &lease{cache: c, slot: p, origin: o, variantKey: as, entry: e, known: e.versionSeen()}
	if c.config.Shared == nil {
		return t
	}
	ctx := context.Background()
	for deadline := time.Now().Add(min(fleetWait, c.config.Timeout)); ; {
		t.pull(ctx)
		if t.entry.fresh(c.now()) {
			break
		}
		var wait time.Duration
		if t.end, wait = c.config.Shared.Lease(ctx, tagOf(o), as.key, t.known); wait == 0 || time.Until(deadline) < wait {
			break
		}
		time.Sleep(wait)
	}
	return t
}

// pull takes over the fleet's entry when it is newer than this heed's.
func (t *lease) pull(ctx context.Context) {
	version, text, snapshot := t.cache.config.Shared.Newer(ctx, tagOf(t.origin), t.key, t.known)
	switch {
	case version == 0:
		return
	case version < 0:
		t.known = 0
		return
	}
	t.known = version
	if len(text) == 0 {
		t.cache.forget(t.slot, t.origin, t.key)
		t.entry = nil
		return
	}
	e, err := readForeign(t.origin, t.cache.config.Profile, text, snapshot)
	if err != nil || t.entry != nil && e.MadeAt.Before(t.entry.MadeAt) {
		return
	}
	e.version = version
	if !t.slot.replace(t.key, t.entry, e) { // it was changed meanwhile
		t.entry = t.slot.entry(t.key, t.cache.now())
		return
	}
	t.entry = e
	if t.cache.config.Store != nil && !e.NoStore {
		t.slot.persisted.Store(t.cache.config.Store.Save(storeKey(t.origin, t.key), text, snapshot))
	}
}

// readForeign is readRecord for a record from another heed, which may be hostile.
func readForeign(o rules.Origin, profile rules.Profile, text, snapshot []byte) (e *entry, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it cannot be read: %v", v)
		}
	}()
	return readRecord(o, profile, text, snapshot)
}

// publish stores e, the entry made from a, for the other heeds. Failures on heed's own side of
// the network and answers that the site forbids to store are not stored: each heed fetches for
// itself then.
func (t *lease) publish(a *answer, e *entry) {
	e.seen = t.known
	if t.end == nil {
		return
	}
	end := t.end
	t.end = nil
	if a.local || e.NoStore || e.Failures > 0 && a.noConnection {
		end(nil, nil, 0)
		return
	}
	keep := staleLimit
	if e.copy() == nil {
		keep = e.AskAt.Sub(e.MadeAt) + maxLifetime
	}
	e.version = end(encodeRecord(e, t.cache.config.Profile), encodeSnapshot(e.snapshot()), keep)
}

// abandon ends a lease that was not published.
func (t *lease) abandon() {
	if t.end != nil {
		t.end(nil, nil, 0)
		t.end = nil
	}
}

// versionSeen returns the version in the fleet's store of e, or when e was made; 0: none. e
// may be nil.
func (e *entry) versionSeen() int64 {
	if e == nil {
		return 0
	}
	return cmp.Or(e.version, e.seen)
}

// changed takes over changes of other heeds; see Shared.Watch.
func (c *Cache) changed(tag string, dropped bool) {
	if tag != "" {
		scheme, authority, _ := strings.Cut(tag, "://")
		if o, err := rules.ParseOrigin(scheme, authority); err == nil {
			if dropped {
				c.purged(o)
			}
			c.recheck(o)
		}
		return
	}
	c.purged(rules.Origin{})
	var rechecks errgroup.Group
	rechecks.SetLimit(maxRechecks)
	for _, p := range c.store.slotsOf() {
		all := p.all()
		if len(all) == 0 {
			continue
		}
		o := all[0].policy.Source().Origin
		rechecks.Go(func() error {
			c.recheck(o)
			return nil
		})
	}
	_ = rechecks.Wait()
}

// recheck compares the entries of o in memory with the fleet's.
func (c *Cache) recheck(o rules.Origin) {
	if c.store.find(o) == nil {
		return
	}
	p := c.store.pin(o, c.now())
	defer c.store.unpin(p)
	for _, v := range p.all() {
		t := &lease{cache: c, slot: p, origin: o, variantKey: variantKey{key: v.name}, entry: v.entry, known: v.versionSeen()}
		t.pull(context.Background())
	}
}

// tagOf returns the tag of o in the fleet's store.
func tagOf(o rules.Origin) string { return o.String() }
