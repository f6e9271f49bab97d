package proxy

import (
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
	"heed/proxy/upstream"
	"heed/rules"
)

// hasty makes every limit on a client that does nothing short: a client that does
// something needs a hundredth of it, so that it keeps them on a busy machine, too.
func hasty(c *Config) {
	const short = 3 * time.Second
	c.Limits = limit.Limits{HeaderTime: short, IdleTime: short, ConnectTime: short, HandshakeTime: short, DrainTime: 1}
}

// closeIdle closes the connections to sites that are kept for later.
func (r *rig) closeIdle() { r.proxy.config.Upstream.(*upstream.HostTransports).CloseIdleConnections() }

// awaitGoroutines waits until no more than base goroutines run.
func awaitGoroutines(t *testing.T, base int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(testkit.Patience)
	for runtime.NumGoroutine() > base {
		select {
		case <-tick.C:
		case <-late:
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), base, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// stalls are the ways of holding a connection without asking for anything.
var stalls = map[string]func(r *rig) *testkit.Conn{
	"silent": func(r *rig) *testkit.Conn { return testkit.Dial(r.t, r.addr) },
	"half a head": func(r *rig) *testkit.Conn {
		c := testkit.Dial(r.t, r.addr)
		c.Send("GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nX: ")
		return c
	},
	"silent CONNECT": func(r *rig) *testkit.Conn { return testkit.Dial(r.t, r.addr).Connect("silent.test:443") },
	"half a handshake": func(r *rig) *testkit.Conn {
		c := testkit.Dial(r.t, r.addr).Connect("half.test:443")
		c.Send("\x16\x03\x01\x02\x00\x01\x00\x01")
		return c
	},
	"silent after the handshake": func(r *rig) *testkit.Conn {
		return testkit.Dial(r.t, r.addr).Connect("after.test:443").TLS(r.trusting("after.test", "http/1.1"))
	},
	"half a head in a tunnel": func(r *rig) *testkit.Conn {
		c := testkit.Dial(r.t, r.addr).Connect("head.test:80")
		c.Send("GET / HTTP/1.1\r\nHo")
		return c
	},
	"half a head in TLS": func(r *rig) *testkit.Conn {
		c := testkit.Dial(r.t, r.addr).Connect("headtls.test:443").TLS(r.trusting("headtls.test", "http/1.1"))
		c.Send("GET / HTTP/1.1\r\nHost: ")
		return c
	},
	"idle":        func(r *rig) *testkit.Conn { return idling(r, plain) },
	"idle tunnel": func(r *rig) *testkit.Conn { return idling(r, inTunnel) },
	"idle TLS":    func(r *rig) *testkit.Conn { return idling(r, mitmH1) },
	"idle h2": func(r *rig) *testkit.Conn {
		c := testkit.Dial(r.t, r.addr).Connect("site.test:443").TLS(r.trusting("site.test", "h2"))
		c.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		return c
	},
}

func idling(r *rig, m mode) *testkit.Conn {
	c, prefix := r.raw(m)
	c.Send(get(prefix, "/private"))
	c.Answer("GET")
	return c
}

// hold opens n connections in each way of stalls and waits until heed has closed all
// of them.
func hold(r *rig, n int) {
	var all []*testkit.Conn
	for _, stall := range stalls {
		for range n {
			all = append(all, stall(r))
		}
	}
	for _, c := range all {
		c.Rest() // an HTTP/2 connection says good-bye
		c.Close()
	}
	r.closeIdle()
}

// Clients that hold connections and do nothing lose them, in every phase, and
// nothing of them stays behind.
func TestStalledClientsAreLetGo(t *testing.T) {
	r := newRig(t, hello, hasty)
	hold(r, 1) // the site's rules are known from here on
	reached := r.proxy.config.Load.Status().Reached
	must.True(t, reached["connect_time"] == 1 && reached["handshake_time"] == 1, "counted %v", reached)
	base := runtime.NumGoroutine()
	hold(r, 10)
	awaitGoroutines(t, base)
	for host, want := range map[string]rules.Reason{
		"silent.test": rules.ReasonHandshake, "half.test": rules.ReasonHandshake,
		"after.test": rules.ReasonHandshake, "head.test": rules.ReasonLimit,
	} {
		e := r.records.await(t, host, func(e *audit.Entry) bool { return e.Host == host || e.Host == host+":443" })
		must.True(t, e.Decision.Reason == want && e.Decision.Verdict == rules.Refuse && e.Judged == audit.NotJudged,
			"record of %s: %+v", host, e)
	}
}

// A head without end is cut at the limit, and not much more of it is taken.
func TestHeadWithoutEndIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		c.Send("GET " + prefix + "/ HTTP/1.1\r\nHost: site.test\r\nX: ")
		sent := make(chan int)
		c.SetWriteDeadline(time.Now().Add(testkit.Patience))
		go func() {
			n, chunk := 0, []byte(strings.Repeat("x", 64<<10))
			for n < 64<<20 {
				w, err := c.Write(chunk)
				if n += w; err != nil {
					break
				}
			}
			sent <- n
		}()
		a := c.Answer("GET")
		must.True(t, a.StatusCode == 431 && proxyStatusOf(t, a.Header) == "http_request_error", "%s", a.Status)
		n := <-sent
		must.True(t, n < 64<<20, "64 MiB of a head were taken")
	})
	t.Run("h2", func(t *testing.T) {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://site.test/", nil)
		req.Header.Set("X", strings.Repeat("x", 2*limit.DefaultHeaderBytes))
		resp, err := r.in(t).h2("site.test").RoundTrip(req)
		if err == nil && resp.StatusCode != 431 {
			t.Errorf("%s", resp.Status)
		}
	})
	must.Same(t, r.site.reached(), nil, "what the site saw")
}

