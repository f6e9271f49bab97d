// Package lint finds what is odd in a robots.txt, for people: faults, accidents and habits that
// robots read in different ways. It watches the parser of package rules, and decides nothing: a
// file has its meaning without regard to it.
package lint

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"heed/rules"
)

// Finding is a fault or an oddity in a robots.txt: something that was repaired,
// ignored, or that robots may understand in another way than intended.
type Finding struct {
	Kind   Kind
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
// the profile reads it; those about the file as a whole are first. Without an origin every
// absolute URL is another site's.
func Lint(profile rules.Profile, origin rules.Origin, body []byte) []Finding {
	l := linter{cutNames: profile == rules.Google, names: map[string]int{}}
	file := rules.Watch(profile, origin, body, &l)
	if file.Rules == 0 && isBinary(file.Text[file.Start:]) {
		return []Finding{{Kind: binaryFile}} // its lines mean nothing
	}
	if file.InGroup && !file.InRules {
		l.add(emptyGroup, &file.Progress, l.number, l.agent)
	}
	l.compareRules(file)
	for _, kind := range l.whole(file, len(body)) {
		l.findings = append(l.findings, Finding{Kind: kind})
	}
	slices.SortStableFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return l.findings
}

// linter makes findings of what it is shown of a file.
type linter struct {
	findings []Finding
	full     bool
	cutNames bool // names end before the first octet that is no letter, "-" or "_"

	names   map[string]int // the groups that have a name, the last of them
	agent   rules.Part     // the value of the last user-agent line
	number  int            // its line
	blank   bool           // a blank line is between it and this line
	between bool           // another field is
}

// found adds a finding about the line being read.
func (l *linter) found(kind Kind, at rules.Progress, part rules.Part) {
	l.add(kind, &at, at.Line, part)
}

// add adds a finding about part of a line.
func (l *linter) add(kind Kind, file *rules.Progress, number int, part rules.Part) {
	if len(l.findings) >= MaxFindings {
		l.full = true
		return
	}
	line := max(file.Start, strings.LastIndexAny(file.Text[:part.From], "\r\n")+1)
	column := utf8.RuneCountInString(file.Text[line:part.From]) + 1
	for i := len(l.findings) - 1; i >= 0 && l.findings[i].Line == number; i-- {
		if l.findings[i].Kind == kind && l.findings[i].Column == column {
			return // it was found in two ways, or in two names of the line
		}
	}
	part.To = max(part.From, min(part.To, part.From+maxFindingText))
	l.findings = append(l.findings, Finding{Kind: kind, Line: number, Column: column, Text: part.Of(file.Text)})
}

const maxFindingText = 200

// whole returns the kinds of the findings about a whole file, of that many bytes.
func (l *linter) whole(f *rules.Watched, size int) (kinds []Kind) {
	note := func(is bool, kind Kind) {
		if is {
			kinds = append(kinds, kind)
		}
	}
	note(f.Cut, longFile)
	note(!f.Cut && size > minimumBytes, overMinimum)
	note(f.UTF16, inUTF16)
	note(f.Start == 3, byteOrderMark)
	note(f.Start == 1 || f.Start == 2, partialMark)
	note(l.full, moreFindings)
	note(f.Wildcards > rules.MaxWildcards, manyWildcards)
	note(f.NameWords > rules.MaxNameWords, manyWords)
	note(f.HTML, htmlPage)
	note(f.Groups == 0 && len(l.findings)+len(kinds) == 0 && strings.TrimSpace(f.Text) != "", noGroup)
	return kinds
}
