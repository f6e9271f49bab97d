package rules

import "strings"

// variants returns the readings of a target that a server may take, beside the
// target as sent: dot segments removed, runs of slashes merged, escaped slashes
// and backslashes read as slashes. It returns nothing for a target that can be
// read in one way only.
func variants(target string) (names []string, readings []string) {
	path, query, hasQuery := strings.Cut(target, "?")
	if !ambiguous(path) {
		return nil, nil
	}
	if hasQuery {
		query = "?" + query
	}
	add := func(name, reading string) {
		for _, known := range readings {
			if known == reading+query {
				return
			}
		}
		names, readings = append(names, name), append(readings, reading+query)
	}
	canonical := string(appendCanonical(nil, path, false))
	spell := func(path, v1, v2 string) {
		dots := removeDots(path)
		add(v1, dots)
		add(v2, removeDots(mergeSlashes(path)))
		add(v2, mergeSlashes(dots))
	}
	spell(canonical, "v1", "v2")
	slashes := strings.NewReplacer("%2F", "/", "%5C", "/").Replace(canonical)
	if slashes != canonical {
		add("v3", slashes)
		spell(slashes, "v3", "v3")
	}
	return names, readings
}

// ambiguous reports whether a path may be read in more than one way.
func ambiguous(path string) bool {
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case '\\':
			return true
		case '/':
			if i+1 < len(path) && (path[i+1] == '/' || path[i+1] == '.') {
				return true
			}
		case '%':
			if i+2 >= len(path) {
				continue
			}
			switch strings.ToLower(path[i+1 : i+3]) {
			case "2f", "5c", "2e":
				return true
			}
		}
	}
	return false
}

// removeDots removes "." and ".." segments (RFC 3986 §5.2.4); ".." above the
// root stays at the root.
func removeDots(path string) string {
	segments := strings.Split(path, "/")
	kept := segments[:1:1]
	last := len(segments) - 1
	for i, s := range segments[1:] {
		switch s {
		case ".", "..":
			if s == ".." && len(kept) > 1 {
				kept = kept[:len(kept)-1]
			}
			if i+1 == last {
				kept = append(kept, "")
			}
		default:
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, "/")
}

func mergeSlashes(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}
