package study

import (
	"fmt"
	"strings"

	"heed/internal/accesslog"
	"heed/internal/figures"
)

// unparsedLines is the row of the lines that are no requests.
const unparsedLines = "unparsed lines"

// takeCounts adds what the reader of the logs counted.
func (s *Study) takeCounts(c accesslog.Counts) {
	add := func(what string, value any) { s.total.lines = append(s.total.lines, []any{what, value}) }
	add("lines", c.Lines)
	add(unparsedLines, c.Unparsed)
	for _, p := range c.Problems {
		lines := strings.Join(p.Lines, ", ")
		if p.Count > int64(len(p.Lines)) {
			lines += ", ..."
		}
		add("unparsed: "+p.Reason, fmt.Sprintf("%s (%s)", figures.Commas(p.Count), lines))
	}
	if c.Cut > 0 {
		add("lines cut after 1 MiB", c.Cut)
	}
	add("clock steps back of more than an hour", c.Steps)
	for _, name := range c.Truncated {
		s.total.notes = append(s.total.notes, name+" ends early: what follows the damage was not read")
	}
}
