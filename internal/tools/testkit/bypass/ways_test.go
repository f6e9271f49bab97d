package bypass

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"heed/internal/tools/testkit"
)

// way is one way a client reaches a site through heed.
type way string

const (
	direct   way = "direct"   // not through heed: what the server itself does
	plain    way = "plain"    // http, absolute form
	mitmH1   way = "h1"       // https, intercepted, HTTP/1.1
	mitmH2   way = "h2"       // https, intercepted, HTTP/2
	inTunnel way = "tunnel"   // http inside CONNECT
	absolute way = "absolute" // https in absolute form on the proxy port
)

var ways = []way{plain, mitmH1, mitmH2, inTunnel, absolute}

// reply is everything that came back.
type reply struct {
	text string // head and body
	err  error  // why there is no more; nil when the answer ended as it should
	// unasked: there was no connection to ask on.
	unasked bool
}

// leaks reports whether the reply gives a canary away.
func (r reply) leaks() bool {
	return strings.Contains(r.text, strings.TrimSpace(canaryToken)) ||
		strings.Contains(strings.ToLower(r.text), fmt.Sprintf("content-length: %d\r", canarySize)) ||
		strings.Contains(r.text, fmt.Sprintf("/%d\r", canarySize)) // Content-Range
}

// refused reports whether heed answered, or cut the request off.
func (r reply) refused() bool {
	return r.silent() || strings.Contains(strings.ToLower(r.text), "\r\nproxy-status: ") && strings.Contains(r.text, "; error=")
}

// silent reports whether nothing came: heed closed the connection, or waited
// for the rest of a request.
func (r reply) silent() bool { return r.text == "" }

// route is where a way leads: to a site behind heed, or straight to a server.
type route struct {
	way   way
	name  string // the site's
	addr  string // heed's, or the server's for direct
	port  string // the site's; empty: that of its scheme
	roots *x509.CertPool
}

// prefix is the text before the path in a request line.
func (r route) prefix() string {
	switch r.way {
	case plain:
		return "http://" + r.authority()
	case absolute:
		return "https://" + r.authority()
	}
	return ""
}

// authority is the site as requests name it.
func (r route) authority() string {
	if r.port == "" {
		return r.name
	}
	return net.JoinHostPort(r.name, r.port)
}

// patience bounds one request.
const patience = testkit.Patience

// dial opens a connection on which a request can be sent, at the second try
// where heed takes the end of the last tunnel for a sign that its CA is not
// trusted, and says so in place of this one.
func (r route) dial() (net.Conn, error) {
	if c, err := r.dialOnce(); err == nil {
		return c, nil
	}
	return r.dialOnce()
}

func (r route) dialOnce() (net.Conn, error) {
	c, err := net.DialTimeout("tcp", r.addr, patience)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(patience))
	through, err := r.through(c)
	if err != nil {
		c.Close()
	}
	return through, err
}

// through goes through a tunnel where the way has one.
func (r route) through(c net.Conn) (net.Conn, error) {
	switch r.way {
	case inTunnel:
		return c, r.connect(c, "80")
	case mitmH1:
		return r.tls(c, "http/1.1")
	case mitmH2:
		return r.tls(c, "h2")
	}
	return c, nil
}

func (r route) connect(c net.Conn, port string) error {
	authority := net.JoinHostPort(r.name, cmp.Or(r.port, port))
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", authority, authority)
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 16), &http.Request{Method: "CONNECT"})
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New("CONNECT: " + resp.Status)
	}
	return err
}

func (r route) tls(c net.Conn, protocol string) (net.Conn, error) {
	if err := r.connect(c, "443"); err != nil {
		return nil, err
	}
	s := tls.Client(c, &tls.Config{ServerName: r.name, RootCAs: r.roots, NextProtos: []string{protocol}})
	return s, s.Handshake()
}

// asker sends targets one after the other.
type asker interface {
	// ask asks for a target under a User-Agent of its own.
	ask(target, agent string) reply
	close()
}

func (r route) asker() asker {
	if r.way == mitmH2 {
		return &h2Asker{route: r}
	}
	return &h1Asker{route: r}
}

// h1Asker speaks HTTP/1.1 in octets and keeps its connection while it can.
type h1Asker struct {
	route
	conn  net.Conn
	r     *bufio.Reader
	heard bytes.Buffer
}

func (a *h1Asker) close() {
	if a.conn != nil {
		a.conn.Close()
		a.conn = nil
	}
}

func (a *h1Asker) ask(target, agent string) reply {
	fresh := a.conn == nil
	if fresh {
		conn, err := a.dial()
		if err != nil {
			return reply{err: err, unasked: true}
		}
		a.conn, a.r = conn, bufio.NewReader(io.TeeReader(conn, &a.heard))
	}
	a.heard.Reset()
	a.conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(a.conn, "GET %s%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n\r\n", a.prefix(), target, a.authority(), agent)
	err := a.answer()
	if err != nil {
		a.close()
		if !fresh && a.heard.Len() == 0 { // the other side had closed before
			return a.ask(target, agent)
		}
	}
	return reply{text: a.heard.String(), err: err}
}

// answer reads one response.
func (a *h1Asker) answer() error {
	resp, err := http.ReadResponse(a.r, &http.Request{Method: "GET"})
	if err != nil {
		return err
	}
	if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.Close {
		a.close()
	}
	return err
}

const (
	// silence is how long a test waits for what should not come.
	silence = 1500 * time.Millisecond
	// quiet is how long a connection is read on after the last octet of an answer:
	// a second one, which a trick got the site to send, comes right behind.
	quiet = 400 * time.Millisecond
)

// exchange sends octets on a connection of their own and reads all that comes back: until
// the other side closes, or nothing came for a while. It waits so long for the first
// octet: silence, or patience where the test needs an answer.
func (r route) exchange(request string, first time.Duration) reply {
	conn, err := r.dial()
	if err != nil {
		return reply{err: err, unasked: true}
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	go io.WriteString(conn, request) // the answer may come before all is read
	var heard bytes.Buffer
	b := make([]byte, 16<<10)
	for wait := first; ; wait = quiet {
		conn.SetReadDeadline(time.Now().Add(wait))
		n, err := conn.Read(b)
		heard.Write(b[:n])
		if err != nil {
			return reply{text: heard.String()}
		}
	}
}
