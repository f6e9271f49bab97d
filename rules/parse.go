package rules

import (
	"strings"

	"heed/rules/names"
)

// parser reads a robots.txt. It never fails: every line that can be understood
// is used (RFC 9309 §2.3.1.5). New and Lint use the same parser.
type parser struct {
	differences
	compiler  compiler
	file      *file
	origin    Origin
	lines     lines
	onFinding func(kind FindingKind, at span) // nil: findings are not wanted
	linter    *linter                         // nil as well: checks lines that are valid

	open    bool // there is a group
	joined  bool // the field shares its line with others
	inRules bool // the group has a rule, so that a user-agent line begins the next

	apart bool // a blank line or a Sitemap line is after the group's last line of RFC 9309

	lost      []lostLine // the first lines without effect
	lostLines int        // all of them
	junk      int        // lines that are no fields and were looked at for one

	interrupted int // 1 + the group without rules before a joined line; 0: none
	rules       int // Allow and Disallow lines with a path
	stars       int // wildcards in all patterns
	looked      int // octets of lines and of parts of lines that were looked at, and names that were copied
}

// parse reads all lines.
func (p *parser) parse(text string, start int) {
	p.lines = lines{text: text, next: start}
	for from, to, ok := p.lines.line(); ok; from, to, ok = p.lines.line() {
		p.line(span{from, to})
	}
}

func (p *parser) report(kind FindingKind, at span) {
	if p.onFinding != nil {
		p.onFinding(kind, at)
	}
}

// line reads one line: comment off, field and value apart.
func (p *parser) line(at span) {
	text := p.lines.text
	if p.linter != nil {
		p.linter.line(at)
	}
	if at.to-at.from > MaxLine {
		p.report(longLine, span{at.from + MaxLine, at.to})
		at.to = at.from + MaxLine
	}
	p.looked += at.to - at.from
	if i := strings.IndexByte(text[at.from:at.to], 0); i >= 0 {
		p.report(nulOctet, span{at.from + i, at.to})
		at.to = at.from + i
	}
	commented := false
	if i := strings.IndexByte(text[at.from:at.to], '#'); i >= 0 {
		commented = true
		at.to = at.from + i
	}
	if at = at.trim(text); at.empty() {
		if !commented {
			p.apart = true
			if p.blankEnds { // it means nothing since RFC 9309
				p.open, p.inRules = false, false
			}
		}
		return
	}
	key, value, ok := p.split(at)
	if !ok {
		p.lose(noField, at)
		return
	}
	kind, exact := fieldOf(text[key.from:key.to])
	if !exact && kind != fieldUnknown {
		p.report(misspeltField, key)
	}
	if p.joined = false; p.open && p.interrupted > 0 && (kind == fieldAllow || kind == fieldDisallow) {
		p.resumeGroup()
	}
	p.field(kind, at, key, value)
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
	p.report(missingColon, at)
	return words[0], words[1], true
}

// field reads one field. A further field within its value, from a line break that
// was lost, is read as a separate line. A rule that is joined to a user-agent line in
// this way is for the robots of that line alone.
func (p *parser) field(kind FieldKind, at, key, value span) {
	text := p.lines.text
	joined := span{}
	if kind >= fieldUserAgent && kind <= fieldDisallow {
		if i, ok := p.embedded(value, kind == fieldUserAgent); ok {
			if kind == fieldUserAgent && !p.joined && p.joinsRule(value) {
				p.beginOwnGroup()
			}
			joined = span{i, at.to}
			p.joined = true
			p.report(joinedLines, joined)
			at.to = i
			at, value = at.trim(text), span{value.from, i}.trim(text)
		}
	}
	if p.linter != nil {
		p.linter.field(kind, key, value)
	}
	switch {
	case kind == fieldUserAgent:
		p.userAgent(value)
	case kind == fieldDisallow, kind == fieldAllow && !p.noAllow:
		p.rule(kind == fieldAllow, at, value)
	case kind >= Sitemap:
		p.keepField(kind, value)
	default:
		p.lose(unknownLine, key)
	}
	if !joined.empty() {
		kind, key, value = joinedField(text, joined)
		p.field(kind, joined, key, value)
	}
}

// beginOwnGroup makes the next user-agent line begin a group, even when the current group has
// no rules yet. The current group gets the rules that follow, too.
func (p *parser) beginOwnGroup() {
	if p.open && !p.inRules {
		p.interrupted = len(p.file.groups)
	}
	p.inRules = true
}

// resumeGroup begins a group for the names of an interrupted group and of those after it.
func (p *parser) resumeGroup() {
	f := p.file
	from, group := uint32(p.interrupted-1), uint32(len(f.groups))
	p.interrupted = 0
	f.groups = append(f.groups, uint32(len(f.rules)))
	first := len(f.names) // names are in the order of their groups
	for first > 0 && f.names[first-1].group >= from {
		first--
	}
	p.looked += len(f.names) - first
	for _, n := range f.names[first:] {
		n.group = group
		f.names = append(f.names, n)
	}
}

