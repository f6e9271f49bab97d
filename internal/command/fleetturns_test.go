package command_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// siteDelay is what the site of these tests asks for between requests.
const siteDelay = 500 * time.Millisecond

// pacedSite is a site that asks for siteDelay and measures starts by its own clock. Every
// other connection serves one request; a new one takes longer to open than a turn without
// the store lasts. Over HTTP/1 nothing can be read behind a request before it is in the book.
func pacedSite(t *testing.T) *testkit.Gauge {
	t.Helper()
	var answers atomic.Int32
	return testkit.NewGauge(t, testkit.GaugeOptions{
		Robots: "User-agent: *\nCrawl-delay: 0.5\n", HTTP1: true, Handshake: 150 * time.Millisecond,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answers.Add(1)%2 == 0 {
				w.Header().Set("Connection", "close")
			}
		}),
	})
}

// pacedConfig lets everybody wait for the site as long as it takes.
func pacedConfig(site *testkit.Gauge, more string) string {
	return site.Config("[pacing]\nmax_wait = \"20m\"\n[log]\nformat = \"json\"\n" + more)
}

// page is where the site is asked.
const page = "https://site.test/"

// pacedClient returns a client of h that does not mind whose certificates it sees.
func pacedClient(t *testing.T, h *testkit.Heed) *http.Client {
	c := client(t, h)
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	c.Timeout = 0
	return c
}

// starts are those of the site's pages so far.
func starts(site *testkit.Gauge) []testkit.Arrival {
	return testkit.Pages(site.Starts(), "https://site.test")
}

// crowd is clients of heeds that ask for the page again and again.
type crowd struct {
	over chan struct{}
	dead atomic.Pointer[testkit.Heed] // one that was killed: its clients are not answered
	wg   sync.WaitGroup
}

func newCrowd(t *testing.T, heeds []*testkit.Heed, clients int) *crowd {
	c := &crowd{over: make(chan struct{})}
	for i := range clients {
		h := heeds[i%len(heeds)]
		browser := pacedClient(t, h)
		c.wg.Go(func() {
			for c.on() {
				resp, err := browser.Get(fmt.Sprint(page, i%len(heeds), "/", i))
				if err != nil {
					must.True(t, c.dead.Load() == h, "%v", err)
					return
				}
				resp.Body.Close()
				must.Equal(t, resp.StatusCode, http.StatusOK, "status")
			}
		})
	}
	return c
}

func (c *crowd) on() bool {
	select {
	case <-c.over:
		return false
	default:
		return true
	}
}

// leave ends the crowd when the last that waits has been answered.
func (c *crowd) leave() {
	close(c.over)
	c.wg.Wait()
}

// Three heeds with one store keep the delay of a site together, for as many
// clients as there are; also while one of them is killed, while the store is
// restarted, and while it is away. HEED_TEST_FULL=1: for 200 requests in each of
// these.
func TestThreeHeedsKeepTheDelayOfASiteTogether(t *testing.T) {
	t.Parallel()
	clients, requests := 12, 10
	if testkit.Full {
		clients, requests = 50, 200
	}
	site, store := pacedSite(t), testkit.NewRedis(t)
	config := pacedConfig(site, fmt.Sprintf("[fleet]\nurl = %q\n", "redis://"+store.Addr))
	var heeds []*testkit.Heed
	for range 3 {
		heeds = append(heeds, testkit.Start(t, testkit.Options{Config: config}))
	}
	all := newCrowd(t, heeds, clients)
	awaitStarts := func(what string, n int) {
		t.Helper()
		had := len(starts(site))
		late := time.After(time.Duration(n)*4*siteDelay + testkit.Patience)
		for tick := time.NewTicker(10 * time.Millisecond); len(starts(site)) < had+n; {
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("%s: %d of %d requests", what, len(starts(site))-had, n)
			}
		}
	}
	phase := func(what string, n int) {
		t.Helper()
		had := len(starts(site))
		awaitStarts(what, n)
		testkit.Keep(t, what, starts(site)[had:], siteDelay)
	}
	phase("in peace", requests)
	all.dead.Store(heeds[0])
	heeds[0].Signal(syscall.SIGKILL)
	heeds[0].Exit()
	phase("after one was killed", requests)
	store.Kill()
	store.Restart()
	phase("after the store was restarted", requests)
	store.Hang()
	phase("while the store hangs", requests)
	store.Resume()
	phase("when it has come round", requests)
	store.Kill()
	phase("while the store is away", requests)
	store.Restart()
	phase("after it is back", requests)
	all.leave()
	testkit.Keep(t, "from the first to the last", starts(site), siteDelay)
	for i, h := range heeds[1:] {
		n, m := strings.Count(h.Stderr(), "turns are not shared"), strings.Count(h.Stderr(), "turns are shared again")
		must.True(t, n >= 1 && n == m, "heed %d says %d times that turns are not shared, %d times that they are again", i+1, n, m)
	}
}

