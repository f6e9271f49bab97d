package cache

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/sync/singleflight"

	"heed/rules"
)

// Cache has the Policy of any origin at hand. Make one with New; it is safe
// for concurrent use.
type Cache struct {
	store   *store
	keeper  Keeper // nil: nothing outlives the process
	shared  Shared // nil: there are no other heeds
	fetcher *fetcher
	flights singleflight.Group // flightKey -> *entry
	beside  sync.Map           // flightKey -> nothing: asked while the entry at hand answers
	agents  agentKeys
	clock   func() time.Time
	timeout time.Duration // of a caller's wait
	profile rules.Profile
}

// New returns an empty cache. It panics when config.Transport is nil.
func New(config Config) *Cache {
	if config.Transport == nil {
		panic("cache: Config.Transport is nil")
	}
	config = config.withDefaults()
	c := &Cache{
		store:   storeOf(config),
		keeper:  config.Keeper,
		shared:  config.Shared,
		fetcher: newFetcher(config),
		clock:   config.Now,
		timeout: config.Timeout,
		profile: config.Profile,
	}
	if c.shared != nil {
		c.shared.Watch(c.changed)
	}
	return c
}

// Policy returns what o's robots.txt says; it is never nil. A fresh policy is
// returned at once, and one a little past its time too, while the site is asked
// beside it; else the site is asked, once for all who wait. userAgent is the
// client's: an origin that answers 401 or 403 to us, or says that its file
// depends on who asks, is asked again under that name, and the result kept for
// clients of its name alone.
//
// What cannot be had within Config.Timeout, or before ctx ends, is the last
// good copy marked Stale, else a policy in state Unreachable with Source.Err
// set.
func (c *Cache) Policy(ctx context.Context, o rules.Origin, userAgent string) *rules.Policy {
	if p := c.store.find(o); p != nil {
		now := c.now()
		if policy := p.at(now.UnixNano()); policy != nil {
			p.touch(now)
			return policy
		}
	}
	if e := c.cached(o, userAgent); e != nil {
		return e.policy
	}
	return c.await(ctx, o, userAgent)
}

// All returns the policies kept, fresh or not, in no order; for an origin that
// answers each client for itself there is one for each name besides.
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

// cached returns the entry that answers for o and userAgent now, or nil.
func (c *Cache) cached(o rules.Origin, userAgent string) *entry {
	p := c.store.find(o)
	if p == nil {
		return nil
	}
	now := c.now()
	e := c.standing(p, o, asking{}, now)
	if e != nil && c.asksAgain(e, userAgent) {
		if own := c.standing(p, o, c.agents.asking(userAgent), now); own != nil {
			e = e.or(own)
		} else {
			e = nil
		}
	}
	if e != nil {
		p.touch(now)
	}
	return e
}

// standing returns the entry of p for one way of asking when it may answer now,
// else nil. One past its time has the site asked beside it.
func (c *Cache) standing(p *place, o rules.Origin, as asking, now time.Time) *entry {
	e := p.entry(as.key, now)
	switch e.use(now) {
	case fresh:
		return e
	case graced:
		c.askBeside(o, as)
		return e
	default:
		return nil
	}
}

// asksAgain reports whether e is an answer that may be another for the client.
func (c *Cache) asksAgain(e *entry, userAgent string) bool {
	return e.personal() && userAgent != "" && userAgent != c.fetcher.userAgent &&
		httpguts.ValidHeaderFieldValue(userAgent)
}

// or returns which of two entries holds for a client: own, what the site told
// under the client's name, but for a denial or a failure where e, what it told
// under ours, is a file.
func (e *entry) or(own *entry) *entry {
	if own.isFile() || !e.isFile() || !own.denied && own.failures == 0 {
		return own
	}
	return e
}

// await waits for the policy of o, no longer than the cache's time limit.
func (c *Cache) await(ctx context.Context, o rules.Origin, userAgent string) *rules.Policy {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, noAnswer(c.timeout))
	defer cancel()
	o.Host = strings.Clone(o.Host) // it is kept, and may be part of a whole request
	e := c.join(ctx, o, asking{})
	if c.asksAgain(e, userAgent) {
		e = e.or(c.join(ctx, o, c.agents.asking(strings.Clone(userAgent))))
	}
	return e.policy
}

