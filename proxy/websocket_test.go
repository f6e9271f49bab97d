package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/http1"
)

// webSocketSite accepts handshakes and echoes octets; a connection that sends
// "bye" is closed. The end of every connection is sent to ended.
func webSocketSite(ended chan<- string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !http1.IsWebSocket(r.Header) || r.Header.Get("Sec-WebSocket-Key") == "" {
			hello(w, r)
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { c.Close(); ended <- r.URL.Path }()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nwelcome ")
		echo(c, rw.Reader)
	}
}

func echo(c net.Conn, r *bufio.Reader) {
	buf := make([]byte, 100)
	for {
		n, err := r.Read(buf)
		if err != nil || strings.HasPrefix(string(buf[:n]), "bye") {
			return
		}
		c.Write(buf[:n])
	}
}

func webSocketHandshake(prefix, path string) string {
	return get(prefix, path, "Connection: keep-alive, Upgrade", "Upgrade: WebSocket", "Sec-WebSocket-Version: 13",
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
}

// openWebSocket makes a handshake and sends its first octets along with it.
func (r *rig) openWebSocket(m mode, path string) *testkit.Conn {
	r.t.Helper()
	c, prefix := r.raw(m)
	c.Send(webSocketHandshake(prefix, path) + "early ")
	resp := c.Head("GET")
	must.Need(r.t, resp.StatusCode == 101 && resp.Header.Get("Sec-WebSocket-Accept") != "" && http1.IsWebSocket(resp.Header),
		"%s %v", resp.Status, resp.Header)
	r.expect(c, "welcome early ")
	return c
}

func (r *rig) expect(c *testkit.Conn, want string) {
	r.t.Helper()
	c.SetReadDeadline(time.Now().Add(testkit.Patience))
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c.R, got); err != nil || string(got) != want {
		r.t.Fatalf("read %q, %v; want %q", got[:n], err, want)
	}
}

// Octets flow both ways after a handshake, those sent along with it included,
// and when either side closes, the other is closed too and the record ends.
func TestWebSocketClosesFromEitherSide(t *testing.T) {
	ended := make(chan string, 1)
	r := newRig(t, webSocketSite(ended))
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		r := r.in(t)
		for _, side := range []string{"client", "site"} {
			path := "/chat/" + side + "/" + string(m)
			c := r.openWebSocket(m, path)
			for i := range 3 {
				c.Send(fmt.Sprint("message ", i))
				r.expect(c, fmt.Sprint("message ", i))
			}
			if side == "site" {
				c.Send("bye")
				c.Closed()
			} else {
				c.Close()
			}
			select {
			case got := <-ended:
				must.Equal(t, got, path, "ended")
			case <-time.After(testkit.Patience):
				t.Fatalf("the %s closed and the other side was not told", side)
			}
			e := r.records.target(t, path)
			must.True(t, e.Outcome.Status == 101 && e.Outcome.FromSite, "record %+v", e.Outcome)
		}
	})
}

// A disallowed handshake is refused like any request, and other upgrades are
// not passed on.
func TestHeed_WebSocketHandshakeIsJudged(t *testing.T) {
	r := newRig(t, webSocketSite(make(chan string, 1)))
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		c.Send(webSocketHandshake(prefix, "/private/chat"))
		must.Status(t, c.Answer("GET").Response, 403)
		c.Send(get(prefix, "/page", "Connection: Upgrade", "Upgrade: h2c"))
		must.Status(t, c.Answer("GET").Response, 200, "another upgrade")
		must.Equal(t, r.site.last(t, "/page").Header.Get("Upgrade"), "", "the Upgrade that went through")
	})
	must.Lack(t, strings.Join(r.site.reached(), "\n"), "private", "the site saw")
}
