package cache

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// table is what several caches of one test share.
type table struct {
	mu       sync.Mutex
	all      map[string]shared
	dropped  map[string]int64  // by tag
	leases   map[string]string // "held" or "alone"
	last     int64
	away     bool
	watchers map[int]func(string, bool)
}

type shared struct {
	version          int64
	record, snapshot []byte
}

func newTable() *table {
	return &table{all: map[string]shared{}, dropped: map[string]int64{}, leases: map[string]string{}, watchers: map[int]func(string, bool){}}
}

// seat is one cache's place at the table.
type seat struct {
	*table
	number int
}

// seat returns the next seat.
func (f *table) seat() Shared {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers[len(f.watchers)] = nil
	return &seat{f, len(f.watchers) - 1}
}

func (s *seat) Newer(_ context.Context, tag, name string, known int64) (version int64, record, snapshot []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.seenLocked(tag, name)
	switch {
	case s.away, v.version == known:
		return 0, nil, nil
	case v.version == 0:
		return -1, nil, nil
	}
	return v.version, slices.Clone(v.record), slices.Clone(v.snapshot)
}

// seenLocked is what there is under a tag and a name, or word of its drop.
func (f *table) seenLocked(tag, name string) shared {
	if v, ok := f.all[tag+"\n"+name]; ok {
		return v
	}
	return shared{version: f.dropped[tag]}
}

func (s *seat) Lease(_ context.Context, tag, name string, known int64) (end func(record, snapshot []byte, keep time.Duration) int64, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := tag + "\n" + name
	switch {
	case s.away, s.leases[key] == "alone":
		return nil, 0
	case s.seenLocked(tag, name).version != known, s.leases[key] == "held":
		return nil, time.Millisecond
	}
	s.leases[key] = "held"
	return func(record, snapshot []byte, keep time.Duration) int64 {
		return s.end(tag, key, record, snapshot, keep)
	}, 0
}

func (s *seat) end(tag, key string, record, snapshot []byte, keep time.Duration) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away || len(record) == 0 || keep <= 0 {
		s.leases[key] = "alone"
		return 0
	}
	delete(s.leases, key)
	s.last++
	s.all[key] = shared{s.last, record, snapshot}
	s.notifyLocked(tag, false)
	return s.last
}

func (s *seat) Drop(_ context.Context, tag string) (had bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return false, errors.New("away")
	}
	for key := range s.all {
		if strings.HasPrefix(key, tag+"\n") {
			delete(s.all, key)
			had = true
		}
	}
	s.last++
	s.dropped[tag] = s.last
	s.notifyLocked(tag, true)
	return had, nil
}

func (s *seat) Watch(changed func(string, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[s.number] = changed
}

// notifyLocked notifies the other heeds of a change, as a store does: a moment later.
func (s *seat) notifyLocked(tag string, dropped bool) {
	for i, changed := range s.watchers {
		if i != s.number && changed != nil {
			go changed(tag, dropped)
		}
	}
}

// tell has all seats look whether anything has changed.
func (f *table) tell() {
	f.mu.Lock()
	all := maps.Clone(f.watchers)
	f.mu.Unlock()
	for _, changed := range all {
		if changed != nil {
			changed("", false)
		}
	}
}

func (f *table) turn(away bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = away
}

// alone forgets who waited in vain, as time does.
func (f *table) alone() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.leases)
}

// fleet are two caches that share a table and a clock.
func fleet(t *testing.T) (one, other *Cache, clock *stepped, store *table) {
	store = newTable()
	one, clock = newCache(t, Config{Shared: store.seat()})
	other, _ = newCache(t, Config{Shared: store.seat(), Store: newDrawer()})
	other.config.Now = clock.Now
	return one, other, clock, store
}

// saw checks how often a site was asked.
func (s *asked) saw(t *testing.T, when string, want int32) {
	t.Helper()
	must.Equal(t, s.count.Load(), want, "times the site was asked %s", when)
}

func refuses(t *testing.T, c *Cache, o rules.Origin) rules.Source {
	t.Helper()
	p := c.Policy(t.Context(), o, "")
	if d := p.Decide(nil, rules.NewTarget("/private/x")); d.Verdict != rules.Refuse || d.Reason != rules.ReasonRule {
		t.Errorf("/private/x: %+v, %+v", d, p.Source())
	}
	return p.Source()
}

