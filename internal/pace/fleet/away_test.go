package fleet_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/pace/fleet"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

const (
	away, back = "the fleet's store is away", "the fleet's store is back"
	nodeAway   = "a node of the fleet's store is away"
)

func TestHeed_AnUnreachableStoreIsLoggedOnceAndUsedAgainLater(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	store, log := open(t, "redis://"+server.Addr)
	p := store.Policies("space")
	told := make(chan string, 10)
	p.Watch(func(tag string, _ bool) { told <- tag })
	<-told
	v := lease(t, p, "", 0)([]byte("record"), []byte{}, time.Hour)
	server.Kill()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if v, _, _ := p.Newer(context.Background(), tag, "", 0); v != 0 {
				t.Error("the dead store answered")
			}
			end, wait := p.Lease(context.Background(), tag, "", v)
			must.True(t, end == nil && wait == 0, "the dead store gave a lease, or the fetch waits for it")
		})
	}
	all.Wait()
	_, err := p.Drop(t.Context(), tag)
	must.True(t, err == fleet.ErrAway, "dropped: %v", err)
	must.Equal(t, p.Tags(t.Context(), func(string) bool { return true }), fleet.ErrAway, "tags were read")
	h := store.Health()
	must.True(t, h.Away && h.Outages == 1 && h.Missed >= 200 && h.Why != "" && h.Hosts == server.Addr, "health %+v", h)
	server.Restart()
	testkit.Until(t, "the store is back", func() bool { return !store.Health().Away })
	lease(t, p, "", 0)([]byte("record"), []byte{}, time.Hour)
	must.Equal(t, <-told, "", "the tag after the return, when anything may have changed")
	n, m := log.count(away), log.count(back)
	must.True(t, n == 1 && m == 1, "the log says %d times that it is away, %d times that it is back", n, m)
}

// A store behind a wire that was cut answers neither yes nor no.
func TestHeed_NoRequestWaitsLongForAStoreThatHangs(t *testing.T) {
	t.Parallel()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close() // connections are taken by the system, and never answered
	store, log := open(t, "redis://"+l.Addr().String())
	p := store.Policies("space")
	testkit.Until(t, "the store counts as away", func() bool {
		p.Newer(t.Context(), tag, "", 0)
		return store.Health().Away
	})
	for range 1000 { // each of them would take a second
		p.Newer(t.Context(), tag, "", 0)
	}
	must.Equal(t, log.count(away), 1, "the log does not say once that it is away")
}

func TestHeed_AStoreThatTakesNothingIsAway(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	store, log := open(t, "redis://"+server.Addr)
	p := store.Policies("space")
	lease(t, p, "", 0)
	server.CLI("config", "set", "maxmemory", "1")
	end, wait := p.Lease(t.Context(), "https://other.test", "", 0)
	must.True(t, end == nil && wait == 0, "a full store gave a lease, or the fetch waits for it")
	h := store.Health()
	must.True(t, h.Away && strings.Contains(h.Why, "OOM"), "health %+v", h)
	server.CLI("config", "set", "maxmemory", "0")
	testkit.Until(t, "the store is back", func() bool { return log.count(back) == 1 })
}

func TestHeed_AnImpatientCallerDoesNotBlameTheStore(t *testing.T) {
	t.Parallel()
	store, _ := open(t, "redis://"+testkit.NewRedis(t).Addr)
	p := store.Policies("space")
	lease(t, p, "", 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.Newer(ctx, tag, "", 0)
	a := store.Lanes().Ask(ctx, tag, "ticket", of("group"))
	h := store.Health()
	must.True(t, !h.Away && !a.Now && !a.Away, "health %+v, %+v", h, a)
}

// Several heeds look at the store as they start, some before turns are in use and some
// after. The key that one of them writes for a moment does not disturb the others.
func TestHeed_HeedsThatStartTogetherDoNotTakeTheStoreForAway(t *testing.T) {
	t.Parallel()
	store := testkit.NewRedis(t)
	store.CLI("set", "heed:1:{heed:1:heeds}:probe", "")
	for range 20 {
		s, log := open(t, "redis://"+store.Addr)
		lanes := s.Lanes()
		testkit.Until(t, "the store is known", func() bool { return lanes.Membership().Heeds > 0 })
		must.Need(t, log.count("WRONGTYPE") == 0, "%s", log.text.String())
		s.Close()
	}
}