// Everything that a busy proxy started ends with its clients.
func TestNothingIsLeftBehind(t *testing.T) {
	s := newSite(t, webSocketSite(make(chan string, 100)))
	r := newRigBefore(t, s, hasty)
	base := runtime.NumGoroutine()
	t.Run("traffic", func(t *testing.T) {
		r := r.in(t)
		for i := range 5 {
			for _, m := range allModes {
				r.ask(m, question{path: "/page"})
				r.ask(m, question{path: "/private", method: "POST", body: "x"})
				r.ask(m, question{host: "nowhere.invalid", path: "/"})
			}
			for _, m := range rawModes {
				r.openWebSocket(m, "/chat").Close()
				c, prefix := r.raw(m)
				c.Send(get(prefix, "/page"))
				c.Close() // before the answer
			}
			c := testkit.Dial(t, r.addr).Connect(fmt.Sprintf("reject%d.test:443", i)) // refused the next time
			c.TryTLS(r.trusting("another.test"))
			c.Close()
		}
	})
	testkit.Until(t, "no request is served", func() bool { return r.proxy.running.Load() == 0 })
	r.closeIdle()
	awaitGoroutines(t, base+2) // the site's and the resolver's own may come and go
}

// A tunnel that is neither TLS nor HTTP leads nowhere: nothing is dialled,
// nothing passes, credentials or not.
func TestNoTunnelIsEverBlind(t *testing.T) {
	t.Parallel()
	s := newSite(t, hello)
	dialled := make(chan bool, 10)
	for _, port := range []string{"22", "443", "25"} {
		serve(s.listen(t, "blind.test:"+port), func(c net.Conn) { dialled <- true })
	}
	r := newRigBefore(t, s, hasty)
	for authority, bytes := range map[string]string{
		"blind.test:22": "SSH-2.0-x\r\n", "blind.test:443": "\x00\x01\x02\x03", "blind.test:25": "", // waits for a banner
	} {
		for _, header := range [][]string{nil, {"Proxy-Authorization: " + secret}} {
			c := testkit.Dial(t, r.addr).Connect(authority, header...)
			c.Send(bytes)
			rest := c.Rest()
			must.True(t, len(rest) == 0 || authority != "blind.test:443" && strings.HasPrefix(string(rest), "HTTP/1.1 400 "),
				"%s answered %q", authority, rest)
		}
		host := strings.TrimSuffix(authority, ":443")
		e := r.records.await(t, authority, func(e *audit.Entry) bool { return e.Host == host })
		must.True(t, e.Decision.Verdict == rules.Refuse && e.Judged == audit.NotJudged, "record of %s: %+v", authority, e)
		must.True(t, authority != "blind.test:443" || e.Decision.Reason == rules.ReasonNotHTTP, "record of %s: %+v", authority, e)
	}
	must.True(t, len(dialled) == 0, "a tunnel was dialled that heed could not look into")
	for _, m := range []mode{mitmH1, inTunnel} { // with credentials a tunnel is still looked into
		c := testkit.Dial(t, r.addr).Connect("site.test:"+map[mode]string{mitmH1: "443", inTunnel: "80"}[m], "Proxy-Authorization: "+secret)
		if m == mitmH1 {
			c = c.TLS(r.trusting("site.test", "http/1.1"))
		}
		c.Send(get("", "/private"))
		must.Status(t, c.Answer("GET").Response, 403, "%s with credentials", m)
	}
}
