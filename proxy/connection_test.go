package proxy

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// HTTP/1.0 gets an answer it can read, of its own version at most in framing:
// no chunks, and the connection closes unless it asked to keep it and the
// length is known.
func TestHTTP10(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			w.(http.Flusher).Flush()
		}
		hello(w, r)
	})
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		for path, want := range map[string]string{"/page": "hello from /page", "/stream": "hello from /stream", "/private": "Refused by heed"} {
			c, prefix := r.in(t).raw(m)
			c.Send("GET " + prefix + path + " HTTP/1.0\r\nHost: site.test\r\n\r\n")
			a := c.Answer("GET")
			must.True(t, len(a.TransferEncoding) == 0 && strings.Contains(string(a.Body), want),
				"%s: %s %v %q", path, a.Proto, a.TransferEncoding, a.Body)
			c.Closed()
		}
		c, prefix := r.in(t).raw(m)
		c.Send("GET " + prefix + "/page HTTP/1.0\r\nHost: site.test\r\nConnection: keep-alive\r\n\r\n")
		a := c.Answer("GET")
		must.True(t, a.Header.Get("Connection") == "keep-alive", "keep-alive of HTTP/1.0: %v", a.Header)
		c.Send("GET " + prefix + "/page HTTP/1.0\r\n\r\n") // HTTP/1.0 knows no Host
		must.Status(t, c.Answer("GET").Response, 200, "without Host")
	})
}

// The client's Connection: close ends its connection, and the site's only the
// site's.
func TestConnectionCloseIsPerHop(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/closing" {
			w.Header().Set("Connection", "close")
		}
		hello(w, r)
	})
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		c.Send(get(prefix, "/closing"))
		a := c.Answer("GET")
		must.True(t, a.StatusCode == 200 && !a.Close, "the site's close went through: %s", a.Status)
		c.Send(get(prefix, "/page", "Connection: close"))
		a = c.Answer("GET")
		must.True(t, a.StatusCode == 200 && a.Close, "%s close %v", a.Status, a.Close)
		c.Closed()
		must.Equal(t, r.site.last(t, "/page").Header.Get("Connection"), "", "the client's Connection at the site")
	})
	a := r.ask(mitmH2, question{path: "/closing"})
	must.True(t, a.StatusCode == 200, "%s", a.Status)
}

// What a client sends along with its CONNECT is the beginning of the tunnel:
// the first TLS record, or a plain request.
func TestBytesSentWithConnectAreNotLost(t *testing.T) {
	r := newRig(t, hello)
	const connect = "CONNECT site.test:%s HTTP/1.1\r\nHost: site.test:%s\r\n\r\n"
	t.Run("plain", func(t *testing.T) {
		c := testkit.Dial(t, r.addr)
		c.Send(fmt.Sprintf(connect, "80", "80") + get("", "/page") + get("", "/private"))
		must.Is(t, c.Head("CONNECT").StatusCode, 200)
		for _, want := range []int{200, 403} {
			must.Status(t, c.Answer("GET").Response, want)
		}
	})
	t.Run("TLS", func(t *testing.T) {
		c := testkit.Dial(t, r.addr)
		c.Conn = &earlyConn{Conn: c.Conn, r: bufio.NewReader(c.Conn), head: fmt.Sprintf(connect, "443", "443")}
		s := c.TLS(r.trusting("site.test", "http/1.1"))
		s.Send(get("", "/page"))
		must.Status(t, s.Answer("GET").Response, 200)
	})
}

// earlyConn sends head along with the first octets written, and takes the
// answer to it off before the first octets read.
type earlyConn struct {
	net.Conn
	r        *bufio.Reader
	head     string
	answered bool
}

func (c *earlyConn) Write(b []byte) (int, error) {
	head := c.head
	c.head = ""
	if _, err := c.Conn.Write(append([]byte(head), b...)); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (c *earlyConn) Read(b []byte) (int, error) {
	if !c.answered {
		c.answered = true
		if resp, err := http.ReadResponse(c.r, &http.Request{Method: "CONNECT"}); err != nil || resp.StatusCode != 200 {
			return 0, fmt.Errorf("CONNECT: %v %v", resp, err)
		}
	}
	return c.r.Read(b)
}
