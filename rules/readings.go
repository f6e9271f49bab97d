package rules

import (
	"strings"
	"unsafe"
)

// The readings of a target. Servers resolve dot segments, doubled slashes and
// escaped separators in different ways, so that one page can be asked for in
// many spellings. A target that is ambiguous in this sense is judged in every
// plausible reading, and refused when one of them is refused; what is sent on
// stays as it was. Readings concern the path only.
//
//	v1  dot segments removed (RFC 3986 §5.2.4)
//	v2  slash runs merged, before or after that
//	v3  "%2F", "%5C" and "\" read as "/", then all of v1 and v2
//	v4  v3 with ";" and what follows cut from every segment
//	v5  escapes decoded once more, then v3
const (
	readV1 = "v1"
	readV2 = "v2"
	readV3 = "v3"
	readV4 = "v4"
	readV5 = "v5"
)

// ambiguous reports whether a packed path has another reading than itself
// among v1 to v3, or v1 to v5 when all is set.
func ambiguous(path string, all bool) bool {
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case '\\', codeSlash:
			return true
		case '/':
			if i+1 < len(path) && (path[i+1] == '/' || path[i+1] == '.') {
				return true
			}
		case ';', '%':
			if all {
				return true
			}
		}
	}
	return false
}

// scratch is the memory in which targets are packed and read.
type scratch struct {
	target, bare, path, merged, reading []byte
}

// view returns b as a string without copying it. The string lives no longer
// than the next use of b: it must not be kept.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// readings calls judge with each reading of the packed target but the first,
// until judge returns false. What judge is given is valid during the call only.
func (s *scratch) readings(target string, all bool, judge func(name, target string) bool) {
	path, query := target, ""
	if i := strings.IndexByte(target, '?'); i >= 0 {
		path, query = target[:i], target[i:]
	}
	s.bare = appendBareQuery(s.bare[:0], query)
	if view(s.bare) != query && !judge("", s.join(append(s.reading[:0], path...), view(s.bare))) {
		return
	}
	if !ambiguous(path, all) || !s.both(path, query, readV1, readV2, judge) {
		return
	}
	s.path = fold(s.path[:0], path)
	if view(s.path) != path && !s.both(view(s.path), query, readV3, readV3, judge) || !all {
		return
	}
	if strings.IndexByte(path, ';') >= 0 {
		s.path = cutParameters(s.path[:0], path)
		if !s.both(view(s.path), query, readV4, readV4, judge) {
			return
		}
	}
	if strings.IndexByte(path, '%') >= 0 {
		s.path = decodeAgain(s.path[:0], path)
		s.both(view(s.path), query, readV5, readV5, judge)
	}
}

// appendBareQuery appends query with the "/" and "?" that are data bare: the
// form that a "/" of a rule meets when a wildcard before it runs into the query.
func appendBareQuery(dst []byte, query string) []byte {
	for i := range len(query) {
		c := query[i]
		switch c {
		case codeSlash:
			c = '/'
		case codeQuery:
			c = '?'
		}
		dst = append(dst, c)
	}
	return dst
}

// join makes a reading of a path and a query.
func (s *scratch) join(path []byte, query string) string {
	s.reading = append(path, query...)
	return view(s.reading)
}

// both judges path with dot segments removed, and with slash runs merged
// before and after their removal.
func (s *scratch) both(path, query, dots, slashes string, judge func(name, target string) bool) bool {
	if !s.judge(removeDots(s.reading[:0], path), query, dots, judge) {
		return false
	}
	if !strings.Contains(path, "//") {
		return true
	}
	s.merged = mergeSlashes(s.merged[:0], path)
	if !s.judge(removeDots(s.reading[:0], view(s.merged)), query, slashes, judge) {
		return false
	}
	s.merged = removeDots(s.merged[:0], path)
	return s.judge(mergeSlashes(s.reading[:0], view(s.merged)), query, slashes, judge)
}

// judge judges a path with the query in both of its forms.
func (s *scratch) judge(path []byte, query, name string, judge func(name, target string) bool) bool {
	if !judge(name, s.join(path, query)) {
		return false
	}
	if view(s.bare) == query {
		return true
	}
	return judge(name, s.join(s.reading[:len(path)], view(s.bare)))
}

// fold appends path with every spelling of a separator as "/".
func fold(dst []byte, path string) []byte {
	for i := range len(path) {
		c := path[i]
		if c == codeSlash || c == '\\' {
			c = '/'
		}
		dst = append(dst, c)
	}
	return dst
}

// cutParameters appends path folded and without the parameters of its segments.
func cutParameters(dst []byte, path string) []byte {
	cut := false
	for i := range len(path) {
		c := path[i]
		switch {
		case c == '/' || c == codeSlash || c == '\\':
			c, cut = '/', false
		case c == ';':
			cut = true
		}
		if !cut {
			dst = append(dst, c)
		}
	}
	return dst
}

// decodeAgain appends path with its escapes decoded once more, and folded.
func decodeAgain(dst []byte, path string) []byte {
	for i := 0; i < len(path); i++ {
		if v, ok := unescape(path[i:]); ok {
			dst = appendEscaped(dst, v)
			i += 2
			continue
		}
		dst = append(dst, path[i])
	}
	return fold(dst[:0], view(dst))
}

// mergeSlashes appends path with each run of slashes as one.
func mergeSlashes(dst []byte, path string) []byte {
	for i := range len(path) {
		if path[i] == '/' && i > 0 && path[i-1] == '/' {
			continue
		}
		dst = append(dst, path[i])
	}
	return dst
}

// removeDots appends path without its dot segments (RFC 3986 §5.2.4) to dst,
// which is empty. path begins with "/"; so does the result.
func removeDots(dst []byte, path string) []byte {
	for len(path) > 0 {
		segment := path[1:]
		if next := strings.IndexByte(segment, '/'); next >= 0 {
			segment = segment[:next]
		}
		path = path[1+len(segment):]
		switch segment {
		case "..":
			dst = dst[:max(0, strings.LastIndexByte(view(dst), '/'))]
		case ".":
		default:
			dst = append(append(dst, '/'), segment...)
			continue
		}
		if len(path) == 0 {
			dst = append(dst, '/')
		}
	}
	if len(dst) == 0 {
		dst = append(dst, '/')
	}
	return dst
}
