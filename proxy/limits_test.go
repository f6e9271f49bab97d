package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
	"heed/proxy/upstream"
	"heed/rules"
)

// awaitLoad waits until what clients hold is as it should be.
func (r *rig) awaitLoad(what string, fits func(limit.Status) bool) {
	r.t.Helper()
	testkit.Until(r.t, what, func() bool { return fits(r.proxy.config.Load.Status()) })
}

// from opens a connection to the proxy from an address of loopback.
func (r *rig) from(address string) *testkit.Conn {
	r.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: testkit.Patience}
	c := must.Get(d.Dial("tcp", r.addr))(r.t)
	return testkit.On(r.t, c)
}

// isLimit checks an answer that names a limit, in the status line, in
// Proxy-Status and in the body.
func isLimit(t *testing.T, a *testkit.Answer, status int, text string) {
	t.Helper()
	errorType := "http_request_error"
	if status == 503 {
		errorType = "http_request_denied"
	}
	if a.StatusCode != status || proxyStatusOf(t, a.Header) != errorType || !strings.Contains(a.Header.Get("Proxy-Status"), text) ||
		!strings.Contains(string(a.Body), text) || !strings.Contains(string(a.Body), `urn:heed:limit`) {
		t.Errorf("%s %q: %s; want %d and %s", a.Status, a.Header["Proxy-Status"], a.Body, status, text)
	}
	must.Equal(t, status == 429 || status == 503, (a.Header.Get("Retry-After") == "1"), "%s says Retry-After: %q", a.Status, a.Header.Get("Retry-After"))
}

// One client does not get all connections, all clients together not more than
// there are, and what is closed is free again, whatever was spoken on it.
func TestHeed_ConnectionsAreLimitedInAllAndByClient(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { c.Limits = limit.Limits{Connections: 5, ConnectionsPerClient: 3} })
	one, _ := r.raw(plain)
	one.Send(get("http://site.test", "/page"))
	one.Answer("GET")
	two, _ := r.raw(mitmH1)
	three := testkit.Dial(t, r.addr).Connect("site.test:443").TLS(r.trusting("site.test", "h2"))
	refused := testkit.Dial(t, r.addr)
	isLimit(t, refused.Answer("GET"), 429, "limit connections_per_client (3) reached")
	refused.Closed()

	four, five := r.from("127.0.0.2"), r.from("127.0.0.3")
	four.Send(get("http://site.test", "/page"))
	must.Status(t, four.Answer("GET").Response, 200, "another client")
	isLimit(t, r.from("127.0.0.2").Answer("GET"), 503, "limit connections (5) reached")
	r.awaitLoad("five of three clients", func(s limit.Status) bool { return s.Connections == 5 && s.Clients == 3 && s.Tunnels == 2 })
	for i, c := range []*testkit.Conn{one, two, three, four, five} {
		c.Close()
		r.awaitLoad("free again", func(s limit.Status) bool { return s.Connections == 4-i })
	}
	s := r.proxy.config.Load.Status()
	if s.Clients != 0 || s.Tunnels != 0 || s.Requests != 0 || s.Reached["connections"] != 1 || s.Reached["connections_per_client"] != 1 {
		t.Errorf("at the end %+v", s)
	}
}

// Connections beyond the limit are answered with a refusal as long as that is cheap, and
// never exhaust the proxy.
func TestHeed_AFloodOfConnectionsIsTurnedAway(t *testing.T) {
	r := newRig(t, hello, func(c *Config) {
		c.Limits = limit.Limits{Connections: 10, ConnectionsPerClient: 5, DrainTime: time.Minute}
	})
	var held []net.Conn
	for range 300 {
		c := must.Get(net.Dial("tcp", r.addr))(t)
		t.Cleanup(func() { c.Close() })
		held = append(held, c)
	}
	r.awaitLoad("all counted", func(s limit.Status) bool { return s.Reached["connections_per_client"] == 295 })
	s := r.proxy.config.Load.Status()
	must.True(t, s.Connections == 5, "%+v", s)
	other := r.from("127.0.0.2")
	other.Send(get("http://site.test", "/page"))
	must.Status(t, other.Answer("GET").Response, 200, "another client is not served")
	for _, c := range held {
		c.Close()
	}
}

