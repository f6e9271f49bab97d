package rules

// unreserved are the octets that mean the same escaped and not (RFC 3986 §2.3).
func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

const upperHex = "0123456789ABCDEF"

func fromHex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// appendCanonical appends the form in which rules and targets are compared
// (RFC 9309 §2.2.2): escaped unreserved octets decoded, everything else
// escaped with upper-case digits, but the "/" of the path, the first "?", "&"
// and "=". In a rule, operators are kept: every bare "*", and "$" at the end.
func appendCanonical(dst []byte, s string, rule bool) []byte {
	query := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%' && i+2 < len(s):
			hi, ok1 := fromHex(s[i+1])
			lo, ok2 := fromHex(s[i+2])
			if !ok1 || !ok2 {
				dst = append(dst, "%25"...)
				continue
			}
			i += 2
			if c = hi<<4 | lo; unreserved(c) {
				dst = append(dst, c)
			} else {
				dst = append(dst, '%', upperHex[hi], upperHex[lo])
			}
		case unreserved(c), c == '&', c == '=', c == '/' && !query:
			dst = append(dst, c)
		case c == '?' && !query:
			query = true
			dst = append(dst, c)
		case rule && (c == '*' || c == '$' && i == len(s)-1):
			dst = append(dst, c)
		default:
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}

// matches reports whether a canonical pattern matches a canonical target from
// its first octet. "*" stands for any run of octets, a final "$" for the end.
func matches(pattern, target string) bool {
	anchored := len(pattern) > 0 && pattern[len(pattern)-1] == '$'
	if anchored {
		pattern = pattern[:len(pattern)-1]
	}
	p, t, star, mark := 0, 0, -1, 0
	for {
		switch {
		case p == len(pattern) && (!anchored || t == len(target)):
			return true
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && t < len(target) && pattern[p] == target[t]:
			p++
			t++
		case star >= 0 && mark < len(target):
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
}
