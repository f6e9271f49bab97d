package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/upstream"
	"heed/rules"
)

// settled makes a rig's operator say what becomes of https at each host.
func settled(t testing.TB, hosts map[string]acl.HTTPS, ports ...uint16) func(*Config) {
	t.Helper()
	r := &acl.Rules{}
	for text, https := range hosts {
		pattern := must.Get(acl.ParseHostPattern(text))(t)
		r.Hosts = append(r.Hosts, acl.Host{Match: []acl.HostPattern{pattern}, HTTPS: &https, Ports: ports})
	}
	return func(c *Config) { c.Rules = r }
}

// bySite is how a client inside a tunnel that is not intercepted trusts: it
// sees the site's own certificate.
func (r *rig) bySite(host string, protocols ...string) *tls.Config {
	return &tls.Config{RootCAs: r.site.ca.Pool(), ServerName: host, NextProtos: protocols}
}

// await waits for the record of a CONNECT to host.
func (r *rig) connectTo(host string) audit.Entry {
	r.t.Helper()
	return r.tunnelTo(http.MethodConnect, host)
}

// tunnelTo waits for the record of the first tunnel to a host that is recorded as method.
func (r *rig) tunnelTo(method, host string) audit.Entry {
	r.t.Helper()
	return r.records.await(r.t, method+" "+host, func(e *audit.Entry) bool { return e.Method == method && e.Host == host })
}

// Through a host-only tunnel an agent that may fetch something talks to the
// site itself; the record says that paths were not seen, and how many rules
// speak of them.
func TestHeed_AHostOnlyTunnelIsJudgedByTheHost(t *testing.T) {
	r := newRig(t, hello, settled(t, map[string]acl.HTTPS{"site.test": acl.HostOnly}))
	c := testkit.Dial(t, r.addr).Connect("site.test:443", "User-Agent: curl/8").TLS(r.bySite("site.test", "http/1.1"))
	c.Send(get("", "/private"))
	a := c.Answer("GET")
	must.True(t, a.StatusCode == 200 && a.Header.Get("Via") == "", "%s %v", a.Status, a.Header)
	c.Close()
	e := r.connectTo("site.test")
	if e.Judged != audit.ByHost || e.Decision.Verdict != rules.Allow || e.Decision.Reason != rules.ReasonHostOnly || e.Unseen != 1 {
		t.Errorf("record %+v", e)
	}
	o := e.Outcome
	must.True(t, o.Status == 200 && o.BytesIn != 0 && o.BytesOut != 0 && !o.Truncated, "outcome %+v", o)
}

func TestHeed_AHostOnlyTunnelIsRefusedToWhoIsBarredFromEverything(t *testing.T) {
	r := newRig(t, hello, settled(t, map[string]acl.HTTPS{"site.test": acl.HostOnly}))
	c := testkit.Dial(t, r.addr)
	c.Send("CONNECT site.test:443 HTTP/1.1\r\nHost: site.test:443\r\nUser-Agent: BadBot/1.0\r\n\r\n")
	a := c.Answer("CONNECT")
	if a.Status != "403 Refused by heed: robots.txt line 7 Disallow: /, for all of site.test" || proxyStatusOf(t, a.Header) != "http_request_denied" {
		t.Errorf("%s %v", a.Status, a.Header)
	}
	must.Contain(t, string(a.Body), `"line": 7`, "body")
	e := r.connectTo("site.test")
	must.True(t, e.Judged == audit.ByHost && e.Decision.Verdict == rules.Refuse && e.Decision.Line == 7, "record %+v", e)
	must.Same(t, r.site.reached(), nil, "what the site saw")
}

