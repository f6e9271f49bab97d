package pacing

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// Many clients at once: at the site no two requests start closer than its
// Crawl-delay, whatever the way, the speed of the site and of its handshakes, and
// the state of its connections.
func TestHeed_ManyClientsAreOneToTheSite(t *testing.T) {
	const half = 500 * time.Millisecond
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		testkit.Delay(3 * half) // three of them are answered at a time
		io.WriteString(w, "slow")
	})
	fleeting := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "never again on this connection")
	})
	for _, c := range []struct {
		name   string
		way    way
		site   testkit.GaugeOptions
		pacing string
		delay  time.Duration
	}{
		{"http", plain, testkit.GaugeOptions{Robots: delayed("0.5")}, "", half},
		{"https", h1, testkit.GaugeOptions{Robots: delayed("0.5"), HTTP1: true}, "", half},
		{"HTTP2", h2, testkit.GaugeOptions{Robots: delayed("0.5")}, "", half},
		{"a slow site", plain, testkit.GaugeOptions{Robots: delayed("0.5"), Handler: slow}, "", half},
		{"a slow site over HTTP2", h2, testkit.GaugeOptions{Robots: delayed("0.5"), Handler: slow}, "", half},
		{"every request on a new connection", h1, testkit.GaugeOptions{Robots: delayed("0.5"), HTTP1: true, Handler: fleeting, Handshake: 200 * time.Millisecond}, "", half},
		{"connections new and old by turns", h1, testkit.GaugeOptions{Robots: delayed("0.5"), HTTP1: true, Handler: closing(3), Handshake: 300 * time.Millisecond}, "", half},
		{"a Request-rate", plain, testkit.GaugeOptions{Robots: "User-agent: *\nRequest-rate: 4/3s\n"}, "", 750 * time.Millisecond},
		{"the operator's own floor", plain, testkit.GaugeOptions{Robots: "User-agent: *\nCrawl-delay: 0.1\n"}, "min_delay = \"600ms\"\n", 600 * time.Millisecond},
		{"the operator's own floor, without a robots.txt", h2, testkit.GaugeOptions{Handler: noRobots("ok")}, "min_delay = \"600ms\"\n", 600 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, c.site, "max_wait = \"10m\"\n"+c.pacing)
			origin := c.way.scheme() + "://site.test"
			b.all(t, tenth(50), tenth(200), c.way, numbered(origin))
			pages := testkit.Pages(b.site.Starts(), origin)
			must.Equal(t, len(pages), tenth(200), "pages were asked for at the site")
			testkit.Keep(t, c.name, pages, c.delay)
			testkit.Keep(t, "robots.txt and the first page", b.site.Starts()[:2], c.delay)
		})
	}
}

// closing answers and closes every n-th connection afterwards.
func closing(n int) http.Handler {
	var count atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if count.Add(1)%int64(n) == 0 {
			w.Header().Set("Connection", "close")
		}
		io.WriteString(w, "ok")
	})
}

// noRobots has one page everywhere, but no robots.txt.
func noRobots(page string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, page)
	})
}

// Each origin has its own turns (RFC 9309 §2.3: a robots.txt speaks for one
// scheme, host and port), so that one site does not slow down another.
func TestHeed_OriginsHaveTheirOwnTurns(t *testing.T) {
	t.Parallel()
	b := newBed(t, testkit.GaugeOptions{Hosts: []string{"one.test", "two.test"}, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch patient := (r.Host == "one.test") == (r.TLS == nil); {
		case r.URL.Path != "/robots.txt":
			io.WriteString(w, "ok")
		case patient:
			io.WriteString(w, delayed("1"))
		default:
			io.WriteString(w, delayed("3600"))
		}
	})}, "max_wait = \"10m\"\n")
	for _, origin := range []string{"https://one.test", "http://two.test"} {
		if a, err := b.client(h1, 9).ask(t.Context(), http.MethodGet, origin+"/in-an-hour"); err != nil || a.StatusCode != http.StatusTooManyRequests {
			t.Fatalf("%s: %v, %v", origin, a, err)
		}
	}
	origins := []string{"http://one.test", "https://two.test"}
	var busy sync.WaitGroup
	for number, origin := range origins {
		busy.Go(func() {
			c := b.client(h1, number)
			for n := range 4 {
				c.get(t, numbered(origin)(n))
			}
		})
	}
	busy.Wait()
	for _, origin := range origins {
		testkit.Keep(t, origin, testkit.Pages(b.site.Starts(), origin), time.Second)
	}
}

// A site that asks for nothing is not slowed down.
func TestHeed_WithoutADelayNoRequestWaits(t *testing.T) {
	t.Parallel()
	b := newBed(t, testkit.GaugeOptions{Robots: "User-agent: *\nDisallow: /private\n\nUser-agent: other\nCrawl-delay: 30\n"}, "")
	b.all(t, 10, 200, plain, numbered("http://site.test"))
	b.Signal(syscall.SIGTERM)
	b.Exit()
	recorded := 0
	for _, r := range b.Records() {
		if _, waited := r["turn_ms"]; waited {
			t.Errorf("%s waited for a turn", r.Text("url"))
		}
		if strings.Contains(r.Text("url"), "/page/") {
			recorded++
		}
	}
	must.True(t, recorded >= 200, "%d of 200 requests are recorded", recorded)
}
