package soak

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// kind is what becomes of a request.
type kind uint8

const (
	page     kind = iota // a body of some kilobytes
	large                // a megabyte, for clients that read slowly
	echo                 // what is uploaded comes back
	cut                  // the site breaks off in the middle of the body
	reset                // the site breaks off before the answer
	disallow             // its robots.txt forbids it
	down                 // its robots.txt cannot be had
)

var kinds = map[string]kind{
	"page": page, "large": large, "echo": echo, "cut": cut, "reset": reset, "private": disallow, "down": down,
}

func (k kind) String() string {
	for name, is := range kinds {
		if is == k {
			return name
		}
	}
	return ""
}

// allowed is what heed is to say of it.
func (k kind) allowed() bool { return k != disallow && k != down }

// kindOf spreads the kinds over the numbers.
func kindOf(n uint64) kind {
	switch r := n * 0x9e3779b97f4a7c15 >> 32 % 100; {
	case r < 60:
		return page
	case r < 75:
		return disallow
	case r < 82:
		return echo
	case r < 87:
		return cut
	case r < 91:
		return reset
	case r < 95:
		return down
	default:
		return large
	}
}

const (
	sites     = 8 // that are well; one more has no robots.txt to give
	largeSize = 1 << 20
)

// hostOf returns the name of the site that request n is for.
func hostOf(n uint64) string {
	if kindOf(n) == down {
		return "down.test"
	}
	return fmt.Sprintf("site-%d.test", n%sites)
}

// pattern is what all bodies are made of.
var pattern = bytes.Repeat([]byte("All that a site sends comes as it was sent. "), 2*largeSize/44)

// bodyOf returns the body of the answer to request n.
func bodyOf(n uint64) []byte {
	size := int(n * 7919 % (16 << 10))
	if kindOf(n) == large {
		size = largeSize
	}
	from := int(n % 44)
	return pattern[from : from+size]
}

// web is all sites of a soak.
type web struct {
	ledger *ledger
	config string // a proxy.toml that leads to them

	mu    sync.Mutex
	conns map[net.Conn]http.ConnState
}

func newWeb(t *testing.T, l *ledger) *web {
	w := &web{ledger: l, conns: map[net.Conn]http.ConnState{}}
	ca := testkit.NewCA(t)
	leaves := map[string]*tls.Certificate{}
	w.config = testkit.AnyPort + "[limits]\nrefusals_per_client = 100000000\n[upstream]\nca_file = " + strconv.Quote(ca.File) + "\n[upstream.resolve]\n"
	plain, secure := w.serve(t, nil), w.serve(t, &tls.Config{
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return leaves[hello.ServerName], nil
		},
	})
	for n := range sites + 1 {
		host := "down.test"
		if n < sites {
			host = fmt.Sprintf("site-%d.test", n)
		}
		certFile, keyFile := ca.Leaf(t, host)
		leaf := must.Get(tls.LoadX509KeyPair(certFile, keyFile))(t)
		leaves[host] = &leaf
		w.config += fmt.Sprintf("%q = %q\n%q = %q\n", host+":80", plain, host+":443", secure)
	}
	return w
}

// serve serves all sites on a port of its own.
func (w *web) serve(t *testing.T, config *tls.Config) (addr string) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := &http.Server{Handler: w, TLSConfig: config, ConnState: w.connState}
	s.ErrorLog = quiet
	t.Cleanup(func() { s.Close() })
	if config == nil {
		go s.Serve(l)
	} else {
		go s.ServeTLS(l, "", "")
	}
	return l.Addr().String()
}

func (w *web) connState(c net.Conn, state http.ConnState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[c] = state
	if state == http.StateClosed || state == http.StateHijacked {
		delete(w.conns, c)
	}
}

// hangUp closes connections that are idle, so that heed has none left in its pool.
func (w *web) hangUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		c.Close()
	}
}

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		if r.Host == "down.test" {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		rw.Header().Set("Cache-Control", "max-age=300")
		io.WriteString(rw, "User-agent: *\nDisallow: /private/\n")
		return
	}
	n, k, ok := parse(r.URL.Path)
	if !ok || k != kindOf(n) || !strings.EqualFold(r.Host, hostOf(n)) {
		w.ledger.amiss("a request reached the site for %s%s", r.Host, r.URL.Path)
		return
	}
	w.ledger.reached.add(n)
	w.answer(rw, r, n, k)
}

func (w *web) answer(rw http.ResponseWriter, r *http.Request, n uint64, k kind) {
	switch k {
	case disallow, down:
		w.ledger.amiss("a forbidden request reached the site: %s%s", r.Host, r.URL.Path)
	case echo:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the client left
		}
		rw.Write(body)
	case reset:
		breakOff(rw)
	case cut:
		rw.Header().Set("Content-Length", "100000")
		rw.Write(pattern[:rand.IntN(90_000)])
		http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	default:
		body := bodyOf(n)
		if n%2 == 0 {
			rw.Header().Set("Content-Length", strconv.Itoa(len(body)))
		}
		rw.Write(body)
	}
}

// breakOff resets the connection or, in HTTP/2, the stream.
func breakOff(rw http.ResponseWriter) {
	h, ok := rw.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	c, _, err := h.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}
