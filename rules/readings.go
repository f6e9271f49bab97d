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
//	v3  "%2F", or "%5C" and "\", or all of them read as "/", and "%26" and
//	    "%3D" as "&" and "=", then all of v1 and v2
//	v4  v3 with ";" and what follows cut from every segment
//	v5  escapes decoded once more, then v3
//
// Servers differ in what they take for a separator: one that decodes "%2F" may
// have files with a "\" in their name, so that "/a%5Cb/..%2Fc" is its "/c".
// And where the resolved path ends in a slash that stood for nothing ("/a/.",
// "/a%2F"), many drop it (path.Clean, posixpath.normpath).
const (
	readV1 = "v1"
	readV2 = "v2"
	readV3 = "v3"
	readV4 = "v4"
	readV5 = "v5"
)

// foldings are the sets of octets that servers read as "/" besides "/" itself.
var foldings = [...]string{string([]byte{codeSlash, '\\'}), string([]byte{codeSlash}), "\\"}

// data are the octets that "%26" and "%3D" stand for, and their codes.
var data = string([]byte{'&', '=', codeAnd, codeEqual})

// ambiguous reports whether a packed path has another reading than itself
// among v1 to v3, or v1 to v5 when all is set.
func ambiguous(path string, all bool) bool {
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case '\\', codeSlash, '&', '=', codeAnd, codeEqual:
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
	target, last, bare, path, folded, merged, reading []byte

	closed bool // the path as sent ends in "/"
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
	if !ambiguous(path, all) {
		return
	}
	s.closed = strings.HasSuffix(path, "/")
	if !s.both(path, query, readV1, readV2, judge) || !s.fold(path, path, query, readV3, judge) {
		return
	}
	if !s.data(path, query, judge) || !all {
		return
	}
	if strings.IndexByte(path, ';') >= 0 && !s.parameters(path, query, judge) {
		return
	}
	if strings.IndexByte(path, '%') >= 0 {
		s.path = decodeAgain(s.path[:0], path)
		s.fold("", view(s.path), query, readV5, judge)
	}
}

// fold judges path with the separators of each kind of server as "/". What is
// known already is not judged again.
func (s *scratch) fold(known, path, query, name string, judge func(name, target string) bool) bool {
	for _, separators := range foldings {
		s.folded = fold(s.folded[:0], path, separators)
		if view(s.folded) != known && !s.both(view(s.folded), query, name, name, judge) {
			return false
		}
	}
	return true
}

// data judges path with each "&" and "=" bare, and with each escaped: to a rule
// these differ, in a path no server tells them apart.
func (s *scratch) data(path, query string, judge func(name, target string) bool) bool {
	for _, to := range []string{"&=&=", string([]byte{codeAnd, codeEqual, codeAnd, codeEqual})} {
		s.path = append(s.path[:0], path...)
		for i, c := range s.path {
			if at := strings.IndexByte(data, c); at >= 0 {
				s.path[i] = to[at]
			}
		}
		form := view(s.path)
		if form != path && (!s.both(form, query, readV3, readV3, judge) || !s.fold(form, form, query, readV3, judge)) {
			return false
		}
	}
	return true
}

// parameters judges path with the parameters of its segments cut.
func (s *scratch) parameters(path, query string, judge func(name, target string) bool) bool {
	for _, separators := range foldings {
		s.folded = fold(s.folded[:0], path, separators)
		s.path = cutParameters(s.path[:0], view(s.folded))
		if !s.both(view(s.path), query, readV4, readV4, judge) {
			return false
		}
	}
	return true
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

// judge judges a path with and without a slash that only its reading put at
// its end, each with the query in both of its forms.
func (s *scratch) judge(path []byte, query, name string, judge func(name, target string) bool) bool {
	for {
		if !judge(name, s.join(path, query)) {
			return false
		}
		path = s.reading[:len(path)]
		if view(s.bare) != query {
			if !judge(name, s.join(path, view(s.bare))) {
				return false
			}
			path = s.reading[:len(path)]
		}
		if s.closed || len(path) < 2 || path[len(path)-1] != '/' {
			return true
		}
		path = path[:len(path)-1]
	}
}

// fold appends path with the octets of separators as "/".
func fold(dst []byte, path, separators string) []byte {
	for i := range len(path) {
		c := path[i]
		if strings.IndexByte(separators, c) >= 0 {
			c = '/'
		}
		dst = append(dst, c)
	}
	return dst
}

// cutParameters appends path without the parameters of its segments.
func cutParameters(dst []byte, path string) []byte {
	cut := false
	for i := range len(path) {
		c := path[i]
		cut = c == ';' || cut && c != '/'
		if !cut {
			dst = append(dst, c)
		}
	}
	return dst
}

// decodeAgain appends path with its escapes decoded once more.
func decodeAgain(dst []byte, path string) []byte {
	for i := 0; i < len(path); i++ {
		if v, ok := unescape(path[i:]); ok {
			dst = appendEscaped(dst, v)
			i += 2
			continue
		}
		dst = append(dst, path[i])
	}
	return dst
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
