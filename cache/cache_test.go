package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// stepped is a clock moved by hand.
type stepped struct {
	mu  sync.Mutex
	now time.Time
}

func (c *stepped) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stepped) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newCache returns a cache with a stepped clock.
func newCache(t testing.TB, config Config) (*Cache, *stepped) {
	clock := &stepped{now: start}
	config.Now = clock.Now
	if config.Transport == nil {
		tr := &http.Transport{DisableCompression: true}
		t.Cleanup(tr.CloseIdleConnections)
		config.Transport = tr
	}
	config.Transport = reaching{config.Transport}
	return New(config), clock
}

// reaching marks the errors that come without a connection, as Config.Transport is to.
type reaching struct{ http.RoundTripper }

func (t reaching) RoundTrip(r *http.Request) (*http.Response, error) {
	connected := false
	resp, err := t.RoundTripper.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { connected = false }, // again, where a kept one was dead
		GotConn: func(httptrace.GotConnInfo) { connected = true },
	})))
	if err != nil && !connected {
		err = notReachedError{err}
	}
	return resp, err
}

type notReachedError struct{ error }

func (e notReachedError) Unwrap() error  { return e.error }
func (notReachedError) NotReached() bool { return true }

// asked is a site that counts its requests and answers as told.
type asked struct {
	count  atomic.Int32
	answer atomic.Value // http.HandlerFunc
}

func newSite(t testing.TB, h http.HandlerFunc) (*asked, rules.Origin) {
	s := &asked{}
	s.turn(h)
	return s, serve(t, func(w http.ResponseWriter, r *http.Request) {
		s.count.Add(1)
		s.answer.Load().(http.HandlerFunc)(w, r)
	})
}

func (s *asked) turn(h http.HandlerFunc) { s.answer.Store(h) }

func status(code int, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(fields); i += 2 {
			w.Header().Set(fields[i], fields[i+1])
		}
		w.WriteHeader(code)
		if code == 200 {
			_, _ = io.WriteString(w, file)
		}
	}
}

// transport is a RoundTripper made of a function.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A site that starts to answer is used soon: while it is down, a request to it costs
// the site nothing, so that heed retries within seconds.
func TestCache_ASiteThatComesUpIsNoticedWithinSeconds(t *testing.T) {
	addr := testkit.FreeAddr(t)
	o := originOf(t, "http://"+addr)
	c, clock := newCache(t, Config{})
	src := c.Policy(t.Context(), o, "").Source()
	must.Need(t, src.State == rules.Unreachable && src.NoConnection, "%+v", src)
	in := src.RetryAt.Sub(start)
	must.True(t, in <= 2*time.Second, "asked again after %s", in)
	up := &http.Server{Handler: status(200)}
	l := must.Get(net.Listen("tcp", addr))(t)
	go func() { _ = up.Serve(l) }()
	t.Cleanup(func() { up.Close() })
	clock.step(2 * time.Second)
	inState(t, c.Policy(t.Context(), o, "").Source(), rules.Available, "two seconds on")
}

func TestCache_AThousandFirstRequestsAreOneFetch(t *testing.T) {
	release := make(chan struct{})
	site, o := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		<-release
		status(200)(w, r)
	})
	c, _ := newCache(t, Config{})
	var ready, done sync.WaitGroup
	var wrong atomic.Int32
	for range 1000 {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			if c.Policy(t.Context(), o, "curl/8").Source().State != rules.Available {
				wrong.Add(1)
			}
		})
	}
	ready.Wait()
	close(release)
	done.Wait()
	must.True(t, site.count.Load() == 1 && wrong.Load() == 0,
		"%d fetches, %d without a policy", site.count.Load(), wrong.Load())
}

func TestCache_TheFirstToLeaveDoesNotTakeTheFetchAlong(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	site, o := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-release
		status(200)(w, r)
	})
	c, _ := newCache(t, Config{})
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan *rules.Policy)
	go func() { left <- c.Policy(ctx, o, "") }()
	<-begun
	stayed := make(chan *rules.Policy)
	go func() { stayed <- c.Policy(t.Context(), o, "") }()
	leave()
	src := (<-left).Source()
	must.True(t, src.State == rules.Unreachable && errors.Is(src.Err, context.Canceled) && !src.NoConnection,
		"who left: %+v", src)
	close(release)
	inState(t, (<-stayed).Source(), rules.Available, "for the one who stayed")
	must.Equal(t, site.count.Load(), 1, "fetches")
	inState(t, c.Policy(t.Context(), o, "").Source(), rules.Available, "afterwards")
}

