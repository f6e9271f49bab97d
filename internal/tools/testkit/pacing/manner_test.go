package pacing

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A client that looks at robots.txt all the time neither swamps the site with that
// nor keeps the others from it.
func TestHeed_LookingAtRobotsDoesNotStarveOthers(t *testing.T) {
	t.Parallel()
	const delay = 500 * time.Millisecond
	b := newBed(t, testkit.GaugeOptions{Robots: delayed("0.5")}, "max_wait = \"10m\"\n")
	b.client(plain, 9).get(t, "http://site.test/first")
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	for number := range 8 {
		busy.Go(func() { robotsToo(ctx, b, 0*number) })
	}
	var before []int
	for n := range tenth(40) {
		had := len(b.site.Starts())
		b.client(plain, 100).get(t, numbered("http://site.test")(n))
		before = append(before, len(b.site.Starts())-had-1)
	}
	slices.Sort(before)
	if usual := before[len(before)/2]; usual > 8 {
		t.Errorf("%d looks at robots.txt came before a page", usual)
	}
	cancel()
	busy.Wait()
	testkit.Keep(t, "pages", testkit.Pages(b.site.Starts(), "http://site.test"), delay)
	if all := b.site.Starts(); len(all) > 0 {
		lasted := all[len(all)-1].At.Sub(all[0].At)
		if most := int(2*lasted/delay) + 3; len(all) > most {
			t.Errorf("%d requests in %v reached the site, with robots.txt", len(all), lasted)
		}
		t.Log("with robots.txt: ", testkit.GapsOf(all))
	}
}

// Several groups of one site have turns of their own; an agent that two of them
// govern takes a turn of each, whatever the order of its names, and no request
// waits for ever.
func TestHeed_SeveralGroupsAtOnce(t *testing.T) {
	t.Parallel()
	const delay = 500 * time.Millisecond
	b := newBed(t, testkit.GaugeOptions{Robots: "User-agent: alphabot\nCrawl-delay: 0.5\nDisallow: /no\n\nUser-agent: betabot\nCrawl-delay: 0.5\n"}, "max_wait = \"10m\"\n")
	var busy sync.WaitGroup
	for number, agent := range []string{"alphabot/1", "betabot/1", "alphabot/1 betabot/1", "betabot/1 alphabot/1"} {
		busy.Go(func() {
			c := b.client(plain, number)
			c.agent = agent
			for n := range tenth(40) {
				c.get(t, fmt.Sprintf("http://site.test/%d", n))
			}
		})
	}
	busy.Wait()
	for _, name := range []string{"alphabot", "betabot"} {
		var of []testkit.Arrival
		for _, a := range testkit.Pages(b.site.Starts(), "http://site.test") {
			if strings.Contains(a.Agent, name) {
				of = append(of, a)
			}
		}
		testkit.Keep(t, name, of, delay)
	}
}

// While the settings are read anew, robots.txt is forgotten and fetched again, the
// clock of a site goes on, and so do those who wait.
func TestHeed_AReloadIsNoWayToBeFaster(t *testing.T) {
	t.Parallel()
	b := newBed(t, testkit.GaugeOptions{Robots: delayed("0.5")}, "max_wait = \"10m\"\n")
	stirred, cancel := context.WithCancel(t.Context())
	var stirring sync.WaitGroup
	stirring.Go(func() {
		tick := time.NewTicker(300 * time.Millisecond)
		defer tick.Stop()
		for {
			b.Signal(syscall.SIGHUP)
			if out, err := b.heed("cache", "purge", "http://site.test/").CombinedOutput(); err != nil {
				t.Errorf("heed cache purge: %v: %s", err, out)
			}
			select {
			case <-stirred.Done():
				return
			case <-tick.C:
			}
		}
	})
	b.all(t, 5, tenth(100), plain, numbered("http://site.test"))
	cancel()
	stirring.Wait()
	testkit.Keep(t, "pages", testkit.Pages(b.site.Starts(), "http://site.test"), 500*time.Millisecond)
}

// The end of heed is not delayed by requests that wait.
func TestHeed_TheWaitingDoNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	b := newBed(t, testkit.GaugeOptions{Robots: delayed("600")}, "max_wait = \"1h\"\n")
	answers := make(chan *answer, 5)
	for number := range 5 {
		go func() {
			a, _ := b.client(plain, number).ask(t.Context(), http.MethodGet, "http://site.test/waits")
			answers <- a
		}()
	}
	b.awaitWaiting(t, 5)
	b.Signal(syscall.SIGTERM)
	if status := b.Exit(); status != 0 { // long before a turn is due
		t.Errorf("it ended with status %d", status)
	}
	for range 5 {
		if a := <-answers; a == nil || a.StatusCode != http.StatusServiceUnavailable && a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
			t.Errorf("who waited was told %v", a)
		}
	}
}

