// Package cache provides the Policy of an origin: from memory, else from the site,
// which is asked once for all callers that wait.
//
// The files in the order of a look-up: cache.go finds a fresh entry (entry.go) in
// memory (memory.go), in a store that outlives the process (policystore.go;
// package policyfile) or in the store of a fleet (fleet.go), or waits for a fetch
// (fetch.go, limiter.go, body.go).
// The pure function next (state.go, lifetime.go) turns the answer into the next
// entry. info.go lists what is cached. document.go fetches other documents of sites in the
// way of a robots.txt. visit.go has the requests to hosts that another one has named.
//
// Outside package: github.com/patrickmn/go-cache, imported by memory.go alone.
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

	"heed/internal/memo"
	"heed/rules"
)

// Cache has the Policy of any origin at hand. Make one with New; it is safe
// for concurrent use.
type Cache struct {
	store      *store
	disk       PolicyStore // nil: nothing outlives the process
	shared     Shared      // nil: there are no other heeds
	fetcher    *fetcher
	flights    singleflight.Group       // flightKey -> *entry
	refreshing sync.Map                 // flightKey -> nothing: asked while the entry at hand answers
	variants   memo.Map[string, string] // User-Agent -> variantKey.key
	clock      func() time.Time
	timeout    time.Duration // of a caller's wait
	profile    rules.Profile
	carry      func(from, to context.Context) context.Context
	signer     func(context.Context) Signer
	fetched    func(outcome string, took time.Duration) // nil: not called
}

// New returns an empty cache. It panics when config.Transport is nil.
func New(config Config) *Cache {
	if config.Transport == nil {
		panic("cache: Config.Transport is nil")
	}
	config = config.withDefaults()
	c := &Cache{
		store:   storeOf(config),
		disk:    config.Store,
		shared:  config.Shared,
		fetcher: newFetcher(config),
		clock:   config.Now,
		timeout: config.Timeout,
		profile: config.Profile,
		fetched: config.Fetched, carry: config.Carry, signer: config.Signer,
	}
	c.fetcher.known = func(o rules.Origin) *rules.Policy {
		if e := c.cached(context.Background(), o, ""); e != nil {
			return e.policy
		}
		return nil
	}
	if c.shared != nil {
		c.shared.Watch(c.changed)
	}
	return c
}

// Policy returns what o's robots.txt says; it is never nil. A fresh policy is
// returned immediately, and one a little past its time too, while the site is asked
// in the background; else the site is asked, once for all who wait. userAgent is the
// client's: an origin that answers 401 or 403 to us, or says that its file
// depends on the client, is asked again under that name, and the result kept for
// clients of its name alone; those whose requests are signed (see Config.Signer) are other
// clients. Of new names there are at most maxVariants an hour; the
// policy for a further one is that for heed's own, with Source.NameNotAsked.
//
// What cannot be had within Config.Timeout, or before ctx ends, is the last
// good copy marked Stale, else a policy in state Unreachable with Source.Err
// set.
func (c *Cache) Policy(ctx context.Context, o rules.Origin, userAgent string) *rules.Policy {
	if e := c.cached(ctx, o, userAgent); e != nil {
		return e.policy
	}
	return c.await(ctx, o, userAgent)
}

// Held returns the files that o gave to clients under their names, fresh or not, of which
// each holds for clients of one name alone: none where o answers all clients alike. It
// asks neither the site nor the disk.
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

// Document requests the document at u, an absolute http or https URL, as heed itself. It
// has the bounds of a fetch of robots.txt: redirects, the number of fetches at a time, and
// what Config.PerFetch does to them. It returns the status of the final answer and, with
// 200 and 203, its decoded body; one of more than most octets is ErrTooLong. An error means
// that there was no usable answer. permit, unless it is nil, returns why a redirect is not
// followed. by is the host that has named u; empty: that of u. Requests to another host are
// visits, whose answers are kept for all who are sent there; nothing else is cached. The end
// of ctx ends the fetch.
func (c *Cache) Document(ctx context.Context, by string, u *url.URL, most int, permit func(context.Context, *url.URL) error) (status int, body []byte, err error) {
	return c.fetcher.document(ctx, by, u, most, permit)
}

// Size returns for how many origins something is kept, and about how many
// bytes of memory that takes.
func (c *Cache) Size() (origins int, bytes int64) { return c.store.size() }

// cached returns the entry that answers for o and userAgent now, or nil. ctx is that of the
// client's request.
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

// usable returns the entry of p for one kind of client when it may answer now,
// else nil. One past its time has the site asked beside it.
func (c *Cache) usable(p *originSlot, o rules.Origin, as variantKey, now time.Time) *entry {
	e := p.entry(as.key, now)
	switch e.use(now) {
	case fresh:
		return e
	case inGrace:
		c.refreshInBackground(o, as)
		return e
	default:
		return nil
	}
}

// needsOwnAnswer reports whether e is an answer that may be another for the client.
func (c *Cache) needsOwnAnswer(e *entry, userAgent string) bool {
	return e.personal() && userAgent != "" && userAgent != c.fetcher.userAgent &&
		httpguts.ValidHeaderFieldValue(userAgent)
}

// prefer returns which of two entries holds for a client: own, what the site answered
// under the client's name, except for a denial or a failure where e, what it
// answered under ours, is a file.
func (e *entry) prefer(own *entry) *entry {
	if own.isFile() || !e.isFile() || !own.Denied && own.Failures == 0 {
		return own
	}
	return e
}

