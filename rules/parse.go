package rules

import "strings"

// parser reads a robots.txt. It never fails: every line that can be understood
// is used (RFC 9309 §2.3.1.5). New and Lint read through the same parser.
type parser struct {
	differences
	engine *engine
	origin Origin
	lines  lines
	find   func(kind FindingKind, at span) // nil: nobody asks for findings
	watch  *linter                         // nil as well: looks at what is read without a doubt

	open     bool // there is a group
	joined   bool // the field stands on a line with others
	inRules  bool // the group has a rule, so that a user-agent line begins the next
	lastLine int  // of the last user-agent line
	rules    int  // Allow and Disallow lines with a path
	stars    int  // wildcards in all patterns
}

// parse reads all lines.
func (p *parser) parse(text string, start int) {
	p.lines = lines{text: text, next: start, newline: -1}
	for {
		from, to, ok := p.lines.line()
		if !ok {
			return
		}
		p.line(span{from, to})
	}
}

func (p *parser) found(kind FindingKind, at span) {
	if p.find != nil {
		p.find(kind, at)
	}
}

// line reads one line: comment off, field and value apart.
func (p *parser) line(at span) {
	text := p.lines.text
	if p.watch != nil {
		p.watch.line(at)
	}
	if at.to-at.from > MaxLine {
		p.found(LongLine, span{at.from + MaxLine, at.to})
		at.to = at.from + MaxLine
	}
	if i := strings.IndexByte(text[at.from:at.to], 0); i >= 0 {
		p.found(NulOctet, span{at.from + i, at.to})
		at.to = at.from + i
	}
	commented := false
	if i := strings.IndexByte(text[at.from:at.to], '#'); i >= 0 {
		commented = true
		at.to = at.from + i
	}
	if at = at.trim(text); at.empty() {
		if !commented {
			p.blankLine()
		}
		return
	}
	key, value, ok := p.split(at)
	if !ok {
		p.found(NoField, at)
		return
	}
	kind, exact := fieldOf(text[key.from:key.to])
	if !exact && kind != fieldUnknown {
		p.found(MisspeltField, key)
	}
	p.joined = false
	p.field(kind, at, key, value)
}

// blankLine reads an empty line, which means nothing since RFC 9309.
func (p *parser) blankLine() {
	if p.blankEnds {
		p.open, p.inRules = false, false
	}
}

// split divides a line into field and value. A colon may be missing when
// the line is exactly two words.
func (p *parser) split(at span) (key, value span, ok bool) {
	text := p.lines.text
	colon := strings.IndexByte(text[at.from:at.to], ':')
	if colon >= 0 {
		key = span{at.from, at.from + colon}.trim(text)
		value = span{at.from + colon + 1, at.to}.trim(text)
		if !key.hasBlank(text) {
			return key, value, !key.empty()
		}
	}
	words := at.words(text)
	if len(words) != 2 || colon >= 0 && !mayFollow(text[words[0].from:words[0].to]) {
		return key, value, colon >= 0 && !key.empty()
	}
	if kind, _ := fieldOf(text[words[0].from:words[0].to]); kind == fieldUnknown {
		return key, value, false
	}
	p.found(MissingColon, at)
	return words[0], words[1], true
}

// field reads what a field says. A further field within its value, from a line
// break that was lost, is read as a line of its own.
func (p *parser) field(kind FieldKind, at, key, value span) {
	text := p.lines.text
	joined := span{}
	if kind >= fieldUserAgent && kind <= fieldDisallow {
		if i, ok := embedded(text, value, kind == fieldUserAgent); ok {
			joined = span{i, at.to}
			p.joined = true
			p.found(JoinedLines, joined)
			at.to = i
			at, value = at.trim(text), span{value.from, i}.trim(text)
		}
	}
	if p.watch != nil {
		p.watch.field(kind, key, value)
	}
	switch {
	case kind == fieldUserAgent:
		p.userAgent(value)
	case kind == fieldDisallow, kind == fieldAllow && !p.noAllow:
		p.rule(kind == fieldAllow, at, value)
	case kind >= Sitemap:
		p.carry(kind, value)
	default:
		p.found(UnknownLine, key)
	}
	if !joined.empty() {
		colon := joined.from + strings.IndexByte(text[joined.from:], ':')
		key, value = span{joined.from, colon}.trim(text), span{colon + 1, joined.to}.trim(text)
		kind, _ = fieldOf(text[key.from:key.to])
		p.field(kind, joined, key, value)
	}
}

// userAgent reads a user-agent line: it begins a group after a rule, else it
// adds to the group (RFC 9309 §2.1).
func (p *parser) userAgent(value span) {
	if !p.open || p.inRules {
		p.open, p.inRules = true, false
		p.engine.groups = append(p.engine.groups, uint32(len(p.engine.rules)))
	}
	p.lastLine = p.lines.number
	p.names(value)
}

// rule reads an Allow or Disallow line. One without a path is no rule, but it
// ends the run of user-agent lines all the same.
func (p *parser) rule(allow bool, at, value span) {
	if !p.open {
		p.found(OrphanRule, at)
		return
	}
	p.inRules = true
	if value.empty() {
		return
	}
	p.rules++
	if !allow && value.hasBlank(p.lines.text) {
		if words := value.words(p.lines.text); p.paths(words) {
			p.found(PathList, value)
			for _, w := range words {
				p.path(allow, at, w, true)
			}
			return
		}
	}
	p.path(allow, at, value, false)
}

// paths reports whether every word begins as a path does.
func (p *parser) paths(words []span) bool {
	for _, w := range words {
		if c := p.lines.text[w.from]; c != '/' && c != '*' {
			return false
		}
	}
	return true
}