func TestCache_WhoHasLeftAlreadyStartsNoFetch(t *testing.T) {
	site, o := newSite(t, status(200))
	c, _ := newCache(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	src := c.Policy(ctx, o, "").Source()
	must.True(t, errors.Is(src.Err, context.Canceled) && site.count.Load() == 0, "%d fetches, %+v", site.count.Load(), src)
}

func TestCache_NoRequestWaitsLongerThanTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var as atomic.Value
		silent := transport(func(r *http.Request) (*http.Response, error) {
			if as.Store(r.UserAgent()); r.URL.Hostname() == "denies.test" && r.UserAgent() == "heed/1.0" {
				testkit.Delay(9 * time.Second) // of the fifteen there are
				return reply(403), nil
			} else if r.URL.Hostname() == "slow.test" {
				testkit.Delay(14 * time.Second)
				return reply(404), nil
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		c, _ := newCache(t, Config{Transport: silent})
		begun := time.Now()
		src := c.Policy(t.Context(), site, "").Source()
		took := time.Since(begun)
		must.True(t, took >= 14*time.Second && took <= 15*time.Second, "waited %s", took)
		must.True(t, src.State == rules.Unreachable && errors.Is(src.Err, context.DeadlineExceeded), "%+v", src)
		begun = time.Now()
		if c.Policy(t.Context(), site, ""); time.Since(begun) > 0 {
			t.Error("the failure was not kept")
		}
		// Two fetches, one after the other, share the limit of who waits for both.
		src = c.Policy(t.Context(), rules.Origin{Scheme: "http", Host: "denies.test", Port: 80}, "curl/8").Source()
		if took := time.Since(begun); took > 15*time.Second || src.State != rules.Unreachable || as.Load() != "curl/8" ||
			!errors.Is(src.Err, context.DeadlineExceeded) || !strings.HasPrefix(src.Err.Error(), "waiting for ") {
			t.Errorf("after %s, as %v: %+v", took, as.Load(), src)
		}
		src = c.Policy(t.Context(), rules.Origin{Scheme: "http", Host: "slow.test", Port: 80}, "").Source()
		inState(t, src, rules.Unavailable, "what comes within that time")
		testkit.Advance(time.Minute) // the second fetch gives up
	})
}

func TestCache_APanicInAFetchIsAFailure(t *testing.T) {
	c, _ := newCache(t, Config{Transport: transport(func(*http.Request) (*http.Response, error) { panic("parser") })})
	src := c.Policy(t.Context(), site, "").Source()
	must.True(t, src.State == rules.Unreachable && src.Err != nil && strings.Contains(src.Err.Error(), "parser"), "%+v", src)
	must.True(t, !src.NoConnection, "a fault of ours is blamed on the site")
	n, _ := c.Size()
	must.True(t, n == 1 && c.store.find(site).pins == 0, "the place stays in use")
	c.fetcher.empty(t)
}

func TestCache_VariantsOfAnOriginAreBounded(t *testing.T) {
	site, o := newSite(t, status(403))
	c, clock := newCache(t, Config{})
	for i := range 3 * maxVariants {
		clock.step(namesTime / maxVariants) // as many names as may be asked within an hour
		c.Policy(t.Context(), o, fmt.Sprintf("client-%d/1", i))
		c.Policy(t.Context(), o, "client-0/1") // in steady use
	}
	must.Equal(t, len(c.store.find(o).all())-1, maxVariants, "variants")
	site.turn(status(404))
	clock.step(2 * time.Hour)
	c.Policy(t.Context(), o, "client-0/1")
	must.Equal(t, len(c.store.find(o).all())-1, 0, "variants when they are of no use")
}

func TestCache_OriginsAreKeptApart(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	c, _ := newCache(t, Config{Transport: transport(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.String())
		return &http.Response{StatusCode: 404, Header: http.Header{}, Body: http.NoBody}, nil
	})})
	for range 2 {
		for _, o := range []rules.Origin{
			{Scheme: "http", Host: "h.test", Port: 80},
			{Scheme: "https", Host: "h.test", Port: 443},
			{Scheme: "https", Host: "h.test", Port: 8443},
			{Scheme: "http", Host: "::1", Port: 8080},
			{Scheme: "http", Host: strings.Repeat("a.", 120) + "test", Port: 80},
		} {
			src := c.Policy(t.Context(), o, "").Source()
			must.True(t, src.Origin == o, "asked for %v, got %v", o, src.Origin)
		}
	}
	must.True(t, len(asked) == 5 && asked[0] == "http://h.test/robots.txt" && asked[3] == "http://[::1]:8080/robots.txt",
		"asked %v", asked)
}

// Whatever comes at once, the count stays true and nothing stays in use.
func TestCache_ManyAtOnceWithinASmallBound(t *testing.T) {
	c, clock := newCache(t, Config{Memory: NewMemory(50, 0), Transport: transport(func(r *http.Request) (*http.Response, error) {
		code := []int{200, 404, 403, 503, 304}[(len(r.URL.Host)+len(r.UserAgent()))%5]
		return &http.Response{
			StatusCode: code, Header: http.Header{"Etag": {"1"}}, Body: io.NopCloser(strings.NewReader(file)),
		}, nil
	})})
	rounds := 500
	if testkit.Full {
		rounds = 2000
	}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for n := range rounds {
				host := strings.Repeat("x", 1+(n*7+worker)%200)
				c.Policy(t.Context(), rules.Origin{Scheme: "http", Host: host, Port: 80}, fmt.Sprint("c/", n%40))
				clock.step(time.Second)
			}
		})
	}
	all.Wait()
	testkit.Until(t, "the fetches in the background have ended, and no place is pinned", func() bool {
		c.store.mu.Lock()
		defer c.store.mu.Unlock()
		for p := range c.store.slots {
			if p.pins != 0 {
				return false
			}
		}
		return true
	})
	var sum int64
	for _, p := range c.store.slotsOf() {
		sum += p.size()
	}
	n, bytes := c.Size()
	must.True(t, n <= 50 && n == c.store.items.ItemCount() && bytes == sum,
		"%d origins, %d items; counted %d bytes, there are %d", n, c.store.items.ItemCount(), bytes, sum)
}

// quiet is a logger for servers that are expected to complain.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func TestHeed_UserAgentNamesTheContact(t *testing.T) {
	names := func(contact, want string) {
		t.Helper()
		must.Equal(t, DefaultUserAgent(contact), want, "contact %q", contact)
	}
	names("", "heed/1.0")
	names("https://example.org/bots", "heed/1.0 (+https://example.org/bots)")
	names("crawl@example.org", "heed/1.0 (+crawl@example.org)")
	names("a(b)\r\nX: y\\é", "heed/1.0 (+abX:y)")
}
