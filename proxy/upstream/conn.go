package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"heed/proxy/headers"
)

// Conn is a connection to a site on which HTTP/1 is spoken. It reads the heads
// that come in, for the one thing that net/http does not keep of them: what
// Connection names beside close. Such a head is the last of its connection. And it
// watches when octets come, for the pool (pool.go).
type Conn struct {
	net.Conn
	asked   atomic.Bool              // something was written since the last head
	head    []byte                   // the beginning of a head; Read's own
	onWrite atomic.Pointer[func()]   // called after the next Write; nil: none
	named   atomic.Pointer[[]string] // the values of Connection with close and more; nil: none
	use     connUse
}

// OnWrite makes c call f once, after its next Write: httptrace.WroteHeaders
// reports headers that net/http still buffers. A later f replaces one that was not
// called yet.
func (c *Conn) OnWrite(f func()) { c.onWrite.Store(&f) }

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	c.asked.Store(true)
	c.use.writing()
	n, err := c.Conn.Write(p)
	if err != nil {
		c.use.failed()
	}
	if f := c.onWrite.Swap(nil); f != nil {
		(*f)()
	}
	return n, err
}

// Read implements net.Conn. Octets that no request has asked for are an error.
func (c *Conn) Read(p []byte) (int, error) {
	c.use.reading()
	n, err := c.Conn.Read(p)
	if n, err = c.use.read(n, err); n > 0 && (len(c.head) > 0 || c.asked.Load()) {
		c.look(p[:n])
	}
	return n, err
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	if h := c.use.gone(); h != nil {
		h.pool.forget(c)
	}
	return err
}

// CloseWrite ends what is sent, for tunnels.
func (c *Conn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// look reads p, which continues a head, or may begin one.
func (c *Conn) look(p []byte) {
	seen := len(c.head) // of which only the last octets have to be searched again
	if seen > 0 {
		c.head = append(c.head, p...)
		p = c.head
	}
	for len(p) > 0 {
		if begin := p[:min(len(p), len(headBegins))]; !strings.HasPrefix(headBegins, string(begin)) {
			break // a body
		}
		from := max(0, seen-len(headEnds))
		end := bytes.Index(p[from:], headEnds)
		if end < 0 && len(p) <= maxResponseHeader {
			if seen == 0 {
				c.head = bytes.Clone(p)
			}
			return // the rest will come
		} else if end < 0 {
			break
		}
		c.keep(p[:from+end])
		if !bytes.HasPrefix(p[len(headBegins):], interimStatus) {
			break
		}
		p, seen, c.head = p[from+end+len(headEnds):], 0, nil
		if len(p) == 0 {
			return // another head will come
		}
	}
	c.head = nil
	c.asked.Store(false)
}

const headBegins = "HTTP/1."

var (
	headEnds        = []byte("\r\n\r\n")
	interimStatus   = []byte("1 1") // what follows HTTP/1. in a 1xx
	connectionField = []byte("connection:")
)

// keep stores the Connection lines of a head that contain close and other names.
func (c *Conn) keep(head []byte) {
	lines, list := 0, false
	for value := range connectionLines(head) {
		lines, list = lines+1, list || bytes.IndexByte(value, ',') >= 0
	}
	if lines < 2 && !list { // of nearly all heads
		return
	}
	var values []string
	for value := range connectionLines(head) {
		values = append(values, string(value))
	}
	if headers.HasToken(values, "close") {
		c.named.Store(&values)
	}
}

// connectionLines returns the values of the Connection lines of a head.
func connectionLines(head []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(head) > 0 {
			var line []byte
			line, head, _ = bytes.Cut(head, headEnds[:2])
			if n := len(connectionField); len(line) > n && bytes.EqualFold(line[:n], connectionField) && !yield(line[n:]) {
				return
			}
		}
	}
}

// RestoreConnection gives h the Connection field of the last head, which net/http
// removes when it contains close. c may be nil, which restores nothing.
func (c *Conn) RestoreConnection(h http.Header) {
	if c == nil {
		return
	}
	if named := c.named.Load(); named != nil {
		h["Connection"] = append(h["Connection"], *named...)
	}
}

// IsHTTP2 reports whether HTTP/2 is spoken on c, which an httptrace.GotConnInfo names.
func IsHTTP2(c net.Conn) bool {
	t, ok := c.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}

// dialHTTP connects to a plain site or to a proxy.
func (d *dialer) dialHTTP(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return attemptOf(ctx).made(c), nil
}

// dialTLS connects to a site, or to an https proxy for plain requests, and makes the
// handshake. net/http recognises HTTP/2 on a bare *tls.Conn only, whose heads need no
// Conn. A site that does not speak HTTP/2 is errHTTP1 where that was expected of it.
func (d *dialer) dialTLS(ctx context.Context, _, addr string) (net.Conn, error) {
	a := attemptOf(ctx)
	if a.conn != nil && !a.h2 {
		return a.conn, nil
	}
	if a.through != nil {
		c, err := d.dialProxyTLS(ctx, addr)
		if err != nil {
			return nil, err
		}
		return a.made(c), nil
	}
	raw, err := d.dialSite(ctx, addr)
	if err != nil {
		return nil, err
	}
	config := d.tls.Clone()
	if !a.h2 {
		config.NextProtos = config.NextProtos[1:]
	}
	c, err := d.handshake(ctx, raw, addr, config)
	switch {
	case err != nil:
		return nil, err
	case c.ConnectionState().NegotiatedProtocol == "h2":
		a.negotiated()
		return c, nil
	case a.h2:
		a.deliver(c)
		return nil, errHTTP1
	}
	return a.made(c), nil
}

// dialProxyTLS connects to an https proxy. The settings of sites are not for it.
func (d *dialer) dialProxyTLS(ctx context.Context, addr string) (*tls.Conn, error) {
	raw, err := d.dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return d.handshake(ctx, raw, addr, &tls.Config{RootCAs: d.RootCAs, MinVersion: tls.VersionTLS12})
}

// handshake makes a TLS connection to addr of raw, which it closes when that fails.
func (d *dialer) handshake(ctx context.Context, raw net.Conn, addr string, config *tls.Config) (*tls.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		raw.Close()
		return nil, err
	}
	config.ServerName = host
	c := tls.Client(raw, config)
	ctx, cancel := context.WithTimeout(ctx, tlsTimeout)
	defer cancel()
	err = c.HandshakeContext(ctx)
	d.Counts.handshake(err)
	if err != nil {
		raw.Close()
		return nil, err
	}
	return c, nil
}

type http1Only struct{}

// HTTP1Only returns a context under which new connections to sites do not offer
// HTTP/2: a WebSocket handshake is for HTTP/1.1.
func HTTP1Only(ctx context.Context) context.Context {
	return context.WithValue(ctx, http1Only{}, true)
}
