package rules

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"heed/rules/slips"
)

// Finding is a fault or an oddity in a robots.txt: something that was repaired,
// ignored, or that robots may understand in another way than intended.
type Finding struct {
	Kind   FindingKind
	Line   int // from 1; 0 for the file as a whole
	Column int // of the first character concerned, from 1; 0 for the file as a whole
	// Text is the part concerned, as the site wrote it, at most 200 octets;
	// empty for the file as a whole. It is hostile until escaped.
	Text string
}

// MaxFindings is about the most findings that Lint reports for one file.
const MaxFindings = 10_000

// minimumBytes is the size up to which every robot reads a file (RFC 9309 §2.5).
const minimumBytes = 500 << 10

// Lint returns the findings about a file of origin, in the order of the file, as
// the profile reads it; those about the file as a whole are first. It uses the
// same parser as New. Without an origin every absolute URL is
// another site's.
func Lint(profile Profile, origin Origin, body []byte) []Finding {
	l := linter{names: map[string]int{}}
	text, start, utf16, cut := read(body)
	switch {
	case cut:
		l.file(longFile)
	case len(body) > minimumBytes:
		l.file(overMinimum)
	}
	switch {
	case utf16:
		l.file(inUTF16)
	case start == 3:
		l.file(byteOrderMark)
	case start > 0:
		l.file(partialMark)
	}
	p := parser{differences: profile.differences(), file: &file{text: text, start: start}, origin: origin}
	l.parser, p.onFinding, p.linter = &p, l.report, &l
	p.parse(text, start)
	l.end()
	return l.findings
}

// linter turns what the parser reports into findings.
type linter struct {
	parser   *parser
	findings []Finding
	full     bool

	names   map[string]int // the groups that have a name, the last of them
	agent   span           // the value of the last user-agent line
	number  int            // its line
	blank   bool           // a blank line is between it and this line
	between bool           // another field is
}

// file adds a finding of the file as a whole.
func (l *linter) file(kind FindingKind) { l.findings = append(l.findings, Finding{Kind: kind}) }

// found adds a finding about the line being read.
func (l *linter) report(kind FindingKind, at span) {
	l.at(l.refine(kind, at), l.parser.lines.number, at)
}

// at adds a finding about part of a line.
func (l *linter) at(kind FindingKind, number int, at span) {
	switch {
	case len(l.findings) < MaxFindings:
	case l.full:
		return
	default:
		l.full = true
		l.file(moreFindings)
		return
	}
	text := l.parser.lines.text
	line := max(l.parser.file.start, strings.LastIndexAny(text[:at.from], "\r\n")+1)
	column := utf8.RuneCountInString(text[line:at.from]) + 1
	for i := len(l.findings) - 1; i >= 0 && l.findings[i].Line == number; i-- {
		if kind == hiddenCharacter && l.findings[i].Kind == kind && l.findings[i].Column == column {
			return // it was found in two ways
		}
	}
	at.to = max(at.from, min(at.to, at.from+maxFindingText))
	l.findings = append(l.findings, Finding{Kind: kind, Line: number, Column: column, Text: text[at.from:at.to]})
}

const maxFindingText = 200

// end adds the findings that need the whole file, and sorts all findings in the
// order of the file.
func (l *linter) end() {
	p := l.parser
	if p.stars > MaxWildcards {
		l.file(manyWildcards)
	}
	if p.file.words > MaxNameWords {
		l.file(manyWords)
	}
	switch text := p.lines.text[p.file.start:]; {
	case p.rules == 0 && slips.IsBinary(text):
		l.findings = []Finding{{Kind: binaryFile}} // its lines mean nothing
		return
	case p.rules == 0 && looksLikeHTML(text):
		l.file(htmlPage)
	case len(p.file.groups) == 0 && len(l.findings) == 0 && strings.TrimSpace(text) != "":
		l.file(noGroup)
	}
	if p.open && !p.inRules {
		l.at(emptyGroup, l.number, l.agent)
	}
	l.compareRules()
	slices.SortStableFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