func TestHeed_OneOfTheFleetAsksForAll(t *testing.T) {
	site, o := newSite(t, status(200, "ETag", `"1"`, "Cache-Control", "max-age=3600"))
	one, other, clock, _ := fleet(t)
	was := refuses(t, one, o)
	if src := refuses(t, other, o); !src.FetchedAt.Equal(was.FetchedAt) || !src.FreshUntil.Equal(was.FreshUntil) || src.State != rules.Available {
		t.Errorf("got %+v, want %+v", src, was)
	}
	site.saw(t, "at first", 1)

	// What one has confirmed is confirmed for all, file and all.
	site.turn(status(304))
	clock.step(24 * time.Hour)
	refuses(t, other, o)
	site.saw(t, "after a day", 2)
	src := refuses(t, one, o)
	must.True(t, src.Status == 304 && src.FetchedAt.Equal(clock.Now()), "after a day: %+v", src)
	site.saw(t, "after a day, by the other,", 2)
	third, _ := newCache(t, Config{Shared: (&seat{one.config.Shared.(*seat).table, 9})})
	third.config.Now = clock.Now
	refuses(t, third, o)
	site.saw(t, "by one that had nothing", 2)
}

func TestHeed_TheFleetWaitsForWhoAsks(t *testing.T) {
	asks, release := make(chan struct{}, 10), make(chan struct{})
	site, o := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		asks <- struct{}{}
		<-release
		status(200)(w, r)
	})
	one, other, _, _ := fleet(t)
	var all sync.WaitGroup
	for _, c := range []*Cache{one, other} {
		for range 50 {
			all.Go(func() { refuses(t, c, o) })
		}
	}
	<-asks
	close(release)
	all.Wait()
	site.saw(t, "by a hundred", 1)
}

func TestHeed_AFailureIsKnownToTheFleet(t *testing.T) {
	site, o := newSite(t, status(503, "Retry-After", "600"))
	one, other, clock, _ := fleet(t)
	was := one.Policy(t.Context(), o, "").Source()
	src := other.Policy(t.Context(), o, "").Source()
	must.True(t, src.State == rules.Unreachable && src.Status == 503 && src.RetryAt.Equal(was.RetryAt) && src.Err != nil,
		"got %+v, want %+v", src, was)
	site.saw(t, "at first", 1)
	site.turn(status(200, "ETag", `"1"`))
	clock.step(10*time.Minute + time.Second)
	refuses(t, other, o)
	site.turn(status(500))
	clock.step(2 * time.Hour)
	refuses(t, one, o) // the last good copy of the other
	src = refuses(t, other, o)
	must.True(t, src.Stale, "%+v", src)
	site.saw(t, "good and failing again", 3)
}

// One heed whose network is broken must not close sites to the others.
func TestHeed_WhatIsOursAloneIsNotShared(t *testing.T) {
	site, o := newSite(t, status(200))
	one, other, _, _ := fleet(t)
	one.fetcher.PerFetch = func() http.RoundTripper {
		return reaching{transport(func(*http.Request) (*http.Response, error) { return nil, errors.New("no network here") })}
	}
	src := one.Policy(t.Context(), o, "").Source()
	must.Need(t, src.NoConnection, "%+v", src)
	refuses(t, other, o)
	site.saw(t, "by the one that reaches it", 1)
}

func TestHeed_NoStoreIsNotShared(t *testing.T) {
	site, o := newSite(t, status(200, "Cache-Control", "no-store"))
	one, other, _, store := fleet(t)
	refuses(t, one, o)
	refuses(t, other, o)
	site.saw(t, "by both", 2)
	must.True(t, len(store.all) == 0, "stored: %v", store.all)
}

// The store was emptied: a heed that holds a copy has it confirmed, and shares the
// whole file again.
func TestHeed_AConfirmedFileIsSharedWhole(t *testing.T) {
	conditions := make(chan string, 10)
	site, o := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		conditions <- r.Header.Get("If-None-Match")
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(304)
			return
		}
		status(200, "ETag", `"1"`)(w, r)
	})
	one, other, clock, store := fleet(t)
	refuses(t, one, o)
	clear(store.all)
	clock.step(2 * time.Hour)
	refuses(t, one, o)
	refuses(t, other, o)
	clock.step(2 * time.Hour)
	refuses(t, other, o)
	site.saw(t, "in four hours", 3)
	for _, want := range []string{"", `"1"`, `"1"`} {
		must.Equal(t, <-conditions, want, "If-None-Match")
	}
}

