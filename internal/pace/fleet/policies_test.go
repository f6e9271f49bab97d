package fleet_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/pace/fleet"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func shows(t *testing.T, p *fleet.Policies, name string, known, version int64, record, snapshot string) {
	t.Helper()
	v, r, s := p.Newer(t.Context(), tag, name, known)
	must.True(t, v == version && string(r) == record && string(s) == snapshot,
		"%q beside version %d: version %d, %q, %q; want %d, %q, %q", name, known, v, r, s, version, record, snapshot)
}

func TestHeed_WhatOneStoresAllSee(t *testing.T) {
	t.Parallel()
	one, other := heeds(t, "redis://"+testkit.NewRedis(t).Addr)
	shows(t, other, "", 0, 0, "", "")
	v := lease(t, one, "", 0)([]byte("record"), []byte("snap\x00shot"), time.Hour)
	must.Need(t, v != 0, "it was not stored")
	shows(t, other, "", 0, v, "record", "snap\x00shot")
	shows(t, other, "", v, 0, "", "")
	shows(t, other, "as curl", 0, 0, "", "")

	w := lease(t, other, "", v)([]byte("later"), []byte("snap\x00shot"), time.Hour)
	shows(t, one, "", v, w, "later", "snap\x00shot")
	own := lease(t, other, "as curl", 0)([]byte("own"), []byte{}, time.Hour)
	shows(t, one, "as curl", 0, own, "own", "")
	shows(t, one, "", v, w, "later", "snap\x00shot")
}

// A store that keeps nothing on disk is empty after a restart.
func TestHeed_WhatTheStoreHasLostIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	one, other := heeds(t, "redis://"+server.Addr)
	v := lease(t, one, "", 0)([]byte("record"), []byte("file"), time.Hour)
	server.CLI("flushall")
	shows(t, one, "", v, -1, "", "")
	w := lease(t, one, "", 0)([]byte("record"), []byte("file"), time.Hour)
	shows(t, other, "", v, w, "record", "file")
}

func TestHeed_SpacesDoNotMix(t *testing.T) {
	t.Parallel()
	store, _ := open(t, "redis://"+testkit.NewRedis(t).Addr)
	one, other := store.Policies("one"), store.Policies("other")
	lease(t, one, "", 0)([]byte("record"), []byte{}, time.Hour)
	shows(t, other, "", 0, 0, "", "")
	lease(t, other, "", 0) // nor do their leases
}

func TestHeed_ALeaseIsForOne(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	one, other := heeds(t, "redis://"+server.Addr)
	end := lease(t, one, "", 0)
	again, wait := other.Lease(t.Context(), tag, "", 0)
	must.Need(t, again == nil && wait != 0, "a second lease beside the first: %v, wait %v", again != nil, wait)
	v := end([]byte("record"), []byte{}, time.Hour)
	again, wait = other.Lease(t.Context(), tag, "", 0)
	must.Need(t, again == nil && wait != 0, "a lease for what has just been fetched: %v, wait %v", again != nil, wait)
	lease(t, other, "", v)
}

func TestHeed_WhoWaitedInVainIsAlone(t *testing.T) {
	t.Parallel()
	one, other := heeds(t, "redis://"+testkit.NewRedis(t).Addr)
	v := lease(t, one, "", 0)([]byte("record"), []byte("file A"), time.Hour)
	for name, fruitless := range map[string]func(fleet.End) int64{
		"nothing to share": func(end fleet.End) int64 { return end(nil, nil, 0) },
		"too large": func(end fleet.End) int64 {
			return end(bytes.Repeat([]byte("x"), fleet.MaxShared), []byte("x"), time.Hour)
		},
	} {
		var end fleet.End
		testkit.Until(t, "the lease is free", func() bool { end, _ = one.Lease(t.Context(), tag, "", v); return end != nil })
		must.Equal(t, fruitless(end), 0, "%s: stored as", name)
		if end, wait := other.Lease(t.Context(), tag, "", v); end != nil || wait != 0 {
			t.Errorf("%s: the other gets a lease (%v) or waits %v", name, end != nil, wait)
		}
		shows(t, other, "", 0, v, "record", "file A")
	}
}

// A heed that was stopped while it fetched, and wakes up after others have
// fetched anew, has nothing to say any more.
func TestHeed_ALostLeaseStoresNothing(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	one, other := heeds(t, "redis://"+server.Addr)
	late := lease(t, one, "", 0)
	server.CLI("del", server.CLI("--scan", "--pattern", "*:lease:")) // as if its time had passed
	v := lease(t, other, "", 0)([]byte("new"), []byte{}, time.Hour)
	must.Equal(t, late([]byte("old"), []byte{}, time.Hour), 0, "the late one stored version")
	shows(t, one, "", 0, v, "new", "")
	end := lease(t, other, "", v)
	late(nil, nil, 0)
	again, wait := one.Lease(t.Context(), tag, "", v)
	must.True(t, again == nil && wait != 0, "the late one has given back the lease of another")
	end(nil, nil, 0)
}

func TestHeed_ALeaseOfALongFetchIsKept(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	one, _ := heeds(t, "redis://"+server.Addr)
	end := lease(t, one, "", 0)
	key := server.CLI("--scan", "--pattern", "*:lease:")
	left := server.Count("pttl", key)
	must.True(t, left > 0 && time.Duration(left)*time.Millisecond <= fleet.LeaseTime, "the lease lasts %d ms", left)
	server.CLI("pexpire", key, "1500") // the next renewal is due before
	testkit.Until(t, "the lease is renewed", func() bool { return server.Count("pttl", key) > 1500 })
	end([]byte("record"), []byte{}, time.Hour)
	must.Equal(t, server.Count("exists", key), 0, "the lease outlived its fetch")
}

