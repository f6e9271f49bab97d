// Package pacing measures at sites, by their own clock, how heed keeps what a
// site wishes about speed: with many clients at once, with real crawlers, and
// against clients that try to be faster.
//
// A tenth of the requests is sent, all of them with
//
//	HEED_TEST_FULL=1 go test -count=1 ./internal/tools/testkit/pacing -timeout 1h -v
//
// which prints every gap between two starts.
package pacing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// TestMain has many tests go on at once: they spend their time waiting.
func TestMain(m *testing.M) { testkit.Main(m, 16) }

// tenth is n, or a tenth of it in the short form.
func tenth(n int) int {
	if testkit.Full {
		return n
	}
	return max(1, n/10)
}

// way is how a client reaches the sites.
type way string

const (
	plain way = "http"
	h1    way = "https over HTTP/1.1"
	h2    way = "https over HTTP/2"
)

// scheme is what its addresses begin with.
func (w way) scheme() string {
	if w == plain {
		return "http"
	}
	return "https"
}

// bed is a heed with the measured sites behind it.
type bed struct {
	*testkit.Heed
	site *testkit.Gauge
	way  way // of an attack's clients

	t     testing.TB
	roots *x509.CertPool
}

// newBed starts both; pacing is the content of the table [pacing] of the settings.
func newBed(t testing.TB, options testkit.GaugeOptions, pacing string, env ...string) *bed {
	t.Helper()
	site := testkit.NewGauge(t, options)
	h := testkit.Start(t, testkit.Options{Config: site.Config("[pacing]\n" + pacing), Env: env})
	return &bed{Heed: h, site: site, t: t, roots: h.Roots()}
}

// delayed is a robots.txt with a Crawl-delay.
func delayed(seconds string) string { return "User-agent: *\nCrawl-delay: " + seconds + "\n" }

// client asks from an address of its own.
type client struct {
	*http.Client
	agent string
}

// client returns the client of a number, below 250.
func (b *bed) client(w way, number int) *client {
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(number+1))}, Timeout: testkit.Patience}
	tr := &http.Transport{
		Proxy:             http.ProxyURL(&url.URL{Scheme: "http", Host: b.Addr}),
		DialContext:       from.DialContext,
		TLSClientConfig:   &tls.Config{RootCAs: b.roots},
		ForceAttemptHTTP2: w == h2,
	}
	b.t.Cleanup(tr.CloseIdleConnections)
	return &client{&http.Client{
		Transport:     tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, "pacer/1.0"}
}

// dial opens a connection for what no client would send.
func (b *bed) dial(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{Timeout: testkit.Patience}).DialContext(ctx, "tcp", b.Addr)
}

// answer is what came back for one request.
type answer struct {
	*http.Response
	body string
}

// ask sends one request and reads its answer.
func (c *client) ask(ctx context.Context, method, address string) (*answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", c.agent)
	resp, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return &answer{resp, string(body)}, err
}

// get is ask for a page that has to come; what came instead fails the test.
func (c *client) get(t testing.TB, address string) *answer {
	t.Helper()
	a, err := c.ask(t.Context(), http.MethodGet, address)
	if err != nil {
		t.Errorf("%s: %v", address, err)
		return &answer{Response: &http.Response{}}
	}
	must.Equal(t, a.StatusCode, http.StatusOK, "%s: %s: %s", address, a.Status, a.body)
	return a
}

// all has many clients send requests at once, each one after the other, until
// there were so many in all; every one has to be answered by the site.
func (b *bed) all(t testing.TB, clients, requests int, w way, address func(n int) string) {
	t.Helper()
	var next atomic.Int64
	var busy sync.WaitGroup
	for number := range clients {
		c := b.client(w, number)
		busy.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= requests || t.Failed() {
					return
				}
				c.get(t, address(n))
			}
		})
	}
	busy.Wait()
}

// numbered is the n-th page of an origin.
func numbered(origin string) func(n int) string {
	return func(n int) string { return fmt.Sprintf("%s/page/%d", origin, n) }
}
