// Package cache returns the robots.txt policy of an origin: from memory, or from the site,
// which is requested once for all callers that wait.
//
// A look-up goes through these files in order: cache.go finds a fresh entry (entry.go) in
// memory (memory.go), in a store that survives restarts (policystore.go; package policyfile)
// or in the store of a fleet (fleet.go), or waits for a fetch (fetch.go, limiter.go, body.go).
// The pure function next (state.go, lifetime.go) turns the answer into the next entry. info.go
// lists and counts what is cached. document.go fetches other documents of sites as a robots.txt is
// fetched. visit.go makes requests to hosts that another host has named.
//
// Outside package: github.com/patrickmn/go-cache, a map with expiry, imported by
// memory.go alone, which bounds it.
package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/sync/singleflight"

	"heed/internal/base/memo"
	"heed/rules"
)

// Cache returns the Policy of any origin. Make one with New; it is safe for concurrent use.
type Cache struct {
	config     Config // without zero fields but PerFetch, Store, Shared and Fetched
	store      *store
	fetcher    *fetcher
	flights    singleflight.Group       // flightKey -> *entry
	refreshing sync.Map                 // flightKey -> nothing: refreshed in the background
	variants   memo.Map[string, string] // User-Agent -> variantKey.key
}

// New returns an empty cache. It panics when config.Transport is nil.
func New(config Config) *Cache {
	if config.Transport == nil {
		panic("cache: Config.Transport is nil")
	}
	config = config.withDefaults()
	c := &Cache{config: config, store: storeOf(config), fetcher: newFetcher(config)}
	c.fetcher.known = func(o rules.Origin) *rules.Policy {
		if e := c.cached(context.Background(), o, ""); e != nil {
			return e.policy
		}
		return nil
	}
	if c.config.Shared != nil {
		c.config.Shared.Watch(c.changed)
	}
	return c
}

// Policy returns the policy of o; it is never nil. A fresh policy is returned immediately, and
// one a little past its lifetime too, while the site is requested in the background. Otherwise
// the site is requested, once for all callers that wait. userAgent is the client's. An origin
// that answers 401 or 403 to heed, or states that its file depends on the client, is requested
// again under that name. The result is kept for clients of that name alone; clients whose
// requests are signed (see Config.Signer) are separate clients. At most maxVariants new names
// are used per hour. For a further name Policy returns the policy for heed's own name, with
// Source.NameNotAsked.
//
// When there is no answer within Config.Timeout, or before ctx ends, Policy returns the last
// good copy, marked Stale, or a policy in state Unreachable with Source.Err set.
func (c *Cache) Policy(ctx context.Context, o rules.Origin, userAgent string) *rules.Policy {
	if e := c.cached(ctx, o, userAgent); e != nil {
		return e.policy
	}
	return c.await(ctx, o, userAgent)
}

// Held returns the files, fresh or not, that o gave to clients under their own names; each
// applies to clients of one name. There are none where o answers all clients alike. Held
// requests nothing from the site or the disk.
func (c *Cache) Held(o rules.Origin) (files []*rules.Policy) {
	p := c.store.find(o)
	if p == nil {
		return nil
	}
	for _, v := range p.all() {
		if file := v.copy(); file != nil && v.name != "" {
			files = append(files, file)
		}
	}
	return files
}

// Document requests the document at u, an absolute http or https URL, under heed's own name.
// It has the limits of a fetch of robots.txt: redirects, concurrent fetches, and
// Config.PerFetch. It returns the status of the final answer and, with 200 and 203, its
// decoded body; a body of more than most octets is ErrTooLong. An error means that there was
// no usable answer. permit returns why a redirect is not followed; nil follows all. by is the
// host that named u; empty: the host of u. Requests to another host are visits, whose answers
// are shared by all callers; nothing else is cached. The fetch ends with ctx.
func (c *Cache) Document(ctx context.Context, by string, u *url.URL, most int, permit func(context.Context, *url.URL) error) (status int, body []byte, err error) {
	return c.fetcher.document(ctx, by, u, most, permit)
}

// Size returns the number of cached origins, and about how many octets they take.
func (c *Cache) Size() (origins int, bytes int64) { return c.store.size() }

