package proxy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"heed/internal/terms"
	"heed/rules"
)

// look reads the first bytes that come through a tunnel which heed does not
// intercept, and puts them back. A reason says why they may not go on: TLS for
// another host than the CONNECT's, or, where the host was judged, what is no
// TLS at all. A client that names no host in its hello is taken at its
// CONNECT's word.
func (x *exchange) look(c *tunnelConn) (rules.Reason, string) {
	patience := x.settings.Limits.ConnectTime
	if x.https == terms.Tunnel { // the site may speak first
		patience = x.settings.Limits.TunnelTime
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	first := make([]byte, 1)
	if _, err := c.Read(first); err != nil {
		if x.https == terms.Tunnel {
			return "", "" // its end is passed on
		}
		return rules.ReasonHandshake, "nothing came after CONNECT: " + endText(err)
	}
	c.unread(first)
	if first[0] != recordHandshake {
		if x.https == terms.Tunnel {
			return "", ""
		}
		return rules.ReasonNotHTTP, "the bytes in the tunnel are not TLS"
	}
	_ = c.SetReadDeadline(time.Now().Add(x.settings.Limits.HandshakeTime))
	name, ok := serverName(c)
	if !ok {
		return rules.ReasonNotHTTP, "the bytes in the tunnel begin like TLS and are none"
	}
	if o, err := rules.ParseOrigin("https", name); name != "" && (err != nil || o.Host != x.origin.Host) {
		detail := "the TLS server name is " + quote(name) + ", but the tunnel was opened to " + x.origin.Authority()
		if x.observes("https", name) {
			x.mismatch = detail
		}
		return rules.ReasonHostMismatch, detail
	}
	return "", ""
}

// recordHandshake is the type of a TLS record that begins a connection (RFC
// 8446 §5.1).
const recordHandshake = 0x16

var errSeen = errors.New("the hello was seen")

// serverName reads a TLS ClientHello from c, puts it back, and returns the
// host it names; empty for none. It reports whether there was a hello.
func serverName(c *tunnelConn) (name string, ok bool) {
	tap := &helloTap{Conn: c}
	_ = tls.Server(tap, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name, ok = hello.ServerName, true
		return nil, errSeen
	}}).Handshake() // fails by design
	c.unread(tap.read.Bytes())
	return name, ok
}

// helloTap keeps what is read through it and lets nothing out.
type helloTap struct {
	net.Conn
	read bytes.Buffer
}

// Read implements net.Conn.
func (t *helloTap) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.read.Write(b[:n])
	return n, err
}

// Write drops the alert by which the reading ends.
func (t *helloTap) Write(b []byte) (int, error) { return len(b), nil }

// unread puts back what was read from c last.
func (c *tunnelConn) unread(b []byte) {
	c.read.Add(-int64(len(b)))
	c.head = append(b[:len(b):len(b)], c.head...)
}
