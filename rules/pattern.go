package rules

// rule is an Allow or Disallow line, or one path of it. Its pattern is part of
// the file's text: literal pieces with "any run of octets" between one and the
// next. It either is the value as the site wrote it, when that is its own
// packed form, and "*" is the separator; or it was packed, and codeStar is.
// A final "$" is not part of it.
type rule struct {
	pattern uint32 // where the pattern begins
	line    uint32 // number of the line, with flags above it
	size    uint16 // of the pattern
	length  uint16 // octets of the canonical form, wildcards included
}

// The flags in rule.line.
const (
	ruleAllows = 1 << 31
	ruleEnds   = 1 << 30 // bound to the end of the target
	ruleWild   = 1 << 29 // has more than one piece
	rulePacked = 1 << 28 // packed: the position of its line is before the pattern
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
// a final bare "$" are wildcards, a "$" elsewhere is itself.
type compiler struct {
	packed []byte // the packed form, without a final "$"
	plain  bool   // it is the path as written, "*" for codeStar
	flags  uint32
	length int // octets of the canonical form, wildcards included
	stars  int
}

// compile sets the fields of c for a path.
func (c *compiler) compile(path string, d differences) {
	*c = compiler{packed: c.packed[:0], plain: true}
	if end := len(path) - 1; !d.literal && end >= 0 && path[end] == '$' {
		c.flags |= ruleEnds
		c.length++
		path = path[:end]
	}
	inQuery := false
	for i := 0; i < len(path); i++ {
		run := i
		for i < len(path) && (unreserved[path[i]] || path[i] == '/' && !inQuery) { // nearly all
			i++
		}
		c.packed = append(c.packed, path[run:i]...)
		c.length += i - run
		if i == len(path) {
			break
		}
		at := len(c.packed)
		v, escaped := unescape(path[i:])
		switch {
		case path[i] == '*' && !d.literal:
			c.packed = append(c.packed, codeStar)
			c.flags |= ruleWild
			c.length++
			c.stars++
			continue
		case d.asSent && escaped:
			c.packed = appendEscape(c.packed, v)
		case d.asSent && !legal[path[i]]:
			c.packed = appendEscape(c.packed, path[i])
		case d.asSent:
			c.packed = append(c.packed, path[i])
		case escaped:
			c.packed = appendEscaped(c.packed, v)
		default:
			c.packed = appendBare(c.packed, path[i], inQuery)
			inQuery = inQuery || path[i] == '?'
		}
		if c.packed[at] != path[i] || escaped || len(c.packed) > at+1 {
			c.plain = false
		}
		if d.asSent {
			c.length += len(c.packed) - at
		} else {
			c.length += canonicalWidth(c.packed[at])
		}
		if escaped {
			i += 2
		}
	}
}
