package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/judge/redirect"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// redirectedTo starts a transparent listener of the rig's proxy, all of whose clients
// connected to the original address. change may alter it first; nil does not.
func (r *rig) redirectedTo(original string, change func(*Transparent)) (addr string) {
	r.t.Helper()
	inner := must.Get(net.Listen("tcp", "127.0.0.1:0"))(r.t)
	l := Transparent{Listener: inner, Original: func(net.Conn) (netip.AddrPort, error) { return netip.ParseAddrPort(original) }}
	if change != nil {
		change(&l)
	}
	served := make(chan error, 1)
	go func() { served <- r.proxy.ServeTransparent(l) }()
	r.t.Cleanup(func() {
		r.proxy.endLasting()
		r.proxy.close()
		must.OK(r.t, <-served, "ServeTransparent")
	})
	return inner.Addr().String()
}

// originForm is HTTP/1 as a client sends it that knows no proxy.
func originForm(target, host string) string {
	return "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: curl/8\r\n\r\n"
}

const elsewhere = "192.0.2.7" // where clients connected to

func TestTransparent_RequestsAreJudgedByTheHostThatTheyName(t *testing.T) {
	r := newRig(t, hello)
	c := testkit.Dial(t, r.redirectedTo(elsewhere+":80", nil))
	for target, status := range map[string]int{"/public": 200, "/private/x": 403, "/private/ok": 200} {
		c.Send(originForm(target, "site.test"))
		a := c.Answer("GET")
		must.True(t, a.StatusCode == status, "%s: %s %s", target, a.Status, a.Body)
		e := r.records.target(t, target)
		if e.Host != "site.test" || e.Scheme != "http" || e.Judged != audit.ByPath || !strings.Contains(e.Detail, elsewhere+":80") {
			t.Errorf("%s: %s://%s, %v, %q", target, e.Scheme, e.Host, e.Judged, e.Detail)
		}
	}
	must.Equal(t, r.site.last(t, "/public").Host, "site.test", "the site was asked as")
	c.Send(originForm("http://site.test/absolute", "site.test")) // RFC 9112 §3.2.2
	a := c.Answer("GET")
	must.True(t, a.StatusCode == 200, "absolute form: %s %s", a.Status, a.Body)
}

func TestTransparent_TLSIsInterceptedByTheNameInTheHello(t *testing.T) {
	r := newRig(t, hello)
	at := r.redirectedTo(elsewhere+":443", nil)
	for _, protocol := range []string{"http/1.1", "h2"} {
		c := testkit.Dial(t, at).TLS(r.trusting("site.test", protocol))
		for target, status := range map[string]int{"/public": 200, "/private": 403} {
			target += "?" + protocol
			got := 0
			if protocol == "h2" {
				got = get2(t, c, target)
			} else {
				c.Send(originForm(target, "site.test"))
				got = c.Answer("GET").StatusCode
			}
			must.Equal(t, got, status, target)
			e := r.records.target(t, target)
			must.True(t, e.Host == "site.test" && e.Scheme == "https" && e.Judged == audit.ByPath, "%s: %+v", target, e)
			if protocol == "h2" {
				c = testkit.Dial(t, at).TLS(r.trusting("site.test", protocol))
			}
		}
	}
}

// get2 asks over HTTP/2 on c and returns the status.
func get2(t *testing.T, c *testkit.Conn, target string) int {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://site.test"+target, nil)
	resp := must.Get(c.HTTP2().RoundTrip(req))(t)
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode
}

func TestTransparent_HTTP2WithPriorKnowledgeIsJudged(t *testing.T) {
	r := newRig(t, hello)
	at := r.redirectedTo(elsewhere+":80", nil)
	tr := &http.Transport{Protocols: new(http.Protocols), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", at)
	}}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	for target, status := range map[string]int{"/public": 200, "/private": 403} {
		resp := must.Get((&http.Client{Transport: tr}).Get("http://site.test" + target))(t)
		resp.Body.Close()
		must.True(t, resp.StatusCode == status && resp.ProtoMajor == 2, "%s: %s %s", target, resp.Proto, resp.Status)
		e := r.records.target(t, target)
		must.True(t, e.Host == "site.test" && e.Judged == audit.ByPath, "%s: %+v", target, e)
	}
}

