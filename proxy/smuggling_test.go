package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"heed/cache"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/upstream"
)

// smuggled is a body that is a request: sent to a site that does not read
// bodies, it is executed where the connection goes on.
const smuggled = "GET /private/smuggled HTTP/1.1\r\nHost: site.test\r\n\r\n"

// bodyFramings are the ways in which a client can send a body of which the
// method does not need one.
var bodyFramings = []struct {
	name   string
	fields []string
	body   string
}{
	{"Content-Length", []string{fmt.Sprintf("Content-Length: %d", len(smuggled))}, smuggled},
	{"chunked", []string{"Transfer-Encoding: chunked"}, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled)},
	{"trailers", []string{"Transfer-Encoding: chunked", "Trailer: X-Sum"}, fmt.Sprintf("%x\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n", len(smuggled), smuggled)},
	{"Expect", []string{fmt.Sprintf("Content-Length: %d", len(smuggled)), "Expect: 100-continue"}, smuggled},
	{"Expect, chunked", []string{"Transfer-Encoding: chunked", "Expect: 100-continue"}, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled)},
}

// unreadBodies is a site that answers every request by its head and takes what
// follows for the next, as Python's http.server does. It is strict in nothing:
// lines that are no request line are passed over.
type unreadBodies struct{ smuggled atomic.Int32 }

func (s *unreadBodies) converse(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if !strings.HasSuffix(strings.TrimSpace(line), " HTTP/1.1") {
			continue
		}
		r, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(line), headLines{in})))
		if err != nil {
			return
		}
		body := ""
		switch {
		case strings.Contains(r.RequestURI, "smuggled"):
			s.smuggled.Add(1)
		case r.URL.Path == "/robots.txt":
			body = robots
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(body))
		if r.Method != http.MethodHead {
			io.WriteString(c, body)
		}
		if r.Close {
			_ = c.(interface{ CloseWrite() error }).CloseWrite()
			_, _ = io.Copy(io.Discard, in) // a close with octets unread would take the answer back
			return
		}
	}
}

// headLines reads line by line and ends with the empty one.
type headLines struct{ *bufio.Reader }

func (h headLines) Read(p []byte) (int, error) {
	line, err := h.ReadSlice('\n')
	if len(line) == 2 {
		return copy(p, line), io.EOF
	}
	return copy(p, line), err
}

// A site that does not read a body never takes it for a request: whatever the
// method and the framing, the connection to the site ends with that request.
func TestBodyIsNeverTheNextRequestAtASiteThatDoesNotReadIt(t *testing.T) {
	t.Parallel()
	methods := []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND"}
	s, careless := newSite(t, hello), &unreadBodies{}
	go testkit.Accept(s.listen(t, "careless.test:80"), careless.converse)
	certFile, keyFile := s.ca.Leaf(t, "careless.test")
	cert := must.Get(tls.LoadX509KeyPair(certFile, keyFile))(t)
	go testkit.Accept(tls.NewListener(s.listen(t, "careless.test:443"), &tls.Config{Certificates: []tls.Certificate{cert}}), careless.converse)
	r := newRigBefore(t, s)
	asked := 0
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		r := r.in(t)
		for _, method := range methods {
			for _, f := range bodyFramings {
				c, prefix := r.rawTo(m, "careless.test")
				c.Send(requestTo("careless.test", method, prefix, "/page", f.fields...) + f.body)
				for code := 0; code != 200; {
					if code = c.Head(method).StatusCode; code != 200 && code != 100 {
						t.Errorf("%s, %s: status %d", method, f.name, code)
						break
					}
				}
				if a := r.ask(m, question{host: "careless.test", path: "/next"}); a.StatusCode != 200 || a.body != "" {
					t.Errorf("%s, %s: the next request gets %s %q", method, f.name, a.Status, a.body)
				}
				asked++
			}
		}
	})
	t.Run(string(mitmH2), func(t *testing.T) {
		for _, method := range methods {
			must.Status(t, r.in(t).ask(mitmH2, question{method: method, host: "careless.test", path: "/page", body: smuggled}).Response, 200, method)
			asked++
		}
	})
	n := careless.smuggled.Load()
	must.True(t, n == 0, "%d of %d bodies were executed as requests", n, asked)
}