func TestHeed_AChangeReachesWhoDoesNotAsk(t *testing.T) {
	site, o := newSite(t, status(200))
	one, other, _, _ := fleet(t)
	refuses(t, one, o)
	refuses(t, other, o)
	must.Get(one.Purge(t.Context(), o))(t)
	testkit.Until(t, "the other heed drops it", func() bool { return other.cached(t.Context(), o, "") == nil })
	site.turn(status(404))
	inState(t, one.Policy(t.Context(), o, "").Source(), rules.Unavailable)
	inState(t, other.Policy(t.Context(), o, "").Source(), rules.Unavailable)
	site.saw(t, "before and after", 2)
}

// A policy that was dropped while this heed was down is not used from its disk.
func TestHeed_TheDiskDoesNotBringBackWhatWasDropped(t *testing.T) {
	site, o := newSite(t, status(200))
	store, disk := newTable(), newDrawer()
	before, _ := newCache(t, Config{Shared: store.seat(), Store: disk})
	refuses(t, before, o)
	other, _ := newCache(t, Config{Shared: store.seat()})
	store.watchers[0] = nil // it is down
	had, err := other.Purge(t.Context(), o)
	must.Need(t, err == nil && had, "purged: %v, %v", had, err)
	site.turn(status(404))
	after, _ := newCache(t, Config{Shared: store.seat(), Store: disk})
	inState(t, after.Policy(t.Context(), o, "").Source(), rules.Unavailable)
}

// What a site told single clients is dropped with the rest of it, also where
// the news comes when the site has been asked again, or by way of the disk.
func TestHeed_WhatWasDroppedIsDroppedForClientsOfANameToo(t *testing.T) {
	for _, by := range []string{"memory", "disk"} {
		t.Run(by, func(t *testing.T) {
			site, o := newSite(t, status(403))
			store, disk := newTable(), newDrawer()
			one, _ := newCache(t, Config{Shared: store.seat()})
			other, _ := newCache(t, Config{Shared: store.seat(), Store: disk})
			for _, c := range []*Cache{one, other} {
				c.Policy(t.Context(), o, "curl/8")
			}
			site.saw(t, "as both", 2)
			told := store.watchers[1]
			store.watchers[1] = nil // the word comes late
			must.Get(one.Purge(t.Context(), o))(t)
			one.Policy(t.Context(), o, "")
			site.saw(t, "anew as ourselves", 3)
			if by == "memory" {
				told(tagOf(o), true)
			} else {
				other, _ = newCache(t, Config{Shared: store.seat(), Store: disk})
			}
			other.Policy(t.Context(), o, "curl/8")
			site.saw(t, "anew as curl", 4)
			told(tagOf(o), true)
			store.tell()
			other.Policy(t.Context(), o, "curl/8")
			one.Policy(t.Context(), o, "curl/8")
			site.saw(t, "at last", 4)
		})
	}
}

// What cannot be shared is not forgotten at every word of an old drop.
func TestHeed_ADropIsFollowedOnce(t *testing.T) {
	site, o := newSite(t, status(200, "Cache-Control", "no-store"))
	one, other, _, store := fleet(t)
	refuses(t, one, o)
	must.Get(other.Purge(t.Context(), o))(t)
	testkit.Until(t, "the other heed drops it", func() bool { return one.cached(t.Context(), o, "") == nil })
	refuses(t, one, o)
	for range 3 {
		store.tell()
		refuses(t, one, o)
	}
	site.saw(t, "before and after", 2)
}

func TestHeed_WithoutTheStoreEachGoesOn(t *testing.T) {
	site, o := newSite(t, status(200, "ETag", `"1"`))
	one, other, clock, store := fleet(t)
	refuses(t, one, o)
	refuses(t, other, o)
	store.turn(true)
	refuses(t, one, o)
	site.saw(t, "at first", 1)
	site.turn(status(404))
	clock.step(2 * time.Hour)
	for _, c := range []*Cache{one, other} {
		inState(t, c.Policy(t.Context(), o, "").Source(), rules.Unavailable)
	}
	site.saw(t, "without the store", 3)
	had, err := one.Purge(t.Context(), o)
	must.True(t, had && err != nil, "purged: %v, %v", had, err)

	// It is back, with what it had: older than what each knows.
	store.turn(false)
	store.alone()
	store.tell()
	inState(t, other.Policy(t.Context(), o, "").Source(), rules.Unavailable, "with an old copy in the store")
	site.saw(t, "after its return", 3)
	clock.step(2 * time.Hour)
	other.Policy(t.Context(), o, "")
	one.Policy(t.Context(), o, "")
	site.saw(t, "together again", 4)
}

