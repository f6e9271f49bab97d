package proxy

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
)

// broken promises of a fuzz run, gathered from any goroutine.
type promises struct {
	mu     sync.Mutex
	broken []string
}

func (p *promises) broke(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = append(p.broken, s)
}

// Write takes the proxy's log: an error there is a fault inside heed.
func (p *promises) Write(b []byte) (int, error) {
	p.broke("heed's log: " + string(b))
	return len(b), nil
}

func (p *promises) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.broken
	p.broken = nil
	return taken
}

// allowedByRig is a second opinion on the rig's rules, on the path that the
// site decoded.
func allowedByRig(r *http.Request) bool {
	p := path.Clean("/" + r.URL.Path)
	return !strings.HasPrefix(p, "/private") || strings.HasPrefix(r.URL.Path, "/private/ok")
}

// FuzzFront feeds octets to a connection, to a tunnel, and into TLS with
// HTTP/1.1 and HTTP/2. Whatever they are: no fault inside heed, nothing
// disallowed at the site, and the connection closes.
func FuzzFront(f *testing.F) {
	for _, b := range append(malformedRequests, malformedProxyRequests...) {
		if len(b.bytes) < 4096 {
			f.Add([]byte(strings.ReplaceAll(b.bytes, "%P", "http://site.test")))
			f.Add([]byte(strings.ReplaceAll(b.bytes, "%P", "")))
		}
	}
	for _, p := range []string{"/private", "/%70rivate", "/x/../private", "//private", "/private/ok", "/private%2fx", "/./private", "/\\private", "/private;x"} {
		f.Add([]byte(get("http://site.test", p)))
		f.Add([]byte(get("", p) + get("", "/next")))
		f.Add([]byte(rawRequest("POST", "https://site.test", p, "Transfer-Encoding: chunked") + "3\r\nabc\r\n0\r\n\r\n"))
	}
	f.Add([]byte(webSocketHandshake("http://site.test", "/chat") + "bytes"))
	f.Add([]byte("CONNECT site.test:80 HTTP/1.1\r\nHost: x\r\n\r\n" + get("", "/private")))
	f.Add([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00" +
		"\x00\x00\x08\x01\x05\x00\x00\x00\x01\x82\x87\x84\x41\x03x.y\x00"))

	kept := new(promises)
	s := newSite(f, func(w http.ResponseWriter, r *http.Request) {
		if !allowedByRig(r) {
			kept.broke("disallowed at the site: " + r.RequestURI)
		}
		hello(w, r)
	})
	r := newRigBefore(f, s, func(c *Config) {
		c.Limits = limit.Limits{HeaderTime: 500 * time.Millisecond, IdleTime: 500 * time.Millisecond, DrainTime: 1}
		c.Log = slog.New(slog.NewTextHandler(kept, &slog.HandlerOptions{Level: slog.LevelError}))
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, m := range []mode{plain, inTunnel, mitmH1, mitmH2} {
			r.in(t).throw(m, data)
		}
		for _, b := range kept.take() {
			t.Errorf("%s", b)
		}
	})
}

// throw writes data and reads until the proxy has had enough.
func (r *rig) throw(m mode, data []byte) {
	r.t.Helper()
	c := must.Get(net.DialTimeout("tcp", r.addr, testkit.Patience))(r.t)
	defer c.Close()
	c.SetDeadline(time.Now().Add(testkit.Patience))
	switch m {
	case inTunnel:
		data = append([]byte("CONNECT site.test:80 HTTP/1.1\r\nHost: site.test:80\r\n\r\n"), data...)
	case mitmH1, mitmH2:
		protocol := map[mode]string{mitmH1: "http/1.1", mitmH2: "h2"}[m]
		c = r.tunnelAgain().TLS(r.trusting("site.test", protocol)).Conn
	}
	go func() { // the proxy may answer and close before it has read it all
		c.Write(data)
		if w, ok := c.(interface{ CloseWrite() error }); ok {
			w.CloseWrite()
		}
	}()
	c.SetReadDeadline(time.Now().Add(testkit.Patience))
	if _, err := io.Copy(io.Discard, c); err != nil {
		e, ok := err.(net.Error)
		must.True(r.t, !ok || !e.Timeout(), "%s: the connection does not end", m)
	}
}

// tunnelAgain opens a tunnel, at the second try where heed takes the end of the
// last one for a sign that its CA is not trusted, and says so in place of this.
func (r *rig) tunnelAgain() *testkit.Conn {
	r.t.Helper()
	c := testkit.Dial(r.t, r.addr)
	c.Send("CONNECT site.test:443 HTTP/1.1\r\nHost: site.test:443\r\n\r\n")
	if c.Head("CONNECT").StatusCode == http.StatusOK {
		return c
	}
	return testkit.Dial(r.t, r.addr).Connect("site.test:443")
}
