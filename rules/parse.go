package rules

import (
	"strings"
)

// parser reads a robots.txt. It never fails: every line that can be understood
// is used (RFC 9309 §2.3.1.5). New and Watch use the same parser.
type parser struct {
	differences
	Progress // its first fields are set when it is shown
	compiler compiler
	file     *file
	origin   Origin
	lines    lines
	watcher  Watcher // nil: there is none

	joined bool // the field shares its line with others
	apart  bool // a blank line or a Sitemap line is after the group's last line of RFC 9309

	lost      []lostLine // the first lines without effect
	lostLines int        // all of them
	junk      int        // lines that are no fields and were looked at for one

	interrupted int // 1 + the group without rules before a joined line; 0: none
	looked      int // octets of lines and of parts of lines that were looked at, and names that were copied
}

// parse reads all lines.
func (p *parser) parse(text string, start int) {
	p.lines = lines{text: text, next: start}
	for from, to, ok := p.lines.line(); ok; from, to, ok = p.lines.line() {
		p.line(Part{from, to})
	}
}

// line reads one line: comment off, field and value apart.
func (p *parser) line(at Part) {
	text := p.lines.text
	if p.watcher != nil {
		p.watcher.Line(p.progress(), at)
	}
	if at.To-at.From > MaxLine {
		p.odd("long-line", Part{at.From + MaxLine, at.To})
		at.To = at.From + MaxLine
	}
	p.looked += at.To - at.From
	if i := strings.IndexByte(text[at.From:at.To], 0); i >= 0 {
		p.odd("nul", Part{at.From + i, at.To})
		at.To = at.From + i
	}
	commented := false
	if i := strings.IndexByte(text[at.From:at.To], '#'); i >= 0 {
		commented = true
		at.To = at.From + i
	}
	if at = at.trim(text); at.empty() {
		if !commented {
			p.apart = true
			if p.blankEnds { // it means nothing since RFC 9309
				p.InGroup, p.InRules = false, false
			}
		}
		return
	}
	key, value, ok := p.split(at)
	if !ok {
		p.lose(noField, at)
		return
	}
	kind, exact := fieldOf(text[key.From:key.To])
	if !exact && kind != fieldUnknown {
		p.odd("misspelt-field", key)
	}
	if p.joined = false; p.InGroup && p.interrupted > 0 && (kind == fieldAllow || kind == fieldDisallow) {
		p.resumeGroup()
	}
	p.field(kind, at, key, value)
}

// split divides a line into field and value. A colon may be missing when
// the line is exactly two words.
func (p *parser) split(at Part) (key, value Part, ok bool) {
	text := p.lines.text
	colon := strings.IndexByte(text[at.From:at.To], ':')
	if colon >= 0 {
		key = Part{at.From, at.From + colon}.trim(text)
		value = Part{at.From + colon + 1, at.To}.trim(text)
		if !key.hasBlank(text) {
			return key, value, !key.empty()
		}
	}
	words := at.words(text)
	if len(words) != 2 || colon >= 0 && !mayFollow(text[words[0].From:words[0].To]) {
		return key, value, colon >= 0 && !key.empty()
	}
	if kind, _ := fieldOf(text[words[0].From:words[0].To]); kind == fieldUnknown {
		return key, value, false
	}
	p.odd("missing-colon", at)
	return words[0], words[1], true
}

