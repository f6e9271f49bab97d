package rules_test

import (
	"strings"
)

// This file is a second, deliberately naive engine, written straight from
// RFC 9309 and the house's readings of it. It shares nothing with the first but
// the words allow and refuse. It reads plain files only: what repairs do to
// broken ones is the vectors' business.

// refRule is a rule: its symbols, and what it says.
type refRule struct {
	pattern []string // "a", "%2F", "*" for any run, "$" for the end
	octets  int
	allow   bool
	line    int
}

type refGroup struct {
	names []string
	rules []refRule
}

// refParse reads lines of "user-agent", "allow" and "disallow".
func refParse(file string) []refGroup {
	var groups []refGroup
	for i, line := range strings.Split(file, "\n") {
		line, _, _ = strings.Cut(line, "#")
		field, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		field, value = strings.ToLower(strings.TrimSpace(field)), strings.TrimSpace(value)
		switch field {
		case "user-agent":
			if len(groups) == 0 || groups[len(groups)-1].rules != nil {
				groups = append(groups, refGroup{})
			}
			g := &groups[len(groups)-1]
			g.names = append(g.names, strings.ToLower(value))
		case "allow", "disallow":
			if len(groups) == 0 {
				continue
			}
			g := &groups[len(groups)-1]
			if g.rules == nil {
				g.rules = []refRule{}
			}
			if value != "" {
				g.rules = append(g.rules, refCompile(value, field == "allow", i+1))
			}
		}
	}
	return groups
}

func refCompile(value string, allow bool, line int) refRule {
	r := refRule{allow: allow, line: line}
	end := strings.HasSuffix(value, "$")
	value = strings.TrimSuffix(value, "$")
	query := false
	for i, part := range strings.Split(value, "*") {
		if i > 0 {
			r.pattern = append(r.pattern, "*")
		}
		var symbols []string
		symbols, query = refSymbols(part, query)
		r.pattern = append(r.pattern, symbols...)
	}
	if end {
		r.pattern = append(r.pattern, "$")
	}
	r.octets = len(strings.Join(r.pattern, ""))
	return r
}

// refSymbols writes s in the canonical form, one string per octet of meaning.
func refSymbols(s string, query bool) ([]string, bool) {
	const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	const hex = "0123456789ABCDEF"
	var out []string
	for len(s) > 0 {
		c, escaped := s[0], false
		if len(s) >= 3 && c == '%' {
			hi := strings.IndexByte(hex, strings.ToUpper(s[1:2])[0])
			lo := strings.IndexByte(hex, strings.ToUpper(s[2:3])[0])
			if hi >= 0 && lo >= 0 {
				c, escaped = byte(hi*16+lo), true
				s = s[2:]
			}
		}
		s = s[1:]
		bare := strings.IndexByte(unreserved, c) >= 0
		if !escaped {
			bare = bare || c == '&' || c == '=' || !query && (c == '/' || c == '?')
			query = query || c == '?'
		}
		if bare {
			out = append(out, string(rune(c)))
		} else {
			out = append(out, "%"+string(hex[c>>4])+string(hex[c&15]))
		}
	}
	return out, query
}

// refMatch matches symbol by symbol.
func refMatch(pattern, target []string) bool {
	for i, p := range pattern {
		if p == "*" {
			for j := 0; j <= len(target); j++ {
				if refMatch(pattern[i+1:], target[j:]) {
					return true
				}
			}
			return false
		}
		if p == "$" {
			return len(target) == 0
		}
		if len(target) == 0 || target[0] != p {
			return false
		}
		target = target[1:]
	}
	return true
}

// refReadings lists the readings of a target: as sent, with the data of its
// query bare, and both again for each reading of the path.
func refReadings(target string) [][]string {
	all, _ := refSymbols(target, false)
	path, query := all, []string(nil)
	for i, s := range all {
		if s == "?" {
			path, query = all[:i], all[i:]
			break
		}
	}
	paths := [][]string{path}
	plain := strings.Join(path, "")
	add := func(p string) {
		dots := refDots(p)
		for _, v := range []string{dots, refDots(refMerge(p)), refMerge(dots)} {
			paths = append(paths, refSplit(v))
			for !strings.HasSuffix(plain, "/") && len(v) > 1 && strings.HasSuffix(v, "/") {
				v = v[:len(v)-1]
				paths = append(paths, refSplit(v))
			}
		}
	}
	same := func(p string) string { return p }
	for _, cut := range [][2]func(string) string{{same, same}, {refCut, same}, {same, refCut}, {refCut, refCut}} {
		for _, data := range []*strings.Replacer{
			strings.NewReplacer(), strings.NewReplacer("%26", "&", "%3D", "="), strings.NewReplacer("&", "%26", "=", "%3D"),
		} {
			for _, separators := range []*strings.Replacer{
				strings.NewReplacer(), strings.NewReplacer("%2F", "/", "%5C", "/"),
				strings.NewReplacer("%2F", "/"), strings.NewReplacer("%5C", "/"),
			} {
				add(cut[1](separators.Replace(data.Replace(cut[0](plain)))))
			}
		}
	}
	bare := strings.NewReplacer("%2F", "/", "%3F", "?").Replace(strings.Join(query, ""))
	var readings [][]string
	for _, p := range paths {
		readings = append(readings, append(p[:len(p):len(p)], query...))
		readings = append(readings, append(p[:len(p):len(p)], refSplit(bare)...))
	}
	return readings
}

