package soak

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"heed/internal/tools/testkit"
)

// mode is how a client reaches the sites.
type mode string

const (
	plain  mode = "plain"
	mitmH1 mode = "intercepted, HTTP/1.1"
	mitmH2 mode = "intercepted, HTTP/2"
)

// clientsPerMode is how many clients there are of each mode at a time.
const clientsPerMode = 40

// errLeft is why a client ended its own request.
var errLeft = errors.New("the client has left")

// client sends one request after the other, and leaves some of them alone.
type client struct {
	mode   mode
	ledger *ledger
	http   *http.Client
}

func newClient(addr string, m mode, roots *x509.CertPool, l *ledger) *client {
	tr := &http.Transport{
		Proxy:              http.ProxyURL(&url.URL{Scheme: "http", Host: addr}),
		TLSClientConfig:    &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2:  m == mitmH2,
		DisableCompression: true,
		IdleConnTimeout:    5 * time.Second, // also of those that come when their client has ended
	}
	return &client{mode: m, ledger: l, http: &http.Client{
		Transport: tr, Timeout: 4 * testkit.Patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// load has all clients send requests until ctx ends, and closes what they opened.
func load(ctx context.Context, addr string, roots *x509.CertPool, l *ledger) {
	var busy sync.WaitGroup
	for _, m := range []mode{plain, mitmH1, mitmH2} {
		for range clientsPerMode {
			c := newClient(addr, m, roots, l)
			busy.Go(func() {
				defer c.http.CloseIdleConnections()
				for ctx.Err() == nil {
					c.one()
				}
			})
		}
	}
	busy.Wait()
}

// one sends one request and sees to its answer.
func (c *client) one() {
	n := c.ledger.next.Add(1) - 1
	if rand.IntN(200) == 0 {
		c.http.CloseIdleConnections() // the next one needs a new connection
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	leaves := rand.IntN(10) == 0
	if leaves {
		c.ledger.left.add(n) // whatever comes first: the answer, or this
		leave := time.AfterFunc(rand.N(40*time.Millisecond), func() { cancel(errLeft) })
		defer leave.Stop()
	}
	resp, err := c.http.Do(c.request(ctx, n))
	if err != nil {
		if !leaves {
			c.ledger.amiss("%s, %v %d: no answer: %v", c.mode, kindOf(n), n, err)
		}
		return
	}
	defer resp.Body.Close()
	c.ledger.answered.add(n)
	if c.judge(n, resp) {
		c.ledger.fromSite.add(n)
	}
	switch err := c.read(n, resp); {
	case err == nil:
		c.ledger.whole.add(n)
	case !leaves:
		c.ledger.amiss("%s, %v %d: %v", c.mode, kindOf(n), n, err)
	}
}

func (c *client) request(ctx context.Context, n uint64) *http.Request {
	scheme, method, body := "https", http.MethodGet, io.Reader(nil)
	if c.mode == plain {
		scheme = "http"
	}
	if kindOf(n) == echo {
		method, body = http.MethodPost, bytes.NewReader(bodyOf(n))
	}
	address := scheme + "://" + hostOf(n) + "/" + kindOf(n).String() + "/" + strconv.FormatUint(n, 10)
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		panic(err) // the address is of our own making
	}
	r.Header.Set("User-Agent", "soak/1.0")
	return r
}

// judge looks whether the status is the one this kind of request has, and
// reports whether the answer is the site's.
func (c *client) judge(n uint64, resp *http.Response) (fromSite bool) {
	want := map[kind]int{disallow: 403, down: 503, reset: 502}[kindOf(n)]
	if fromSite = want == 0; fromSite {
		want = 200
	}
	status := resp.Header.Get("Proxy-Status")
	if resp.StatusCode != want || fromSite == strings.Contains(status, "error=") {
		c.ledger.amiss("%s, %v %d: status %d, Proxy-Status %q", c.mode, kindOf(n), n, resp.StatusCode, status)
	}
	return fromSite
}

// read reads the answer and compares it with what the site sent; the error says
// what is not as it should be.
func (c *client) read(n uint64, resp *http.Response) error {
	var body io.Reader = resp.Body
	if kindOf(n) == large {
		body = &slow{from: body}
	}
	got, err := io.ReadAll(body)
	switch k := kindOf(n); {
	case k == cut && err == nil:
		return errors.New("an answer that was cut off looks whole")
	case k == cut:
		return nil
	case err != nil:
		return err
	case k.allowed() && k != reset && !bytes.Equal(got, bodyOf(n)):
		return errors.New("the body is not what the site sent")
	}
	return nil
}

// slow reads a piece now and then.
type slow struct{ from io.Reader }

func (s *slow) Read(p []byte) (int, error) {
	testkit.Delay(rand.N(20 * time.Millisecond))
	return s.from.Read(p[:min(len(p), 32<<10)])
}
