package rules

import "strings"

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
	pattern, ends := f.text[r.pattern:][:size], r.line&ruleEnds != 0
	if r.line&ruleWild == 0 {
		if len(target) < size || ends && len(target) > size || size > 0 && target[size-1] != pattern[size-1] {
			return false // rules of a site often differ at their ends alone
		}
		return target[:size] == pattern
	}
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