// refCut cuts the parameters of the segments that are empty or dots then.
func refCut(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if name, _, has := strings.Cut(s, "%3B"); has && i > 0 && strings.Trim(name, ".") == "" && len(name) <= 2 {
			segments[i] = name
		}
	}
	return strings.Join(segments, "/")
}

// refSplit splits text that is canonical already into its symbols.
func refSplit(s string) []string {
	var out []string
	for len(s) > 0 {
		n := 1
		if s[0] == '%' {
			n = 3
		}
		out, s = append(out, s[:n]), s[n:]
	}
	return out
}

func refMerge(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// refDots is RFC 3986 §5.2.4, step by step.
func refDots(in string) string {
	out := ""
	for in != "" {
		switch {
		case strings.HasPrefix(in, "/./"):
			in = in[2:]
		case in == "/.":
			in = "/"
		case strings.HasPrefix(in, "/../"):
			in = in[3:]
			out = out[:max(0, strings.LastIndexByte(out, '/'))]
		case in == "/..":
			in = "/"
			out = out[:max(0, strings.LastIndexByte(out, '/'))]
		default:
			n := strings.IndexByte(in[1:], '/') + 1
			if n == 0 {
				n = len(in)
			}
			out, in = out+in[:n], in[n:]
		}
	}
	return out
}

// refVerdict is what the naive engine says, and about how it came to it.
type refVerdict struct {
	allow    bool
	wildcard bool // a rule with a wildcard decided
	groups   int  // how many groups governed
	line     int  // of the rule that decided; 0 when none did
}

// refBest returns the longest rule that matches a reading, an Allow among equals; one
// that allows, of -1 octets, when there is none.
func refBest(all []refRule, reading []string) refRule {
	best := refRule{octets: -1, allow: true}
	for _, r := range all {
		if r.octets > best.octets || r.octets == best.octets && r.allow && !best.allow {
			if refMatch(r.pattern, reading) {
				best = r
			}
		}
	}
	return best
}

// refNames reports whether a pattern without wildcards matches a reading in which
// symbols of it may have been read as others.
func refNames(pattern, reading []string) bool {
	readAs := map[string]string{"%2F": "/", "%5C": "/", "%3F": "?", "%26": "&", "%3D": "=", "&": "%26", "=": "%3D"}
	for i, p := range pattern {
		switch {
		case p == "$":
			return i == len(reading)
		case p == "*", i == len(reading), reading[i] != p && reading[i] != readAs[p]:
			return false
		}
	}
	return true
}

// refDecide judges target for an agent known by names.
func refDecide(groups []refGroup, names []string, readings [][]string) refVerdict {
	v := refVerdict{allow: true}
	sets := map[string][]refRule{}
	var order []string
	collect := func(name string) {
		if _, known := sets[name]; known {
			return
		}
		for _, g := range groups {
			for _, n := range g.names {
				if n == name {
					if _, known := sets[name]; !known {
						order = append(order, name)
						sets[name] = []refRule{}
					}
					sets[name] = append(sets[name], g.rules...)
					v.groups++
					break
				}
			}
		}
	}
	for _, n := range names {
		collect(strings.ToLower(n))
	}
	if len(order) == 0 {
		collect("*")
	}
	for _, name := range order {
		sent := refBest(sets[name], readings[0])
		for _, reading := range readings {
			best := refBest(sets[name], reading)
			if !best.allow && sent.allow && sent.octets >= best.octets && refNames(sent.pattern, reading) {
				best = sent
			}
			if strings.Contains(strings.Join(best.pattern, ""), "*") {
				v.wildcard = true
			}
			if !best.allow {
				v.allow, v.line = false, best.line
				return v
			}
			if v.line == 0 {
				v.line = best.line
			}
		}
	}
	return v
}