// join waits for the entry of o asked as as, starting its fetch when nobody
// has. The end of ctx ends this wait alone; the fetch goes on for the others,
// and for the next.
func (c *Cache) join(ctx context.Context, o rules.Origin, as asking) *entry {
	if ctx.Err() != nil {
		return c.withoutAnswer(o, as, context.Cause(ctx))
	}
	done := c.flights.DoChan(flightKey(o, as), func() (any, error) { return c.refresh(o, as), nil })
	select {
	case r := <-done:
		return r.Val.(*entry)
	case <-ctx.Done():
		return c.withoutAnswer(o, as, context.Cause(ctx))
	}
}

// askBeside has o asked without anybody waiting, unless it is being asked.
func (c *Cache) askBeside(o rules.Origin, as asking) {
	key := flightKey(o, as)
	if _, busy := c.beside.LoadOrStore(key, nil); busy {
		return
	}
	o.Host, as.name = strings.Clone(o.Host), strings.Clone(as.name)
	done := c.flights.DoChan(key, func() (any, error) { return c.refresh(o, as), nil })
	go func() {
		<-done
		c.beside.Delete(key)
	}()
}

// flightKey is what those who wait for the same fetch have in common.
func flightKey(o rules.Origin, as asking) string {
	return string(append(appendKey(nil, o), "\n"+as.key...))
}

// withoutAnswer returns what holds for a caller who could not wait. It is not kept.
func (c *Cache) withoutAnswer(o rules.Origin, as asking, cause error) *entry {
	now := c.now()
	var prev *entry
	if p := c.store.find(o); p != nil {
		prev = p.entry(as.key, now)
	}
	err := fmt.Errorf("waiting for %s: %w", o.RobotsURL(), cause)
	return next(prev, answer{origin: o, as: as.name, err: err, ours: true}, now, 0, c.profile)
}

// refresh asks o as as and keeps the result. It runs once at a time for each
// pair of them.
func (c *Cache) refresh(o rules.Origin, as asking) (e *entry) {
	now := c.now()
	p := c.store.pin(o, now)
	defer c.store.unpin(p)
	prev := p.entry(as.key, now)
	defer func() {
		// A panic here would end the process: nobody stands above to recover
		// it. It must not be the answer to a hostile file.
		if v := recover(); v != nil {
			err := fmt.Errorf("internal fault while fetching %s: %v", o.RobotsURL(), v)
			e = next(prev, answer{origin: o, as: as.name, err: err}, c.now(), rand.Float64(), c.profile)
			p.set(as.key, e)
		}
	}()
	if prev.fresh(now) {
		// Between a caller's look and this call another fetch has ended.
		return prev
	}
	if prev == nil {
		prev = c.load(p, o, as.key)
	}
	t := c.consult(p, o, as, prev)
	defer t.abandon()
	if prev = t.entry; prev.fresh(c.now()) {
		return prev // another heed has asked, or this one before it was restarted
	}
	a := c.ask(o, as, prev, t.conditional())
	defer a.done()
	e = next(prev, a, c.now(), rand.Float64(), c.profile)
	if !a.ours { // the site was not asked: the next caller may have more luck
		t.tell(&a, e)
		p.set(as.key, e)
		c.save(p, o, as.key, &a, e)
	}
	return e
}

// ask fetches o's robots.txt; if there is a copy and conditional is set, only
// when it has changed.
func (c *Cache) ask(o rules.Origin, as asking, prev *entry, conditional bool) answer {
	if conditional && prev.copy() != nil {
		return c.fetcher.fetch(o, as.name, prev.tags)
	}
	return c.fetcher.fetch(o, as.name, validators{})
}

// now returns the time by the wall clock. The monotonic clock stands still
// while a machine sleeps, and would keep a policy fresh for days.
func (c *Cache) now() time.Time { return c.clock().Round(0) }
