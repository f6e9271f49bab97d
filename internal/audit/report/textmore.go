package report

import (
	"fmt"
	"strings"
)

func (t *text) changes(r *Report) {
	if len(r.Changes) == 0 {
		return
	}
	t.title("robots.txt that changed")
	limited(t, r.Changes, func(c *Change) {
		t.line(Printable(c.Site), stamp(c.After.Time), c.Words())
		if c.Diff == "" {
			return
		}
		_ = t.Flush()
		n := 0
		for line := range strings.Lines(c.Diff) {
			if n++; n > mostRows {
				fmt.Fprintln(t, "    ...")
				break
			}
			fmt.Fprintln(t, "    "+Printable(strings.TrimRight(line, "\r\n")))
		}
		if c.Cut {
			fmt.Fprintln(t, "    ... (cut)")
		}
	})
}

// Words says what was there before and after.
func (c *Change) Words() string {
	what := func(a *Answer) string {
		if a.SHA256 == "" {
			return fmt.Sprintf("no file (%d)", a.Status)
		}
		return "file " + a.SHA256[:min(12, len(a.SHA256))]
	}
	words := what(&c.Before) + " -> " + what(&c.After)
	if c.AskedAs != "" {
		words += ", asked as " + Printable(c.AskedAs)
	}
	return words
}

func (t *text) conduct(r *Report) {
	if !r.Query.Conduct {
		return
	}
	t.title("Conduct: what clients did of their own accord")
	t.line("agent", "site", "requests", "robots.txt", "not allowed", "delay", "kept", "kept as sent", "median gap", "5 %", "fastest minute", "repeated", "User-Agents")
	limited(t, r.Conduct, func(c *Conduct) {
		t.line(Printable(c.Agent), Printable(c.Site), commas(c.Requests), c.Robots(), share(c.BreachShare), gapTime(c.Asked.Delay), share(c.Asked.Kept), share(c.Sent.Kept),
			gapTime(c.Asked.Median), gapTime(c.Asked.P5), c.Fastest, commas(c.Repeated), len(c.Agents))
	})
}

// Robots says when and how often the client itself asked for /robots.txt.
func (c *Conduct) Robots() string {
	switch {
	case c.RobotsAsked == 0:
		return "never asked"
	case c.RobotsBeforePages:
		return fmt.Sprintf("%d x, first", c.RobotsAsked)
	}
	return fmt.Sprintf("%d x, after pages", c.RobotsAsked)
}
