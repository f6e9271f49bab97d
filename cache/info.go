package cache

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
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
	// Bytes is about how many octets it takes in memory.
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
	mark, words, _ := strings.Cut(key, " ")
	if mark != "" && words == "" {
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
	if c.config.Shared != nil {
		t := &lease{cache: c, slot: p, origin: o, entry: e}
		t.pull(context.Background())
	}
	c.store.unpin(p)
	if p.entry("", c.now()) == nil {
		c.store.remove(p)
	}
}

// Purge deletes the entries of o in memory, on disk and in the fleet, also those for single
// clients, and what Config.Purged forgets, and reports whether there was any. The next request fetches again. The error means
// that the disk did not accept it, or that the other heeds of the fleet could not be notified.
func (c *Cache) Purge(ctx context.Context, o rules.Origin) (had bool, err error) {
	had = len(c.Find(o)) > 0
	had = c.purged(o) || had
	p := c.store.pin(o, c.now())
	if !c.forget(p, o, "") {
		err = fmt.Errorf("what is kept of %s on disk cannot be removed now, and may be used after a restart", o)
	}
	c.store.unpin(p)
	c.store.remove(p)
	if c.config.Shared == nil {
		return had, err
	}
	shared, untold := c.config.Shared.Drop(ctx, tagOf(o))
	return had || shared, errors.Join(err, untold)
}

// purged forgets what is kept of o beside its policies. The answers to visits are those of hosts
// that a site names, whichever they are: all of them are requested again.
func (c *Cache) purged(o rules.Origin) (had bool) {
	c.fetcher.visits.answers.Forget(func(string, *siteReply) bool { return true })
	return c.config.Purged(o)
}

// DropFailures drops failed fetches without an answer of the site, so that the next request
// fetches again: other settings may reach the site. Answers of sites are kept, 5xx too, and so
// are older copies that are used in place of the site's file. It returns the number of dropped
// failures.
func (c *Cache) DropFailures(ctx context.Context) (dropped int) {
	for _, p := range c.store.slotsOf() {
		dropped += c.dropFailuresOf(ctx, p)
	}
	return dropped
}

func (c *Cache) dropFailuresOf(ctx context.Context, p *originSlot) (dropped int) {
	now := c.now()
	for _, v := range p.all() {
		if !v.unanswered() {
			continue
		}
		dropped++
		o := v.policy.Source().Origin
		pinned := c.store.pin(o, now)
		if v.copy() != nil {
			due := *v.entry
			due.AskAt, due.WaitAt = now, now
			pinned.replace(v.name, v.entry, &due)
		} else {
			c.forget(pinned, o, v.name)
		}
		c.store.unpin(pinned)
		if v.copy() == nil && c.config.Shared != nil {
			_, _ = c.config.Shared.Drop(ctx, tagOf(o)) // the status shows a store that is unreachable
		}
	}
	return dropped
}

// unanswered reports whether e is a failure without an answer of its site. A 407 is from a
// proxy (RFC 9110 §15.5.8).
func (e *entry) unanswered() bool {
	if e.Failures == 0 {
		return false
	}
	status := e.policy.Source().Status
	return status == 0 || status == http.StatusProxyAuthRequired
}

// forget deletes the entry of o under as in memory, whose slot is p, and on disk; with the
// entry for all clients it deletes the others. It reports whether the disk accepted it.
func (c *Cache) forget(p *originSlot, o rules.Origin, as string) bool {
	p.drop(as)
	return c.config.Store == nil || c.config.Store.Drop(storeKey(o, as))
}

// Outcomes of a fetch, for Config.Fetched.
const (
	fetchedFile   = "available"    // a robots.txt was read
	fetchedSame   = "not_modified" // the copy is still valid (304)
	fetchedNone   = "unavailable"  // the site has none: everything is allowed
	fetchedFailed = "unreachable"  // it could not be read, with or without an older copy
	fetchedLocal  = "not_asked"    // the limits of fetches prevented it
)

// FetchOutcomes returns all outcomes.
func FetchOutcomes() []string {
	return []string{fetchedFile, fetchedSame, fetchedNone, fetchedFailed, fetchedLocal}
}

// fetchOutcome returns the outcome of the fetch a, from which e was made.
func (a *answer) fetchOutcome(e *entry) string {
	source := e.policy.Source()
	switch {
	case a.local:
		return fetchedLocal
	case a.err != nil, source.Stale, source.State == rules.Unreachable:
		return fetchedFailed
	case a.status == http.StatusNotModified:
		return fetchedSame
	case source.State == rules.Unavailable:
		return fetchedNone
	}
	return fetchedFile
}

// MemoryCounts counts the policies in a Memory.
type MemoryCounts struct {
	States map[rules.State]int // origins by the state of their policy for all clients
	Bytes  int64               // of all of them
}

// Counts counts the policies in m as they were at the end of the last fetch of each origin.
func (m *Memory) Counts() MemoryCounts {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := MemoryCounts{States: map[rules.State]int{}, Bytes: m.bytes}
	for state, n := range m.states {
		c.States[rules.State(state)] = n
	}
	return c
}

// recountLocked counts p under the state of its policy for all clients, or under none.
func (m *Memory) recountLocked(p *originSlot, held bool) {
	if p.stated {
		m.states[p.state]--
	}
	p.stated = false
	if all := p.all(); held && len(all) > 0 {
		p.state, p.stated = all[0].policy.Source().State, true
		m.states[p.state]++
	}
}
