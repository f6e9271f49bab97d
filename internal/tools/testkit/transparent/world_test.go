package transparent

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// name is what the heed of these tests is called in Via.
const name = "clear-1"

const robots = "User-agent: *\nDisallow: /private\n"

// The sites.
const (
	scripted = "script.test" // octets, HTTP/1 only
	served   = "go.test"     // net/http, HTTP/2 over TLS
	static   = "nginx.test"  // nginx, HTTP/2 over TLS
)

// world is a heed and the sites it leads to.
type world struct {
	t      testing.TB
	heed   *testkit.Heed
	origin *testkit.Origin
	ours   *x509.CertPool    // heed's CA
	addrs  map[string]string // "host:port" of each site to where it listens
	shapes map[string]*shape // by name: what the sites answer

	seen chan *arrival // what the sites saw, in order
}

func newWorld(t testing.TB, shapes []*shape) *world {
	t.Helper()
	w := &world{t: t, shapes: map[string]*shape{}, seen: make(chan *arrival, 10)}
	for _, s := range shapes {
		must.Need(t, w.shapes[s.name] == nil, "two shapes are called %q", s.name)
		w.shapes[s.name] = s
	}
	w.origin = testkit.NewOrigin(t, nginxSite)
	w.addrs = w.origin.Resolve()
	config := w.origin.Config(fmt.Sprintf("name = %q\n[pacing]\nretry_after = \"observe\"\n", name))
	for _, site := range []struct {
		host  string
		serve func(net.Listener, *tls.Config)
	}{{scripted, w.speak}, {served, w.serve}} {
		certFile, keyFile := w.origin.CA.Leaf(t, site.host)
		cert := must.Get(tls.LoadX509KeyPair(certFile, keyFile))(t)
		for port, secure := range map[string]*tls.Config{"80": nil, "443": {Certificates: []tls.Certificate{cert}}} {
			l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
			t.Cleanup(func() { l.Close() })
			w.addrs[site.host+":"+port] = l.Addr().String()
			config += fmt.Sprintf("%q = %q\n", site.host+":"+port, l.Addr())
			go site.serve(l, secure)
		}
	}
	config += "[log]\nlevel = \"warn\"\n" // a failing test prints the log
	// Little garbage, so that what heed holds is seen.
	w.heed = testkit.Start(t, testkit.Options{Config: config, Env: []string{"GOGC=100"}})
	w.ours = w.heed.Roots()
	return w
}

// in is the world for a subtest.
func (w *world) in(t testing.TB) *world {
	return &world{t: t, heed: w.heed, origin: w.origin, ours: w.ours, addrs: w.addrs, shapes: w.shapes, seen: w.seen}
}

// arrival is a request as a site saw it.
type arrival struct {
	method, target, host string
	header               fields
	body                 string
	trailer              fields
}

// last takes the request that a site saw of a shape.
func (w *world) last(s *shape) *arrival {
	w.t.Helper()
	if s.site == static {
		return &arrival{} // of nginx there is only the log
	}
	select {
	case a := <-w.seen:
		return a
	case <-time.After(testkit.Patience):
		w.t.Fatalf("no request of the shape %q came to its end at the site", s.name)
		return nil
	}
}

// serve is the site go.test.
func (w *world) serve(l net.Listener, secure *tls.Config) {
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), DisableGeneralOptionsHandler: true,
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			s := w.shapes[r.Header.Get("X-Shape")]
			if r.URL.Path == "/robots.txt" || s == nil || s.serve == nil {
				io.WriteString(rw, robots)
				return
			}
			if s.unseen {
				s.serve(rw, r)
				return
			}
			a := &arrival{method: r.Method, target: r.RequestURI, host: r.Host, header: r.Header.Clone()}
			body := &strings.Builder{}
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.TeeReader(r.Body, body), r.Body}
			defer func() { // also when the answer breaks off
				a.body, a.trailer = body.String(), r.Trailer.Clone()
				w.seen <- a
			}()
			s.serve(rw, r)
		})}
	w.t.Cleanup(func() { server.Close() })
	if secure == nil {
		server.Serve(l)
		return
	}
	server.TLSConfig = secure
	server.ServeTLS(l, "", "")
}