// joinedField divides a field that embedded found.
func joinedField(text string, at span) (kind FieldKind, key, value span) {
	colon := at.from + strings.IndexByte(text[at.from:at.to], ':')
	key, value = span{at.from, colon}.trim(text), span{colon + 1, at.to}.trim(text)
	kind, _ = fieldOf(text[key.from:key.to])
	return kind, key, value
}

// joinsRule reports whether a rule is joined to the value of a user-agent line.
func (p *parser) joinsRule(value span) bool {
	text := p.lines.text
	for {
		i, ok := p.embedded(value, true)
		if !ok {
			return false
		}
		var kind FieldKind
		kind, _, value = joinedField(text, span{i, value.to})
		if kind != fieldUserAgent {
			return kind == fieldAllow || kind == fieldDisallow
		}
	}
}

// userAgent reads a user-agent line: it begins a group after a rule, else it
// adds to the group (RFC 9309 §2.1).
func (p *parser) userAgent(value span) {
	p.apart = false
	if !p.open || p.inRules {
		p.open, p.inRules = true, false
		if !p.joined {
			p.interrupted = 0
		}
		p.file.groups = append(p.file.groups, uint32(len(p.file.rules)))
	}
	p.names(value)
}

// names adds the names of a user-agent line to the open group.
func (p *parser) names(value span) {
	text := p.lines.text[value.from:value.to]
	p.looked += len(text)
	switch {
	case text == "":
		p.lose(noName, value)
	case p.cutNames:
		name := names.Cut(text)
		if name != "" && name != "*" && len(name) < len(text) {
			p.report(nameCut, span{value.from + len(name), value.to})
		}
		p.name(value, value.from, name)
	case prefixFold(text, "mozilla/"):
		tokens := identify(text)
		if len(tokens) == 0 {
			p.report(nameOfNoRobot, value)
		} else {
			p.report(wholeUserAgent, value)
		}
		for _, t := range tokens {
			if !p.wordList || strings.IndexByte(t.Name, ' ') < 0 { // its words are tokens, too
				p.name(value, value.to, t.Name)
			}
		}
	default:
		if strings.IndexByte(text, ',') >= 0 {
			p.report(nameList, value)
		}
		for from := value.from; from < value.to; {
			to := value.to
			if i := strings.IndexByte(p.lines.text[from:to], ','); i >= 0 {
				to = from + i
			}
			p.listedName(value, span{from, to}.trim(p.lines.text))
			from = to + 1
		}
	}
}

// listedName adds one of the names of a user-agent line.
func (p *parser) listedName(value, at span) {
	part := p.lines.text[at.from:at.to]
	if part == "" {
		return
	}
	if names.All(part) {
		if part != "*" {
			p.report(starAndText, value)
		}
		p.name(value, at.from, "*")
		return
	}
	name, _, versioned := strings.Cut(part, "/")
	if versioned {
		p.report(nameVersion, value)
	}
	bare := strings.Trim(name, "* \t")
	if strings.IndexByte(name, '*') >= 0 {
		p.report(nameStar, value)
	}
	bare = names.WithoutCompatible(bare)
	clean := names.Clean(bare)
	switch {
	case clean == "":
		p.report(nameOfNoRobot, value)
		return
	case strings.IndexByte(clean, ' ') >= 0:
		p.report(nameOfWords, value)
	case p.onFinding != nil && names.NoRobot(clean) && strings.Trim(clean, "0123456789") != "": // "008" is a robot
		p.report(nameOfNoRobot, value)
	}
	if p.wordList {
		from := at.from
		for w := range strings.FieldsSeq(clean) {
			if w = names.Trim(w); w != "" {
				from = p.name(value, from, w)
			}
		}
	}
	p.name(value, at.from, clean)
}

// name adds a clean name, in lower case, to the open group. Where value
// has it as it is, at from or after signs that are no part of names, it is not
// copied. The result is its end, or from.
func (p *parser) name(value span, from int, clean string) (end int) {
	if clean == "" {
		p.report(nameOfNoRobot, value)
		return from
	}
	f := p.file
	n := name{
		size:  uint16(len(clean)),
		value: uint32(value.from), valueSize: uint16(value.to - value.from),
		group: uint32(len(f.groups) - 1),
	}
	text := p.lines.text[:value.to]
	at := from
	for at < len(text) && text[at] != clean[0] && (!names.Octet(text[at]) || names.Trim(text[at:at+1]) == "") {
		at++
	}
	p.looked += at - from
	if prefixFold(text[at:], clean) {
		n.text, end = uint32(at), at+len(clean)
	} else {
		n.text, end = uint32(len(p.lines.text)+f.extra.Len()), from
		f.extra.WriteString(clean)
	}
	if blanks := strings.Count(clean, " "); blanks > 0 {
		f.words += blanks + 1
	}
	f.names = append(f.names, n)
	return end
}
