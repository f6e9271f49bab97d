package rules

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Finding is something odd in a robots.txt: what was repaired, ignored or is
// likely to be understood otherwise than it was meant.
type Finding struct {
	Kind   FindingKind
	Line   int // from 1; 0 for the file as a whole
	Column int // of the first character concerned, from 1; 0 for the file as a whole
	// Text is what is concerned, as the site wrote it, at most 200 octets of
	// it; empty for the file as a whole. It is hostile until escaped.
	Text string
}

// MaxFindings is how many findings Lint reports of one file, about.
const MaxFindings = 10_000

// minimumBytes is how much of a file every robot reads (RFC 9309 §2.5).
const minimumBytes = 500 << 10

// Lint returns what is odd in a file of origin, in the order of the file, as
// the profile reads it; what concerns the file as a whole comes first. It goes
// through the parser that New uses. Without an origin every absolute URL is
// another site's.
func Lint(profile Profile, origin Origin, body []byte) []Finding {
	l := linter{names: map[string]int{}}
	text, start, utf16, cut := read(body)
	switch {
	case cut:
		l.file(LongFile)
	case len(body) > minimumBytes:
		l.file(OverMinimum)
	}
	switch {
	case utf16:
		l.file(UTF16)
	case start == 3:
		l.file(ByteOrderMark)
	case start > 0:
		l.file(PartialMark)
	}
	p := parser{differences: profile.differences(), engine: &engine{text: text, start: start}, origin: origin}
	l.parser, p.find, p.watch = &p, l.found, &l
	p.parse(text, start)
	l.end()
	return l.findings
}

// linter makes findings of what the parser meets.
type linter struct {
	parser   *parser
	findings []Finding
	full     bool

	names   map[string]int // the groups that have a name, the last of them
	agent   span           // the value of the last user-agent line
	number  int            // the line it stands on
	blank   bool           // a blank line stands between it and this line
	between bool           // another field does
}

// file makes a finding of the file as a whole.
func (l *linter) file(kind FindingKind) { l.findings = append(l.findings, Finding{Kind: kind}) }

// found makes a finding of a place on the line being read.
func (l *linter) found(kind FindingKind, at span) {
	l.at(l.sharpen(kind, at), l.parser.lines.number, at)
}

// at makes a finding of a place.
func (l *linter) at(kind FindingKind, number int, at span) {
	switch {
	case len(l.findings) < MaxFindings:
	case l.full:
		return
	default:
		l.full = true
		l.file(MoreFindings)
		return
	}
	text := l.parser.lines.text
	line := max(l.parser.engine.start, strings.LastIndexAny(text[:at.from], "\r\n")+1)
	column := utf8.RuneCountInString(text[line:at.from]) + 1
	at.to = max(at.from, min(at.to, at.from+maxFindingText))
	l.findings = append(l.findings, Finding{Kind: kind, Line: number, Column: column, Text: text[at.from:at.to]})
}

const maxFindingText = 200

// end adds what can be said when the whole file is read, and brings all
// findings into the order of the file.
func (l *linter) end() {
	p := l.parser
	if p.stars > MaxWildcards {
		l.file(ManyWildcards)
	}
	switch text := p.lines.text[p.engine.start:]; {
	case p.rules == 0 && looksBinary(text):
		l.findings = []Finding{{Kind: BinaryFile}} // its lines are none
		return
	case p.rules == 0 && looksLikeHTML(text):
		l.file(HTMLPage)
	case len(p.engine.groups) == 0 && len(l.findings) == 0 && strings.TrimSpace(text) != "":
		l.file(NoGroup)
	}
	if p.open && !p.inRules {
		l.at(EmptyGroup, l.number, l.agent)
	}
	l.compareRules()
	slices.SortStableFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// magics are what files begin with that are no text.
var magics = []string{"\x1f\x8b", "\x89PNG", "%PDF-", "PK\x03\x04", "\x7fELF", "GIF8", "\xff\xd8\xff", "RIFF", "BZh", "\xfd7zXZ", "\x28\xb5\x2f\xfd", "MZ"}

// looksBinary reports whether a file without a rule is no text at all.
func looksBinary(text string) bool {
	for _, magic := range magics {
		if strings.HasPrefix(text, magic) {
			return true
		}
	}
	return strings.Count(text[:min(len(text), 4096)], "\x00") > 8
}
