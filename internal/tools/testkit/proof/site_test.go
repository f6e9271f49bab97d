package proof

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// site is proof.test, over http and https: it notes which targets it was asked
// for, before it answers.
type site struct {
	ca            *testkit.CA
	plain, secure string // addresses

	mu    sync.Mutex
	asked map[string]int
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{ca: testkit.NewCA(t), asked: map[string]int{}}
	cert := must.Get(tls.LoadX509KeyPair(s.ca.Leaf(t, "proof.test")))(t)
	s.plain = s.serve(t, nil)
	s.secure = s.serve(t, &tls.Config{Certificates: []tls.Certificate{cert}})
	return s
}

func (s *site) serve(t *testing.T, secure *tls.Config) (addr string) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr = l.Addr().String()
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	server := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return addr
}

// ServeHTTP answers by the target: /private is disallowed, /long is a slow answer of many
// octets, /long/ever one that does not end, /none is not found.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
		return
	}
	s.mu.Lock()
	s.asked[r.URL.RequestURI()]++
	s.mu.Unlock()
	switch {
	case strings.HasPrefix(r.URL.Path, "/long"):
		for range map[bool]int{true: 20, false: 20_000}[r.URL.Path != "/long/ever"] {
			if _, err := w.Write(make([]byte, 10_000)); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(2 * time.Millisecond):
			}
		}
	case strings.HasPrefix(r.URL.Path, "/none"):
		http.NotFound(w, r)
	default:
		fmt.Fprintln(w, "a page:", r.URL.Path)
	}
}

// requests returns how often each target was asked for so far.
func (s *site) requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]int, len(s.asked))
	for target, n := range s.asked {
		all[target] = n
	}
	return all
}

// config is a proxy.toml that leads to the site, with settings of the test's own
// before it.
func (s *site) config(settings string) string {
	return testkit.AnyPort + settings + fmt.Sprintf("\n[upstream]\nca_file = %q\nresolve = { \"proof.test:80\" = %q, \"proof.test:443\" = %q }\n",
		s.ca.File, s.plain, s.secure)
}

// h2 is how a client that trusts h speaks HTTP/2 to the site.
func h2(t *testing.T, h *testkit.Heed) *tls.Config {
	return &tls.Config{RootCAs: h.Roots(), ServerName: "proof.test", NextProtos: []string{"h2"}}
}

// client returns a client that goes through h and trusts its CA.
func client(t *testing.T, h *testkit.Heed) *http.Client {
	t.Helper()
	tr := &http.Transport{
		Proxy:              http.ProxyURL(&url.URL{Scheme: "http", Host: h.Addr}),
		TLSClientConfig:    &tls.Config{RootCAs: h.Roots()},
		DisableCompression: true, MaxIdleConnsPerHost: 32, ForceAttemptHTTP2: true,
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: testkit.Patience}
}