func TestHeed_DroppedIsDroppedForAll(t *testing.T) {
	t.Parallel()
	one, other := heeds(t, "redis://"+testkit.NewRedis(t).Addr)
	lease(t, one, "", 0)([]byte("record"), []byte("file"), time.Hour)
	lease(t, one, "as curl", 0)([]byte("own"), []byte("file"), time.Hour)
	late := lease(t, one, "", version(t, one))
	for _, want := range []bool{true, false} {
		had, err := other.Drop(t.Context(), tag)
		must.True(t, err == nil && had == want, "dropped %v, %v; want %v", had, err, want)
	}
	v := version(t, one)
	shows(t, one, "", 0, v, "", "")
	shows(t, one, "as curl", 0, v, "", "")
	shows(t, one, "as curl", v, 0, "", "")
	must.Equal(t, late([]byte("from before"), []byte("file"), time.Hour), 0, "what was fetched before the drop was stored after it")
	w := lease(t, one, "", v)([]byte("anew"), []byte("file"), time.Hour)
	shows(t, other, "", v, w, "anew", "file")
	shows(t, other, "as curl", 0, v, "", "") // word of it stays
}

func TestHeed_WhatWasFetchedForANameBeforeADropIsNotStored(t *testing.T) {
	t.Parallel()
	one, other := heeds(t, "redis://"+testkit.NewRedis(t).Addr)
	late := lease(t, one, "as curl", 0)
	must.Get(other.Drop(t.Context(), tag))(t)
	must.Equal(t, late([]byte("from before"), []byte("file"), time.Hour), 0, "it was stored")
	v := version(t, other)
	lease(t, other, "as curl", v)([]byte("anew"), []byte("file"), time.Hour)
	had, err := one.Drop(t.Context(), tag)
	must.True(t, err == nil && had, "dropped: %v, %v", had, err)
}

func version(t *testing.T, p *fleet.Policies) int64 {
	v, _, _ := p.Newer(t.Context(), tag, "", 0)
	return v
}

func TestHeed_EverythingInTheStoreEndsOfItself(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	one, _ := heeds(t, "redis://"+server.Addr)
	lease(t, one, "", 0)([]byte("record"), []byte{}, time.Hour)
	lease(t, one, "as curl", 0)([]byte("record"), []byte{}, time.Minute) // must not shorten the other's
	lease(t, one, "as wget", 0)
	must.Get(one.Drop(t.Context(), "https://other.test"))(t)
	keys := strings.Fields(server.CLI("keys", "*"))
	must.Need(t, len(keys) >= 3, "keys: %v", keys)
	for _, key := range keys {
		must.True(t, strings.HasPrefix(key, "heed:1:"), "key %q has no version", key)
		left := time.Duration(server.Count("pttl", key)) * time.Millisecond
		if left == -2*time.Millisecond {
			continue // it has ended since
		}
		must.True(t, left > 0 && (!strings.Contains(key, "{https://site.test}:policy") || left >= 59*time.Minute),
			"%s ends in %v", key, left)
	}
}

func TestHeed_NamesCannotFillTheStore(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	one, _ := heeds(t, "redis://"+server.Addr)
	for i := range 200 {
		lease(t, one, fmt.Sprint("as bot", i), 0)([]byte("record"), []byte("file"), time.Hour)
	}
	n := server.Count("hlen", server.CLI("--scan", "--pattern", "*:policy"))
	must.True(t, n <= 3*64, "%d fields for one origin", n)
}

func TestHeed_TagsAreListed(t *testing.T) {
	t.Parallel()
	store, _ := open(t, "redis://"+testkit.NewRedis(t).Addr)
	p := store.Policies("space")
	want := []string{"http://[::1]:8080", "https://a%7B}{b", "https://site.test"}
	for _, name := range want {
		end, _ := p.Lease(t.Context(), name, "", 0)
		end([]byte("record"), []byte{}, time.Hour)
	}
	var got []string
	must.OK(t, p.Tags(t.Context(), func(tag string) bool { got = append(got, tag); return true }))
	slices.Sort(got)
	must.Same(t, got, want)
}

func TestHeed_ChangesAreReported(t *testing.T) {
	t.Parallel()
	one, other := heeds(t, "redis://"+testkit.NewRedis(t).Addr)
	told, own := make(chan string, 10), make(chan string, 10)
	other.Watch(func(tag string, _ bool) { told <- tag })
	one.Watch(func(tag string, _ bool) { own <- tag })
	hears := func(from chan string, want string) {
		t.Helper()
		select {
		case got := <-from:
			must.Equal(t, got, want, "heard of")
		case <-time.After(testkit.Patience):
			t.Fatalf("did not hear of %q", want)
		}
	}
	hears(told, "") // what was before is not known
	hears(own, "")
	lease(t, one, "", 0)([]byte("record"), []byte{}, time.Hour)
	hears(told, tag)
	must.Get(one.Drop(t.Context(), "https://other.test"))(t)
	hears(told, "https://other.test")
	if len(own) > 0 {
		t.Errorf("heard of its own change: %q", <-own)
	}
}
