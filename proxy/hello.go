package proxy

import (
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"heed/internal/acl"
	"heed/internal/redirect"
	"heed/internal/safetext"
	"heed/rules"
)

// checkHello reads the first octets that come through a tunnel which heed does not
// intercept, and puts them back. reason is why they may not go on: TLS for
// another host than the CONNECT's, or, where the host was judged, what is no
// TLS at all; observed is true when they go on all the same. A client that names no
// host in its hello is taken at its CONNECT's word.
func (t *opaqueTunnel) checkHello() (reason rules.Reason, detail string, observed bool) {
	q, c := &t.x.req, t.client
	patience := q.settings.Limits.ConnectTime
	if q.https == acl.Tunnel { // the site may speak first
		patience = q.settings.Limits.TunnelTime
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if err := c.peek(1); err != nil {
		if q.https == acl.Tunnel {
			return "", "", false // its end is passed on
		}
		return rules.ReasonHandshake, "nothing came after CONNECT: " + endText(err), false
	}
	if c.head[0] != recordHandshake {
		if q.https == acl.Tunnel {
			return "", "", false
		}
		return rules.ReasonNotHTTP, "the bytes in the tunnel are not TLS", q.effective.Mode == acl.Observe
	}
	_ = c.SetReadDeadline(time.Now().Add(q.settings.Limits.HandshakeTime))
	hello := readHello(c)
	if hello == nil {
		return rules.ReasonNotHTTP, "the bytes in the tunnel begin like TLS and are none", q.effective.Mode == acl.Observe
	}
	for _, name := range hello.names { // mostly one; which of several a server takes is not known
		if o, err := rules.ParseOrigin("https", name); err != nil || o.Host != q.origin.Host {
			detail := "the TLS server name is " + safetext.Quote(name) + ", but the tunnel was opened to " + q.host
			return rules.ReasonHostMismatch, detail, q.observedAt("https", name, t.x.proxy.config.Now())
		}
	}
	return "", "", false
}

// checkOfFirst returns what checks the first octets of the client; nil for those that
// pass as they are.
func (t *opaqueTunnel) checkOfFirst() func() (reason rules.Reason, detail string, observed bool) {
	q := &t.x.req
	a := q.conn.redirected
	switch {
	case q.effective.Mode == acl.Exempt, q.unseen == rules.ReasonOwnService:
		return nil
	case a != nil && a.silent:
		return t.checkSilent
	case q.unseen == rules.ReasonNotHTTP:
		return nil
	}
	return t.checkHello
}

// checkSilent reads the first octets of a client that had sent none when its connection
// was passed on, and puts them back. reason is why they may not go on: a client of HTTP or
// TLS has only waited; observed is true when they go on all the same.
func (t *opaqueTunnel) checkSilent() (reason rules.Reason, detail string, observed bool) {
	kind, first, err := redirect.ReadFirst(func(b []byte) (int, error) { return t.read(t.client, b) })
	t.client.unread(first)
	switch observed = t.x.req.effective.Mode == acl.Observe; {
	case len(first) == 0, kind == redirect.Other && err == nil: // an end is passed on
		return "", "", false
	case kind == redirect.Other:
		return rules.ReasonHandshake, "the client waited, and then sent what could be the beginning of a request", observed
	}
	return rules.ReasonHandshake, "the client waited until its connection was passed on, and then sent " + kind.String(), observed
}

// recordHandshake is the type of a TLS record that begins a connection (RFC
// 8446 §5.1).
const recordHandshake = 0x16

// readHello reads the TLS hello that c begins with, and puts it back; nil: there is none.
func readHello(c *tunnelConn) *clientHello {
	var octets []byte
	defer func() { c.unread(octets) }()
	for {
		h, want := helloOf(octets)
		if want == 0 {
			return h
		}
		octets = slices.Grow(octets, max(want, 1<<10))
		n, err := io.ReadAtLeast(c, octets[len(octets):cap(octets)], want)
		octets = octets[:len(octets)+n]
		if err != nil {
			return nil
		}
	}
}

// endText returns how a connection ended, without addresses.
func endText(err error) string {
	switch {
	case errors.Is(err, io.EOF):
		return "the client hung up"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "no more bytes in time"
	}
	return safetext.Error(err)
}
