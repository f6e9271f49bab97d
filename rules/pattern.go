package rules

import "strings"

// rule is an Allow or Disallow line, or one path of it. Its pattern is a place
// in the engine's text: literal pieces with "any run of octets" between one
// and the next. It either is the value as the site wrote it, when that is its
// own packed form, and "*" is the separator; or it was packed, and codeStar is.
// A final "$" is not part of it.
type rule struct {
	pattern uint32 // where the pattern begins
	line    uint32 // number of the line, with flags above it
	size    uint16 // of the pattern
	length  uint16 // octets of the canonical form, operators included
}

// The flags in rule.line.
const (
	ruleAllows = 1 << 31
	ruleEnds   = 1 << 30 // bound to the end of the target
	ruleWild   = 1 << 29 // has more than one piece
	rulePacked = 1 << 28 // packed: before the pattern lies where its line is
	ruleLine   = 1<<28 - 1
)

func (r *rule) allows() bool { return r.line&ruleAllows != 0 }

// separator returns the octet between the pieces of r's pattern.
func (r *rule) separator() byte {
	if r.line&rulePacked != 0 {
		return codeStar
	}
	return '*'
}

// compiler packs the paths of rules (RFC 9309 §2.2.2, §2.2.3). A bare "*" and
// a final bare "$" are operators, a "$" elsewhere is itself.
type compiler struct {
	asSent, literal bool

	plain  bool // the path, without a final "$", is its own packed form
	flags  uint32
	length int
	stars  int
}

// measure finds everything about a path but its packed form.
func (c *compiler) measure(path string) {
	c.plain = true
	inQuery := false
	for i := 0; i < len(path); i++ {
		v := path[i]
		switch {
		case unreserved[v]:
			c.length++
			continue
		case v == '%':
			c.plain = false
			if octet, ok := unescape(path[i:]); ok {
				c.length += c.width(octet, true, inQuery)
				i += 2
				continue
			}
		case v == '*' && !c.literal:
			c.length++
			c.stars++
			c.flags |= ruleWild
			continue
		case v == '$' && i == len(path)-1 && !c.literal:
			c.length++
			c.flags |= ruleEnds
			continue
		case v == '*', v >= codeFirst, inQuery && (v == '/' || v == '?'), c.asSent && !legal[v]:
			c.plain = false
		}
		c.length += c.width(v, false, inQuery)
		inQuery = inQuery || v == '?'
	}
}

// width is how many octets v takes in the form that is compared.
func (c *compiler) width(v byte, escaped, inQuery bool) int {
	switch {
	case !c.asSent:
		return width(v, escaped, inQuery)
	case escaped || !legal[v]:
		return 3
	}
	return 1
}

// pack returns the packed form of a path that was measured.
func (c *compiler) pack(path string) string {
	if c.flags&ruleEnds != 0 {
		path = path[:len(path)-1]
	}
	dst := make([]byte, 0, len(path))
	inQuery := false
	for i := 0; i < len(path); i++ {
		v, escaped := unescape(path[i:])
		switch {
		case escaped && c.asSent:
			dst = append(dst, '%', upper(path[i+1]), upper(path[i+2]))
		case escaped:
			dst = appendEscaped(dst, v)
		case path[i] == '*' && !c.literal:
			dst = append(dst, codeStar)
		case c.asSent && !legal[path[i]]:
			dst = append(dst, '%', hexDigits[path[i]>>4], hexDigits[path[i]&15])
		case c.asSent:
			dst = append(dst, path[i])
		default:
			dst = appendBare(dst, path[i], inQuery)
			inQuery = inQuery || path[i] == '?'
		}
		if escaped {
			i += 2
		}
	}
	return string(dst)
}

const hexDigits = "0123456789ABCDEF"

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

// matchWild reports whether what follows the first piece of a pattern, from
// its separator on, matches the rest of a target. Its time is linear: the
// leftmost place for a piece leaves the most room for those after it.
func matchWild(pattern string, separator byte, ends bool, target string) bool {
	for {
		pattern = pattern[1:]
		next := strings.IndexByte(pattern, separator)
		if next < 0 {
			break
		}
		at := strings.Index(target, pattern[:next])
		if at < 0 {
			return false
		}
		target = target[at+next:]
		pattern = pattern[next:]
	}
	if ends {
		return strings.HasSuffix(target, pattern)
	}
	return strings.Contains(target, pattern)
}
