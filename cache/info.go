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

// Info is what a Cache has of one origin for one kind of client, for people to
// look at.
type Info struct {
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
	// Snapshot is the answer with the file last read, which Policy need not be made
	// of, or the last answer without a file; nil while the site fails without one.
	Snapshot *rules.Snapshot
}

// List returns what memory holds, fresh or not, in no order.
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

// agentsOf puts the key of an entry into words.
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

// Find returns what is held of o: in memory, or else on disk or by the fleet,
// and then in memory from now on. The site is not asked. The first is what
// holds for all, if it is known.
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

// loadKept puts into memory what disk or fleet have of o for all clients.
func (c *Cache) loadKept(o rules.Origin) {
	p := c.store.pin(o, c.now())
	e := c.load(p, o, "")
	if c.shared != nil {
		t := &lease{cache: c, place: p, origin: o, entry: e}
		t.pull(context.Background())
	}
	c.store.unpin(p)
	if p.entry("", c.now()) == nil {
		c.store.remove(p)
	}
}

// Purge forgets o in memory, on disk and in the fleet, single clients' entries too, and
// reports whether anything was known of it. The next request asks the site. The error says that the disk does not take it, or that the
// other heeds of the fleet could not be notified.
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

// forget drops what memory and disk have of o, whose slot is p, under as; the
// entry for all clients takes the others with it. It reports whether the disk will.
func (c *Cache) forget(p *originSlot, o rules.Origin, as string) bool {
	p.drop(as)
	return c.disk == nil || c.disk.Drop(storeKey(o, as))
}
