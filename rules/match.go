package rules

import (
	"strings"
)

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

// What a match is. A pattern is pieces with a "*" between one and the next, and perhaps a
// "$" at its end. It matches a target that begins with the first piece and has the others
// behind it, in their order and without overlap; with "$" the last piece ends the target,
// else anything may follow (RFC 9309 §2.2.2, §2.2.3). Both are packed (octets.go), so that
// equal octets mean the same.
//
// The invariant: every piece so far is at the leftmost place that those before it leave, and
// target is what is behind the last of them. A piece further to the right would leave less
// for the others, so that a pattern which does not match from here does not match at all:
// no piece is tried at two places, and the time is that of one search through the target.
//
// Of the rules that match, better has the one that decides.

// matches reports whether a rule matches a packed target. What that costs is taken from
// steps.
func (f *file) matches(id uint32, target string, steps *int) bool {
	r := &f.rules[id]
	size := int(r.size)
	*steps -= stepsPerRule + size/octetsPerStep
	ends := r.line&ruleEnds != 0
	if r.line&ruleWild == 0 {
		if len(target) < size || ends && len(target) > size {
			return false
		}
		pattern := f.part(int(r.pattern), size, steps)
		return (size == 0 || target[size-1] == pattern[size-1]) && target[:size] == pattern // rules of a site often differ at their ends alone
	}
	pattern := f.pattern(r)
	first := strings.IndexByte(pattern, r.separator())
	return strings.HasPrefix(target, pattern[:first]) &&
		matchWild(pattern[first:], r.separator(), ends, target[first:], steps)
}

// matchWild reports whether what follows the first piece of a pattern, from its separator on,
// matches the rest of a target.
func matchWild(pattern string, separator byte, ends bool, target string, steps *int) bool {
	for { // the invariant holds here
		pattern = pattern[1:]
		next := strings.IndexByte(pattern, separator)
		if next < 0 {
			break
		}
		at := strings.Index(target, pattern[:next])
		if at < 0 {
			*steps -= searchSteps(next, len(target))
			return false
		}
		*steps -= searchSteps(next, at)
		target = target[at+next:]
		pattern = pattern[next:]
	}
	if ends {
		return strings.HasSuffix(target, pattern)
	}
	*steps -= searchSteps(len(pattern), len(target))
	return strings.Contains(target, pattern)
}

// better reports whether rule a decides rather than rule b when both match; b
// is -1 when there is none. The longer one is more specific (RFC 9309
// §2.2.2); among equals Allow wins, and then the first line.
func (f *file) better(a, b int) bool {
	if b < 0 {
		return true
	}
	x, y := &f.rules[a], &f.rules[b]
	if x.length != y.length {
		return x.length > y.length
	}
	if x.allows() != y.allows() {
		return x.allows() != f.tieRefuses
	}
	return a < b
}

// order compares rules for a sort that has the better first.
func (f *file) order(a, b uint32) int {
	switch {
	case a == b:
		return 0
	case f.better(int(a), int(b)):
		return -1
	}
	return 1
}

// searchSteps returns what it costs to search octets for a piece: strings.Index takes
// twice as long for one of more than 63 octets, and far less for a single one.
func searchSteps(piece, octets int) int {
	switch {
	case piece > 63:
		octets *= 2
	case piece == 1:
		octets /= 8
	}
	return stepsPerPiece + piece + octets
}

// firstPiece returns what of the pattern of a rule is before its first wildcard.
func (f *file) firstPiece(id uint32) string {
	r := &f.rules[id]
	text := f.pattern(r)
	if r.line&ruleWild != 0 {
		text = text[:strings.IndexByte(text, r.separator())]
	}
	return text
}

// namesReading reports whether a rule without wildcards matches a reading of a target when its own
// escapes are read away as those of the target were.
func (f *file) namesReading(s *judging, id int, name, target string) bool {
	r := &f.rules[id]
	pattern := f.pattern(r)
	s.steps -= len(pattern)
	if name == readV5 {
		s.rule = decodeAgain(s.rule[:0], pattern)
		pattern = view(s.rule)
	}
	if len(target) < len(pattern) || r.line&ruleEnds != 0 && len(target) != len(pattern) {
		return false
	}
	for i := range len(pattern) {
		if c := target[i]; c != pattern[i] && !readAs(pattern[i], c) {
			return false
		}
	}
	return true
}
