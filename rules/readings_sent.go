package rules

import "strings"

// A profile that compares targets as they are sent needs more than that: with one
// escape, or one "x/..", a client would get the page of a refused target. So a
// target is read in these forms, each in its readings v1 to v4 too, and
// refused when one of them is refused. The first is the target as sent.
const (
	formSent    = iota // nothing changed but the case of hexadecimal digits
	formDecoded        // escapes of unreserved octets decoded, illegal octets escaped
	formBare           // escapes of reserved octets decoded too, except those of structure
	allForms
)

// readV0 names the readings of formDecoded and formBare.
const readV0 = "v0"

// sentReadings calls judge with each reading of a target that is compared as sent, and is
// called name, until judge returns false.
func (s *scratch) sentReadings(name, target string, judge func(name, target string) bool) bool {
	for form := range allForms {
		s.target = appendForm(s.target[:0], target, form)
		if form > formSent && view(s.target) == view(s.last) {
			continue
		}
		s.last = append(s.last[:0], s.target...)
		if !s.sentForm(view(s.target), name, judge) {
			return false
		}
		name = readV0
	}
	return true
}

// sentForm judges one form in all of its readings.
func (s *scratch) sentForm(target, name string, judge func(name, target string) bool) bool {
	if !judge(name, target) {
		return false
	}
	path, _, _ := strings.Cut(target, "?")
	query := target[len(path):]
	s.bare = append(s.bare[:0], query...) // a form has its query in one way
	s.resolved = s.resolved[:0]
	s.slashEnds = strings.HasSuffix(path, "/")
	s.path = bareDots(append(s.path[:0], path...))
	unclear := strings.Contains(view(s.path), "//") || strings.Contains(view(s.path), "/.")
	if unclear && !s.judgeResolved(view(s.path), query, readV1, readV2, judge) {
		return false
	}
	for _, separators := range [...]string{"/\\", "/", "\\"} {
		s.folded = foldEscapes(s.folded[:0], path, separators)
		if view(s.folded) == path {
			continue
		}
		s.folded = bareDots(s.folded)
		if !s.judgeResolved(view(s.folded), query, readV3, readV3, judge) {
			return false
		}
	}
	return s.sentParameters(path, query, judge)
}

// sentParameters judges a path that is compared as sent without the parameters of segments
// that are empty or dots then, as judgeCut does.
func (s *scratch) sentParameters(path, query string, judge func(name, target string) bool) bool {
	if semicolon(path) < 0 {
		return true
	}
	s.cut = bareDots(cutSentDots(s.cut[:0], path))
	for _, base := range [...]string{path, view(s.cut)} {
		for _, separators := range [...]string{"", "/\\", "/", "\\"} {
			s.folded = foldEscapes(s.folded[:0], base, separators)
			s.again = bareDots(cutSentDots(s.again[:0], view(s.folded)))
			s.folded = bareDots(s.folded)
			if !s.judgeResolved(view(s.folded), query, readV4, readV4, judge) || !s.judgeResolved(view(s.again), query, readV4, readV4, judge) {
				return false
			}
		}
	}
	return true
}

// semicolon returns where the first ";" of text is, bare or escaped; -1: nowhere.
func semicolon(text string) int {
	for i := range len(text) {
		if text[i] == ';' || prefixFold(text[i:], "%3b") {
			return i
		}
	}
	return -1
}

// cutSentDots appends path without the parameters of the segments that are empty or dots
// then.
func cutSentDots(dst []byte, path string) []byte {
	for i := 0; i < len(path); {
		end := i + 1
		for end < len(path) && path[end] != '/' {
			end++
		}
		segment := path[i+1 : end]
		if at := semicolon(segment); at >= 0 && (at == 0 || dots(segment[:at]) == 1 || dots(segment[:at]) == 2) {
			segment = segment[:at]
		}
		dst = append(append(dst, path[i]), segment...)
		i = end
	}
	return dst
}

// legal are the octets that may be bare in a URI (RFC 3986 §2.2, §2.3).
var legal = func() (set [256]bool) {
	for c := range set {
		set[c] = unreserved[c] || reserved(byte(c))
	}
	return set
}()

func reserved(c byte) bool { return strings.IndexByte(":/?#[]@!$&'()*+,;=", c) >= 0 }

// appendForm appends a target in one of the forms.
func appendForm(dst []byte, target string, form int) []byte {
	inQuery := false
	for i := 0; i < len(target); i++ {
		c := target[i]
		v, escaped := unescape(target[i:])
		switch {
		case escaped && decodes(v, form, inQuery):
			dst = append(dst, v)
		case escaped:
			dst = appendEscape(dst, v)
		case form == formSent || legal[c]:
			dst = append(dst, c)
		default:
			dst = appendEscape(dst, c)
		}
		if escaped {
			i += 2
		} else {
			inQuery = inQuery || c == '?'
		}
	}
	return dst
}

// decodes reports whether a form has the escape of v decoded.
func decodes(v byte, form int, inQuery bool) bool {
	switch {
	case form == formSent:
		return false
	case unreserved[v]:
		return true
	case form == formDecoded || v == '#':
		return false
	case v == '/' || v == '?':
		return inQuery
	case v == '&' || v == '=':
		return !inQuery
	}
	return reserved(v)
}

// foldEscapes appends path with the separators, escaped and bare, as "/".
func foldEscapes(dst []byte, path, separators string) []byte {
	for i := 0; i < len(path); i++ {
		c := path[i]
		if v, ok := unescape(path[i:]); ok && strings.IndexByte(separators, v) >= 0 {
			c = '/'
			i += 2
		} else if strings.IndexByte(separators, c) >= 0 {
			c = '/'
		}
		dst = append(dst, c)
	}
	return dst
}

// bareDots writes the dot segments of path without escapes, in place.
func bareDots(path []byte) []byte {
	dst := path[:0]
	for i := 0; i < len(path); {
		end := i + 1
		for end < len(path) && path[end] != '/' {
			end++
		}
		if n := dots(view(path[i+1 : end])); n == 1 || n == 2 {
			dst = append(dst, "/.."[:1+n]...)
		} else {
			dst = append(dst, path[i:end]...)
		}
		i = end
	}
	return dst
}

// dots returns how many dots a segment is made of, bare or escaped; 0 when it
// is made of anything else.
func dots(segment string) (n int) {
	for segment != "" {
		switch {
		case segment[0] == '.':
			segment = segment[1:]
		case prefixFold(segment, "%2e"):
			segment = segment[3:]
		default:
			return 0
		}
		n++
	}
	return n
}
