package auditcmd

import (
	"fmt"
	"strings"

	"heed/internal/audit/replay"
	"heed/internal/console"
	"heed/internal/why"
)

// statementText returns a statement with its place.
func statementText(x *replay.StatementUse) string {
	text := console.Quoted(x.URL)
	if x.Line > 0 {
		text += fmt.Sprintf(", line %d", x.Line)
	}
	return console.Quoted(x.Text) + " (" + text + ")"
}

// uses prints what would have become of requests for other purposes.
func (p *replayPrinter) uses(u *replay.Uses) {
	var names []string
	for _, purpose := range u.Purposes {
		names = append(names, string(purpose))
	}
	p.line("if the clients had stated the purpose %s, of %s that robots.txt allows:", strings.Join(names, ", "), console.Plural(uint64(u.Judged), "request"))
	p.line("  %9d  refused by what the site states", u.Refused)
	p.line("  %9d  allowed: all that could refuse them was read", u.Allowed)
	p.count(u.Silent, "silent: all that could refuse them was read, and the site states nothing")
	p.count(u.Unknown, "unknown, since not all was read:")
	for _, w := range u.Unknowns {
		p.line("             %9d  %s", w.Count, w.Why)
	}
	p.count(u.NotRecorded, "not recorded: the answer was no page, and the record has no statement of the site")
	if len(u.Categories) > 1 {
		for _, c := range u.Categories {
			p.line("  %s (%s): %d refused, %d allowed, %d silent, %d unknown, %d not recorded", c.Purpose, c.Category, c.Refused, c.Allowed, c.Silent, c.Unknown, c.NotRecorded)
		}
	}
	why.Listed(u.Sites, func(_ int, s *replay.SiteUse) { p.usesOf(s) },
		func(n int) { p.line("  and %s", console.Plural(uint64(n+u.Further), "further site")) })
}

// usesOf prints the requests to one site, and the statements that would have refused them.
func (p *replayPrinter) usesOf(s *replay.SiteUse) {
	p.line("  %s: %d of %s refused", console.Quoted(s.Site), s.Refused, console.Plural(uint64(s.Judged), "request"))
	others := s.OtherStatements
	for i := range s.Statements {
		x := &s.Statements[i]
		if i >= why.MaxListed {
			others += x.Count
			continue
		}
		text := console.Quoted(x.Detail)
		if x.Text != "" {
			text += ": " + statementText(x)
		}
		p.line("      %6d  %s", x.Count, text)
	}
	if others > 0 {
		p.line("      %6d  by other statements; --json lists more of them", others)
	}
}
