package redirect

import (
	"bytes"
	"strings"
)

// Kind is what a client speaks on a connection.
type Kind uint8

// The kinds of connections. The zero value is Other.
const (
	Other Kind = iota // neither HTTP nor TLS
	TLS               // a TLS handshake
	HTTP1             // HTTP/1, or what a server could take for it
	HTTP2             // HTTP/2 with prior knowledge (RFC 9113 §3.3)
)

// String returns the name of k.
func (k Kind) String() string { return [...]string{"other", "TLS", "HTTP/1", "HTTP/2"}[k] }

const (
	preface      = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" // RFC 9113 §3.4
	maxMethod    = 64                                 // octets of a method
	maxEmptyLead = 16                                 // octets of empty lines before a request (RFC 9112 §2.2)

	// MaxFirst is how many octets Classify needs at most.
	MaxFirst = maxEmptyLead + maxMethod + len("  https://") + len(preface)
)

// methods are those that make a request line of anything that follows them: what a
// lenient server may answer is HTTP, however malformed.
var methods = map[string]bool{
	"GET": true, "HEAD": true, "POST": true, "PUT": true, "DELETE": true, "CONNECT": true,
	"OPTIONS": true, "TRACE": true, "PATCH": true,
}

// Classify returns what the first octets of a client are. more reports that further
// octets are needed; it is false once MaxFirst octets are there.
func Classify(first []byte) (k Kind, more bool) {
	if len(first) == 0 {
		return Other, true
	}
	if first[0] == 0x16 { // a handshake record, of version 3.x (RFC 8446 §5.1)
		if len(first) == 1 {
			return Other, true
		}
		return map[bool]Kind{true: TLS}[first[1] == 3], false
	}
	line := bytes.TrimLeft(first, "\r\n")
	if lead := len(first) - len(line); lead > maxEmptyLead {
		return Other, false
	} else if len(line) == 0 {
		return Other, true
	}
	end := bytes.IndexFunc(line, func(c rune) bool { return c >= 0x80 || !isTokenOctet(byte(c)) })
	switch {
	case end > maxMethod || end < 0 && len(line) > maxMethod:
		return Other, false
	case end < 0:
		return Other, true
	case methods[strings.ToUpper(string(line[:end]))]:
		return HTTP1, false
	case end == 0 || line[end] != ' ':
		return Other, false
	case string(line[:end]) == "PRI":
		return classifyPreface(line)
	}
	return classifyTarget(line[end+1:])
}

// classifyPreface classifies a line that begins as the preface of HTTP/2 does.
func classifyPreface(line []byte) (k Kind, more bool) {
	switch {
	case bytes.HasPrefix(line, []byte(preface)):
		return HTTP2, false
	case strings.HasPrefix(preface, string(line)):
		return Other, true
	}
	return HTTP1, false // it is refused as such
}

// classifyTarget classifies what follows a method that is not a usual one: an origin,
// an absolute or an asterisk form makes a request (RFC 9112 §3.2).
func classifyTarget(target []byte) (k Kind, more bool) {
	if len(target) == 0 {
		return Other, true
	}
	if target[0] == '/' || target[0] == '*' {
		return HTTP1, false
	}
	for _, scheme := range []string{"http://", "https://"} {
		n := min(len(target), len(scheme))
		if strings.EqualFold(string(target[:n]), scheme[:n]) {
			if n == len(scheme) {
				return HTTP1, false
			}
			more = true
		}
	}
	return Other, more
}

// isTokenOctet reports whether a method may contain c (RFC 9110 §5.6.2).
func isTokenOctet(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