func TestHeed_TunnelsAreLimitedInAllAndByClient(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { c.Limits = limit.Limits{Tunnels: 3, TunnelsPerClient: 2} })
	connect := "CONNECT site.test:443 HTTP/1.1\r\nHost: site.test:443\r\n\r\n"
	first := testkit.Dial(t, r.addr).Connect("site.test:443")
	testkit.Dial(t, r.addr).Connect("site.test:80")
	c := testkit.Dial(t, r.addr)
	c.Send(connect)
	isLimit(t, c.Answer("CONNECT"), 429, "limit tunnels_per_client (2) reached")
	e := r.records.await(t, "the refused tunnel", func(e *audit.Entry) bool { return e.Method == "CONNECT" && e.Outcome.Status == 429 })
	if e.Decision.Reason != rules.ReasonLimit || e.Host != "site.test" || e.Detail != "limit tunnels_per_client (2) reached" {
		t.Errorf("record %+v", e)
	}
	c.Send(get("http://site.test", "/page")) // the connection is good for other things
	must.Status(t, c.Answer("GET").Response, 200)
	r.from("127.0.0.2").Connect("site.test:443")
	d := r.from("127.0.0.3")
	d.Send(connect)
	isLimit(t, d.Answer("CONNECT"), 503, "limit tunnels (3) reached")
	first.Close()
	r.awaitLoad("a tunnel less", func(s limit.Status) bool { return s.Tunnels == 2 })
	d.Connect("site.test:443")
	bad := testkit.Dial(t, r.addr)
	bad.Send("CONNECT site.test HTTP/1.1\r\nHost: site.test\r\n\r\n")
	must.Status(t, bad.Answer("CONNECT").Response, 400)
	s := r.proxy.config.Load.Status()
	must.True(t, s.Tunnels == 3, "a CONNECT that is none counts: %+v", s)
}

func TestHeed_RequestsUnderWayAreLimitedInAllAndByClient(t *testing.T) {
	arrived, goOn := make(chan bool, 100), make(chan bool)
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			arrived <- true
			<-goOn
		}
	}, func(c *Config) { c.Limits = limit.Limits{Requests: 4, RequestsPerClient: 3} })
	a := r.ask(plain, question{path: "/page"})
	must.Need(t, a.StatusCode == 200, "%s", a.Status)
	var held sync.WaitGroup
	for _, m := range []mode{plain, mitmH1, mitmH2} {
		held.Go(func() {
			must.Status(t, r.in(t).ask(m, question{path: "/held"}).Response, 200, "%s held", m)
		})
		<-arrived
	}
	eachMode(t, allModes, func(t *testing.T, m mode) {
		a := r.in(t).ask(m, question{path: "/more"})
		isLimit(t, &testkit.Answer{Response: a.Response, Body: []byte(a.body)}, 429, "limit requests_per_client (3) reached")
	})
	other := r.from("127.0.0.2")
	other.Send(get("http://site.test", "/held"))
	<-arrived
	third := r.from("127.0.0.3")
	third.Send(get("http://site.test", "/more"))
	isLimit(t, third.Answer("GET"), 503, "limit requests (4) reached")
	e := r.records.target(t, "/more")
	must.True(t, e.Decision.Reason == rules.ReasonLimit && e.Host == "site.test", "record %+v", e)
	close(goOn)
	held.Wait()
	other.Answer("GET")
	r.awaitLoad("none under way", func(s limit.Status) bool { return s.Requests == 0 })
	third.Send(get("http://site.test", "/page"))
	must.Status(t, third.Answer("GET").Response, 200, "afterwards")
}

// RFC 9110 §15.5.15.
func TestRFC9110_ALongTargetIs414(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { c.Limits = limit.Limits{URIBytes: 2000} })
	eachMode(t, allModes, func(t *testing.T, m mode) {
		a := r.in(t).ask(m, question{path: "/?" + strings.Repeat("x", 2000)})
		isLimit(t, &testkit.Answer{Response: a.Response, Body: []byte(a.body)}, 414, "limit uri_bytes (2000 octets) reached")
		must.Status(t, r.in(t).ask(m, question{path: "/?" + strings.Repeat("x", 1900)}).Response, 200, "shorter")
	})
	must.Equal(t, r.proxy.config.Load.Status().Reached["uri_bytes"], uint64(len(allModes)), "times counted")
}

// RFC 9110 §15.5.9: a head that begins and does not come is answered; one that
// never begins is not.
func TestRFC9110_AHeadThatDoesNotComeIs408(t *testing.T) {
	t.Parallel()
	r := newRig(t, hello, hasty)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		t.Parallel()
		c, prefix := r.in(t).raw(m)
		c.Send(get(prefix, "/page"))
		c.Answer("GET")
		c.Send("GET " + prefix + "/late HTTP/1.1\r\nHost: si")
		self := c.LocalAddr().String()
		a := c.Answer("GET")
		if a.StatusCode != 408 || !strings.Contains(string(a.Body), "limit header_time (3s) reached") || a.Header.Get("Retry-After") != "" {
			t.Errorf("%s %s", a.Status, a.Body)
		}
		c.Closed()
		e := r.records.await(t, "the late head", func(e *audit.Entry) bool { return e.Client == self && e.Outcome.Status == 408 })
		must.Equal(t, e.Decision.Reason, rules.ReasonLimit, "record %+v", e)
	})
	c, _ := r.raw(plain)
	c.Closed()
}