// field reads one field. A further field within its value, from a line break that
// was lost, is read as a separate line. A rule that is joined to a user-agent line in
// this way is for the robots of that line alone.
func (p *parser) field(kind FieldKind, at, key, value Part) {
	text := p.lines.text
	joined := Part{}
	if kind >= fieldUserAgent && kind <= fieldDisallow {
		if i, ok := p.embedded(value, kind == fieldUserAgent); ok {
			if kind == fieldUserAgent && !p.joined && p.joinsRule(value) {
				p.beginOwnGroup()
			}
			joined = Part{i, at.To}
			p.joined = true
			p.odd("joined-lines", joined)
			at.To = i
			at, value = at.trim(text), Part{value.From, i}.trim(text)
		}
	}
	if p.watcher != nil {
		p.watcher.Field(p.progress(), kind, key, value)
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
	if p.InGroup && !p.InRules {
		p.interrupted = len(p.file.groups)
	}
	p.InRules = true
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
func joinedField(text string, at Part) (kind FieldKind, key, value Part) {
	colon := at.From + strings.IndexByte(text[at.From:at.To], ':')
	key, value = Part{at.From, colon}.trim(text), Part{colon + 1, at.To}.trim(text)
	kind, _ = fieldOf(text[key.From:key.To])
	return kind, key, value
}

// joinsRule reports whether a rule is joined to the value of a user-agent line.
func (p *parser) joinsRule(value Part) bool {
	text := p.lines.text
	for {
		i, ok := p.embedded(value, true)
		if !ok {
			return false
		}
		var kind FieldKind
		kind, _, value = joinedField(text, Part{i, value.To})
		if kind != fieldUserAgent {
			return kind == fieldAllow || kind == fieldDisallow
		}
	}
}

// userAgent reads a user-agent line: it begins a group after a rule, else it
// adds to the group (RFC 9309 §2.1).
func (p *parser) userAgent(value Part) {
	p.apart = false
	if !p.InGroup || p.InRules {
		p.InGroup, p.InRules = true, false
		if !p.joined {
			p.interrupted = 0
		}
		p.file.groups = append(p.file.groups, uint32(len(p.file.rules)))
	}
	p.names(value)
}

// names adds the names of a user-agent line to the open group.
func (p *parser) names(value Part) {
	text := p.lines.text[value.From:value.To]
	p.looked += len(text)
	switch {
	case text == "":
		p.lose("no-name", value)
	case p.cutNames:
		name := CutName(text)
		if name != "" && name != "*" && len(name) < len(text) {
			p.odd("name-cut", Part{value.From + len(name), value.To})
		}
		p.name(value, value.From, name)
	case prefixFold(text, "mozilla/"):
		tokens := identify(text)
		if len(tokens) == 0 {
			p.odd(nameOfNoRobot, value)
		} else {
			p.odd("whole-user-agent", value)
		}
		for _, t := range tokens {
			if !p.wordList || strings.IndexByte(t.Name, ' ') < 0 { // its words are tokens, too
				p.name(value, value.To, t.Name)
			}
		}
	default:
		if strings.IndexByte(text, ',') >= 0 {
			p.odd("name-list", value)
		}
		for from := value.From; from < value.To; {
			to := value.To
			if i := strings.IndexByte(p.lines.text[from:to], ','); i >= 0 {
				to = from + i
			}
			p.listedName(value, Part{from, to}.trim(p.lines.text))
			from = to + 1
		}
	}
}

// listedName adds one of the names of a user-agent line.
func (p *parser) listedName(value, at Part) {
	part := p.lines.text[at.From:at.To]
	if part == "" {
		return
	}
	if allRobots(part) {
		if part != "*" {
			p.odd("star-and-text", value)
		}
		p.name(value, at.From, "*")
		return
	}
	name, _, versioned := strings.Cut(part, "/")
	if versioned {
		p.odd("name-version", value)
	}
	bare := strings.Trim(name, "* \t")
	if strings.IndexByte(name, '*') >= 0 {
		p.odd("name-star", value)
	}
	bare = withoutCompatible(bare)
	clean := cleanName(bare)
	switch {
	case clean == "":
		p.odd(nameOfNoRobot, value)
		return
	case strings.IndexByte(clean, ' ') >= 0:
		p.odd("name-of-words", value)
	case p.watcher != nil && noRobot(clean) && strings.Trim(clean, "0123456789") != "": // "008" is a robot
		p.odd(nameOfNoRobot, value)
	}
	if p.wordList {
		from := at.From
		for w := range strings.FieldsSeq(clean) {
			if w = trimName(w); w != "" {
				from = p.name(value, from, w)
			}
		}
	}
	p.name(value, at.From, clean)
}

// name adds a clean name, in lower case, to the open group. Where value
// has it as it is, at from or after signs that are no part of names, it is not
// copied. The result is its end, or from.
func (p *parser) name(value Part, from int, clean string) (end int) {
	if clean == "" {
		p.odd(nameOfNoRobot, value)
		return from
	}
	f := p.file
	n := name{
		size:  uint16(len(clean)),
		value: uint32(value.From), valueSize: uint16(value.To - value.From),
		group: uint32(len(f.groups) - 1),
	}
	text := p.lines.text[:value.To]
	at := from
	for at < len(text) && text[at] != clean[0] && (!nameOctet(text[at]) || trimName(text[at:at+1]) == "") {
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
