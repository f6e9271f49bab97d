package cache

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"heed/rules"
)

// Info describes the cached entry of one origin for one kind of client, for display.
type Info struct {
	Policy *rules.Policy
	// For names the clients that it is for, by their product tokens; empty: all.
	For string
	// AskAt is when the site is requested again, at the next request from then on.
	AskAt time.Time
	// WaitAt is when requests begin to wait for the site's answer. Until then the policy is
	// used while the site is requested in the background.
	WaitAt time.Time
	// Failures is the number of consecutive failures.
	Failures int
	// Bytes is about how many bytes it takes in memory.
	Bytes int
	// Shared is set when the fleet's store has it too.
	Shared bool
	// Snapshot is the answer with the file that was read last, which may not be that of Policy,
	// or the last answer without a file; nil while the site fails without one.
	Snapshot *rules.Snapshot
}

// List returns the entries in memory, fresh or not, in no order.
func (c *Cache) List() iter.Seq[Info] {
	return func(yield func(Info) bool) {
		for _, p := range c.store.slotsOf() {
			for _, v := range p.all() {
				if !yield(infoOf(v)) {
					return
				}
			}
		}
	}
}

func infoOf(v *variant) Info {
	return Info{
		For: agentsOf(v.name), Policy: v.policy, AskAt: v.AskAt, WaitAt: v.WaitAt,
		Failures: v.Failures, Bytes: v.size(), Shared: v.version != 0, Snapshot: v.snapshot(),
	}
}

// agentsOf formats the key of an entry.
func agentsOf(key string) string {
	key, by, signed := strings.Cut(key, signedMark)
	words := strings.TrimPrefix(key, agentMark+" ")
	if key == agentMark {
		words = "clients without a name"
	}
	if signed {
		words += ", signed by " + by
	}
	return words
}

// Find returns the entries of o: from memory, or else from disk or the fleet, which puts them
// into memory. It does not request the site. The first is the entry for all clients, if there
// is one.
func (c *Cache) Find(o rules.Origin) []Info {
	o.Host = strings.Clone(o.Host)
	p := c.store.find(o)
	if p == nil || p.entry("", c.now()) == nil {
		c.loadKept(o)
		p = c.store.find(o)
	}
	if p == nil {
		return nil
	}
	var all []Info
	for _, v := range p.all() {
		all = append(all, infoOf(v))
	}
	return all
}

// loadKept loads the entry of o for all clients from disk or from the fleet into memory.
func (c *Cache) loadKept(o rules.Origin) {
	p := c.store.pin(o, c.now())
	e := c.load(p, o, "")
	if c.shared != nil {
		t := &lease{cache: c, slot: p, origin: o, entry: e}
		t.pull(context.Background())
	}
	c.store.unpin(p)
	if p.entry("", c.now()) == nil {
		c.store.remove(p)
	}
}

// Purge deletes the entries of o in memory, on disk and in the fleet, also those for single
// clients, and reports whether there were any. The next request fetches again. The error means
// that the disk did not accept it, or that the other heeds of the fleet could not be notified.
func (c *Cache) Purge(ctx context.Context, o rules.Origin) (had bool, err error) {
	had = len(c.Find(o)) > 0
	p := c.store.pin(o, c.now())
	if !c.forget(p, o, "") {
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

// forget deletes the entry of o under as in memory, whose slot is p, and on disk; with the
// entry for all clients it deletes the others. It reports whether the disk accepted it.
func (c *Cache) forget(p *originSlot, o rules.Origin, as string) bool {
	p.drop(as)
	return c.disk == nil || c.disk.Drop(storeKey(o, as))
}
