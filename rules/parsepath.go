package rules

import (
	"math"
	"strings"
)

// rule reads an Allow or Disallow line. One without a path is no rule, but it
// ends the run of user-agent lines all the same.
func (p *parser) rule(allow bool, at, value Part) {
	if !p.InGroup {
		p.lose("orphan-rule", at)
		return
	}
	p.InRules, p.apart = true, false
	if value.empty() {
		return
	}
	p.Rules++
	if !allow && value.hasBlank(p.lines.text) {
		if words := value.words(p.lines.text); p.paths(words) {
			p.odd("path-list", value)
			for _, w := range words {
				p.path(allow, at, w, true)
			}
			return
		}
	}
	p.path(allow, at, value, false)
}

// paths reports whether the words are a list of paths: each begins with "/", and
// none is "/*", which would close the whole site.
func (p *parser) paths(words []Part) bool {
	for _, w := range words {
		if word := p.lines.text[w.From:w.To]; word[0] != '/' || strings.Trim(word[1:], "*") == "" && len(word) > 1 {
			return false
		}
	}
	return true
}

// path adds the rule of one path. listed is set when the line has several.
func (p *parser) path(allow bool, at, value Part, listed bool) {
	text := p.lines.text
	slash, apart := false, listed || p.joined
	if c := text[value.From]; c != '/' && (c != '*' || p.literal) {
		if HasScheme(text[value.From:value.To]) {
			own, ok := p.ownPath(value)
			if !ok {
				p.odd("foreign-url", value)
				return
			}
			p.odd("absolute-url", value)
			slash = own.empty() || text[own.From] != '/'
			value = own
		} else {
			p.odd("no-slash", value)
			slash = true
		}
	}
	if p.watcher != nil {
		p.watcher.Path(p.progress(), value)
	}
	path := text[value.From:value.To]
	if slash {
		path = "/" + path
	}
	p.add(allow, at, value, path, apart || slash)
	if p.indexHTML && allow {
		if i := strings.LastIndexByte(path, '/'); i >= 0 && strings.HasPrefix(path[i:], "/index.htm") {
			p.add(allow, at, value, path[:i+1]+"$", true)
		}
	}
}

// HasScheme reports whether s begins as an absolute URL does (RFC 3986 §3.1).
func HasScheme(s string) bool {
	i := strings.Index(s, "://")
	return i > 0 && letter(s[0]) && strings.Trim(strings.ToLower(s[:i]), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// ownPath returns the path of an absolute URL on the file's own site.
func (p *parser) ownPath(value Part) (Part, bool) {
	text := p.lines.text[value.From:value.To]
	i := strings.Index(text, "://")
	scheme, rest := text[:i], text[i+3:]
	end := strings.IndexAny(rest, "/?*")
	if end < 0 {
		end = len(rest)
	}
	if o, err := ParseOrigin(scheme, rest[:end]); err != nil || o != p.origin {
		return Part{}, false
	}
	return Part{value.To - len(rest) + end, value.To}, true
}

// add compiles a path and adds it as a rule to the open group. apart is set
// when the path is not the whole value of the field on its line.
func (p *parser) add(allow bool, at, value Part, path string, apart bool) {
	r := rule{line: uint32(p.lines.number)}
	if allow {
		r.line |= ruleAllows
	}
	c := &p.compiler
	c.compile(path, p.differences)
	p.Wildcards += c.stars
	r.length = uint16(min(c.length, math.MaxUint16))
	r.line |= c.flags
	if !c.plain || apart {
		r.line |= rulePacked
	}
	if p.watcher == nil && p.crowded(value.From) && p.file.repeats(&r, c.packed) {
		return
	}
	if r.line&rulePacked != 0 {
		r.pattern, r.size = p.file.pack(at, c.packed), uint16(len(c.packed))
	} else {
		r.pattern, r.size = uint32(value.From), uint16(len(c.packed))
	}
	p.file.rules = append(p.file.rules, r)
}

// crowded reports whether the rules take about as much memory as the text
// before at, as those of a list of one-letter paths do. In such a file a rule
// that repeats the one before it is left out.
func (p *parser) crowded(at int) bool {
	return len(p.file.rules)*ruleSize+p.file.extra.Len() > at-at/14
}