// While robots.txt is unreachable no client gets a tunnel; once it is read, they do.
func TestHeed_AHostOnlyTunnelWithoutRulesIs503(t *testing.T) {
	s := newSite(t, hello)
	s.script(t, "ill.test:443", func(net.Conn, *http.Request) {})
	r := newRigBefore(t, s, settled(t, map[string]acl.HTTPS{"*": acl.HostOnly}))
	s.resolve["down.test:443"] = "127.0.0.1:1"
	for host, status := range map[string]int{"ill.test": 502, "down.test": 502} {
		c := testkit.Dial(t, r.addr)
		c.Send("CONNECT " + host + ":443 HTTP/1.1\r\nHost: x\r\n\r\n")
		must.Status(t, c.Answer("CONNECT").Response, status, host)
	}
	sick := newSite(t, hello)
	certFile, keyFile := sick.ca.Leaf(t, "sick.test")
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })}
	t.Cleanup(func() { server.Close() })
	go server.ServeTLS(sick.listen(t, "sick.test:443"), certFile, keyFile)
	r = newRigBefore(t, sick, settled(t, map[string]acl.HTTPS{"*": acl.HostOnly}))
	c := testkit.Dial(t, r.addr)
	c.Send("CONNECT sick.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	a := c.Answer("CONNECT")
	must.True(t, a.StatusCode == 503 && a.Header.Get("Retry-After") != "", "%s %v", a.Status, a.Header)
	e := r.connectTo("sick.test")
	must.True(t, e.Decision.Reason == rules.ReasonRobotsUnreachable && e.Decision.Verdict == rules.Refuse, "record %+v", e)
}

// Hosts that the operator tunnels are not judged, and their robots.txt is not fetched;
// the record says so. All other hosts are intercepted.
func TestHeed_ATunnelIsRecordedAsNotJudged(t *testing.T) {
	r := newRig(t, hello, settled(t, map[string]acl.HTTPS{"site.test": acl.Tunnel}))
	c := testkit.Dial(t, r.addr).Connect("site.test:443", "User-Agent: BadBot/1").TLS(r.bySite("site.test", "http/1.1"))
	c.Send(get("", "/private"))
	must.Status(t, c.Answer("GET").Response, 200)
	c.Close()
	e := r.connectTo("site.test")
	if e.Judged != audit.NotJudged || e.Decision.Verdict != rules.Allow || e.Decision.Reason != rules.ReasonTunnel || e.Policy != nil {
		t.Errorf("record %+v", e)
	}
	for _, a := range r.site.requests() {
		must.True(t, a.Target != "/robots.txt", "robots.txt was fetched for nothing")
	}
	other := testkit.Dial(t, r.addr).Connect("h1.test:443").TLS(r.trusting("h1.test", "http/1.1"))
	other.Send(requestTo("h1.test", "GET", "", "/private"))
	must.Status(t, other.Answer("GET").Response, 403, "a host that is not named")
}