// Many answers that turn away at once are one thing that happened, not many: the
// pauses that a site without a Retry-After gets grow with what it says after each,
// and it is not left alone for ever.
func TestHeed_ABurstOfFailuresIsOnePause(t *testing.T) {
	t.Parallel()
	const atOnce = 20
	var arrived sync.WaitGroup
	arrived.Add(atOnce)
	b := newBed(t, testkit.GaugeOptions{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt":
			http.NotFound(w, r)
		case strings.HasPrefix(r.URL.Path, "/page/"):
			arrived.Done()
			arrived.Wait() // all of them are turned away at the same time
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			io.WriteString(w, "ok")
		}
	})}, "max_wait = \"2m\"\n")
	var busy sync.WaitGroup
	for number := range atOnce {
		busy.Go(func() { b.client(plain, number).ask(t.Context(), http.MethodGet, numbered("http://site.test")(number)) })
	}
	busy.Wait()
	b.client(plain, 0).get(t, "http://site.test/well")
	b.AwaitText("no request starts there for ")
	if n := strings.Count(b.Stderr(), "no request starts there for "); n != 1 {
		t.Errorf("one burst of failures is %d pauses", n)
	}
}

// Tunnels that heed does not look into take a turn when they are opened.
func TestHeed_TunnelsAreOpenedInTurns(t *testing.T) {
	t.Parallel()
	const delay = 500 * time.Millisecond
	b := newBed(t, testkit.GaugeOptions{Robots: delayed("0.5")}, "max_wait = \"10m\"\n[[host]]\nmatch = [\"site.test\"]\nhttps = \"host-only\"\n")
	opened := make(chan time.Time, 6)
	begun := time.Now()
	for range cap(opened) {
		go func() {
			c, err := b.dial(t.Context())
			if err == nil {
				defer c.Close()
				fmt.Fprint(c, "CONNECT site.test:443 HTTP/1.1\r\nHost: site.test:443\r\nUser-Agent: pacer/1.0\r\n\r\n")
				_, err = http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
			}
			if err != nil {
				t.Error(err)
			}
			opened <- time.Now()
		}()
	}
	// The clients learn of their turns late at times, never early; robots.txt is
	// asked for first.
	for n := range cap(opened) {
		least := time.Duration(n+1) * delay
		if took := (<-opened).Sub(begun); took < least {
			t.Errorf("tunnel %d was open after %v; the earliest is %v", n+1, took, least)
		}
	}
}

// max_parallel is kept with a site that is slower than its delay, also when clients
// leave in the middle, and everybody is served in the end.
func TestHeed_NoMoreAtATimeThanMaxParallel(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	b := newBed(t, testkit.GaugeOptions{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		is := int64(0)
		if !leaves(r.URL.Path) {
			is = now.Add(1)
			defer now.Add(-1)
		}
		for old := most.Load(); is > old && !most.CompareAndSwap(old, is); old = most.Load() {
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-r.Context().Done():
		}
		io.WriteString(w, "ok")
	})}, "max_wait = \"10m\"\nmax_parallel = 3\n")
	var busy sync.WaitGroup
	for number := range 20 {
		busy.Go(func() {
			c := b.client(h2, number)
			for n := range 5 {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				path := fmt.Sprintf("/page/%d-%d", number, n)
				if number%4 == 0 {
					ctx, cancel = context.WithTimeout(ctx, rand.N(300*time.Millisecond))
					path = "/left" + path
				}
				a, err := c.ask(ctx, http.MethodGet, "https://site.test"+path)
				must.True(t, leaves(path) || err == nil && a.StatusCode == http.StatusOK, "%v, %v", a, err)
				cancel()
			}
		})
	}
	busy.Wait()
	must.True(t, most.Load() >= 2 && most.Load() <= 3, "%d requests were at the site at a time", most.Load())
	t.Logf("%d requests were at the site at a time", most.Load())
	b.awaitWaiting(t, 0)
}

// leaves reports whether the client may leave before it is answered: the site sees that a
// moment after the turn has been given to another, so that such requests are not counted.
func leaves(path string) bool { return strings.HasPrefix(path, "/left") }

// A WebSocket has had its turn with its handshake: the next request does not wait
// for its end, and comes a delay after it.
func TestHeed_AnOpenWebSocketDelaysNoOtherRequest(t *testing.T) {
	t.Parallel()
	b := newBed(t, testkit.GaugeOptions{Robots: delayed("0.5"), HTTP1: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			io.WriteString(w, "ok")
			return
		}
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n\r\n")
		io.Copy(io.Discard, c) // until the client leaves
	})}, "max_wait = \"10m\"\n")
	for range 3 {
		c := testkit.Dial(t, b.Addr)
		c.Send("GET http://site.test/socket HTTP/1.1\r\nHost: site.test\r\nUser-Agent: pacer/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
		if resp := c.Head(http.MethodGet); resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(resp.Status)
		}
		b.client(plain, 1).get(t, b.pageOf("http"))
	}
	testkit.Keep(t, "handshakes and pages", testkit.Pages(b.site.Starts(), "http://site.test"), 500*time.Millisecond)
}
