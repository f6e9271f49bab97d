package pacing

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A site that says when to come back (RFC 9110 §10.2.3) is left alone until then,
// by every client: with a number of seconds and with a date, which counts from
// the site's own clock, however wrong that is.
func TestRFC9110_RetryAfterHoldsForEveryClient(t *testing.T) {
	after := func(d time.Duration) func(http.Header) {
		return func(h http.Header) { h.Set("Retry-After", strconv.Itoa(int(d.Seconds()))) }
	}
	dated := func(skew time.Duration) func(http.Header) {
		return func(h http.Header) {
			now := time.Now().Add(skew).UTC()
			h.Set("Date", now.Format(http.TimeFormat))
			h.Set("Retry-After", now.Add(3*time.Second).Format(http.TimeFormat))
		}
	}
	for _, c := range []struct {
		name   string
		status int
		say    func(http.Header)
	}{
		{"503 and seconds", http.StatusServiceUnavailable, after(3 * time.Second)},
		{"429 and seconds", http.StatusTooManyRequests, after(3 * time.Second)},
		{"503 and a date", http.StatusServiceUnavailable, dated(0)},
		{"429 and a date of a clock a year ahead", http.StatusTooManyRequests, dated(365 * 24 * time.Hour)},
		{"503 and a date of a clock ten years behind", http.StatusServiceUnavailable, dated(-3650 * 24 * time.Hour)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			var said atomic.Int64
			b := newBed(t, testkit.GaugeOptions{Robots: "User-agent: *\nDisallow:\n", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				once.Do(func() {
					c.say(w.Header())
					w.WriteHeader(c.status)
					said.Store(time.Now().UnixNano())
				})
				io.WriteString(w, "ok")
			})}, "")
			a, err := b.client(plain, 0).ask(t.Context(), http.MethodGet, "http://site.test/busy")
			must.Need(t, err == nil && a.StatusCode == c.status && a.Header.Get("Retry-After") != "",
				"the site's own answer came as %v, %v", a, err)
			var busy sync.WaitGroup
			for number := range 5 {
				busy.Go(func() { b.client(plain, number).get(t, numbered("http://site.test")(number)) })
			}
			busy.Wait()
			first := testkit.Pages(b.site.Starts(), "http://site.test")[1]
			if left := first.At.Sub(time.Unix(0, said.Load())); left < 3*time.Second-20*time.Millisecond {
				t.Errorf("the site said 3 s and was left alone for %v", left)
			} else {
				t.Logf("the site said 3 s and was left alone for %v", left)
			}
		})
	}
}

// A Retry-After that is too long is clamped: the pause ends after an hour, and the refusal
// contains the clamped time, and that it is clamped.
func TestHeed_HostileValuesAreClampedAndReported(t *testing.T) {
	for _, c := range []struct {
		name, robots, retryAfter string
	}{
		{"a Retry-After of three years", "User-agent: *\nDisallow:\n", "99999999"},
		{"a Retry-After without an end", "User-agent: *\nDisallow:\n", strings.Repeat("9", 400)},
		{"a Retry-After in the year 9999", "User-agent: *\nDisallow:\n", "Fri, 31 Dec 9999 23:59:59 GMT"},
		{"a Crawl-delay of 31 years", delayed("1000000000"), ""},
		{"a Crawl-delay of eleven days", delayed("1000000"), ""},
		{"a Request-rate of one a year", "User-agent: *\nRequest-rate: 1/8700h\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, testkit.GaugeOptions{Robots: c.robots, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				io.WriteString(w, "ok")
			})}, "max_wait = \"1s\"\n")
			cl := b.client(plain, 0)
			for range 3 { // robots.txt and a page; after that nothing for an hour
				must.Get(cl.ask(t.Context(), http.MethodGet, "http://site.test/page"))(t)
			}
			a := must.Get(cl.ask(t.Context(), http.MethodGet, "http://site.test/page"))(t)
			seconds, _ := strconv.Atoi(a.Header.Get("Retry-After"))
			if a.StatusCode != http.StatusTooManyRequests || seconds < 3500 || seconds > 2*3600 || !strings.Contains(a.Header.Get("Proxy-Status"), "http_request_error") {
				t.Errorf("%s, Retry-After %q, Proxy-Status %q", a.Status, a.Header.Get("Retry-After"), a.Header.Get("Proxy-Status"))
			}
			if c.retryAfter != "" {
				b.AwaitText("it is kept for 1h0m0s")
			} else if !strings.Contains(a.body, "of which 3600 s are kept") {
				t.Errorf("no text says that the value is clamped:\n%s", a.body)
			}
		})
	}
}

// A refusal's Retry-After is true: who comes back then is served, also when many
// were told so, and when others go on asking.
func TestHeed_WhoComesBackInTimeIsServed(t *testing.T) {
	t.Parallel()
	b := newBed(t, testkit.GaugeOptions{Robots: delayed("0.5")}, "max_wait = \"1s\"\n")
	b.client(plain, 200).get(t, "http://site.test/first")
	rude, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for number := range 3 {
		others.Go(func() {
			for c := b.client(plain, 100+number); rude.Err() == nil; {
				c.ask(rude, http.MethodGet, "http://site.test/rude")
				select {
				case <-rude.Done():
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	var busy sync.WaitGroup
	var refused, served atomic.Int64
	for number := range 12 {
		busy.Go(func() {
			c := b.client(plain, number)
			a, err := c.ask(t.Context(), http.MethodGet, numbered("http://site.test")(number))
			if err != nil || a.StatusCode == http.StatusOK {
				return
			}
			refused.Add(1)
			seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
			if err != nil || a.StatusCode != http.StatusTooManyRequests || seconds < 1 {
				t.Errorf("%s, Retry-After %q: %s", a.Status, a.Header.Get("Retry-After"), a.body)
				return
			}
			testkit.Delay(time.Duration(seconds) * time.Second) // the client keeps its Retry-After
			if b, err := c.ask(t.Context(), http.MethodGet, numbered("http://site.test")(number)); err != nil || b.StatusCode != http.StatusOK {
				t.Errorf("refused with Retry-After %d, it came back then and got %+v, %v", seconds, b, err)
				return
			}
			served.Add(1)
		})
	}
	busy.Wait()
	cancel()
	others.Wait()
	t.Logf("%d of 12 were refused with a Retry-After, %d of them came back and were served", refused.Load(), served.Load())
	must.True(t, refused.Load() != 0, "no request was refused: this tested nothing")
	testkit.Keep(t, "all", testkit.Pages(b.site.Starts(), "http://site.test"), 500*time.Millisecond)
}