func TestTransparent_NamesThatDoNotAgreeAre421(t *testing.T) {
	r := newRig(t, hello)
	given := func(l *Transparent) {
		l.Name = func(a netip.Addr) (string, bool) { return "site.test", a == netip.MustParseAddr("198.18.0.1") }
	}
	type attempt struct {
		what, original, host string
		change               func(*Transparent)
		status               int
	}
	for _, a := range []attempt{
		{"another port", elsewhere + ":80", "site.test:8080", nil, 421},
		{"no port where it is needed", elsewhere + ":8080", "site.test", nil, 421},
		{"another address", elsewhere + ":80", "192.0.2.8", nil, 421},
		{"another IPv6 address", "[2001:db8::1]:80", "[2001:db8::2]", nil, 421},
		{"an empty Host", elsewhere + ":80", "", nil, 421},
		{"the name that was given out", "198.18.0.1:80", "site.test", given, 200},
		{"another name than was given out", "198.18.0.1:80", "h1.test", given, 421},
		{"the address in place of its name", "198.18.0.1:80", "198.18.0.1", given, 421},
		{"an address that was not given out", "198.18.0.2:80", "site.test", given, 200},
	} {
		c := testkit.Dial(t, r.redirectedTo(a.original, a.change))
		c.Send(originForm("/public", a.host))
		must.Status(t, c.Answer("GET").Response, a.status, a.what)
	}
	for _, a := range []attempt{
		{"Host against the hello", elsewhere + ":443", "h1.test", nil, 421},
		{"a port in Host", elsewhere + ":443", "site.test:8443", nil, 421},
		{"agreement", elsewhere + ":443", "site.test", nil, 200},
	} {
		c := testkit.Dial(t, r.redirectedTo(a.original, a.change)).TLS(r.trusting("site.test", "http/1.1"))
		c.Send(originForm("/public", a.host))
		must.Status(t, c.Answer("GET").Response, a.status, a.what)
	}
	c := testkit.Dial(t, r.redirectedTo("198.18.0.1:443", given)).TLS(r.trusting("h1.test", "http/1.1"))
	c.Send(originForm("/public", "h1.test"))
	must.Status(t, c.Answer("GET").Response, 421, "a hello for another name than was given out")
}

func TestTransparent_WithoutANameTheAddressIsTheSite(t *testing.T) {
	s := newSite(t, hello)
	s.resolve[elsewhere+":80"], s.resolve[elsewhere+":443"] = s.resolve["site.test:80"], s.resolve["site.test:443"]
	r := newRigBefore(t, s)
	c := testkit.Dial(t, r.redirectedTo(elsewhere+":80", nil))
	c.Send("GET /private HTTP/1.0\r\n\r\n")
	must.Status(t, c.Answer("GET").Response, 403, "HTTP/1.0")
	must.Equal(t, r.records.target(t, "/private").Host, elsewhere, "judged as")
	// A TLS hello without a name: the Host inside names the site, as it does without TLS.
	c = testkit.Dial(t, r.redirectedTo(elsewhere+":443", nil)).TLS(&tls.Config{InsecureSkipVerify: true})
	c.Send(originForm("/private/x", "site.test"))
	must.Status(t, c.Answer("GET").Response, 403, "TLS")
	e := r.records.target(t, "/private/x")
	must.True(t, e.Host == "site.test" && e.Scheme == "https", "judged as %s://%s", e.Scheme, e.Host)
}

func TestTransparent_WhatIsNeitherHTTPNorTLSIsReset(t *testing.T) {
	r := newRig(t, hello, func(c *Config) {
		c.Limits.ConnectTime, c.Limits.HandshakeTime = time.Second, time.Second
		settle(c, &acl.Rules{Clients: []acl.Client{{Name: "desk"}}})
	})
	for sent, reason := range map[string]rules.Reason{
		"SSH-2.0-client\r\n": rules.ReasonNotHTTP, "\x00\x01\x02": rules.ReasonNotHTTP, "": rules.ReasonHandshake,
		"\x16\x03\x01\x00": rules.ReasonHandshake, "GE": rules.ReasonNotHTTP,
	} {
		port := 2000 + len(r.records.all())
		c := testkit.Dial(t, r.redirectedTo(fmt.Sprintf("%s:%d", elsewhere, port), nil))
		c.Send(sent)
		c.Closed()
		e := r.records.await(t, sent, func(e *audit.Entry) bool { return strings.HasSuffix(e.Host, fmt.Sprint(":", port)) })
		if e.Decision.Reason != reason || e.Decision.Verdict != rules.Refuse || e.Outcome.Status != 0 || e.ClientName != "desk" || e.Method != "TCP" || e.URL() != fmt.Sprintf("tcp://%s:%d", elsewhere, port) {
			t.Errorf("%q: %s %s, %+v, status %d", sent, e.Method, e.URL(), e.Decision, e.Outcome.Status)
		}
	}
}

func TestTransparent_OtherProtocolsPassWhereTheyMay(t *testing.T) {
	s := newSite(t, hello)
	echoSite(t, s, elsewhere+":2222", "SSH-2.0-server\r\n")
	r := newRigBefore(t, s, func(c *Config) { c.Limits.ConnectTime = time.Second })
	tunnels := func(l *Transparent) { l.TunnelOther = func() bool { return true } }
	for _, first := range []string{"SSH-2.0-client\r\n", ""} { // the second waits for the server
		c := testkit.Dial(t, r.redirectedTo(elsewhere+":2222", tunnels))
		c.Send(first)
		line, err := c.R.ReadString('\n')
		must.Need(t, err == nil && line == "SSH-2.0-server\r\n", "%q: %q, %v", first, line, err)
		c.Close()
	}
	e := r.tunnelTo(audit.MethodTCP, elsewhere+":2222")
	must.True(t, e.URL() == "tcp://"+elsewhere+":2222" && e.Raw == "" && e.Became() == "tunnelled",
		"recorded as %s, %q, %s", e.URL(), e.Raw, e.Became())
	must.True(t, e.Judged == audit.NotJudged && e.Decision.Verdict == rules.Allow && e.Decision.Reason == rules.ReasonNotHTTP,
		"%v %+v", e.Judged, e.Decision)
	// HTTP is judged all the same.
	c := testkit.Dial(t, r.redirectedTo(elsewhere+":80", tunnels))
	c.Send(originForm("/private", "site.test"))
	must.Status(t, c.Answer("GET").Response, 403, "HTTP")
}

