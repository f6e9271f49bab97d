package testkit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// Conn is a raw connection that a test speaks on in bytes. Every read and
// write has Patience; what does not come in that time fails the test. It is
// closed when the test ends.
type Conn struct {
	net.Conn               // for what the methods below do not cover
	R        *bufio.Reader // reads from Conn; nothing else may

	t testing.TB
}

// Answer is a response read whole.
type Answer struct {
	*http.Response // its Body is used up; see the field
	Body           []byte
}

// Dial connects to an address, usually the proxy's.
func Dial(t testing.TB, addr string) *Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, Patience)
	if err != nil {
		t.Fatalf("connecting to %s: %v", addr, err)
	}
	return newConn(t, c)
}

// On is Dial for a connection that is open already.
func On(t testing.TB, c net.Conn) *Conn { return newConn(t, c) }

func newConn(t testing.TB, c net.Conn) *Conn {
	t.Cleanup(func() { c.Close() })
	return &Conn{Conn: c, R: bufio.NewReader(c), t: t}
}

// Send writes the octets as they are: write \r\n where it belongs.
func (c *Conn) Send(text string) {
	c.t.Helper()
	c.SetWriteDeadline(time.Now().Add(Patience))
	if _, err := io.WriteString(c.Conn, text); err != nil {
		c.t.Fatalf("sending %.60q: %v", text, err)
	}
}

// Head reads one response up to its body, which the caller reads and closes
// (or leaves, when the test is about that). method is the request's: HEAD has
// no body. 1xx responses are returned as any other.
func (c *Conn) Head(method string) *http.Response {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(Patience))
	resp, err := http.ReadResponse(c.R, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("reading the answer to %s: %v", method, err)
	}
	return resp
}

// Answer reads one whole response; a body cut short fails the test.
func (c *Conn) Answer(method string) *Answer {
	c.t.Helper()
	resp := c.Head(method)
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		c.t.Fatalf("reading the body of a %s answer after %d bytes: %v", resp.Status, len(body), err)
	}
	return &Answer{Response: resp, Body: body}
}

// Rest reads until the other side closes and returns what came.
func (c *Conn) Rest() []byte {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(Patience))
	var rest bytes.Buffer
	_, err := rest.ReadFrom(c.R)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("the connection was still open after %s; got %q", Patience, rest.String())
	}
	return rest.Bytes() // a reset closes as well as an end does
}

// Closed fails the test unless the other side closes without another byte.
func (c *Conn) Closed() {
	c.t.Helper()
	if rest := c.Rest(); len(rest) > 0 {
		c.t.Fatalf("before it closed, the connection brought %q", rest)
	}
}

// Reset closes the connection with a reset, so that writing to it fails at the other side.
func (c *Conn) Reset() {
	c.t.Helper()
	if err := c.tcp().SetLinger(0); err != nil {
		c.t.Fatal(err)
	}
	c.tcp().Close()
}

// CloseWrite ends what is sent, and nothing else: a FIN, and in TLS a close_notify before it.
func (c *Conn) CloseWrite() {
	c.t.Helper()
	if s, ok := c.Conn.(*tls.Conn); ok {
		if err := s.CloseWrite(); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := c.tcp().CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
}

// tcp returns the connection below those of TLS.
func (c *Conn) tcp() *net.TCPConn {
	c.t.Helper()
	below := c.Conn
	for {
		s, ok := below.(*tls.Conn)
		if !ok {
			break
		}
		below = s.NetConn()
	}
	t, ok := below.(*net.TCPConn)
	if !ok {
		c.t.Fatalf("%T is no connection of TCP", below)
	}
	return t
}

// Connect opens a tunnel through the proxy and returns the same connection.
// header lines are added as given, without \r\n.
func (c *Conn) Connect(authority string, header ...string) *Conn {
	c.t.Helper()
	lines := append([]string{"CONNECT " + authority + " HTTP/1.1", "Host: " + authority}, header...)
	c.Send(strings.Join(lines, "\r\n") + "\r\n\r\n")
	if resp := c.Head("CONNECT"); resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		c.t.Fatalf("CONNECT %s = %s: %s", authority, resp.Status, body)
	}
	return c
}

// TLS makes the handshake and returns the encrypted connection on top; c is
// not to be used any more. An error of the handshake fails the test; for a
// test about that, use TryTLS.
func (c *Conn) TLS(config *tls.Config) *Conn {
	c.t.Helper()
	s, err := c.TryTLS(config)
	if err != nil {
		c.t.Fatalf("TLS handshake for %s: %v", config.ServerName, err)
	}
	return s
}

// TryTLS is TLS for handshakes that may fail.
func (c *Conn) TryTLS(config *tls.Config) (*Conn, error) {
	c.t.Helper()
	if n := c.R.Buffered(); n > 0 {
		c.t.Fatalf("%d bytes came before the handshake began", n)
	}
	s := tls.Client(c.Conn, config)
	s.SetDeadline(time.Now().Add(Patience))
	if err := s.Handshake(); err != nil {
		return nil, err
	}
	s.SetDeadline(time.Time{})
	return newConn(c.t, s), nil
}

// State is the TLS state of a connection made by TLS.
func (c *Conn) State() tls.ConnectionState {
	c.t.Helper()
	s, ok := c.Conn.(*tls.Conn)
	if !ok {
		c.t.Fatal("State of a connection without TLS")
	}
	return s.ConnectionState()
}

// HTTP2 speaks HTTP/2 on a connection made by TLS with "h2" in NextProtos, and
// asks for no compression by default. c is not to be used any more.
func (c *Conn) HTTP2() *http.ClientConn {
	c.t.Helper()
	if got := c.State().NegotiatedProtocol; got != "h2" {
		c.t.Fatalf("the other side chose %q, not h2", got)
	}
	transport := &http.Transport{
		Protocols:          new(http.Protocols),
		DisableCompression: true,
		DialTLSContext:     func(context.Context, string, string) (net.Conn, error) { return c.Conn, nil },
	}
	transport.Protocols.SetHTTP2(true)
	client, err := transport.NewClientConn(context.Background(), "https", c.State().ServerName+":443")
	if err != nil {
		c.t.Fatalf("starting HTTP/2: %v", err)
	}
	return client
}

// Accept calls converse with each connection that l accepts, in a goroutine of its
// own, until l is closed: a site whose every octet a test writes.
func Accept(l net.Listener, converse func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go converse(c)
	}
}

// RawSite is Accept for a new address, until the test ends. It returns the address.
func RawSite(t testing.TB, converse func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go Accept(l, converse)
	return l.Addr().String()
}
