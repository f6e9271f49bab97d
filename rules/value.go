package rules

import (
	"math"
	"strings"
)

// path adds the rule of one path. listed is set when the line has several.
func (p *parser) path(allow bool, at, value span, listed bool) {
	text := p.lines.text
	slash, apart := false, listed || p.joined
	if c := text[value.from]; c != '/' && (c != '*' || p.literal) {
		if hasScheme(text[value.from:value.to]) {
			own, ok := p.ownPath(value)
			if !ok {
				p.found(ForeignURL, value)
				return
			}
			p.found(AbsoluteURL, value)
			slash = own.empty() || text[own.from] != '/'
			value = own
		} else {
			p.found(NoSlash, value)
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

// ownPath returns the path of an absolute URL that lies on the file's own site.
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

// remarks reports what is odd about a path that is kept.
func (p *parser) remarks(value span) {
	if p.find == nil {
		return
	}
	text := p.lines.text[value.from:value.to]
	for i := range len(text) {
		at := span{value.from + i, value.from + i + 1}
		switch c := text[i]; {
		case blank(c):
			p.found(BlankInPath, value)
			return
		case c < 0x20 || c == 0x7F:
			p.found(ControlOctet, at)
			return
		case c == '$' && i < len(text)-1:
			p.found(InnerDollar, at)
		case c == '%':
			if _, ok := unescape(text[i:]); !ok {
				p.found(BadEscape, at)
			}
		}
	}
}

// add compiles a path and adds it as a rule to the open group. apart is set
// when the path does not stand alone after the field's name on its line.
func (p *parser) add(allow bool, at, value span, path string, apart bool) {
	e := p.engine
	r := rule{line: uint32(p.lines.number)}
	if allow {
		r.line |= ruleAllows
	}
	c := compiler{asSent: p.asSent, literal: p.literal}
	c.measure(path)
	p.stars += c.stars
	r.length = uint16(min(c.length, math.MaxUint16))
	r.line |= c.flags
	if c.plain && !apart {
		if c.flags&ruleEnds != 0 {
			value.to--
		}
		r.pattern, r.size = uint32(value.from), uint16(value.to-value.from)
	} else {
		packed := c.pack(path)
		r.line |= rulePacked
		r.pattern, r.size = e.pack(at, packed), uint16(len(packed))
	}
	e.rules = append(e.rules, r)
}

// names adds the names of a user-agent line to the open group.
func (p *parser) names(value span) {
	text := p.lines.text[value.from:value.to]
	switch {
	case text == "":
		p.found(NoName, value)
	case p.cutNames:
		name := cutName(text)
		if name != "" && name != "*" && len(name) < len(text) {
			p.found(NameCut, span{value.from + len(name), value.to})
		}
		p.name(value, value.from, name)
	case prefixFold(text, "mozilla/"):
		tokens := identify(text)
		if len(tokens) == 0 {
			p.found(NamesNobody, value)
		} else {
			p.found(WholeUserAgent, value)
		}
		for _, t := range tokens {
			if !p.wordList || strings.IndexByte(t.Name, ' ') < 0 { // its words are tokens, too
				p.name(value, value.to, t.Name)
			}
		}
	default:
		if strings.IndexByte(text, ',') >= 0 {
			p.found(NameList, value)
		}
		for from := value.from; from < value.to; {
			to := value.to
			if i := strings.IndexByte(p.lines.text[from:to], ','); i >= 0 {
				to = from + i
			}
			p.part(value, span{from, to}.trim(p.lines.text))
			from = to + 1
		}
	}
}

// part adds one of the names of a user-agent line.
func (p *parser) part(value, at span) {
	part := p.lines.text[at.from:at.to]
	if part == "" {
		return
	}
	if part[0] == '*' {
		if part != "*" {
			p.found(StarAndText, value)
		}
		p.name(value, at.from, "*")
		return
	}
	name, _, versioned := strings.Cut(part, "/")
	if versioned {
		p.found(NameVersion, value)
	}
	bare := strings.TrimRight(name, "* \t")
	if bare != strings.TrimRight(name, " \t") {
		p.found(NameStar, value)
	}
	clean := cleanName(bare)
	switch {
	case clean == "":
		p.found(NamesNobody, value)
		return
	case strings.IndexByte(clean, ' ') >= 0:
		p.found(NameOfWords, value)
	case p.find != nil && namesNobody(clean):
		p.found(NamesNobody, value)
	}
	if p.wordList {
		from := at.from
		for w := range strings.FieldsSeq(clean) {
			if w = trimName(w); w != "" {
				from = p.name(value, from, w)
			}
		}
	}
	p.name(value, at.from, clean)
}

// cutName returns the name that Google's parser sees in a value: "*" alone or
// before white space, else what comes before the first octet that is neither a
// letter nor "-" nor "_".
func cutName(value string) string {
	if value[0] == '*' && (len(value) == 1 || blank(value[1])) {
		return "*"
	}
	end := 0
	for end < len(value) && (letter(value[end]) || value[end] == '-' || value[end] == '_') {
		end++
	}
	return strings.ToLower(value[:end])
}

// name adds a clean name, in lower case, to the open group. Where it stands as
// it is in value, at from or behind signs that are no part of names, it is not
// copied. The result is where it ends, or from.
func (p *parser) name(value span, from int, clean string) (end int) {
	if clean == "" {
		p.found(NamesNobody, value)
		return from
	}
	e := p.engine
	n := name{
		size:  uint16(len(clean)),
		value: uint32(value.from), valueSize: uint16(value.to - value.from),
		group: uint32(len(e.groups) - 1),
	}
	text := p.lines.text[:value.to]
	at := from
	for at < len(text) && text[at] != clean[0] && (!nameOctet(text[at]) || trimName(text[at:at+1]) == "") {
		at++
	}
	if prefixFold(text[at:], clean) {
		n.text, end = uint32(at), at+len(clean)
	} else {
		n.text, end = uint32(len(p.lines.text)+e.extra.Len()), from
		e.extra.WriteString(clean)
	}
	e.phrases = e.phrases || strings.IndexByte(clean, ' ') >= 0
	e.names = append(e.names, n)
	return end
}
