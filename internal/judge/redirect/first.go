package redirect

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"heed/rules"
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
	maxEmptyLead = 16                                 // octets of empty lines before a request (RFC 9112 §2.2)

	// MaxFirst is how many octets Classify needs at most.
	MaxFirst = 1024
)

// methods are those that make a request line of anything that follows them: what a
// lenient server may answer is HTTP, however malformed. PROXY is no method; servers that
// accept such a line (the PROXY protocol) expect a request or TLS after it.
var methods = map[string]bool{
	"GET": true, "HEAD": true, "POST": true, "PUT": true, "DELETE": true, "CONNECT": true,
	"OPTIONS": true, "TRACE": true, "PATCH": true, "PROXY": true,
}

// Classify returns what the first octets of a client are. more reports that further
// octets are needed; it is false once MaxFirst octets are there.
//
// The result is Other only for what no web server takes for a request or a TLS hello:
// in doubt it is HTTP1 or TLS, where heed refuses what it cannot read.
func Classify(first []byte) (k Kind, more bool) {
	if len(first) == 0 {
		return Other, true
	}
	first = first[:min(len(first), MaxFirst)]
	switch c := first[0]; {
	case c == 0x16: // a handshake record, whatever its version (RFC 8446 §5.1)
		return TLS, false
	case c >= 0x14 && c <= 0x18: // a record of another type, which some servers skip
		k, more = classifyTLS(first, 1, 3)
	case c&0x80 != 0: // perhaps a hello of SSL 2.0, which OpenSSL still takes for one of TLS
		k, more = classifyTLS(first, 2, 1, 3)
	case c >= '\t' && c <= '\r', c == ' ':
		return classifyBlank(first)
	case isVisible(c):
		return classifyLine(first)
	}
	if k == TLS || more {
		return k, more
	}
	return classifyLed(first)
}

// classifyLed classifies what begins with blanks that RFC 9112 does not name, or with other
// octets that are not visible ASCII. Other protocols begin with any of them, so that what
// follows the blanks must be a method.
func classifyLed(first []byte) (k Kind, more bool) {
	line := first[until(first, func(c byte) bool { return !rules.IsBlank(c) }):]
	for method := range methods {
		n := min(len(line), len(method))
		switch {
		case !strings.EqualFold(string(line[:n]), method[:n]):
		case n == len(line):
			return inDoubt(first)
		case isNoTokenOctet(line[n]):
			return HTTP1, false
		}
	}
	return Other, false
}

// classifyTLS returns TLS when the octets of first from an index on are those wanted.
func classifyTLS(first []byte, at int, want ...byte) (k Kind, more bool) {
	for i, w := range want {
		switch {
		case at+i >= len(first):
			return Other, true
		case first[at+i] != w:
			return Other, false
		}
	}
	return TLS, false
}

// classifyBlank classifies what begins with blanks: servers skip empty lines before a
// request, and some other blanks, and no other protocol begins so.
func classifyBlank(first []byte) (k Kind, more bool) {
	if lead := EmptyLines(first); lead == len(first) && lead <= maxEmptyLead {
		return Other, true
	}
	return HTTP1, false
}

// EmptyLines returns the number of octets of the empty lines that first begins with.
func EmptyLines(first []byte) int {
	return len(first) - len(bytes.TrimLeft(first, "\r\n"))
}

// classifyLine classifies what begins with a visible character.
func classifyLine(first []byte) (k Kind, more bool) {
	if strings.HasPrefix(preface, string(first[:min(len(first), len(preface))])) {
		return map[bool]Kind{true: HTTP2}[len(first) >= len(preface)], len(first) < len(preface)
	}
	if end := until(first, isNoTokenOctet); end < len(first) && methods[strings.ToUpper(string(first[:end]))] {
		return HTTP1, false
	}
	end := until(first, func(c byte) bool { return rules.IsControl(c) || rules.IsBlank(c) })
	switch {
	case end == len(first):
		return inDoubt(first)
	case !rules.IsBlank(first[end]), first[end] == '\n':
		return Other, false
	}
	target := first[end:]
	return classifyTarget(first, target[until(target, func(c byte) bool { return c == '\n' || !rules.IsBlank(c) }):])
}

// classifyTarget classifies a line by what follows a word that is not a usual method: an
// origin, an absolute or an asterisk form makes a request (RFC 9112 §3.2), and so does a
// version of HTTP.
func classifyTarget(first, target []byte) (k Kind, more bool) {
	if len(target) == 0 {
		return inDoubt(first)
	}
	if target[0] == '/' || target[0] == '*' {
		return HTTP1, false
	}
	line, _, ended := bytes.Cut(target, []byte("\n"))
	upper := bytes.ToUpper(line)
	switch {
	case bytes.HasPrefix(upper, []byte("HTTP://")), bytes.HasPrefix(upper, []byte("HTTPS://")), bytes.Contains(upper, []byte("HTTP/")):
		return HTTP1, false
	case ended:
		return Other, false
	}
	return inDoubt(first)
}

// inDoubt is the result for a line that has not ended.
func inDoubt(first []byte) (k Kind, more bool) {
	if len(first) < MaxFirst {
		return Other, true
	}
	return HTTP1, false
}

// until returns the index of the first octet of text that ends it; len(text): there is none.
func until(text []byte, ends func(byte) bool) int {
	if i := slices.IndexFunc(text, ends); i >= 0 {
		return i
	}
	return len(text)
}

// isVisible reports whether c is a visible character of ASCII.
func isVisible(c byte) bool { return c > ' ' && c < 0x7f }

// isNoTokenOctet reports whether no method contains c (RFC 9110 §5.6.2).
func isNoTokenOctet(c byte) bool { return !httpguts.IsTokenRune(rune(c)) }

// ReadFirst reads until Classify has a result, and returns it with the octets that were
// read. On an error, there are not enough of them; the result is then that of the octets
// that came.
func ReadFirst(read func([]byte) (int, error)) (k Kind, first []byte, err error) {
	first = make([]byte, 0, MaxFirst)
	for {
		n, err := read(first[len(first):cap(first)])
		first = first[:len(first)+n]
		k, more := Classify(first)
		switch {
		case !more:
			return k, first, nil
		case err != nil:
			return k, first, err
		}
	}
}

// ServerFirst reports whether a port is that of a protocol in which the server speaks
// first: its clients send nothing before.
func ServerFirst(port uint16) bool {
	return slices.Contains([]uint16{21, 22, 25, 110, 119, 143, 587, 3306}, port)
}
