package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// site is a real origin: plain and TLS listeners with one handler. Over TLS
// site.test speaks HTTP/2, its other name h1.test does not.
type site struct {
	ca      *testkit.CA
	resolve map[string]string // may be added to before the rig starts
	robots  string            // what /robots.txt answers
	// patience is how long the proxy waits for the head of an answer; zero
	// means its default.
	patience time.Duration

	mu      sync.Mutex
	seen    []string // "METHOD target" of each request but robots.txt
	arrived []arrival
}

// arrival is a request as the site saw it, robots.txt included.
type arrival struct {
	Method, Target, Host, Proto string
	Header                      http.Header
}

func (s *site) note(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived = append(s.arrived, arrival{r.Method, r.RequestURI, r.Host, r.Proto, r.Header.Clone()})
	if r.URL.Path != "/robots.txt" {
		s.seen = append(s.seen, r.Method+" "+r.RequestURI)
	}
}

// requests returns every arrival so far.
func (s *site) requests() []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]arrival(nil), s.arrived...)
}

// last returns the latest arrival of a target.
func (s *site) last(t testing.TB, target string) arrival {
	t.Helper()
	all := s.requests()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Target == target {
			return all[i]
		}
	}
	t.Fatalf("no request for %s reached the site; there are %v", target, s.reached())
	return arrival{}
}

func newSite(t testing.TB, handler http.HandlerFunc) *site {
	t.Helper()
	s := &site{ca: testkit.NewCA(t), resolve: map[string]string{}, robots: robots}
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.note(r)
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, s.robots)
			return
		}
		handler(w, r)
	})
	s.serve(t, "site.test", &http.Server{Handler: serve})
	onlyHTTP1 := &http.Server{Handler: serve, Protocols: new(http.Protocols)}
	onlyHTTP1.Protocols.SetHTTP1(true)
	s.serve(t, "h1.test", onlyHTTP1)
	return s
}

// serve has server answer for a name, over HTTP and over TLS.
func (s *site) serve(t testing.TB, name string, server *http.Server) {
	t.Helper()
	server.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(func() { server.Close() })
	certFile, keyFile := s.ca.Leaf(t, name)
	go server.Serve(s.listen(t, name+":80"))
	go server.ServeTLS(s.listen(t, name+":443"), certFile, keyFile)
}

// serveAs serves hello at a second name, with the same robots.txt.
func (s *site) serveAs(t testing.TB, name string) {
	t.Helper()
	s.serve(t, name, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.note(r)
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, robots)
			return
		}
		hello(w, r)
	})})
}

// listen opens a port that is reached as hostPort.
func (s *site) listen(t testing.TB, hostPort string) net.Listener {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	s.resolve[hostPort] = l.Addr().String()
	return l
}

// script has act speak on every connection to hostPort once the request has
// been read; robots.txt is answered for it. Afterwards the connection closes.
func (s *site) script(t testing.TB, hostPort string, act func(c net.Conn, r *http.Request)) {
	t.Helper()
	go s.playAll(s.listen(t, hostPort), act)
}

// scriptTLS is script behind a certificate, with HTTP/1.1 only.
func (s *site) scriptTLS(t testing.TB, hostPort, certFile, keyFile string, act func(c net.Conn, r *http.Request)) {
	t.Helper()
	cert := must.Get(tls.LoadX509KeyPair(certFile, keyFile))(t)
	go s.playAll(tls.NewListener(s.listen(t, hostPort), &tls.Config{Certificates: []tls.Certificate{cert}}), act)
}

func (s *site) playAll(l net.Listener, act func(c net.Conn, r *http.Request)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go s.play(c, act)
	}
}

func (s *site) play(c net.Conn, act func(net.Conn, *http.Request)) {
	defer c.Close()
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	s.note(r)
	if r.URL.Path == "/robots.txt" {
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(s.robots), s.robots)
		return
	}
	act(c, r)
}

// reached returns the requests that reached the site.
func (s *site) reached() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}
