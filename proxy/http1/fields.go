package http1

import (
	"maps"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"heed/internal/base/structured"
)

// This file edits the fields of messages that pass through the proxy, of whatever version:
// what belongs to one connection, Via, trailers, and the members of Proxy-Status that bear
// this proxy's name.

// hopByHop are the fields that belong to one connection (RFC 9110 §7.6.1) or
// to a proxy and its client (§11.7). Proxy-Authorization is among them:
// credentials for heed never reach a site.
var hopByHop = [...]string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Authentication-Info", "Te", "Transfer-Encoding", "Upgrade",
}

// RemoveHopByHop deletes from h what concerns one connection only, the fields
// that Connection names included (RFC 9110 §7.6.1). A WebSocket handshake and
// "TE: trailers" are put back: the proxy passes both on. User-Agent stays even
// when Connection names it: a request is judged under the name that the site
// sees.
func RemoveHopByHop(h http.Header) {
	webSocket := IsWebSocket(h)
	trailers := httpguts.HeaderValuesContainsToken(h["Te"], "trailers")
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			switch name = strings.TrimSpace(name); {
			case name == "", name == "keep-alive", strings.EqualFold(name, "User-Agent"): // Keep-Alive is deleted below
			default:
				h.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
	if trailers {
		h["Te"] = []string{"trailers"}
	}
	if webSocket {
		h["Connection"] = []string{"Upgrade"}
		h["Upgrade"] = []string{"websocket"}
	}
}

// IsWebSocket reports whether h is one side of a WebSocket handshake (RFC 6455
// §4).
func IsWebSocket(h http.Header) bool {
	return httpguts.HeaderValuesContainsToken(h["Connection"], "upgrade") && httpguts.HeaderValuesContainsToken(h["Upgrade"], "websocket")
}

// DropLength deletes from h, the header of an answer with a status, a Content-Length that
// clients whose HTTP has the major version may take for a promise of content: RFC 9110
// §8.6 has none for 1xx and 204, and several clients of HTTP/2 wait for that of a 304.
func DropLength(h http.Header, status, major int) {
	if status < 200 || status == http.StatusNoContent || status == http.StatusNotModified && major > 1 {
		delete(h, contentLength)
	}
}

// Via is the entry of this proxy in the Via field (RFC 9110 §7.6.3). Make it with
// NewVia; it is safe for concurrent use.
type Via struct {
	http10, http11, http2 []string // shared header values, never changed
}

// NewVia returns the entry of the proxy called name, which must be a token (RFC
// 9110 §5.6.2).
func NewVia(name string) Via {
	return Via{http10: []string{"1.0 " + name}, http11: []string{"1.1 " + name}, http2: []string{"2 " + name}}
}

// Add appends the proxy to the Via of h. major and minor are the version of the
// protocol that the message was received in.
func (v *Via) Add(h http.Header, major, minor int) {
	own := v.http11
	switch {
	case major >= 2:
		own = v.http2
	case minor == 0:
		own = v.http10
	}
	if before, ok := h["Via"]; ok {
		own = append(before[:len(before):len(before)], own...)
	}
	h["Via"] = own
}

// InVia reports whether the Via of h names the proxy called name.
func InVia(h http.Header, name string) bool {
	for _, line := range h["Via"] {
		for member := range strings.SplitSeq(line, ",") {
			if f := strings.Fields(member); len(f) >= 2 && f[1] == name {
				return true
			}
		}
	}
	return false
}

// notInTrailers are fields that decide how a message is taken, which must not
// follow its body (RFC 9110 §6.5.1). Credentials for heed and another name than
// the one judged must not travel there either.
var notInTrailers = [...]string{"Authorization", "Content-Encoding", "Content-Length", "Content-Range",
	"Content-Type", "Host", "Trailer", "User-Agent", "Via"}

// CleanTrailer deletes from h what must not follow a body. h may be nil.
func CleanTrailer(h http.Header) {
	for _, name := range hopByHop {
		delete(h, name)
	}
	for _, name := range notInTrailers {
		delete(h, name)
	}
}

// DropUnsent deletes the names that were announced and did not come: an
// HTTP/2 stream that waits for them would not end.
func DropUnsent(h http.Header) {
	maps.DeleteFunc(h, func(_ string, values []string) bool { return len(values) == 0 })
}

// ExpectTrailer makes r receive trailers that its head did not announce. net/http
// stores them in the request that it made, and the copies of r share the map.
func ExpectTrailer(r *http.Request) {
	if r.Trailer == nil && len(r.TransferEncoding) > 0 {
		r.Trailer = http.Header{}
	}
}

// AnnounceTrailer prepares resp, the answer to r, for the trailers that it
// promises. HTTP/1.1 sends them after chunks only: a client that accepts trailers
// gets them in place of the length, any other client the length (RFC 9110 §6.5.1).
func AnnounceTrailer(r *http.Request, resp *http.Response) {
	CleanTrailer(resp.Trailer)
	if r.ProtoMajor > 1 || resp.ContentLength < 0 || r.Method == http.MethodHead {
		return
	}
	if httpguts.HeaderValuesContainsToken(r.Header["Te"], "trailers") {
		delete(resp.Header, "Content-Length")
		resp.ContentLength = -1
		return
	}
	resp.Trailer = nil
}

// StripSpoofedStatus deletes the members of h's Proxy-Status that bear the name of
// this proxy: only heed's own answers carry it, which is how a client recognises
// them (RFC 9209 §2). Members of other proxies stay. A field that contains name and
// cannot be parsed is deleted as a whole.
func StripSpoofedStatus(h http.Header, name string) {
	lines, ok := h["Proxy-Status"]
	if !ok {
		return
	}
	field := strings.Join(lines, ", ") // a list may go over several lines
	if !strings.Contains(strings.ToLower(field), strings.ToLower(name)) {
		return
	}
	delete(h, "Proxy-Status")
	ours := func(member string) bool { return strings.EqualFold(strings.TrimSpace(member), name) }
	if text, err := structured.FilterList([]string{field}, ours); err == nil && text != "" {
		h["Proxy-Status"] = []string{text}
	}
}