func TestHeed_HTTPSCanBeRefused(t *testing.T) {
	r := newRig(t, hello, settled(t, map[string]acl.HTTPS{"site.test": acl.NoHTTPS}))
	c := testkit.Dial(t, r.addr)
	c.Send("CONNECT site.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	must.Status(t, c.Answer("CONNECT").Response, 403)
	e := r.connectTo("site.test")
	must.True(t, e.Decision.Reason == rules.ReasonAccess, "record %+v", e)
	plainly, prefix := r.raw(plain)
	plainly.Send(get(prefix, "/page"))
	must.Status(t, plainly.Answer("GET").Response, 200, "http")
}

// A tunnel that is not intercepted goes to 443, or to the ports listed.
func TestHeed_TunnelsGoToThePortsListed(t *testing.T) {
	for _, https := range []acl.HTTPS{acl.HostOnly, acl.Tunnel} {
		for port, ports := range map[string][]uint16{"8443": nil, "80": nil, "443": {8443}} {
			r := newRig(t, hello, settled(t, map[string]acl.HTTPS{"site.test": https}, ports...))
			c := testkit.Dial(t, r.addr)
			c.Send("CONNECT site.test:" + port + " HTTP/1.1\r\nHost: x\r\n\r\n")
			if a := c.Answer("CONNECT"); a.StatusCode != 403 || !strings.Contains(a.Status, "tunnels to site.test go to port") {
				t.Errorf("%s to %s: %s", https, port, a.Status)
			}
		}
	}
	s := newSite(t, hello)
	s.resolve["site.test:8443"] = s.resolve["site.test:443"]
	r := newRigBefore(t, s, settled(t, map[string]acl.HTTPS{"site.test": acl.HostOnly}, 443, 8443))
	testkit.Dial(t, r.addr).Connect("site.test:8443").TLS(r.bySite("site.test"))
	r.records.mu.Lock()
	defer r.records.mu.Unlock()
	p := r.records.decided[0].Policy
	must.True(t, p != nil && p.Source().Origin.Port == 8443, "the rules are those of another port")
}

// A hello for another host than the CONNECT's goes nowhere; one without a name
// passes; so does one that comes in the packet of the CONNECT.
func TestTrap10And19_TheServerNameOfATunnelIsItsHost(t *testing.T) {
	for _, https := range []acl.HTTPS{acl.HostOnly, acl.Tunnel} {
		t.Run(https.String(), func(t *testing.T) {
			r := newRig(t, hello, settled(t, map[string]acl.HTTPS{"*": https}))
			config := r.bySite("h1.test", "http/1.1")
			_, err := testkit.Dial(t, r.addr).Connect("site.test:443").TryTLS(config)
			must.True(t, err != nil, "a tunnel to site.test carries h1.test")
			e := r.records.await(t, "mismatch", func(e *audit.Entry) bool { return e.Decision.Reason == rules.ReasonHostMismatch })
			if e.Host != "site.test" || e.Decision.Verdict != rules.Refuse || !strings.Contains(e.Detail, "h1.test") || !revisesTunnel(r, &e) {
				t.Errorf("record %+v", e)
			}
			if e := r.connectTo("site.test"); e.Host == "site.test" && e.Outcome.BytesIn != 0 && e.Decision.Reason != rules.ReasonHostMismatch {
				t.Errorf("bytes went out: %+v", e.Outcome)
			}
			silent := r.bySite("", "http/1.1")
			silent.InsecureSkipVerify = true
			c := testkit.Dial(t, r.addr).Connect("site.test:443").TLS(silent)
			c.Send(get("", "/a"))
			must.Status(t, c.Answer("GET").Response, 200, "no server name")
			capitals := testkit.Dial(t, r.addr).Connect("SITE.test.:443").TLS(r.bySite("site.TEST", "http/1.1"))
			capitals.Send(get("", "/b"))
			must.Status(t, capitals.Answer("GET").Response, 200, "capitals")
		})
	}
}

func TestAHelloInThePacketOfItsConnectIsNotLost(t *testing.T) {
	for _, https := range []acl.HTTPS{acl.HostOnly, acl.Tunnel} {
		r := newRig(t, hello, settled(t, map[string]acl.HTTPS{"*": https}))
		early := testkit.Dial(t, r.addr)
		early.Conn = &earlyConn{Conn: early.Conn, r: bufio.NewReader(early.Conn), head: "CONNECT site.test:443 HTTP/1.1\r\nHost: x\r\n\r\n"}
		_, err := early.TryTLS(r.bySite("site.test"))
		must.True(t, err == nil, "%s: %v", https, err)
	}
}

// revisesTunnel reports whether e takes back the decision that opened its tunnel,
// and says of it what that one said of what was seen.
func revisesTunnel(r *rig, e *audit.Entry) bool {
	r.records.mu.Lock()
	defer r.records.mu.Unlock()
	for i := range r.records.decided {
		if first := &r.records.decided[i]; e.Revises != nil && first.ID == *e.Revises {
			return first.Revises == nil && first.Judged == e.Judged && first.Host == e.Host
		}
	}
	return false
}

// What is no TLS does not go through a tunnel that was judged by its host.
func TestAHostOnlyTunnelCarriesTLSOnly(t *testing.T) {
	r := newRig(t, hello, settled(t, map[string]acl.HTTPS{"*": acl.HostOnly}))
	for host, bytes := range map[string]string{
		"site.test": "GET /private HTTP/1.1\r\nHost: site.test\r\n\r\n", "h1.test": "\x16\x03\x01\x00\x05hello",
	} {
		c := testkit.Dial(t, r.addr).Connect(host + ":443")
		c.Send(bytes)
		c.Closed()
		e := r.records.await(t, host, func(e *audit.Entry) bool {
			return e.Host == host && e.Decision.Reason == rules.ReasonNotHTTP
		})
		must.True(t, e.Decision.Verdict == rules.Refuse && revisesTunnel(r, &e), "record %+v", e)
	}
	must.Same(t, r.site.reached(), nil, "what the site saw")
}

func TestASilentHostOnlyTunnelEnds(t *testing.T) {
	r := newRig(t, hello, settled(t, map[string]acl.HTTPS{"*": acl.HostOnly}), func(c *Config) { c.Limits.ConnectTime = 50 * time.Millisecond })
	testkit.Dial(t, r.addr).Connect("site.test:443").Closed()
	r.records.await(t, "silence", func(e *audit.Entry) bool { return e.Decision.Reason == rules.ReasonHandshake })
}

// echoSite reads to the end of what comes, and then says so and how much it was.
func echoSite(t *testing.T, s *site, hostPort, greeting string) {
	l := s.listen(t, hostPort)
	go testkit.Accept(l, func(c net.Conn) {
		defer c.Close()
		io.WriteString(c, greeting)
		n, _ := io.Copy(io.Discard, c)
		fmt.Fprintf(c, "%d octets", n)
	})
}

// Either side may end its half of a tunnel and go on hearing the other; a site
// may speak first; both directions are counted.
func TestHeed_TheHalvesOfATunnelEndByThemselves(t *testing.T) {
	s := newSite(t, hello)
	echoSite(t, s, "echo.test:22", "220 ready\r\n")
	r := newRigBefore(t, s, settled(t, map[string]acl.HTTPS{"*": acl.Tunnel}, 22))
	c := testkit.Dial(t, r.addr).Connect("echo.test:22")
	expect(t, c.R, "220 ready\r\n")
	c.Send(strings.Repeat("x", 1<<20))
	must.OK(t, c.Conn.(*net.TCPConn).CloseWrite())
	must.Equal(t, string(c.Rest()), "1048576 octets", "the site said")
	c.Close()
	e := r.connectTo("echo.test:22")
	if o := e.Outcome; o.BytesIn != 1<<20 || o.BytesOut != int64(len("220 ready\r\n1048576 octets")) || o.Truncated || o.Err != "" {
		t.Errorf("outcome %+v", o)
	}
}

func TestHeed_ASiteMayEndItsHalfOfATunnelFirst(t *testing.T) {
	s := newSite(t, hello)
	heard := make(chan string, 1)
	go testkit.Accept(s.listen(t, "far.test:22"), func(c net.Conn) {
		defer c.Close()
		io.WriteString(c, "bye")
		c.(*net.TCPConn).CloseWrite()
		text, _ := io.ReadAll(c)
		heard <- string(text)
	})
	r := newRigBefore(t, s, settled(t, map[string]acl.HTTPS{"*": acl.Tunnel}, 22))
	c := testkit.Dial(t, r.addr).Connect("far.test:22")
	must.Equal(t, string(c.Rest()), "bye", "the site said")
	c.Send("still here")
	c.Close()
	must.Equal(t, <-heard, "still here", "the site heard")
}

// A tunnel through which nothing passes ends, and its record says why.
func TestHeed_AnIdleTunnelEnds(t *testing.T) {
	s := newSite(t, hello)
	echoSite(t, s, "echo.test:22", "")
	r := newRigBefore(t, s, settled(t, map[string]acl.HTTPS{"*": acl.Tunnel}, 22), func(c *Config) { c.Limits.TunnelTime = 150 * time.Millisecond })
	testkit.Dial(t, r.addr).Connect("echo.test:22").Closed()
	e := r.connectTo("echo.test:22")
	must.True(t, strings.HasPrefix(e.Outcome.Err, "heed: nothing passed for"), "outcome %+v", e.Outcome)
}

// A tunnel in which one direction is busy is not idle.
func TestHeed_AnOctetInEitherDirectionKeepsATunnelOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, toClient := net.Pipe()
		site, toSite := net.Pipe()
		tun := &opaqueTunnel{client: &tunnelConn{Conn: toClient}, site: toSite, idle: time.Minute}
		tun.touch()
		ended := make(chan error, 2)
		go func() { ended <- tun.copy(tun.site, tun.client, audit.ByClient) }()
		go func() { ended <- tun.copy(tun.client, tun.site, audit.BySite) }()
		begun := time.Now()
		for i := range 20 {
			from, to := client, site
			if i >= 10 {
				from, to = site, client
			}
			testkit.Advance(59 * time.Second)
			_, err := from.Write([]byte("x"))
			must.Need(t, err == nil, "after %v: %v", time.Since(begun), err)
			expect(t, to, "x")
		}
		begun = time.Now()
		for range 2 {
			<-ended
		}
		if lasted := time.Since(begun); lasted != time.Minute || tun.first.Load().by != audit.ByHeed {
			t.Errorf("it ended after %v of silence: %v", lasted, tun.first.Load().why)
		}
	})
}

