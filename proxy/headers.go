package proxy

import (
	"net/http"
	"strings"
)

// hopByHop are the fields that belong to one connection (RFC 9110 §7.6.1) or
// to a proxy and its client (§11.7). Proxy-Authorization is among them:
// credentials for heed never reach a site.
var hopByHop = [...]string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Authentication-Info", "Te", "Transfer-Encoding", "Upgrade",
}

// removeHopByHop deletes from h what concerns one connection only, the fields
// that Connection names included. A WebSocket handshake and "TE: trailers"
// are put back: the proxy passes both on. User-Agent stays whatever Connection
// says: a request is judged under the name that the site sees.
func removeHopByHop(h http.Header) {
	webSocket := isWebSocket(h)
	trailers := hasToken(h["Te"], "trailers")
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" && !strings.EqualFold(name, "User-Agent") {
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

// isWebSocket reports whether h is one side of a WebSocket handshake.
func isWebSocket(h http.Header) bool {
	return hasToken(h["Connection"], "upgrade") && hasToken(h["Upgrade"], "websocket")
}

// hasToken reports whether the comma-separated lists in lines hold token.
func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for t := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(t), token) {
				return true
			}
		}
	}
	return false
}

// addVia appends this proxy to h's Via (RFC 9110 §7.6.3); major and minor are
// the version of the protocol the message was received in.
func (p *Proxy) addVia(h http.Header, major, minor int) {
	own := p.viaHTTP11
	switch {
	case major >= 2:
		own = p.viaHTTP2
	case minor == 0:
		own = p.viaHTTP10
	}
	if before, ok := h["Via"]; ok {
		own = append(before[:len(before):len(before)], own...)
	}
	h["Via"] = own
}

// passed reports whether the proxy called name stands in a Via list already.
func passed(via []string, name string) bool {
	for _, line := range via {
		for member := range strings.SplitSeq(line, ",") {
			f := strings.Fields(member)
			if len(f) >= 2 && f[1] == name {
				return true
			}
		}
	}
	return false
}
