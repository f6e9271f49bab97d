package rules

// Rules and targets are compared in one canonical form (RFC 9309 §2.2.2):
// escapes of unreserved octets are decoded, every other octet that is not
// structure counts as escaped, in upper case. That form is kept packed: an
// escaped octet is the octet itself, one octet instead of three. Only where the
// escaped and the bare octet differ ("%2F" is not "/") the escaped one has a
// separate code, taken from the octets that no UTF-8 text contains. Octets
// from that range become three octets, none of which means anything else,
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
	codeLead  byte = 0xFA // begins a pair of the codes from codeTrail on
	codeTrail byte = 0xFB // 0xFB to 0xFE

	codeFirst = codeStar // every octet from here on is a code
)

// appendOctet packs one octet that is data.
func appendOctet(dst []byte, c byte) []byte {
	if c < codeFirst {
		return append(dst, c)
	}
	c -= codeFirst
	return append(dst, codeLead, codeTrail+c>>2, codeTrail+c&3)
}

// appendEscaped packs an octet that was written as an escape.
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

// appendBare packs an octet that was written bare.
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
		c := target[i]
		if c < codeFirst && c != '%' && c != '?' && c != '/' { // nearly all
			dst = append(dst, c)
			continue
		}
		if v, ok := unescape(target[i:]); ok {
			dst = appendEscaped(dst, v)
			i += 2
			continue
		}
		dst = appendBare(dst, c, inQuery)
		inQuery = inQuery || c == '?'
	}
	return dst
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

// isEscape reports whether s begins with an escape.
func isEscape(s string) bool {
	_, ok := unescape(s)
	return ok
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

// canonicalWidth returns how many octets the packed octet c, or the code that c
// begins, takes in the canonical form.
func canonicalWidth(c byte) int {
	if c == '/' || c == '?' || c == '&' || c == '=' || unreserved[c] {
		return 1
	}
	return len("%00")
}

// appendCanonical appends the canonical form of a packed text without wildcards.
func appendCanonical(dst []byte, packed string) []byte {
	for i := 0; i < len(packed); i++ {
		c := packed[i]
		switch {
		case canonicalWidth(c) == 1:
			dst = append(dst, c)
			continue
		case c == codeLead:
			c = codeFirst + (packed[i+1]-codeTrail)<<2 + (packed[i+2] - codeTrail)
			i += 2
		case c >= codeFirst:
			c = "/?&="[c-codeSlash]
		}
		dst = appendEscape(dst, c)
	}
	return dst
}

// appendEscape appends the percent escape of an octet.
func appendEscape(dst []byte, c byte) []byte {
	const digits = "0123456789ABCDEF"
	return append(dst, '%', digits[c>>4], digits[c&15])
}
