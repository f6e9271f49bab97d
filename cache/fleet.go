package cache

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"heed/rules"
)

// Shared is what several heeds know together. A tag is an origin, a name a way
// of asking it. What lies there has a version that changes with it; 0 is that
// of nothing. Its methods wait a moment at most when it is unreachable, and
// then find nothing; they are called from many goroutines, and never for a
// request that memory can answer.
type Shared interface {
	// Newer returns what is shared, unless its version is known. An empty record
	// says that it was dropped. Version 0: there is nothing else, or it is unreachable;
	// -1: there is nothing any more, for it was lost, which says nothing.
	Newer(ctx context.Context, tag, name string, known int64) (version int64, record, snapshot []byte)
	// Lease asks for the right to fetch for all heeds. When end is not nil the right is
	// given, and end must be called with the result, which is valid for keep; an empty
	// record means that the others get none. end returns the version of what was stored,
	// 0 when nothing was. When wait is not zero, another heed fetches or has fetched: look,
	// and ask again after wait. When both are zero, each is to fetch for itself.
	Lease(ctx context.Context, tag, name string, known int64) (end func(record, snapshot []byte, keep time.Duration) (version int64), wait time.Duration)
	// Drop forgets tag, and has the others forget it. An error says that it
	// could not.
	Drop(ctx context.Context, tag string) (had bool, err error)
	// Watch has changed called with a tag when it was changed by others, and
	// with "" when anything may have been.
	Watch(changed func(tag string))
}

// fleetWait is how long a fetch waits for another heed's before it asks the site
// itself: what is shared may be wrong, and must cost no request more than a second.
const fleetWait = 900 * time.Millisecond

// maxRechecks is how many entries are compared with the fleet's at a time after
// word of changes may have been missed.
const maxRechecks = 16

// lease is the fleet's answer before a fetch.
type lease struct {
	cache *Cache
	place *originSlot
	variantKey
	origin rules.Origin
	entry  *entry // the best that is known by now; may be nil
	known  int64  // the version last seen there, whether or not entry is made of it
	end    func(record, snapshot []byte, keep time.Duration) int64
}

// lease reads the fleet's policy of o, and waits up to fleetWait while another heed
// fetches it. When it returns and the entry is not fresh, the caller must fetch, and publish or
// abandon the lease.
func (c *Cache) lease(p *originSlot, o rules.Origin, as variantKey, e *entry) *lease {
	t := &lease{cache: c, place: p, origin: o, variantKey: as, entry: e, known: e.versionSeen()}
	if c.shared == nil {
		return t
	}
	ctx := context.Background()
	for deadline := time.Now().Add(min(fleetWait, c.timeout)); ; {
		t.pull(ctx)
		if t.entry.fresh(c.now()) {
			break
		}
		var wait time.Duration
		if t.end, wait = c.shared.Lease(ctx, tagOf(o), as.key, t.known); wait == 0 || time.Until(deadline) < wait {
			break
		}
		time.Sleep(wait)
	}
	return t
}

// pull takes over what the others know, if it is later than what is known here.
func (t *lease) pull(ctx context.Context) {
	version, text, snapshot := t.cache.shared.Newer(ctx, tagOf(t.origin), t.key, t.known)
	switch {
	case version == 0:
		return
	case version < 0:
		t.known = 0
		return
	}
	t.known = version
	if len(text) == 0 {
		t.cache.forget(t.place, t.origin, t.key)
		t.entry = nil
		return
	}
	e, err := readForeign(t.origin, t.cache.profile, text, snapshot)
	if err != nil || t.entry != nil && e.MadeAt.Before(t.entry.MadeAt) {
		return
	}
	e.version = version
	if !t.place.replace(t.key, t.entry, e) { // it was changed meanwhile
		t.entry = t.place.entry(t.key, t.cache.now())
		return
	}
	t.entry = e
	if t.cache.disk != nil && !e.NoStore {
		t.place.persisted.Store(t.cache.disk.Save(storeKey(t.origin, t.key), text, snapshot))
	}
}

// readForeign is readRecord for what may have been made to hurt.
func readForeign(o rules.Origin, profile rules.Profile, text, snapshot []byte) (e *entry, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it cannot be read: %v", v)
		}
	}()
	return readRecord(o, profile, text, snapshot)
}

// publish gives the others e, which a led to. What came of our own side of the
// network says nothing to them, and what the site forbids to store is not
// stored there either: then each asks for itself.
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
	e.version = end(encodeRecord(e, t.cache.profile), encodeSnapshot(e.snapshot()), keep)
}

// abandon ends a lease that was not published.
func (t *lease) abandon() {
	if t.end != nil {
		t.end(nil, nil, 0)
		t.end = nil
	}
}

// versionSeen is the fleet's version when e was made, or the one that e is; 0
// for none. e may be nil.
func (e *entry) versionSeen() int64 {
	if e == nil {
		return 0
	}
	return cmp.Or(e.version, e.seen)
}

// changed takes over what others have changed; see Shared.
func (c *Cache) changed(tag string) {
	if tag != "" {
		scheme, authority, _ := strings.Cut(tag, "://")
		if o, err := rules.ParseOrigin(scheme, authority); err == nil {
			c.recheck(o)
		}
		return
	}
	var wait sync.WaitGroup
	room := make(chan struct{}, maxRechecks)
	for _, p := range c.store.slotsOf() {
		all := p.all()
		if len(all) == 0 {
			continue
		}
		o := all[0].policy.Source().Origin
		room <- struct{}{}
		wait.Go(func() {
			c.recheck(o)
			<-room
		})
	}
	wait.Wait()
}

// recheck compares what memory has of o with what the others know.
func (c *Cache) recheck(o rules.Origin) {
	if c.store.find(o) == nil {
		return
	}
	p := c.store.pin(o, c.now())
	defer c.store.unpin(p)
	for _, v := range p.all() {
		t := &lease{cache: c, place: p, origin: o, variantKey: variantKey{key: v.name}, entry: v.entry, known: v.versionSeen()}
		t.pull(context.Background())
	}
}

// tagOf returns the tag of o in the fleet.
func tagOf(o rules.Origin) string { return o.String() }
