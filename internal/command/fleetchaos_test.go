package command_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"heed/internal/tools/testkit"
)

// calamity is a fleet to which things happen, by chance.
type calamity struct {
	t      *testing.T
	r      *rand.Rand
	config string
	site   *testkit.Gauge
	store  *testkit.Redis

	mu    sync.Mutex
	heeds []*testkit.Heed
}

// Whatever happens to heeds and store, and in what order, the site's delay is
// kept, and requests go on. HEED_TEST_FULL=1: for 40 events.
func TestNoCalamityOfAFleetBreaksADelay(t *testing.T) {
	t.Parallel()
	events, seed := 4, uint64(time.Now().UnixNano())
	if testkit.Full {
		events = 40
	}
	t.Logf("seed %d", seed)
	c := &calamity{t: t, r: rand.New(rand.NewPCG(seed, 0)), site: pacedSite(t), store: testkit.NewRedis(t)}
	c.config = pacedConfig(c.site, fmt.Sprintf("[fleet]\nurl = %q\n", "redis://"+c.store.Addr))
	for range 3 {
		c.heeds = append(c.heeds, testkit.Start(t, testkit.Options{Config: c.config}))
	}
	over := make(chan struct{})
	var clients sync.WaitGroup
	for i := range 9 {
		clients.Go(func() { c.ask(i, over) })
	}
	c.awaitStarts(4)
	for range events {
		c.strike()
		c.awaitStarts(4)
	}
	close(over)
	clients.Wait()
	testkit.Keep(t, "all the while", starts(c.site), siteDelay)
}

// ask is a client that goes to another heed when one is not there.
func (c *calamity) ask(i int, over <-chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		h := c.heeds[i%len(c.heeds)]
		c.mu.Unlock()
		if resp, err := pacedClient(c.t, h).Get(fmt.Sprint(page, i)); err == nil {
			resp.Body.Close()
		}
	}
}

// strike has something happen.
func (c *calamity) strike() {
	meanwhile := c.r.IntN(5) // so many requests start, if it lasts
	switch c.r.IntN(5) {
	case 0:
		c.again(c.r.IntN(3), syscall.SIGKILL, meanwhile)
	case 1:
		c.again(c.r.IntN(3), syscall.SIGTERM, meanwhile)
	case 2:
		c.t.Log("the store is restarted")
		c.store.Kill()
		c.store.Restart()
	case 3:
		c.t.Logf("the store is away for %d requests, and a heed is killed", meanwhile)
		c.store.Kill()
		c.awaitStarts(meanwhile)
		c.again(c.r.IntN(3), syscall.SIGKILL, meanwhile)
		c.store.Restart()
	case 4:
		c.t.Logf("the store hangs for %d requests", meanwhile)
		c.store.Hang()
		c.awaitStarts(meanwhile)
		c.store.Resume()
	}
}

// again ends a heed and starts it anew, with the same state.
func (c *calamity) again(i int, signal syscall.Signal, meanwhile int) {
	c.t.Logf("heed %d: %v, for %d requests", i, signal, meanwhile)
	h := c.heeds[i]
	h.Signal(signal)
	if signal == syscall.SIGTERM {
		h.Signal(signal) // and those who wait there do not hold it up
	}
	h.Exit()
	c.awaitStarts(meanwhile)
	h = testkit.Start(c.t, testkit.Options{Config: c.config, State: h.State})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heeds[i] = h
}

// awaitStarts waits until n more requests have come to the site.
func (c *calamity) awaitStarts(n int) {
	c.t.Helper()
	want := len(starts(c.site)) + n
	c.store.Await(fmt.Sprintf("%d more requests at the site", n), func() bool { return len(starts(c.site)) >= want })
}