func TestTransparent_TheModesOfHTTPSApply(t *testing.T) {
	r := newRig(t, hello, settled(t, map[string]acl.HTTPS{"site.test": acl.HostOnly, "h1.test": acl.NoHTTPS}))
	c := testkit.Dial(t, r.redirectedTo(elsewhere+":443", nil)).TLS(r.bySite("site.test", "http/1.1"))
	c.Send(get("", "/public"))
	must.Status(t, c.Answer("GET").Response, 200, "host-only")
	c.Close()
	e := r.tunnelTo(audit.MethodTLS, "site.test")
	if e.Became() != "tunnelled" || e.Judged != audit.ByHost || e.Decision.Verdict != rules.Allow || !strings.Contains(e.Detail, elsewhere) {
		t.Errorf("host-only: %v %+v %q", e.Judged, e.Decision, e.Detail)
	}
	_, err := testkit.Dial(t, r.redirectedTo(elsewhere+":443", nil)).TryTLS(r.bySite("h1.test", "http/1.1"))
	must.True(t, err != nil, "refused https: there was a handshake")
	if e := r.tunnelTo(audit.MethodTLS, "h1.test"); e.Decision.Reason != rules.ReasonAccess || e.Outcome.Status != 0 {
		t.Errorf("refused https: %+v, status %d", e.Decision, e.Outcome.Status)
	}
}

func TestTransparent_LoopsAreRefused(t *testing.T) {
	r := newRig(t, hello)
	direct := func(l *Transparent) {
		l.Original = func(net.Conn) (netip.AddrPort, error) { return netip.AddrPort{}, redirect.ErrDirect }
	}
	toSelf := func(l *Transparent) {
		at := netip.MustParseAddrPort(l.Addr().String())
		l.Original = func(net.Conn) (netip.AddrPort, error) { return at, nil }
	}
	admin := func(l *Transparent) { // another listener of the process, by another spelling
		r.proxy.config.Self.Add(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3129})
		l.Original = func(net.Conn) (netip.AddrPort, error) { return netip.MustParseAddrPort("[::ffff:127.0.0.1]:3129"), nil }
	}
	own := func(l *Transparent) { // what heed itself has dialled comes back
		l.Original = func(c net.Conn) (netip.AddrPort, error) {
			r.proxy.config.Self.NoteDial(c.RemoteAddr(), &net.TCPAddr{IP: net.ParseIP(elsewhere), Port: 80})
			return netip.MustParseAddrPort(elsewhere + ":80"), nil
		}
	}
	for what, change := range map[string]func(*Transparent){"direct": direct, "to heed": toSelf, "to its admin listener": admin, "from heed": own} {
		before := len(r.records.all())
		c := testkit.Dial(t, r.redirectedTo(elsewhere+":80", change))
		c.Send(originForm("/public", "site.test"))
		c.Closed()
		e := r.records.after(t, before)
		must.True(t, e.Decision.Reason == rules.ReasonLoop, "%s: %+v %q", what, e.Decision, e.Detail)
	}
}

// Clients that may not use heed get nothing; passwords do not apply, since there is no 407.
func TestTransparent_OnlyTheClientsThatMayUseHeed(t *testing.T) {
	r := newRig(t, hello, func(c *Config) {
		c.Rules = &acl.Rules{From: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	})
	c := testkit.Dial(t, r.redirectedTo(elsewhere+":80", nil))
	c.Send(originForm("/public", "site.test"))
	must.Status(t, c.Answer("GET").Response, 403)
	_, err := testkit.Dial(t, r.redirectedTo(elsewhere+":443", nil)).TryTLS(r.trusting("site.test"))
	must.True(t, err != nil, "there was a handshake")
	for _, e := range r.records.all() {
		must.Equal(t, e.Decision.Reason, rules.ReasonAccess, "%+v", e.Decision)
	}
	if len(r.site.requests()) > 0 {
		t.Errorf("the site saw %v", r.site.reached())
	}
}

func TestTransparent_ShutdownEndsWhatAskedForNothing(t *testing.T) {
	r := newRig(t, hello)
	c := testkit.Dial(t, r.redirectedTo(elsewhere+":80", nil))
	testkit.Until(t, "the connection", func() bool { return len(r.proxy.open.all()) > 0 })
	must.OK(t, r.proxy.Shutdown(t.Context()))
	c.Closed()
	must.Same(t, r.records.all(), nil, "records")
}
