package rules

import (
	"hash/maphash"
	"slices"
	"strings"
	"unsafe"
)

// The readings of a target. Servers resolve dot segments, doubled slashes and
// escaped separators in different ways, so that one page can be requested in
// many spellings. A target that is ambiguous in this sense is judged in every
// plausible reading, and refused when one of them is refused; what is forwarded
// stays unchanged. Readings concern the path only.
//
//	v1  dot segments removed (RFC 3986 §5.2.4)
//	v2  slash runs merged, before or after that
//	v3  "%2F", or "%5C" and "\", or all of them read as "/", and "%26" and
//	    "%3D" as "&" and "=", then all of v1 and v2
//	v4  parameters (";" and what follows in a segment) cut, before v1 to v3 and between
//	    v3's separators and v1 and v2, from the segments that are empty, "." or ".." then;
//	    with all readings also from every segment
//	v5  escapes decoded once more, then v3
//	v6  blanks at the end cut (ends.go), then v1 to v5
//	v7  octets that are not UTF-8 read as ISO 8859-1 (ends.go), then v1 to v5
//
// Servers differ in their separators: one that decodes "%2F" may
// have files with a "\" in their name, so that "/a%5Cb/..%2Fc" is its "/c".
// Servlet containers cut parameters before they resolve dots, so that "/a/..;x/b" is their
// "/b"; ";" in other segments is an honest part of many URLs ("/a;jsessionid=1").
// And where the resolved path ends in a slash of an empty segment ("/a/.",
// "/a%2F"), many drop it (path.Clean, posixpath.normpath).
const (
	readV1 = "v1"
	readV2 = "v2"
	readV3 = "v3"
	readV4 = "v4"
	readV5 = "v5"
	readV6 = "v6"
	readV7 = "v7"
)

// foldings are the sets of octets that servers read as "/" besides "/" itself.
var foldings = [...]string{string([]byte{codeSlash, '\\'}), string([]byte{codeSlash}), "\\"}

// data are the octets of "%26" and "%3D", and their codes.
var data = string([]byte{'&', '=', codeAnd, codeEqual})

