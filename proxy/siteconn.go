package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
)

// siteConn is a connection to a site on which HTTP/1 is spoken. It looks at
// the heads that come in, for the one thing that net/http does not keep of
// them: what Connection names beside close. Such a head is the last of its
// connection.
type siteConn struct {
	net.Conn
	asked atomic.Bool              // something was written since the last head
	head  []byte                   // the beginning of a head; Read's own
	wrote atomic.Pointer[exchange] // is told of the next Write; nil: nobody is
	named atomic.Pointer[[]string] // the values of Connection with close and more; nil: none
}

// Write implements net.Conn.
func (c *siteConn) Write(p []byte) (int, error) {
	c.asked.Store(true)
	n, err := c.Conn.Write(p)
	if x := c.wrote.Swap(nil); x != nil {
		x.started() // net/http tells of headers that are in its buffer still
	}
	return n, err
}

// Read implements net.Conn.
func (c *siteConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && (len(c.head) > 0 || c.asked.Load()) {
		c.look(p[:n])
	}
	return n, err
}

// CloseWrite ends what is sent, for tunnels.
func (c *siteConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// look takes p in, which continues a head, or may begin one.
func (c *siteConn) look(p []byte) {
	seen := len(c.head) // of which nothing but the last octets has to be looked at again
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

// keep notes the Connection lines of a head when one says close and any says
// more.
func (c *siteConn) keep(head []byte) {
	var values []string
	for len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, headEnds[:2])
		if n := len(connectionField); len(line) > n && bytes.EqualFold(line[:n], connectionField) {
			values = append(values, string(line[n:]))
		}
	}
	if (len(values) > 1 || len(values) == 1 && strings.Contains(values[0], ",")) && hasToken(values, "close") {
		named := values
		c.named.Store(&named)
	}
}

// restoreConnection gives h the Connection field that net/http has taken off
// because it said close.
func (c *siteConn) restoreConnection(h http.Header) {
	if c == nil {
		return
	}
	if named := c.named.Load(); named != nil {
		h["Connection"] = append(h["Connection"], *named...)
	}
}

// dialHTTP connects to a plain site or to a proxy.
func (w *wayOut) dialHTTP(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := w.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &siteConn{Conn: c}, nil
}

// dialTLS connects to a site, or to an https proxy, and makes the handshake.
// net/http recognises HTTP/2 on a bare *tls.Conn only, and needs no look at its
// heads.
func (w *wayOut) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	raw, err := w.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	config := w.tls.Clone()
	if _, isProxy := w.proxies.Load(addr); isProxy { // what was settled of the site is not for it
		config = &tls.Config{RootCAs: w.RootCAs, MinVersion: tls.VersionTLS12}
	}
	config.ServerName = host
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok && x.webSocket && config.NextProtos != nil {
		config.NextProtos = config.NextProtos[1:] // a handshake is for HTTP/1.1
	}
	c := tls.Client(raw, config)
	ctx, cancel := context.WithTimeout(ctx, tlsTimeout)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	if c.ConnectionState().NegotiatedProtocol == "h2" {
		return c, nil
	}
	return &siteConn{Conn: c}, nil
}
