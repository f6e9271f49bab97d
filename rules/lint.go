package rules

import (
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

// MaxFindings is how many findings Lint reports of one file.
const MaxFindings = 10_000

// Lint returns what is odd in a file of origin, in the order of the file, as
// the profile reads it. It goes through the parser that New uses. Without an
// origin every absolute URL is another site's.
func Lint(profile Profile, origin Origin, body []byte) []Finding {
	var findings []Finding
	file := func(kind FindingKind) { findings = append(findings, Finding{Kind: kind}) }
	body, cut := whole(body)
	if cut {
		file(LongFile)
	}
	text, start, utf16 := decode(body)
	switch {
	case utf16:
		file(UTF16)
	case start == 3:
		file(ByteOrderMark)
	case start > 0:
		file(PartialMark)
	}
	p := parser{differences: profile.differences(), engine: &engine{text: text, start: start}, origin: origin}
	p.find = func(kind FindingKind, at span) {
		if len(findings) < MaxFindings {
			findings = append(findings, p.finding(kind, at, start))
		}
	}
	p.parse(text, start)
	if p.stars > MaxWildcards {
		file(ManyWildcards)
	}
	if p.rules == 0 && looksLikeHTML(text[start:]) {
		file(HTMLPage)
	}
	return findings
}

// finding makes a finding of a place on the line being read.
func (p *parser) finding(kind FindingKind, at span, start int) Finding {
	text := p.lines.text
	line := max(start, strings.LastIndexAny(text[:at.from], "\r\n")+1)
	column := utf8.RuneCountInString(text[line:at.from]) + 1
	at.to = max(at.from, min(at.to, at.from+200))
	return Finding{Kind: kind, Line: p.lines.number, Column: column, Text: text[at.from:at.to]}
}