// Shutdown waits for open tunnels within its limit and then ends them; each is
// recorded.
func TestShutdownDrainsTunnels(t *testing.T) {
	s := newSite(t, hello)
	echoSite(t, s, "echo.test:22", "hi")
	r := newRigBefore(t, s, settled(t, map[string]acl.HTTPS{"*": acl.Tunnel}, 22))
	ending, lasting := testkit.Dial(t, r.addr).Connect("echo.test:22"), testkit.Dial(t, r.addr).Connect("echo.test:22")
	expect(t, ending.R, "hi")
	expect(t, lasting.R, "hi")
	ctx, cutOff := context.WithCancel(context.Background())
	done := r.shutdown(ctx)
	r.awaitClosing()
	ending.Send("more")
	ending.Conn.(*net.TCPConn).CloseWrite()
	must.Equal(t, string(ending.Rest()), "4 octets", "a tunnel that ends by itself")
	cutOff()
	err := r.awaitShutdown(done)
	must.True(t, err != nil, "Shutdown did not say that it cut something off")
	lasting.Closed()
	r.records.await(t, "the one cut off", func(e *audit.Entry) bool { return strings.HasPrefix(e.Outcome.Err, "heed: cut off") })
}

// A site that breaks off, and one that cannot be reached, leave a record.
func TestATunnelThatFailsIsRecorded(t *testing.T) {
	s := newSite(t, hello)
	go testkit.Accept(s.listen(t, "broken.test:22"), func(c net.Conn) {
		c.(*net.TCPConn).SetLinger(0)
		io.WriteString(c, "begun")
		io.ReadFull(c, make([]byte, 1))
		c.Close()
	})
	r := newRigBefore(t, s, settled(t, map[string]acl.HTTPS{"*": acl.Tunnel}, 22))
	c := testkit.Dial(t, r.addr).Connect("broken.test:22")
	expect(t, c.R, "begun")
	c.Send("x")
	c.Rest()
	e := r.connectTo("broken.test:22")
	must.True(t, e.Outcome.Truncated && strings.HasPrefix(e.Outcome.Err, "site: "), "outcome %+v", e.Outcome)
	s.resolve["down.test:22"] = "127.0.0.1:1"
	c = testkit.Dial(t, r.addr)
	c.Send("CONNECT down.test:22 HTTP/1.1\r\nHost: x\r\n\r\n")
	a := c.Answer("CONNECT")
	must.True(t, a.StatusCode == 502 && proxyStatusOf(t, a.Header) == "connection_refused", "%s", a.Status)
	e = r.connectTo("down.test:22")
	must.True(t, e.Outcome.Status == 502, "outcome %+v", e.Outcome)
}