// A heed that has never reached its store does not know of the others: requests that a
// delay concerns wait and are refused, with the store's name, and heed is not ready; others
// are served.
func TestAHeedWithoutItsStoreFromTheStartIsNotReady(t *testing.T) {
	t.Parallel()
	site, store, admin := pacedSite(t), testkit.NewRedis(t), testkit.FreeAddr(t)
	store.Kill()
	config := pacedConfig(site, fmt.Sprintf("[fleet]\nurl = %q\n[admin]\nlisten = %q\n", "redis://"+store.Addr, admin))
	h := testkit.Start(t, testkit.Options{Config: strings.Replace(config, `"20m"`, `"1s"`, 1)})
	c := pacedClient(t, h)
	resp := must.Get(c.Get(page))(t)
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(body), "has not reached the store of its fleet, "+store.Addr) || len(starts(site)) > 0 {
		t.Errorf("status %d, %d requests at the site\n%s", resp.StatusCode, len(starts(site)), body)
	}
	must.Equal(t, status(t, c, page+"robots.txt"), http.StatusOK, "a request without a delay: status")
	ready := func() int { return status(t, http.DefaultClient, "http://"+admin+"/readyz") }
	must.Equal(t, ready(), http.StatusServiceUnavailable, "/readyz: status")
	if out, _, code := commandBeside(t, h.State, "status", "--ready"); code != 1 || !strings.Contains(out, "not ready: the fleet's store "+store.Addr+" was never reached") {
		t.Errorf("heed status: exit %d\n%s", code, out)
	}
	store.Restart()
	store.Await("heed is ready", func() bool { return ready() == http.StatusOK })
	store.Await("the site is asked", func() bool { return status(t, c, page) == http.StatusOK })
}

// Neither a restart nor a kill brings a request too early.
func TestNoBurstAfterARestart(t *testing.T) {
	t.Parallel()
	site := pacedSite(t)
	config := pacedConfig(site, "")
	h := testkit.Start(t, testkit.Options{Config: config})
	ask := func() {
		t.Helper()
		resp := must.Get(pacedClient(t, h).Get(page))(t)
		resp.Body.Close()
	}
	ask()
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		h.Signal(end)
		h.Exit()
		h = testkit.Start(t, testkit.Options{Config: config, State: h.State})
		ask()
	}
	testkit.Keep(t, "with a restart between each", starts(site), siteDelay)

	h.Signal(syscall.SIGTERM)
	h.Exit()
	must.OK(t, os.WriteFile(filepath.Join(h.State, "turns.json"), []byte("{"), 0o600))
	h = testkit.Start(t, testkit.Options{Config: config, State: h.State})
	ask()
	h.Await("that the file cannot be read", func(r testkit.Record) bool {
		return strings.Contains(r.Text("msg"), "the last starts at sites cannot be read")
	})
	testkit.Keep(t, "also when the file is lost", starts(site), siteDelay)
}