// The same site behind a proxy of the operator's: plain http is one connection
// from heed to that proxy, which ends with the request.
func TestBodyEndsTheConnectionToAnUpstreamProxy(t *testing.T) {
	careless := &unreadBodies{}
	addr := testkit.RawSite(t, careless.converse)
	r := newRig(t, hello, func(c *Config) {
		ways := upstream.NewHostTransports(upstream.TransportConfig{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr})})
		c.Upstream, c.Policies = ways, cache.New(cache.Config{Transport: ways, UserAgent: "heed-rig"})
	})
	for _, f := range bodyFramings {
		c, prefix := r.rawTo(plain, "careless.test")
		c.Send(requestTo("careless.test", "GET", prefix, "/page", f.fields...) + f.body)
		for c.Head("GET").StatusCode == 100 {
		}
		must.Status(t, r.ask(plain, question{host: "careless.test", path: "/next"}).Response, 200, "%s: the next request gets", f.name)
	}
	n := careless.smuggled.Load()
	must.True(t, n == 0, "%d of %d bodies were executed as requests", n, len(bodyFramings))
}

// Only a body over HTTP/1 ends a connection to a site: not an empty one, not one
// over HTTP/2, and never the client's own connection. A POST takes a new one all the same.
func TestOnlyABodyOverHTTP1EndsTheConnectionToTheSite(t *testing.T) {
	var seen atomic.Value
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		seen.Store(r.RemoteAddr)
		hello(w, r)
	})
	for _, test := range []struct {
		what, host, method, body string
		fields                   []string
		kept, reused             bool
	}{
		{"no body", "h1.test", "GET", "", nil, true, true},
		{"an empty body", "h1.test", "POST", "", []string{"Content-Length: 0"}, true, false},
		{"a body", "h1.test", "POST", "body", []string{"Content-Length: 4"}, false, false},
		{"a body over HTTP/2", "site.test", "POST", "body", []string{"Content-Length: 4"}, true, true},
	} {
		c, _ := r.rawTo(mitmH1, test.host)
		addrs := map[any]bool{}
		for range 3 {
			c.Send(requestTo(test.host, test.method, "", "/page", test.fields...) + test.body)
			a := c.Answer(test.method)
			must.Need(t, a.StatusCode == 200 && !a.Close,
				"%s: %s, and the client's connection closes: %v", test.what, a.Status, a.Close)
			addrs[seen.Load()] = true
			arrived := r.site.last(t, "/page")
			got, want := arrived.Header.Get("Connection"), map[bool]string{false: "close"}[test.kept]
			must.True(t, got == want, "%s: Connection is %q at the site, not %q", test.what, got, want)
		}
		reused := len(addrs) == 1
		must.True(t, reused == test.reused, "%s: three requests went over %d connections", test.what, len(addrs))
	}
}

// A WebSocket handshake with a body is none: after it the site reads frames.
func TestWebSocketHandshakeWithABodyIsRefused(t *testing.T) {
	r := newRig(t, webSocketSite(make(chan string, 8)))
	handshake := strings.TrimSuffix(webSocketHandshake("", "/socket"), "\r\n")
	for _, f := range bodyFramings {
		c, _ := r.rawTo(mitmH1, "site.test")
		c.Send(handshake + strings.Join(f.fields, "\r\n") + "\r\n\r\n" + f.body)
		if a := c.Answer("GET"); a.StatusCode != 400 || !strings.Contains(string(a.Body), "handshake has no body") {
			t.Errorf("%s: %s %s", f.name, a.Status, a.Body)
		}
	}
	must.Same(t, r.site.reached(), nil, "what the site got")
}

// BenchmarkPostsOverTLS measures 100 small posts of one client to a site that
// speaks HTTP/1 alone (a connection each), and to one that speaks HTTP/2.
func BenchmarkPostsOverTLS(b *testing.B) {
	r := newRig(b, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		hello(w, r)
	})
	for _, host := range []string{"h1.test", "site.test"} {
		b.Run(host, func(b *testing.B) {
			for b.Loop() {
				c, _ := r.in(b).rawTo(mitmH1, host)
				for range 100 {
					c.Send(requestTo(host, "POST", "", "/page", "Content-Length: 16") + "0123456789abcdef")
					if a := c.Answer("POST"); a.StatusCode != 200 {
						b.Fatal(a.Status)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(time.Millisecond), "ms/100-posts")
		})
	}
}