// ambiguous reports whether a packed path may have another reading than itself among v1
// to v4, or v1 to v5 when all is set. Where it is false there is none.
func ambiguous(path string, all bool) bool {
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case '\\', codeSlash, '&', '=', codeAnd, codeEqual:
			return true
		case '/':
			if i+1 < len(path) && (path[i+1] == '/' || path[i+1] == '.' || path[i+1] == ';') {
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
	judging
	target, last, bare, path, folded, merged, reading []byte
	cut, again, decoded                               []byte // for parameters, and for v5
	ended, wide                                       []byte // for v6 and v7

	sent []byte // the target as sent, packed

	slashEnds bool // the path as sent ends in "/"

	judged   []uint64 // hashes of the readings that were judged
	resolved []uint64 // hashes of the paths that judgeResolved was called with
}

// begin prepares s for a decision that may take steps.
func (s *scratch) begin(steps int) {
	s.steps, s.sentRules = steps, s.sentRules[:0]
	s.judged, s.resolved = s.judged[:0], s.resolved[:0]
}

// readingSeed keys the hashes of readings, so that no client can find two that are alike.
var readingSeed = maphash.MakeSeed()

// before reports whether what has the name of a reading is among those before, and adds
// it. For v5 rules may be read in another way than for all others. What that costs is
// taken from the steps: a path that ends in many slashes has as many readings.
func (s *scratch) before(those *[]uint64, name, text string) bool {
	s.steps -= len(text)/octetsPerStep + len(*those)
	hash := maphash.String(readingSeed, text)
	if name == readV5 {
		hash++
	}
	if slices.Contains(*those, hash) {
		return true
	}
	*those = append(*those, hash)
	return false
}

// view returns b as a string without copying it. The string lives no longer
// than the next use of b: it must not be kept.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// readings calls judge with each reading of the packed target, which is called name, until
// judge returns false. What judge is given is valid during the call only.
func (s *scratch) readings(name, target string, all bool, judge func(name, target string) bool) bool {
	if !judge(name, target) {
		return false
	}
	path, _, _ := strings.Cut(target, "?")
	query := target[len(path):]
	s.bare = appendBareQuery(s.bare[:0], query)
	if view(s.bare) != query && !judge(name, s.join(append(s.reading[:0], path...), view(s.bare))) {
		return false
	}
	if !ambiguous(path, all) {
		return true
	}
	s.slashEnds = strings.HasSuffix(path, "/")
	s.resolved = s.resolved[:0]
	if !s.judgeResolved(path, query, readV1, readV2, judge) || !s.judgeFolded(path, path, query, readV3, judge) ||
		!s.judgeData(path, query, readV3, true, judge) || !s.judgeParameters(path, query, readV4, all, judge) {
		return false
	}
	if all && strings.IndexByte(path, '%') >= 0 {
		s.decoded = decodeAgain(s.decoded[:0], path)
		return s.judgeFolded("", view(s.decoded), query, readV5, judge) &&
			s.judgeParameters(view(s.decoded), query, readV5, all, judge)
	}
	return true
}

// judgeFolded judges path with the separators of each kind of server as "/". A path
// equal to known is not judged again.
func (s *scratch) judgeFolded(known, path, query, name string, judge func(name, target string) bool) bool {
	for _, separators := range foldings {
		s.folded = fold(s.folded[:0], path, separators)
		if view(s.folded) != known && !s.judgeResolved(view(s.folded), query, name, name, judge) {
			return false
		}
	}
	return true
}

// judgeData judges path with each "&" and "=" bare, and with each escaped: to a rule
// these differ, to servers they are the same in a path. With folded, the separators of each
// kind of server are read as "/" too.
func (s *scratch) judgeData(path, query, name string, folded bool, judge func(name, target string) bool) bool {
	for _, to := range []string{"&=&=", string([]byte{codeAnd, codeEqual, codeAnd, codeEqual})} {
		s.path = append(s.path[:0], path...)
		for i, c := range s.path {
			if at := strings.IndexByte(data, c); at >= 0 {
				s.path[i] = to[at]
			}
		}
		form := view(s.path)
		if form == path {
			continue
		}
		if !s.judgeResolved(form, query, name, name, judge) || folded && !s.judgeFolded(form, form, query, name, judge) {
			return false
		}
	}
	return true
}

// appendBareQuery appends query with the "/" and "?" that are data bare, the form
// that matches a "/" of a rule after a wildcard that extends into the query.
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

// judgeResolved judges path with dot segments removed, and with slash runs merged
// before and after their removal.
func (s *scratch) judgeResolved(path, query, dots, slashes string, judge func(name, target string) bool) bool {
	if s.before(&s.resolved, dots, path) {
		return true
	}
	if !s.judgeForms(removeDots(s.reading[:0], path), query, dots, judge) {
		return false
	}
	if !strings.Contains(path, "//") {
		return true
	}
	s.merged = mergeSlashes(s.merged[:0], path)
	if !s.judgeForms(removeDots(s.reading[:0], view(s.merged)), query, slashes, judge) {
		return false
	}
	if !strings.Contains(path, "/.") {
		return true
	}
	s.merged = removeDots(s.merged[:0], path)
	return s.judgeForms(mergeSlashes(s.reading[:0], view(s.merged)), query, slashes, judge)
}

// judgeForms judges a path with and without a slash that only its reading put at
// its end, each with the query in both of its forms.
func (s *scratch) judgeForms(path []byte, query, name string, judge func(name, target string) bool) bool {
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
		if s.slashEnds || len(path) < 2 || path[len(path)-1] != '/' {
			return true
		}
		path = path[:len(path)-1]
	}
}

// fold appends path with the octets of separators as "/".
func fold(dst []byte, path, separators string) []byte {
	var separates [256]bool
	for i := range len(separators) {
		separates[separators[i]] = true
	}
	from := len(dst)
	dst = append(dst, path...)
	for i, c := range dst[from:] {
		if separates[c] {
			dst[from+i] = '/'
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

// readAs reports whether a reading may have the packed octet c as to.
func readAs(c, to byte) bool {
	switch to {
	case '/':
		return c == codeSlash || c == '\\'
	case '?':
		return c == codeQuery
	}
	at := strings.IndexByte(data, c)
	return at >= 0 && data[at^2] == to
}

// mergeSlashes appends path with each run of slashes as one.
func mergeSlashes(dst []byte, path string) []byte {
	for {
		i := strings.Index(path, "//")
		if i < 0 {
			return append(dst, path...)
		}
		dst = append(dst, path[:i]...)
		path = path[i+1:]
	}
}

// removeDots appends path without its dot segments (RFC 3986 §5.2.4) to dst,
// which is empty. path begins with "/"; so does the result.
func removeDots(dst []byte, path string) []byte {
	if !strings.Contains(path, "/.") {
		return append(dst, path...)
	}
	for len(path) > 0 {
		segment, _, _ := strings.Cut(path[1:], "/")
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