// A Retry-After that one heed receives holds for all of them, and an operator ends it for
// all.
func TestWhatASiteAsksOneHeedForAllKeep(t *testing.T) {
	t.Parallel()
	site := testkit.NewGauge(t, testkit.GaugeOptions{
		Robots: "User-agent: *\nDisallow:\n", Plain: true,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if after := r.URL.Query().Get("after"); after != "" {
				w.Header().Set("Retry-After", after)
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}),
	})
	store := testkit.NewRedis(t)
	config := pacedConfig(site, fmt.Sprintf("[fleet]\nurl = %q\n", "redis://"+store.Addr))
	config = strings.Replace(config, `max_wait = "20m"`, `max_wait = "10s"`, 1)
	var heeds []*testkit.Heed
	for range 2 {
		heeds = append(heeds, testkit.Start(t, testkit.Options{Config: config}))
	}
	store.Await("both listen", func() bool { return store.Count("publish", "heed:1:pauses", "no message") == 2 })
	one, other := client(t, heeds[0]), client(t, heeds[1])
	must.Equal(t, status(t, other, "http://site.test/"), http.StatusOK, "before: status")
	status(t, one, "http://site.test/?after=3")
	awaitHeld(t, store, heeds[1])
	must.Equal(t, status(t, other, "http://site.test/"), http.StatusOK, "after the pause: status")
	all := testkit.Pages(site.Starts(), "http://site.test")
	gap := all[2].At.Sub(all[1].At)
	must.True(t, gap >= 3*time.Second-20*time.Millisecond, "the other heed came after %v", gap)

	status(t, one, "http://site.test/?after=3000")
	awaitHeld(t, store, heeds[1])
	for i, c := range []*http.Client{one, other} {
		got := status(t, c, "http://site.test/")
		must.True(t, got == http.StatusTooManyRequests, "heed %d: status %d while the site is to be left alone", i, got)
	}
	out, errs, code := commandBeside(t, heeds[1].State, "pace", "release", "site.test")
	must.True(t, code == 0, "pace release: status %d\n%s%s", code, out, errs)
	store.Await("the first is released, too", func() bool {
		out, _, _ := commandBeside(t, heeds[0].State, "pace", "list", "--json")
		return !strings.Contains(out, "site.test") || strings.Contains(out, `"held_ns":0`)
	})
	for i, c := range []*http.Client{one, other} {
		must.Equal(t, status(t, c, "http://site.test/"), http.StatusOK, "through heed %d after the release", i)
	}
}

// awaitHeld waits until a heed knows that the site is to be left alone.
func awaitHeld(t *testing.T, store *testkit.Redis, h *testkit.Heed) {
	t.Helper()
	store.Await("the site is held", func() bool {
		out, _, _ := commandBeside(t, h.State, "pace", "list", "--json")
		return strings.Contains(out, "site.test") && !strings.Contains(out, `"held_ns":0`)
	})
}

// Names of one address keep min_delay together for all heeds of a fleet
// (pacing.min_delay_per), each of them no more than it asks for. heed's own fetches of
// robots.txt take no turn at the address.
func TestAFleetKeepsTheDelayOfAnAddressForAllItsNames(t *testing.T) {
	t.Parallel()
	const names = 6
	var hosts []string
	for i := range names {
		hosts = append(hosts, fmt.Sprint("name", i, ".test"))
	}
	site, store := testkit.NewGauge(t, testkit.GaugeOptions{Hosts: hosts, Robots: "User-agent: *\nDisallow:\n", Plain: true}), testkit.NewRedis(t)
	config := strings.Replace(pacedConfig(site, fmt.Sprintf("[fleet]\nurl = %q\n", "redis://"+store.Addr)), "[pacing]\n",
		fmt.Sprintf("[pacing]\nmin_delay = %q\nmin_delay_per = \"address\"\n", siteDelay), 1)
	var heeds []*testkit.Heed
	var all sync.WaitGroup
	for range 2 {
		h := testkit.Start(t, testkit.Options{Config: config})
		heeds = append(heeds, h)
		for i := range names {
			all.Go(func() {
				for range 2 {
					must.Equal(t, status(t, pacedClient(t, h), "http://"+hosts[i]+"/"), http.StatusOK, "%s: status", hosts[i])
				}
			})
		}
	}
	store.Await("the address is listed", func() bool {
		out, _, _ := commandBeside(t, heeds[1].State, "pace", "list")
		return strings.Contains(out, "all names at 127.0.0.1")
	})
	all.Wait()
	var pages []testkit.Arrival
	known := map[string]bool{} // names whose robots.txt was fetched
	for _, s := range site.Starts() {
		switch {
		case s.Target == "/robots.txt":
			known[s.Host] = true
		case !known[s.Host]:
			t.Errorf("%s was asked before its robots.txt", s.Host)
			fallthrough
		default:
			pages = append(pages, s)
		}
	}
	must.True(t, len(pages) == 2*2*names && len(known) == names, "%d pages, %d robots.txt", len(pages), len(known))
	testkit.Keep(t, "all names", pages, siteDelay)
}
