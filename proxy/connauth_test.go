package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/upstream"
)

// intranet is the site intra.test, which binds a user to a connection as NTLM and Negotiate
// do: a handshake of two requests, and the connection is the user's.
type intranet struct {
	bound atomic.Int32 // connections that have a user, over HTTP/1
}

type intranetConn struct {
	challenged bool
	user       string
	counted    bool // in bound
}

type intranetKey struct{}

// newIntranet starts the site. Over TLS it speaks HTTP/1, and HTTP/2 where http2 is true,
// which binds no user: a request there is to be repeated over HTTP/1, where resets is true,
// or is asked for a user again.
func newIntranet(t *testing.T, http2, resets bool) (*intranet, *site) {
	in, s := &intranet{}, newSite(t, hello)
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodConnect: // it is also the proxy of a network
				carryTunnel(w, s.resolve["intra.test:443"])
			case r.URL.Path == "/robots.txt":
				fmt.Fprint(w, robots)
			default:
				in.page(w, r, r.Context().Value(intranetKey{}).(*intranetConn))
			}
		}),
		Protocols: new(http.Protocols),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(http2)
	if resets {
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": resetAll}
	}
	var conns sync.Map // *intranetConn by net.Conn
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		own := &intranetConn{}
		conns.Store(c, own)
		return context.WithValue(ctx, intranetKey{}, own)
	}
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if own, ok := conns.Load(c); ok && state == http.StateClosed && own.(*intranetConn).counted {
			in.bound.Add(-1)
		}
	}
	s.serve(t, "intra.test", server)
	return in, s
}

// resetAll answers each request over HTTP/2 by telling that it needs HTTP/1 (RFC 9113 §7).
func resetAll(_ *http.Server, c *tls.Conn, _ http.Handler) {
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	_ = f.WriteSettings()
	for {
		frame, err := f.ReadFrame()
		switch {
		case err != nil:
			return
		case frame.Header().Type == http2.FrameHeaders:
			_ = f.WriteRSTStream(frame.Header().StreamID, http2.ErrCodeHTTP11Required)
		}
	}
}

// carryTunnel opens a tunnel to addr.
func carryTunnel(w http.ResponseWriter, addr string) {
	far, err := net.Dial("tcp", addr)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer far.Close()
	c, read, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		defer far.Close()
		_, _ = io.Copy(far, read)
	}()
	_, _ = io.Copy(c, far)
}

