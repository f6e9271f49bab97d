package rules

import (
	"math"
	"strings"
)

// rule reads an Allow or Disallow line. One without a path is no rule, but it
// ends the run of user-agent lines all the same.
func (p *parser) rule(allow bool, at, value span) {
	if !p.open {
		p.lose(orphanRule, at)
		return
	}
	p.inRules, p.apart = true, false
	if value.empty() {
		return
	}
	p.rules++
	if !allow && value.hasBlank(p.lines.text) {
		if words := value.words(p.lines.text); p.paths(words) {
			p.report(pathList, value)
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
func (p *parser) paths(words []span) bool {
	for _, w := range words {
		word := p.lines.text[w.from:w.to]
		if word[0] != '/' || strings.Trim(word[1:], "*") == "" && len(word) > 1 {
			return false
		}
	}
	return true
}

// path adds the rule of one path. listed is set when the line has several.
func (p *parser) path(allow bool, at, value span, listed bool) {
	text := p.lines.text
	slash, apart := false, listed || p.joined
	if c := text[value.from]; c != '/' && (c != '*' || p.literal) {
		if hasScheme(text[value.from:value.to]) {
			own, ok := p.ownPath(value)
			if !ok {
				p.report(foreignURL, value)
				return
			}
			p.report(absoluteURL, value)
			slash = own.empty() || text[own.from] != '/'
			value = own
		} else {
			p.report(noSlash, value)
			slash = true
		}
	}
	p.remarks(value)
	path := text[value.from:value.to]
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

// hasScheme reports whether s begins as an absolute URL does (RFC 3986 §3.1).
func hasScheme(s string) bool {
	i := strings.Index(s, "://")
	return i > 0 && letter(s[0]) && strings.Trim(strings.ToLower(s[:i]), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// ownPath returns the path of an absolute URL on the file's own site.
func (p *parser) ownPath(value span) (span, bool) {
	text := p.lines.text[value.from:value.to]
	i := strings.Index(text, "://")
	scheme, rest := text[:i], text[i+3:]
	end := strings.IndexAny(rest, "/?*")
	if end < 0 {
		end = len(rest)
	}
	o, err := ParseOrigin(scheme, rest[:end])
	if err != nil || o != p.origin {
		return span{}, false
	}
	return span{value.to - len(rest) + end, value.to}, true
}

// remarks reports the oddities of a path that is kept.
func (p *parser) remarks(value span) {
	if p.onFinding == nil {
		return
	}
	text := p.lines.text[value.from:value.to]
	for i := range len(text) {
		at := span{value.from + i, value.from + i + 1}
		switch c := text[i]; {
		case blank(c):
			p.report(blankInPath, value)
			return
		case c < 0x20 || c == 0x7F:
			p.report(controlOctet, at)
			return
		case c == '$' && i < len(text)-1:
			p.report(innerDollar, at)
		case c == '%':
			if _, ok := unescape(text[i:]); !ok {
				p.report(badEscape, at)
			}
		}
	}
}

// add compiles a path and adds it as a rule to the open group. apart is set
// when the path is not the whole value of the field on its line.
func (p *parser) add(allow bool, at, value span, path string, apart bool) {
	r := rule{line: uint32(p.lines.number)}
	if allow {
		r.line |= ruleAllows
	}
	c := &p.compiler
	c.compile(path, p.differences)
	p.stars += c.stars
	r.length = uint16(min(c.length, math.MaxUint16))
	r.line |= c.flags
	if !c.plain || apart {
		r.line |= rulePacked
	}
	if p.linter == nil && p.crowded(value.from) && p.file.repeats(&r, c.packed) {
		return
	}
	if r.line&rulePacked != 0 {
		r.pattern, r.size = p.file.pack(at, c.packed), uint16(len(c.packed))
	} else {
		r.pattern, r.size = uint32(value.from), uint16(len(c.packed))
	}
	p.file.rules = append(p.file.rules, r)
}

// crowded reports whether the rules take about as much memory as the text
// before at, as those of a list of one-letter paths do. In such a file a rule
// that repeats the one before it is left out.
func (p *parser) crowded(at int) bool {
	return len(p.file.rules)*ruleSize+p.file.extra.Len() > at-at/14
}