// nameNotAsked returns the policy of e for a client under whose name the site was not asked.
func (e *entry) nameNotAsked() *rules.Policy {
	source := e.policy.Source()
	source.NameNotAsked = true
	source.Note = fmt.Sprintf("the site was not asked under this name, since it was under %d others within an hour: what it told those counts too", maxVariants)
	return e.policy.With(source)
}

// await waits for the policy of o, no longer than the cache's time limit.
func (c *Cache) await(ctx context.Context, o rules.Origin, userAgent string) *rules.Policy {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, answerTimeout(c.timeout))
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

// join waits for the entry of o asked as as, starting its fetch when no caller
// has. The end of ctx ends this wait alone; the fetch goes on for the others,
// and for the next.
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

// refreshInBackground asks o in the background, unless it is being asked already.
func (c *Cache) refreshInBackground(o rules.Origin, as variantKey) {
	key := flightKey(o, as)
	if _, busy := c.refreshing.LoadOrStore(key, nil); busy {
		return // the flight would keep something for each caller until it ends
	}
	o.Host, as.userAgent = strings.Clone(o.Host), strings.Clone(as.userAgent)
	go func() {
		defer c.refreshing.Delete(key)
		_, _, _ = c.flights.Do(key, func() (any, error) { return c.refresh(context.Background(), o, as), nil })
	}()
}

// flightKey is what those who wait for the same fetch have in common.
func flightKey(o rules.Origin, as variantKey) string {
	return string(append(appendKey(nil, o), "\n"+as.key...))
}

// fallback returns what holds for a caller who could not wait. It is not kept.
func (c *Cache) fallback(o rules.Origin, as variantKey, cause error) *entry {
	now := c.now()
	var prev *entry
	if p := c.store.find(o); p != nil {
		prev = p.entry(as.key, now)
	}
	err := fmt.Errorf("waiting for %s: %w", o.RobotsURL(), cause)
	return next(prev, answer{origin: o, as: as.userAgent, err: err, local: true}, now, 0, c.profile)
}

// refresh asks o as as and keeps the result; it returns nil when as is one new name too
// many. It runs once at a time for each pair of them. by is the context of the request that causes it, whose end does not end it.
func (c *Cache) refresh(by context.Context, o rules.Origin, as variantKey) (e *entry) {
	now := c.now()
	p := c.store.pin(o, now)
	defer c.store.unpin(p)
	prev := p.entry(as.key, now)
	defer func() {
		// A panic here would end the process: no caller recovers it. It must not be the answer to a hostile file.
		if v := recover(); v != nil {
			err := fmt.Errorf("internal fault while fetching %s: %v", o.RobotsURL(), v)
			e = next(prev, answer{origin: o, as: as.userAgent, err: err}, c.now(), rand.Float64(), c.profile)
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
	t := c.lease(p, o, as, prev)
	defer t.abandon()
	if prev = t.entry; prev.fresh(c.now()) {
		return prev // another heed has asked, or this one before it was restarted
	}
	if prev == nil && as.key != "" && !p.admit(now) {
		return nil
	}
	var tags validators
	if prev.copy() != nil {
		tags = prev.validators
	}
	began := time.Now()
	a := c.fetcher.fetch(c.carry(by, context.Background()), o, as, tags)
	defer a.done()
	e = next(prev, a, c.now(), rand.Float64(), c.profile)
	if c.fetched != nil {
		c.fetched(a.fetchOutcome(e), time.Since(began))
	}
	if !a.local { // the site was not asked: the next caller may have more luck
		t.publish(&a, e)
		p.set(as.key, e)
		c.save(p, o, as.key, &a, e)
	}
	return e
}

// now returns the time by the wall clock. The monotonic clock stops
// while a machine sleeps, and would keep a policy fresh for days.
func (c *Cache) now() time.Time { return c.clock().Round(0) }

// variantKey identifies one variant of an origin's robots.txt: the answer to heed's own
// name (the zero value), or to a client's.
type variantKey struct {
	key       string // of the entries kept for it
	userAgent string // the User-Agent that is sent
	signer    Signer // signs the requests; nil: they are not signed
}

// agentMark begins the keys of agentKey.
const agentMark = "as"

// signedMark is before the ID of a Signer in a key. No product token contains a tab.
const signedMark = "\tsigned "

// agentKey returns what the entries of clients with this User-Agent are kept
// under; empty for an empty one. Clients are distinguished by their product
// tokens, as rules distinguish them: every version of a program is one client.
func agentKey(userAgent string) string {
	if userAgent == "" {
		return ""
	}
	key := agentMark
	for _, t := range rules.Identify(userAgent).Tokens {
		key += " " + t.Name
	}
	return key
}

// maxAgentKeys is how many User-Agents are remembered with their keys.
const maxAgentKeys = 1024

// variantKey returns the key for clients with this User-Agent, whose requests have the
// signature of the one with the context ctx.
func (c *Cache) variantKey(ctx context.Context, userAgent string) variantKey {
	as := variantKey{userAgent: userAgent}
	var known bool
	if as.key, known = c.variants.Get(userAgent); !known {
		as.key, as.userAgent = agentKey(userAgent), strings.Clone(userAgent)
		c.variants.Put(as.userAgent, as.key, maxAgentKeys)
	}
	if as.signer = c.signer(ctx); as.signer != nil {
		as.key += signedMark + as.signer.ID()
	}
	return as
}