func (in *intranet) page(w http.ResponseWriter, r *http.Request, c *intranetConn) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	name, named := strings.CutPrefix(token, "TYPE3-")
	switch {
	case r.URL.Path == "/session": // authenticated in a way of its own
		w.Header().Set("Proxy-Support", "Session-Based-Authentication")
		name, named, c.challenged = "eve", true, true
		fallthrough
	case named && c.challenged:
		if !c.counted && r.ProtoMajor == 1 {
			c.counted = true
			in.bound.Add(1)
		}
		c.user, c.challenged = name, false
	case token == "TYPE1":
		c.challenged = true
		w.Header().Set("WWW-Authenticate", scheme+" CHALLENGE")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if c.user == "" {
		w.Header()["Www-Authenticate"] = []string{"Negotiate", "NTLM"}
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	fmt.Fprint(w, "hello "+c.user)
}

// intranetClient is one client's connection.
type intranetClient struct {
	ask   func(path, authorization string) string // returns the status and the body
	leave func()
}

func (r *rig) intranetClient(m mode) intranetClient {
	r.t.Helper()
	show := func(resp *http.Response) string {
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		must.OK(r.t, err)
		return strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", string(body)))
	}
	if m == mitmH2 {
		c := r.h2("intra.test")
		return intranetClient{func(path, authorization string) string {
			req, _ := http.NewRequestWithContext(r.t.Context(), "GET", "https://intra.test"+path, nil)
			if authorization != "" {
				req.Header.Set("Authorization", authorization)
			}
			resp := must.Get(c.RoundTrip(req))(r.t)
			return show(resp)
		}, func() { c.Close() }}
	}
	c, prefix := r.rawTo(m, "intra.test")
	return intranetClient{func(path, authorization string) string {
		var header []string
		if authorization != "" {
			header = []string{"Authorization: " + authorization}
		}
		c.Send(requestTo("intra.test", "GET", prefix, path, header...))
		return show(c.Head("GET"))
	}, func() { c.Close() }}
}

// authenticate makes the handshake of user. Another request in between does not disturb it.
func (c intranetClient) authenticate(t *testing.T, scheme, user string) {
	t.Helper()
	must.Equal(t, c.ask("/page", scheme+" TYPE1"), "401", "%s of %s begins with", scheme, user)
	must.Equal(t, c.ask("/page", ""), "401", "before %s of %s ends, it is asked for", scheme, user)
	must.Equal(t, c.ask("/page", scheme+" TYPE3-"+user), "200 hello "+user, "%s of %s ends with", scheme, user)
}

// intranetWays runs test for each way to intra.test.
func intranetWays(t *testing.T, test func(t *testing.T, r *rig, in *intranet, m mode)) {
	t.Parallel()
	for _, m := range allModes {
		t.Run(string(m), func(t *testing.T) {
			in, s := newIntranet(t, false, false)
			test(t, newRigBefore(t, s), in, m)
		})
		for name, resets := range map[string]bool{" to a site with HTTP/2": false, " to a site that resets HTTP/2": true} {
			if m.scheme() == "https" {
				t.Run(string(m)+name, func(t *testing.T) {
					in, s := newIntranet(t, true, resets)
					test(t, newRigBefore(t, s), in, m)
				})
			}
		}
	}
	for _, m := range allModes {
		t.Run(string(m)+" through a proxy", func(t *testing.T) {
			in, s := newIntranet(t, false, false)
			through := http.ProxyURL(&url.URL{Scheme: "http", Host: s.resolve["intra.test:80"]})
			ways := upstream.NewHostTransports(upstream.TransportConfig{Proxy: through, RootCAs: s.ca.Pool()})
			t.Cleanup(ways.CloseIdleConnections)
			test(t, newRigBefore(t, s, func(c *Config) { c.Upstream = ways }), in, m)
		})
	}
}

// A user authenticates, keeps the connection or leaves, and another client asks for the
// same page: it never gets the user's.
func TestAnAuthenticatedConnectionServesItsClientOnly(t *testing.T) {
	intranetWays(t, func(t *testing.T, r *rig, in *intranet, m mode) {
		for _, scheme := range []string{"NTLM", "Negotiate"} {
			alice, bob := r.intranetClient(m), r.intranetClient(m)
			alice.authenticate(t, scheme, "alice")
			for began := time.Now(); time.Since(began) < 60*time.Millisecond; { // longer than any silence that frees a connection
				must.Is(t, bob.ask("/page", ""), "401", "%s: what another client reads while alice stays", scheme)
			}
			must.Equal(t, alice.ask("/page", ""), "200 hello alice", "%s: later alice reads", scheme)
			alice.leave()
			testkit.Until(t, "the connection of alice is closed", func() bool { return in.bound.Load() == 0 })
			must.Equal(t, bob.ask("/page", ""), "401", "%s: after alice another client reads", scheme)
			bob.leave()
		}
	})
}

// Two users authenticate at the same time, step by step in turn.
func TestTwoClientsAuthenticateTwoConnections(t *testing.T) {
	intranetWays(t, func(t *testing.T, r *rig, in *intranet, m mode) {
		for range 6 {
			carl, dora := r.intranetClient(m), r.intranetClient(m)
			for _, step := range []struct{ authorization, want string }{
				{"NTLM TYPE1", "401"}, {"NTLM TYPE3-%s", "200 hello %s"}, {"", "200 hello %s"}, {"", "200 hello %s"},
			} {
				for name, c := range map[string]intranetClient{"carl": carl, "dora": dora} {
					want := strings.ReplaceAll(step.want, "%s", name)
					got := c.ask("/page", strings.ReplaceAll(step.authorization, "%s", name))
					must.Need(t, got == want, "%s with %q reads %q", name, step.authorization, got)
				}
			}
			carl.leave()
			dora.leave()
			testkit.Until(t, "both connections are closed", func() bool { return in.bound.Load() == 0 })
		}
	})
}

// A site can say that a connection is a user's without a request that shows it.
func TestASessionBasedConnectionServesItsClientOnly(t *testing.T) {
	intranetWays(t, func(t *testing.T, r *rig, in *intranet, m mode) {
		eve, bob := r.intranetClient(m), r.intranetClient(m)
		got := eve.ask("/session", "")
		must.Need(t, got == "200 hello eve", "eve reads %q", got)
		for began := time.Now(); time.Since(began) < 60*time.Millisecond; {
			must.Is(t, bob.ask("/page", ""), "401", "what another client reads")
		}
		eve.leave()
		testkit.Until(t, "the connection of eve is closed", func() bool { return in.bound.Load() == 0 })
	})
}
