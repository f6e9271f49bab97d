package rules

import "strings"

// Path parameters: ";" and what follows in a segment. See v4 in readings.go.

// judgeParameters judges path without the parameters of segments that are empty or dots
// then, and with every also without those of all segments.
func (s *scratch) judgeParameters(path, query, name string, every bool, judge func(name, target string) bool) bool {
	if strings.IndexByte(path, ';') < 0 {
		return true
	}
	return s.judgeCut(path, query, name, cutDots, judge) && (!every || s.judgeCut(path, query, name, cutParameters, judge))
}

// judgeCut judges path with parameters cut before the separators of each kind of server are
// read as "/", after, and both.
func (s *scratch) judgeCut(path, query, name string, cut func(dst []byte, path string) []byte, judge func(name, target string) bool) bool {
	s.cut = cut(s.cut[:0], path)
	before := view(s.cut)
	if before != path && (!s.judgeResolved(before, query, name, name, judge) || !s.judgeFolded(before, before, query, name, judge) ||
		!s.judgeData(before, query, name, true, judge)) {
		return false
	}
	for _, base := range [...]string{path, before} {
		for _, separators := range foldings {
			s.folded = fold(s.folded[:0], base, separators)
			s.again = cut(s.again[:0], view(s.folded))
			if view(s.again) == view(s.folded) {
				continue
			}
			if !s.judgeResolved(view(s.again), query, name, name, judge) || !s.judgeData(view(s.again), query, name, false, judge) {
				return false
			}
		}
	}
	return true
}

// cutParameters appends path without the parameters of its segments.
func cutParameters(dst []byte, path string) []byte {
	cut := false
	for i := range len(path) {
		c := path[i]
		if cut = c == ';' || cut && c != '/'; !cut {
			dst = append(dst, c)
		}
	}
	return dst
}

// cutDots appends path without the parameters of the segments that are empty, "." or ".."
// then.
func cutDots(dst []byte, path string) []byte {
	for len(path) > 0 {
		segment, _, _ := strings.Cut(path[1:], "/")
		rest := path[1+len(segment):]
		dst = append(dst, path[0])
		switch name, _, _ := strings.Cut(segment, ";"); name {
		case "", ".", "..":
			dst = append(dst, name...)
		default:
			dst = append(dst, segment...)
		}
		path = rest
	}
	return dst
}
