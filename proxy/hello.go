package proxy

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/cryptobyte"

	"heed/internal/base/safetext"
	"heed/internal/judge/acl"
	"heed/internal/judge/redirect"
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
		return rules.ReasonNotHTTP, "the octets in the tunnel are not TLS", q.effective.Mode == acl.Observe
	}
	_ = c.SetReadDeadline(time.Now().Add(q.settings.Limits.HandshakeTime))
	hello := readHello(c)
	if hello == nil {
		return rules.ReasonNotHTTP, "the octets in the tunnel begin like TLS and are none", q.effective.Mode == acl.Observe
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
		return "no more octets in time"
	}
	return safetext.Error(err)
}

// clientHello is a TLS ClientHello (RFC 8446 §4.1.2), read without the strictness of
// crypto/tls: servers, and other TLS libraries, accept hellos that crypto/tls rejects.
type clientHello struct {
	names []string // of the hosts in it, as they came; mostly one
	fault string   // in which it breaks its standard, and what to do about it; empty: none is known
}

// name returns the name of the host that the client wants; empty for none.
func (h *clientHello) name() string {
	if len(h.names) == 0 {
		return ""
	}
	return h.names[0]
}

// Of TLS messages.
const (
	recordHeader  = 5 // octets
	typeHello     = 1
	extServerName = 0
	typeHostName  = 0
	passUnjudged  = `; https = "tunnel" at the [[host]] of the site lets such clients pass unjudged`
)

// helloOf returns the hello that a TLS connection begins with; nil when octets are not the
// whole of one. want is how many octets have to follow at least; 0: no hello begins so.
func helloOf(octets []byte) (h *clientHello, want int) {
	var message []byte
	for rest := octets; ; {
		if len(rest) > 0 && rest[0] != recordHandshake || len(octets) >= maxHello {
			return nil, 0
		}
		if len(rest) < recordHeader {
			return nil, recordHeader - len(rest)
		}
		end := recordHeader + int(binary.BigEndian.Uint16(rest[3:]))
		if len(rest) < end {
			return nil, end - len(rest)
		}
		message = append(message, rest[recordHeader:end]...)
		rest = rest[end:]
		if len(message) > 0 && message[0] != typeHello {
			return nil, 0
		}
		var body cryptobyte.String
		if s := cryptobyte.String(message); s.Skip(1) && s.ReadUint24LengthPrefixed(&body) {
			return parseHello(body), 0
		}
	}
}

// parseHello reads the body of a ClientHello. It returns nil for one whose lengths do not
// agree.
func parseHello(s cryptobyte.String) *clientHello {
	var session, suites, compression, extensions cryptobyte.String
	if !s.Skip(2+32) || !s.ReadUint8LengthPrefixed(&session) || !s.ReadUint16LengthPrefixed(&suites) || !s.ReadUint8LengthPrefixed(&compression) {
		return nil
	}
	h := &clientHello{}
	if !s.Empty() && !s.ReadUint16LengthPrefixed(&extensions) {
		return nil
	}
	var seen []uint16
	for !extensions.Empty() {
		var id uint16
		var data cryptobyte.String
		if !extensions.ReadUint16(&id) || !extensions.ReadUint16LengthPrefixed(&data) {
			return nil
		}
		if slices.Contains(seen, id) {
			h.broken("has the extension " + strconv.Itoa(int(id)) + " twice (RFC 8446, section 4.2)")
		}
		if seen = append(seen, id); id == extServerName && !h.addNames(data) {
			return nil
		}
	}
	return h
}

// addNames adds the names of a server_name extension (RFC 6066 §3).
func (h *clientHello) addNames(data cryptobyte.String) bool {
	var list cryptobyte.String
	if !data.Empty() && !data.ReadUint16LengthPrefixed(&list) {
		return false
	}
	if list.Empty() {
		h.broken("has a server_name extension without a name (RFC 6066, section 3)")
	}
	for !list.Empty() {
		var kind uint8
		var name cryptobyte.String
		if !list.ReadUint8(&kind) || !list.ReadUint16LengthPrefixed(&name) {
			return false
		}
		switch {
		case kind != typeHostName:
			continue
		case name.Empty():
			h.broken("has an empty server name (RFC 6066, section 3)")
			continue
		case len(h.names) > 0:
			h.broken("names several hosts (RFC 6066, section 3)")
		case bytes.HasSuffix(name, []byte(".")):
			h.broken("names " + safetext.Quote(string(name)) + " with a final dot, which RFC 6066, section 3, forbids; write the host without the dot")
		}
		h.names = append(h.names, string(name))
	}
	return true
}

// broken notes the first fault.
func (h *clientHello) broken(how string) {
	h.fault = cmp.Or(h.fault, "the TLS hello "+how)
}

// dotted returns authority with the final dot that the client has written behind its host.
func (h *clientHello) dotted(authority string) string {
	name, final := strings.CutSuffix(h.name(), ".")
	host, port, found := strings.Cut(authority, ":")
	if !final || !strings.EqualFold(name, host) {
		return authority
	}
	if found {
		port = ":" + port
	}
	return host + "." + port
}