// cached returns the fresh entry for o and userAgent, or nil. ctx is that of the client's
// request.
func (c *Cache) cached(ctx context.Context, o rules.Origin, userAgent string) *entry {
	p := c.store.find(o)
	if p == nil {
		return nil
	}
	now := c.now()
	e := c.usable(p, o, variantKey{}, now)
	if e != nil && c.needsOwnAnswer(e, userAgent) {
		if own := c.usable(p, o, c.variantKey(ctx, userAgent), now); own != nil {
			e = e.prefer(own)
		} else {
			e = nil
		}
	}
	if e != nil {
		p.touch(now)
	}
	return e
}

// usable returns the entry of p for one kind of client when it may be used now, or nil. An
// entry past its lifetime is refreshed in the background.
func (c *Cache) usable(p *originSlot, o rules.Origin, as variantKey, now time.Time) *entry {
	switch e := p.entry(as.key, now); e.use(now) {
	case fresh:
		return e
	case inGrace:
		c.refreshInBackground(o, as)
		return e
	default:
		return nil
	}
}

// needsOwnAnswer reports whether the site may answer the client differently from e.
func (c *Cache) needsOwnAnswer(e *entry, userAgent string) bool {
	return e.personal() && userAgent != "" && userAgent != c.config.UserAgent &&
		httpguts.ValidHeaderFieldValue(userAgent)
}

// prefer returns the one of e, the answer to heed's name, and own, the answer to the client's,
// that holds for the client (rules.InForce).
func (e *entry) prefer(own *entry) *entry {
	const client = "client" // any name but heed's
	both := [2]*entry{e, own}
	answers := [2]rules.Answer{e.answer(""), own.answer(client)}
	return both[rules.InForce(answers[:], client)]
}

// answer returns e as an answer for the clients of a key.
func (e *entry) answer(key string) rules.Answer {
	return rules.Answer{For: key, File: e.isFile(), Denied: e.Denied, Failed: e.Failures > 0}
}

// nameNotAsked returns the policy of e for a client under whose name the site was not
// requested.
func (e *entry) nameNotAsked() *rules.Policy {
	source := e.policy.Source()
	source.NameNotAsked = true
	source.Note = fmt.Sprintf("the site was not asked under this name, since it was under %d others within an hour: what it told those counts too", maxVariants)
	return e.policy.With(source)
}

// await waits for the policy of o, at most Config.Timeout.
func (c *Cache) await(ctx context.Context, o rules.Origin, userAgent string) *rules.Policy {
	ctx, cancel := context.WithTimeoutCause(ctx, c.config.Timeout, answerTimeout(c.config.Timeout))
	defer cancel()
	o.Host = strings.Clone(o.Host) // it is kept, and may be part of a whole request
	e := c.join(ctx, o, variantKey{})
	if c.needsOwnAnswer(e, userAgent) {
		own := c.join(ctx, o, c.variantKey(ctx, strings.Clone(userAgent)))
		if own == nil {
			return e.nameNotAsked()
		}
		e = e.prefer(own)
	}
	return e.policy
}

// join waits for the entry of o for the variant as, and starts its fetch when no other caller
// has. The end of ctx ends only this wait; the fetch continues for other callers.
func (c *Cache) join(ctx context.Context, o rules.Origin, as variantKey) *entry {
	if ctx.Err() != nil {
		return c.fallback(o, as, context.Cause(ctx))
	}
	done := c.flights.DoChan(flightKey(o, as), func() (any, error) { return c.refresh(ctx, o, as), nil })
	select {
	case r := <-done:
		return r.Val.(*entry)
	case <-ctx.Done():
		return c.fallback(o, as, context.Cause(ctx))
	}
}

// refreshInBackground starts a fetch of o, unless one is under way.
func (c *Cache) refreshInBackground(o rules.Origin, as variantKey) {
	key := flightKey(o, as)
	if _, busy := c.refreshing.LoadOrStore(key, nil); busy {
		return // each caller of a flight costs memory until it ends
	}
	o.Host, as.userAgent = strings.Clone(o.Host), strings.Clone(as.userAgent)
	go func() {
		defer c.refreshing.Delete(key)
		_, _, _ = c.flights.Do(key, func() (any, error) { return c.refresh(context.Background(), o, as), nil })
	}()
}

