package rules

import (
	"cmp"
	"fmt"
	"strings"

	"heed/internal/base/memo"
)

// lostLine is a line without effect, and why.
type lostLine struct {
	number int
	kind   string // as Watcher.Odd is called with
}

const (
	maxLost = 3    // lines without effect that are named
	maxJunk = 1000 // lines that are no fields and are looked at for one
)

// lose reports that the line has no effect. It remembers the line if it was meant to have one:
// a comment or a field that other robots know is no loss.
func (p *parser) lose(kind string, at Part) {
	junk, hidden := kind == noField || kind == unknownLine, ""
	looked := junk && !letter(p.lines.text[at.From]) && p.junk < maxJunk
	if looked || junk && p.watcher != nil {
		hidden = hiddenField(at.Of(p.lines.text))
	}
	p.odd(cmp.Or(hidden, kind), at)
	if looked {
		p.junk++
		kind = hidden
	}
	if kind == "" || junk && !looked {
		return
	}
	if p.lostLines++; len(p.lost) < maxLost {
		p.lost = append(p.lost, lostLine{p.lines.number, kind})
	}
}

// hiddenField returns the kind of what is before the field of RFC 9309 with which a line, or the
// part of it before the colon, begins but for that; empty when there is none.
func hiddenField(text string) string {
	rest, invisible := behind(text[:min(len(text), 200)])
	if len(rest) == len(text) {
		return ""
	}
	key, _, _ := strings.Cut(rest, ":")
	switch kind, _ := fieldOf(strings.TrimRight(key, " \t")); {
	case kind == fieldUnknown || kind > fieldDisallow:
		return ""
	case invisible:
		return "hidden-character"
	}
	return "prefixed-field"
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

// prefix is what people write before a field: bullets, numbers, marks of comments and of
// quotations, tags.
var prefix = memo.Expression(`^(?:\s|[-*•·‣▪◦–—>|+=~"'“”` + "`" + `(\[/;:!.,_]|\d{1,4}[.):]|<[^<>]{0,80}>|&[a-z]{2,6};)+`)

// behind returns the rest of a line behind signs that hide a field from robots, and whether
// these are only characters that cannot be seen. It is the line itself if there are none.
func behind(line string) (rest string, invisible bool) {
	if rest = TrimUnseen(line); rest != line && !prefix().MatchString(rest) {
		return rest, true
	}
	for before := ""; before != rest; {
		before = rest
		rest = TrimUnseen(rest[len(prefix().FindString(rest)):])
	}
	return rest, false
}