func TestHeed_WhatIsBrokenInTheStoreIsNotUsed(t *testing.T) {
	for name, broken := range map[string]shared{
		"no record":       {1, []byte("hello"), nil},
		"another version": {1, []byte(`{"v":99}`), nil},
		"no file":         {1, encodeRecord(after(said(200)), rules.Standard), nil},
		"another's file":  {1, encodeRecord(after(said(200)), rules.Standard), encodeSnapshot(&rules.Snapshot{Origin: numbered(7), SHA256: rules.DigestOf(nil)})},
	} {
		site, o := newSite(t, status(200))
		one, other, _, store := fleet(t)
		store.all[tagOf(o)+"\n"] = broken
		refuses(t, one, o)
		refuses(t, other, o)
		must.Equal(t, site.count.Load(), 1, "%s: times the site was asked", name)
	}
}

func TestHeed_ClientsOfANameHaveTheirOwnInTheFleet(t *testing.T) {
	site, o := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.UserAgent() != "curl/8" {
			w.WriteHeader(403)
			return
		}
		status(200)(w, r)
	})
	one, other, _, _ := fleet(t)
	for _, c := range []*Cache{one, other} {
		d := c.Policy(t.Context(), o, "curl/8").Decide(nil, rules.NewTarget("/private/x"))
		must.True(t, d.Verdict == rules.Refuse, "as curl: %+v", d)
		d = c.Policy(t.Context(), o, "").Decide(nil, rules.NewTarget("/private/x"))
		must.True(t, d.Verdict == rules.Allow, "as ourselves: %+v", d)
	}
	site.saw(t, "as both", 2)
}

func TestHeed_HeldIsShown(t *testing.T) {
	site, o := newSite(t, status(200))
	one, other, clock, _ := fleet(t)
	if got := one.Find(o); len(got) != 0 {
		t.Errorf("found %+v", got)
	}
	if n, _ := one.Size(); n != 0 {
		t.Errorf("looking for nothing left %d places", n)
	}
	refuses(t, one, o)
	got := other.Find(o) // of the fleet
	must.Need(t, len(got) == 1 && got[0].AskAt.Equal(clock.Now().Add(time.Hour)) && got[0].Bytes != 0 && got[0].Shared && got[0].For == "",
		"found %+v", got)
	for _, c := range []*Cache{one, other} { // of the fleet, of the disk
		s := c.Find(o)[0].Policy.Source().Snapshot
		must.Need(t, s != nil, "there is no file")
		body, err := s.Body()
		must.True(t, string(body) == file && err == nil, "the file is %q, %v", body, err)
	}
	n := 0
	for h := range other.List() {
		n++
		must.Equal(t, h.Policy.Source().Origin, o, "held: %+v", h)
	}
	if site.saw(t, "to look", 1); n != 1 {
		t.Errorf("%d held", n)
	}
	had, err := other.Purge(t.Context(), o)
	must.True(t, err == nil && had, "purged: %v, %v", had, err)
	n, bytes := other.Size()
	must.True(t, n == 0 && bytes == 0, "after it %d places, %d bytes", n, bytes)
}

// stuck is a store that says of everything that another heed fetches it.
type stuck struct{ Shared }

func (stuck) Newer(context.Context, string, string, int64) (int64, []byte, []byte) {
	return 0, nil, nil
}

func (stuck) Lease(context.Context, string, string, int64) (func([]byte, []byte, time.Duration) int64, time.Duration) {
	return nil, 50 * time.Millisecond
}

func (stuck) Watch(func(string, bool)) {}

func TestHeed_NoRequestWaitsLongForAFetchThatIsOnlyClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c, _ := newCache(t, Config{Shared: stuck{}, Transport: transport(func(*http.Request) (*http.Response, error) {
			asked++
			return reply(200), nil
		})})
		began := time.Now()
		refuses(t, c, site)
		took := time.Since(began)
		must.True(t, took <= fleetWait && asked == 1, "it took %v, the site was asked %d times", took, asked)
	})
}
