package rules

import "strings"

// Rules and targets are compared in one canonical form (RFC 9309 §2.2.2):
// escapes of unreserved octets are decoded, every other octet that is not
// structure counts as escaped, in upper case. That form is kept packed: an
// escaped octet is the octet itself, one byte instead of three. Only where the
// escaped and the bare octet differ ("%2F" is not "/") the escaped one has a
// code of its own, taken from the bytes that no UTF-8 text contains. Octets
// from that range become three bytes, none of which stands for anything else,
// so that a search in packed text never hits the middle of a code.
//
// In a query "/" and a further "?" are data (RFC 3986 §3.4): bare or escaped,
// they are packed as escaped.
const (
	codeStar  byte = 0xF5 // a wildcard, in a packed pattern only
	codeSlash byte = 0xF6 // "%2F", and "/" in a query
	codeQuery byte = 0xF7 // "%3F", and "?" in a query
	codeAnd   byte = 0xF8 // "%26"
	codeEqual byte = 0xF9 // "%3D"
	codeLead  byte = 0xFA // leads two of the codes from codeTrail on
	codeTrail byte = 0xFB // 0xFB to 0xFE

	codeFirst = codeStar // every byte from here on is a code
)

// appendOctet packs one octet that is data.
func appendOctet(dst []byte, c byte) []byte {
	if c < codeFirst {
		return append(dst, c)
	}
	c -= codeFirst
	return append(dst, codeLead, codeTrail+c>>2, codeTrail+c&3)
}

// appendEscaped packs an octet that stood as an escape.
func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '/':
		return append(dst, codeSlash)
	case '?':
		return append(dst, codeQuery)
	case '&':
		return append(dst, codeAnd)
	case '=':
		return append(dst, codeEqual)
	}
	return appendOctet(dst, c)
}

// appendBare packs an octet that stood bare.
func appendBare(dst []byte, c byte, inQuery bool) []byte {
	if inQuery && (c == '/' || c == '?') {
		return appendEscaped(dst, c)
	}
	return appendOctet(dst, c)
}

// appendTarget packs a path and query as they are sent.
func appendTarget(dst []byte, target string) []byte {
	inQuery := false
	for i := 0; i < len(target); i++ {
		if v, ok := unescape(target[i:]); ok {
			dst = appendEscaped(dst, v)
			i += 2
			continue
		}
		dst = appendBare(dst, target[i], inQuery)
		inQuery = inQuery || target[i] == '?'
	}
	return dst
}

// ordinary are the octets that mean the same in every packing and reading.
var ordinary = func() (set [256]bool) {
	for c := range set {
		set[c] = c < int(codeFirst) && strings.IndexByte(`%?/\;&=`, byte(c)) < 0
	}
	return set
}()

// plain reports whether target is its own packed form and has, in its path, no
// other reading than itself; all is set when the readings v4 and v5 count.
func plain(target string, all bool) bool {
	for i := 0; i < len(target); i++ {
		c := target[i]
		if ordinary[c] {
			continue
		}
		switch {
		case c == '?':
			return plainQuery(target[i+1:])
		case c == '%', c == '\\', c == '&', c == '=', c >= codeFirst, c == ';' && all:
			return false
		case c == '/' && i+1 < len(target) && (target[i+1] == '/' || target[i+1] == '.'):
			return false
		}
	}
	return true
}

// plainQuery reports whether a query is its own packed form.
func plainQuery(query string) bool {
	for i := range len(query) {
		if c := query[i]; !ordinary[c] && strings.IndexByte(`\;&=`, c) < 0 {
			return false
		}
	}
	return true
}

// unescape reads "%" and two hexadecimal digits at the start of s.
func unescape(s string) (octet byte, ok bool) {
	if len(s) < 3 || s[0] != '%' {
		return 0, false
	}
	hi, lo := hexValue(s[1]), hexValue(s[2])
	if hi|lo > 15 {
		return 0, false
	}
	return hi<<4 | lo, true
}

// hexValue returns the value of a hexadecimal digit, and 255 for any other octet.
func hexValue(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// unreserved are the octets that mean the same bare and escaped (RFC 3986 §2.3).
var unreserved = func() (set [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~") {
		set[c] = true
	}
	return set
}()

// width is how many octets c takes in the canonical form.
func width(c byte, escaped, inQuery bool) int {
	if unreserved[c] {
		return 1
	}
	if !escaped && (c == '&' || c == '=' || !inQuery && (c == '/' || c == '?')) {
		return 1
	}
	return 3
}