// The operator learns of a limit when it is first reached, and not of each time.
func TestHeed_ALimitIsLoggedOnceInAWhile(t *testing.T) {
	text := &lockedBuffer{}
	r := newRig(t, hello, func(c *Config) {
		c.Limits, c.Log = limit.Limits{URIBytes: 1000}, slog.New(slog.NewTextHandler(text, nil))
	})
	for range 5 {
		r.ask(plain, question{path: "/?" + strings.Repeat("x", 1000)})
	}
	must.True(t, strings.Count(text.String(), "limit=uri_bytes") == 1 && strings.Contains(text.String(), `value="1000 octets"`),
		"logged:\n%s", text.String())
}

// shortOfFiles is a listener of a process that has too many files open.
type shortOfFiles struct {
	net.Listener
	left atomic.Int32
}

func (l *shortOfFiles) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// idleSites is an Upstream that counts how often its idle connections are closed.
type idleSites struct {
	*upstream.HostTransports
	closed atomic.Int32
}

func (s *idleSites) CloseIdleConnections() { s.closed.Add(1) }

// A proxy that is short of files closes the idle connections to sites, waits, says so, and
// goes on when there are some.
func TestHeed_ShortOfFilesItWaitsAndGoesOn(t *testing.T) {
	sites := &idleSites{}
	r := newRig(t, hello, func(c *Config) {
		sites.HostTransports = c.Upstream.(*upstream.HostTransports)
		c.Upstream = sites
	})
	inner := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	l := &shortOfFiles{Listener: inner}
	l.left.Store(3)
	go r.proxy.Serve(l)
	c := testkit.Dial(t, inner.Addr().String())
	c.Send(get("http://site.test", "/page"))
	must.Status(t, c.Answer("GET").Response, 200)
	if n := r.proxy.config.Load.Status().Reached["open_files"]; n != 3 || sites.closed.Load() != 3 {
		t.Errorf("counted %d times, closed idle connections %d times", n, sites.closed.Load())
	}
}

// A client whose request finds no file descriptor for the site gets an answer that names heed as the cause.
func TestHeed_ShortOfFilesItSaysSo(t *testing.T) {
	short := net.Dialer{ControlContext: func(context.Context, string, string, syscall.RawConn) error { return syscall.EMFILE }}
	r := newRig(t, hello, func(c *Config) {
		ways := upstream.NewHostTransports(upstream.TransportConfig{Dialer: short, Resolve: map[string]string{"short.test:80": "127.0.0.1:9"}})
		c.Upstream, c.Policies = ways, stated{rules.Source{State: rules.Unavailable}}
	})
	a := r.ask(plain, question{host: "short.test", path: "/", header: []string{"Accept: text/plain"}})
	if a.StatusCode != 502 || proxyStatusOf(t, a.Header) != "proxy_internal_error" ||
		!strings.HasPrefix(a.body, "heed cannot reach short.test: no file descriptor is free\n") || !strings.Contains(a.body, "ulimit -n") {
		t.Errorf("%s %s\n%s", a.Status, a.Header.Get("Proxy-Status"), a.body)
	}
}

// However many clients begin a head and do not end it, the octets that are kept of
// all of them have a bound. Those that come beyond it are answered and recorded, and a
// request that comes in one piece is served meanwhile.
func TestUnfinishedHeadsShareOneBound(t *testing.T) {
	const size, piece, clients = 1 << 20, 60 << 10, 60
	r := newRig(t, hello, func(c *Config) { c.Limits = limit.Limits{HeadsSize: size} })
	unfinished := "GET http://site.test/large HTTP/1.1\r\nHost: site.test\r\nX: " + strings.Repeat("x", piece)
	conns := make([]*testkit.Conn, clients)
	for i := range conns {
		conns[i] = testkit.Dial(t, r.addr)
		conns[i].Send(unfinished)
	}
	reached := func(s limit.Status) uint64 { return s.Reached["unfinished_heads_per_client"] }
	held := func(s limit.Status) bool { return s.UnfinishedHeads > size/2 && reached(s) > clients/2 }
	r.awaitLoad("most clients are refused", held)
	if s := r.proxy.config.Load.Status(); s.UnfinishedHeads > size*3/4 {
		t.Errorf("%d octets are held of one client, more than its share of %d", s.UnfinishedHeads, size)
	}
	must.Status(t, r.ask(plain, question{path: "/page"}).Response, 200, "a request in one piece")
	e := r.records.await(t, "a refused head", func(e *audit.Entry) bool { return e.Decision.Reason == rules.ReasonLimit })
	must.True(t, e.Method == "GET" && e.Host == "site.test" && e.Target == "/large" && e.Outcome.Status == 429,
		"record %+v", e)
	for _, c := range conns {
		c.Close()
	}
	r.awaitLoad("nothing is held", func(s limit.Status) bool { return s.UnfinishedHeads == 0 })
}
