package rules

import (
	"fmt"
	"strings"

	"heed/rules/slips"
)

// lostLine is a line without effect, and why.
type lostLine struct {
	number int
	kind   FindingKind
}

const (
	maxLost = 3    // lines without effect that are named
	maxJunk = 1000 // lines that are no fields and are looked at for one
)

// lose reports that the line has no effect. It remembers the line if it was meant to have one:
// a comment or a field that other robots know is no loss.
func (p *parser) lose(kind FindingKind, at span) {
	p.report(kind, at)
	if kind == noField || kind == unknownLine {
		if letter(p.lines.text[at.from]) || p.junk == maxJunk {
			return
		}
		p.junk++
		if kind = hiddenField(p.lines.text[at.from:at.to]); kind == "" {
			return
		}
	}
	if p.lostLines++; len(p.lost) < maxLost {
		p.lost = append(p.lost, lostLine{p.lines.number, kind})
	}
}

// hiddenField returns the kind of what is before the field of RFC 9309 with which a line, or the
// part of it before the colon, begins but for that; empty when there is none.
func hiddenField(text string) FindingKind {
	rest, invisible := slips.Behind(text[:min(len(text), 200)])
	if len(rest) == len(text) {
		return ""
	}
	key, _, _ := strings.Cut(rest, ":")
	switch kind, _ := fieldOf(strings.TrimRight(key, " \t")); {
	case kind == fieldUnknown || kind > fieldDisallow:
		return ""
	case invisible:
		return hiddenCharacter
	}
	return prefixedField
}

// lostNote returns the Source.Note about lines without effect; empty for none.
func (p *parser) lostNote() string {
	var each []string
	for _, l := range p.lost {
		each = append(each, fmt.Sprintf("line %d (%s)", l.number, l.kind))
	}
	switch more := p.lostLines - len(each); {
	case p.lostLines == 1:
		return each[0] + " has no effect"
	case more > 0:
		each = append(each, fmt.Sprintf("%d more", more))
	}
	return strings.Join(each, ", ") + " have no effect"
}
