package proxy

import (
	"io"
	"net"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// Names and order of fields are kept in both directions over HTTP/1: what is added comes
// last, and what concerns one connection is that connection's own. A name that is no token
// reaches a client of HTTP/1 as it came.
func TestNamesAndOrderOfFieldsAreKept(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]struct {
		request []string
		status  string
		answer  []string
	}{
		"a page": {
			[]string{"x-LAST: 1", "ACCEPT: */*", "user-agent: Order/1", "x-odd-Case: a", "If-none-match: \"x\"", "X-ODD-CASE: b",
				"cookie: a=1", "Accept-language: en", "dnt: 1", "X_Under: 2", "accept-ENCODING: identity", "ZZZ: 3"},
			"200 OK",
			[]string{"SERVER: raw", "set-COOKIE: a=1", "x-powered-BY: x", "etag: \"y\"", "Set-Cookie: b=2", "cache-control: no-store",
				"date: Thu, 26 Nov 2026 02:00:00 GMT", "content-TYPE: text/plain", "content-length: 2", "VARY: *", "Power by: z", "x_under: 2", "AAA: 3"},
		},
		"a WebSocket": {
			[]string{"x-LAST: 1", "SEC-websocket-KEY: x", "connection: Upgrade", "sec-WEBSOCKET-version: 13", "upgrade: websocket", "AAA: 1"},
			"101 Web Socket Protocol Handshake",
			[]string{"x-LAST: 1", "SEC-websocket-ACCEPT: x", "connection: Upgrade", "date: Thu, 26 Nov 2026 02:00:00 GMT", "UPGRADE: websocket", "AAA: 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, hello)
			got := make(chan string, 10)
			go testkit.Accept(s.listen(t, "order.test:80"), func(c net.Conn) {
				defer c.Close()
				var head strings.Builder
				for b := [1]byte{}; !strings.HasSuffix(head.String(), "\r\n\r\n"); {
					if _, err := c.Read(b[:]); err != nil {
						return
					}
					head.WriteByte(b[0])
				}
				got <- head.String()
				io.WriteString(c, "HTTP/1.1 "+f.status+"\r\n"+strings.Join(f.answer, "\r\n")+"\r\n\r\nok")
			})
			r := newRigBefore(t, s, func(c *Config) { c.Policies = stated{rules.Source{State: rules.Unavailable}} })
			c, prefix := r.rawTo(plain, "order.test")
			c.Send("GET " + prefix + "/page HTTP/1.1\r\nhost: order.test\r\n" + strings.Join(f.request, "\r\n") + "\r\n\r\n")
			want := "GET /page HTTP/1.1\r\nhost: order.test\r\n" + strings.Join(f.request, "\r\n") + "\r\nVia: 1.1 rig-7f3a\r\n\r\n"
			must.Equal(t, <-got, want, "the site")
			want = "HTTP/1.1 " + f.status + "\r\n" + strings.Join(f.answer, "\r\n") + "\r\nVia: 1.1 rig-7f3a\r\n\r\nok"
			text := make([]byte, len(want))
			if n, err := io.ReadFull(c.Conn, text); err != nil || string(text) != want {
				t.Errorf("the client got\n%s\nwant\n%s\n%v", text[:n], want, err)
			}
		})
	}
}
