package cache

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/sync/singleflight"

	"heed/rules"
)

// Cache has the Policy of any origin at hand. Make one with New; it is safe
// for concurrent use.
type Cache struct {
	store   *store
	fetcher *fetcher
	flights singleflight.Group // key of an origin, and the User-Agent asked as -> *entry
	clock   func() time.Time
	timeout time.Duration // of a caller's wait
}

// New returns an empty cache. It panics when config.Transport is nil.
func New(config Config) *Cache {
	if config.Transport == nil {
		panic("cache: Config.Transport is nil")
	}
	config = config.withDefaults()
	return &Cache{
		store: newStore(config.MaxEntries, config.MaxBytes),
		fetcher: &fetcher{
			transport: config.Transport,
			userAgent: config.UserAgent,
			// A little less than the wait, so that who waits for all of a fetch
			// learns how it failed.
			timeout: config.Timeout - config.Timeout/30,
		},
		clock:   config.Now,
		timeout: config.Timeout,
	}
}

// Policy returns what o's robots.txt says; it is never nil. A fresh policy is
// returned at once, else the site is asked, once for all who wait. userAgent
// is the client's: an origin that answers 401 or 403 to us is asked again
// under that name, and the result kept for it alone.
//
// What cannot be had within Config.Timeout, or before ctx ends, is the last
// good copy marked Stale, else a policy in state Unreachable with Source.Err
// set.
func (c *Cache) Policy(ctx context.Context, o rules.Origin, userAgent string) *rules.Policy {
	if e := c.cached(o, userAgent); e != nil {
		return e.policy
	}
	return c.await(ctx, o, userAgent)
}

// All returns the policies kept, fresh or not, in no order; for an origin that
// denies us its robots.txt there is one for each User-Agent besides.
func (c *Cache) All() iter.Seq[*rules.Policy] {
	return func(yield func(*rules.Policy) bool) {
		for _, p := range c.store.places() {
			for _, policy := range p.policies() {
				if !yield(policy) {
					return
				}
			}
		}
	}
}

// Size returns for how many origins something is kept, and about how many
// bytes of memory that takes.
func (c *Cache) Size() (origins int, bytes int64) { return c.store.size() }

// cached returns the fresh entry that answers for o and userAgent, or nil.
func (c *Cache) cached(o rules.Origin, userAgent string) *entry {
	p := c.store.find(o)
	if p == nil {
		return nil
	}
	now := c.now()
	e := p.entry("", now)
	if e.fresh(now) && c.asksAgain(e, userAgent) {
		e = p.entry(userAgent, now)
	}
	if !e.fresh(now) {
		return nil
	}
	p.touch(now)
	return e
}

// asksAgain reports whether e is a denial that the client's own name may lift.
func (c *Cache) asksAgain(e *entry, userAgent string) bool {
	return e.denied && userAgent != "" && userAgent != c.fetcher.userAgent &&
		httpguts.ValidHeaderFieldValue(userAgent)
}

// await waits for the policy of o, no longer than the cache's time limit.
func (c *Cache) await(ctx context.Context, o rules.Origin, userAgent string) *rules.Policy {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, noAnswer(c.timeout))
	defer cancel()
	o.Host = strings.Clone(o.Host) // it is kept, and may be part of a whole request
	e := c.join(ctx, o, "")
	if c.asksAgain(e, userAgent) {
		e = c.join(ctx, o, strings.Clone(userAgent))
	}
	return e.policy
}

// join waits for the entry of o asked as as, starting its fetch when nobody
// has. The end of ctx ends this wait alone; the fetch goes on for the others,
// and for the next.
func (c *Cache) join(ctx context.Context, o rules.Origin, as string) *entry {
	if ctx.Err() != nil {
		return c.withoutAnswer(o, as, context.Cause(ctx))
	}
	key := string(append(appendKey(nil, o), "\n"+as...))
	done := c.flights.DoChan(key, func() (any, error) { return c.refresh(o, as), nil })
	select {
	case r := <-done:
		return r.Val.(*entry)
	case <-ctx.Done():
		return c.withoutAnswer(o, as, context.Cause(ctx))
	}
}

// withoutAnswer returns what holds for a caller who could not wait. It is not kept.
func (c *Cache) withoutAnswer(o rules.Origin, as string, cause error) *entry {
	now := c.now()
	var prev *entry
	if p := c.store.find(o); p != nil {
		prev = p.entry(as, now)
	}
	err := fmt.Errorf("waiting for %s: %w", o.RobotsURL(), cause)
	return next(prev, answer{origin: o, as: as, err: err}, now, 0)
}

// refresh asks o as as and keeps the result. It runs once at a time for each
// pair of them.
func (c *Cache) refresh(o rules.Origin, as string) (e *entry) {
	now := c.now()
	p := c.store.pin(o, now)
	defer c.store.unpin(p)
	prev := p.entry(as, now)
	if prev.fresh(now) {
		// Between a caller's look and this call another fetch has ended.
		return prev
	}
	defer func() {
		// A panic here would end the process: nobody stands above to recover
		// it. It must not be the answer to a hostile file.
		if v := recover(); v != nil {
			err := fmt.Errorf("internal fault while fetching %s: %v", o.RobotsURL(), v)
			e = next(prev, answer{origin: o, as: as, err: err}, c.now(), rand.Float64())
			p.set(as, e)
		}
	}()
	e = next(prev, c.ask(o, as, prev), c.now(), rand.Float64())
	p.set(as, e)
	return e
}

// ask fetches o's robots.txt, if there is a copy only when it has changed.
func (c *Cache) ask(o rules.Origin, as string, prev *entry) answer {
	if prev.hasCopy() {
		return c.fetcher.fetch(o, as, prev.tags)
	}
	return c.fetcher.fetch(o, as, validators{})
}

// now returns the time by the wall clock. The monotonic clock stands still
// while a machine sleeps, and would keep a policy fresh for days.
func (c *Cache) now() time.Time { return c.clock().Round(0) }
