package proxy

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/cryptobyte"

	"heed/internal/safetext"
)

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
	recordHeader   = 5 // octets
	typeHello      = 1
	extServerName  = 0
	typeHostName   = 0
	helloNotPassed = `; https = "tunnel" at the [[host]] of the site lets such clients pass unjudged`
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
			h.broken("has the extension " + strconv.Itoa(int(id)) + " twice (RFC 8446 §4.2)")
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
		h.broken("has a server_name extension without a name (RFC 6066 §3)")
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
			h.broken("has an empty server name (RFC 6066 §3)")
			continue
		case len(h.names) > 0:
			h.broken("names several hosts (RFC 6066 §3)")
		case bytes.HasSuffix(name, []byte(".")):
			h.broken("names " + safetext.Quote(string(name)) + " with a final dot, which RFC 6066 §3 forbids; write the host without the dot")
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