// Tunnels go the way that requests go: through the upstream proxy, with its
// credentials and none of the client's, be it an HTTP proxy or SOCKS.
func TestHeed_TunnelsGoThroughTheUpstreamProxy(t *testing.T) {
	asked := make(chan string, 1)
	far := testkit.RawSite(t, func(c net.Conn) {
		defer c.Close()
		buf := make([]byte, 4096)
		n, _ := c.Read(buf)
		asked <- string(buf[:n])
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nfrom afar")
	})
	through := &url.URL{Scheme: "http", Host: far, User: url.UserPassword("u", "p")}
	r := newRig(t, hello, settled(t, map[string]acl.HTTPS{"*": acl.Tunnel}, 22), func(c *Config) {
		c.DialTunnel = upstream.NewHostTransports(upstream.TransportConfig{Proxy: http.ProxyURL(through)}).DialTunnel
	})
	c := testkit.Dial(t, r.addr).Connect("far.test:22", "Proxy-Authorization: Basic c2VjcmV0", "User-Agent: x/1")
	must.Equal(t, string(c.Rest()), "from afar", "through the tunnel came")
	must.Equal(t, <-asked, "CONNECT far.test:22 HTTP/1.1\r\nHost: far.test:22\r\nProxy-Authorization: Basic dTpw\r\n\r\n", "the upstream proxy was asked")
}

