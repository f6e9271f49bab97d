package cache

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"heed/rules"
)

// Shared is what several heeds know together. A tag is an origin, a name a way
// of asking it. What lies there has a version that changes with it; 0 is that
// of nothing. Its methods wait for no more than a moment when it is away, and
// then find nothing; they are called from many goroutines, and never for a
// request that memory can answer.
type Shared interface {
	// Newer returns what is shared, unless its version is known. An empty record
	// says that it was dropped. Version 0: there is nothing else, or it is away;
	// -1: there is nothing any more, for it was lost, which says nothing.
	Newer(ctx context.Context, tag, name string, known int64) (version int64, record, snapshot []byte)
	// Lease asks for the right to fetch for all. When end is not nil it is given,
	// and end must be called with what came of it, which is of use for keep: no
	// record when others may have none, no snapshot (nil) when the one of version
	// base holds on; it returns the version of what was stored, 0 when nothing
	// was. When wait is not zero, somebody else fetches or has fetched: look, and
	// ask again after so long. When both are zero, each is to fetch for itself.
	Lease(ctx context.Context, tag, name string, known int64) (end func(record, snapshot []byte, base int64, keep time.Duration) (version int64), wait time.Duration)
	// Drop forgets tag, and has the others forget it. An error says that it
	// could not.
	Drop(ctx context.Context, tag string) (had bool, err error)
	// Watch has changed called with a tag when it was changed by others, and
	// with "" when anything may have been.
	Watch(changed func(tag string))
}

// rechecks is how many entries are compared with the fleet's at a time after
// word of changes may have been missed.
const rechecks = 16

// turn is what the fleet says before a site is asked.
type turn struct {
	cache *Cache
	place *place
	asking
	origin rules.Origin
	entry  *entry // the best that is known by now; may be nil
	known  int64  // the version last seen there, whether or not entry is made of it
	end    func(record, snapshot []byte, base int64, keep time.Duration) int64
}

// consult looks what other heeds know of o, and waits while one of them asks
// it. When it returns and the entry is not fresh, the site is to be asked, and
// the turn told of the result or abandoned.
func (c *Cache) consult(p *place, o rules.Origin, as asking, e *entry) *turn {
	t := &turn{cache: c, place: p, origin: o, asking: as, entry: e, known: e.versionSeen()}
	if c.shared == nil {
		return t
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	for ctx.Err() == nil {
		t.look(ctx)
		if t.entry.fresh(c.now()) {
			break
		}
		var wait time.Duration
		if t.end, wait = c.shared.Lease(ctx, tagOf(o), as.key, t.known); wait == 0 {
			break
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	return t
}

// look takes over what the others know, if it is later than what is known here.
func (t *turn) look(ctx context.Context) {
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
		t.cache.forgetOne(t.place, t.origin, t.key)
		t.entry = nil
		return
	}
	e, err := readForeign(t.origin, t.cache.profile, text, snapshot)
	if err != nil || t.entry != nil && e.madeAt.Before(t.entry.madeAt) {
		return
	}
	e.version = version
	if !t.place.replace(t.key, t.entry, e) { // somebody else was at it meanwhile
		t.entry = t.place.entry(t.key, t.cache.now())
		return
	}
	t.entry = e
	if t.cache.keeper != nil && !e.noStore {
		if len(snapshot) == 0 {
			snapshot = nil
		}
		t.place.kept.Store(t.cache.keeper.Save(keeperKey(t.origin, t.key), text, snapshot))
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

// conditional reports whether the site may be asked for changes only. Who asks
// for all must have the file to show, unless the others have it already.
func (t *turn) conditional() bool { return t.end == nil || t.base() >= 0 }

// base is the version that has the copy at hand; negative when none has.
func (t *turn) base() int64 {
	if v := t.entry.versionShared(); v != 0 && v == t.known {
		return v
	}
	return -1
}

// tell gives the others e, which a led to. What came of our own side of the
// network says nothing to them, and what the site forbids to store is not
// stored there either: then each asks for itself.
func (t *turn) tell(a *answer, e *entry) {
	e.seen = t.known
	if t.end == nil {
		return
	}
	end := t.end
	t.end = nil
	if a.ours || e.noStore || e.failures > 0 && a.noConnection {
		end(nil, nil, 0, 0)
		return
	}
	keep, snapshot := staleLimit, encodeSnapshot(snapshotOf(a, e))
	if e.copy() == nil {
		keep = e.askAt.Sub(e.madeAt) + maxLifetime
		if snapshot == nil {
			snapshot = []byte{} // none is needed
		}
	}
	if v := end(encodeRecord(e, t.cache.profile), snapshot, t.base(), keep); v != 0 {
		e.version = v
	}
}

// abandon gives up what was not told.
func (t *turn) abandon() {
	if t.end != nil {
		t.end(nil, nil, 0, 0)
		t.end = nil
	}
}

// versionShared is the version under which the fleet has e; 0 when it has not.
// e may be nil.
func (e *entry) versionShared() int64 {
	if e == nil {
		return 0
	}
	return e.version
}

// versionSeen is the fleet's version when e was made, or the one that e is; 0
// for none. e may be nil.
func (e *entry) versionSeen() int64 {
	if v := e.versionShared(); v != 0 || e == nil {
		return v
	}
	return e.seen
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
	room := make(chan struct{}, rechecks)
	for _, p := range c.store.places() {
		o, ok := p.origin()
		if !ok {
			continue
		}
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
	for key, e := range p.entries() {
		t := &turn{cache: c, place: p, origin: o, asking: asking{key: key}, entry: e, known: e.versionSeen()}
		t.look(context.Background())
	}
}

// tagOf is what the fleet knows o by.
func tagOf(o rules.Origin) string { return o.String() }