// flightKey returns the key of a fetch: callers with the same key share it.
func flightKey(o rules.Origin, as variantKey) string {
	return string(append(appendKey(nil, o), "\n"+as.key...))
}

// fallback returns the entry for a caller whose wait has ended. It is not stored.
func (c *Cache) fallback(o rules.Origin, as variantKey, cause error) *entry {
	now := c.now()
	var prev *entry
	if p := c.store.find(o); p != nil {
		prev = p.entry(as.key, now)
	}
	err := fmt.Errorf("waiting for %s: %w", o.RobotsURL(), cause)
	return next(prev, answer{origin: o, as: as.userAgent, siteReply: siteReply{err: err, local: true}}, now, 0, c.config.Profile)
}

// refresh fetches the robots.txt of o for the variant as and stores the result. It returns nil
// when too many new names were used for o. It runs once at a time for each o and as. by is the
// context of the request that causes it, and does not end the fetch.
func (c *Cache) refresh(by context.Context, o rules.Origin, as variantKey) (e *entry) {
	now := c.now()
	p := c.store.pin(o, now)
	defer c.store.unpin(p)
	prev := p.entry(as.key, now)
	defer func() {
		// A panic here would end the process, because no caller recovers it. A hostile file must
		// not cause that.
		if v := recover(); v != nil {
			err := fmt.Errorf("internal fault while fetching %s: %v", o.RobotsURL(), v)
			e = next(prev, answer{origin: o, as: as.userAgent, siteReply: siteReply{err: err}}, c.now(), rand.Float64(), c.config.Profile)
			p.set(as.key, e)
		}
	}()
	if prev.fresh(now) {
		// Another fetch has ended since the caller looked.
		return prev
	}
	if prev == nil {
		prev = c.load(p, o, as.key)
	}
	t := c.lease(p, o, as, prev)
	defer t.abandon()
	if prev = t.entry; prev.fresh(c.now()) {
		return prev // fetched by another heed, or by this one before a restart
	}
	if prev == nil && as.key != "" && !p.admit(now) {
		return nil
	}
	var tags validators
	if prev.copy() != nil {
		tags = prev.validators
	}
	began := time.Now()
	c.fetcher.fetch(c.config.Carry(by, context.Background()), o, as, tags, func(a *answer) {
		e = next(prev, *a, c.now(), rand.Float64(), c.config.Profile)
		if c.config.Fetched != nil {
			c.config.Fetched(a.fetchOutcome(e), time.Since(began))
		}
		if !a.local { // the site was not requested: the next caller tries again
			t.publish(a, e)
			p.set(as.key, e)
			c.save(p, o, as.key, a, e)
		}
	})
	return e
}

// now returns the time by the wall clock. The monotonic clock stops
// while a machine sleeps, and would keep a policy fresh for days.
func (c *Cache) now() time.Time { return c.config.Now().Round(0) }

// variantKey identifies one variant of an origin's robots.txt: the answer to heed's own
// name (the zero value), or to a client's.
type variantKey struct {
	key       string // of its entries
	userAgent string // the User-Agent that is sent
	signer    Signer // signs the requests; nil: they are not signed
}

// signedMark precedes the ID of a Signer in a key. No product token contains a tab.
const signedMark = "\tsigned "

// maxAgentKeys bounds the memo of User-Agents and their keys.
const maxAgentKeys = 1024

// variantKey returns the key for clients with this User-Agent. ctx is that of the request,
// which determines the signature.
func (c *Cache) variantKey(ctx context.Context, userAgent string) variantKey {
	as := variantKey{userAgent: userAgent}
	var known bool
	if as.key, known = c.variants.Get(userAgent); !known {
		as.key, as.userAgent = rules.NameKey(userAgent), strings.Clone(userAgent)
		c.variants.Put(as.userAgent, as.key, maxAgentKeys)
	}
	if as.signer = c.config.Signer(ctx); as.signer != nil {
		as.key += signedMark + as.signer.ID()
	}
	return as
}