// A client that has said all it has to say gets its answer through a SOCKS proxy
// as well: the directions of a tunnel end apart.
func TestHeed_ATunnelThroughSOCKSEndsOneWayAtATime(t *testing.T) {
	far := testkit.RawSite(t, func(c net.Conn) {
		defer c.Close()
		buf := make([]byte, 64)
		io.ReadFull(c, buf[:3]) // version 5, one method: none (RFC 1928 §3)
		c.Write([]byte{5, 0})
		io.ReadFull(c, buf[:5])                       // CONNECT to a name of so many octets
		io.ReadFull(c, buf[:int(buf[4])+2])           // and a port
		c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0}) // the tunnel is open
		all, _ := io.ReadAll(c)
		c.Write(append([]byte("heard "), all...))
	})
	through := &url.URL{Scheme: "socks5", Host: far}
	r := newRig(t, hello, settled(t, map[string]acl.HTTPS{"*": acl.Tunnel}, 22), func(c *Config) {
		c.DialTunnel = upstream.NewHostTransports(upstream.TransportConfig{Proxy: http.ProxyURL(through)}).DialTunnel
	})
	c := testkit.Dial(t, r.addr).Connect("far.test:22")
	c.Send("question")
	c.Conn.(*net.TCPConn).CloseWrite()
	must.Equal(t, string(c.Rest()), "heard question", "through the tunnel came")
}

// connWriter is a ResponseWriter whose connection can be taken over.
type connWriter struct {
	http.ResponseWriter
	conn net.Conn
}

func (w connWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.conn, bufio.NewReadWriter(bufio.NewReader(w.conn), bufio.NewWriter(w.conn)), nil
}

// An intercepted tunnel may live for days: what was known of its CONNECT is
// released when the CONNECT has been answered.
func TestInterceptedTunnelReleasesTheExchangeOfItsCONNECT(t *testing.T) {
	t.Parallel()
	r := newRig(t, hello)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	client := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	defer client.Close()
	raw := must.Get(l.Accept())(t)
	accepted := r.proxy.gate.Admit(raw, r.proxy.turnAway)
	conn := r.proxy.newClientConn(accepted, accepted, clientInfo(accepted), nil)
	request := must.Get(http.ReadRequest(bufio.NewReader(strings.NewReader("CONNECT site.test:80 HTTP/1.1\r\nHost: site.test:80\r\n\r\n"))))(t)
	request = request.WithContext(withClientConn(t.Context(), conn))
	request.RemoteAddr = client.LocalAddr().String()
	answered := make(chan weak.Pointer[exchange])
	go func() {
		x := newExchange(r.proxy, conn, connWriter{httptest.NewRecorder(), conn.h1}, request)
		x.connect(request)
		x.finish()
		answered <- weak.Make(x)
	}()
	in := bufio.NewReader(client)
	get := func(method, text string) {
		t.Helper()
		_, _ = io.WriteString(client, text)
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		must.Need(t, err == nil && resp.StatusCode == http.StatusOK, "%v, %v", resp, err)
		if method == "GET" { // what follows the answer to a CONNECT is the tunnel
			_, _ = io.Copy(io.Discard, resp.Body)
		}
	}
	get("CONNECT", "")
	const inside = "GET / HTTP/1.1\r\nHost: site.test\r\n\r\n"
	get("GET", inside)
	x := <-answered
	for deadline := time.Now().Add(testkit.Patience); x.Value() != nil; runtime.GC() {
		must.Need(t, !time.Now().After(deadline), "the tunnel keeps the exchange of its CONNECT")
	}
	get("GET", inside) // the tunnel is still open
}
