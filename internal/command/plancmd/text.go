package plancmd

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"heed/internal/analysis/plan"
	"heed/internal/check/why"
	"heed/internal/control"
	"heed/internal/judge/reason"
	"heed/internal/output/console"
	"heed/internal/output/figures"
	"heed/internal/output/table"
	"heed/rules"
)

// Bounds of what is printed for people.
const (
	causesShown   = 5  // of a site
	problemsShown = 20 // of the lists
)

// text prints what an agent gets from a site for people: a row, and what it rests on in the
// lines below, unless these are the ones above.
func (o *output) text(s *plan.Site, i int, above []string) (lines []string, err error) {
	c := &s.Columns[i]
	cells := row(s, c)
	if i > 0 {
		cells[0] = ""
	}
	if lines = reasons(c); s.Partial {
		lines = append(lines, "interrupted: not all of its pages are judged")
	}
	if _, err = fmt.Fprintln(o.w, o.layout.Row(selected(o, cells))); slices.Equal(lines, above) {
		return lines, err
	}
	for _, text := range lines {
		_, err = fmt.Fprintln(o.w, "    "+text)
	}
	return lines, err
}

// reasons explains the numbers of a column.
func reasons(c *plan.Column) (lines []string) {
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	causes, others := c.Causes()
	for i := range causes {
		if i == causesShown {
			rest := others
			for _, more := range causes[i:] {
				rest += more.Pages
			}
			line("%s refused for other reasons", figures.Number(rest, "page"))
			break
		}
		line("%s refused: %s", figures.Number(causes[i].Pages, "page"), causeText(&causes[i]))
	}
	if c.Unavailable != "" {
		line("without its rules heed requests nothing there, and answers 502 or 503 until it can read them")
	}
	if c.Observed && c.Refused() > 0 {
		line("the client is only observed: heed requests the refused pages as well")
	}
	return append(lines, delayText(c)...)
}

// causeText describes why pages are refused.
func causeText(c *plan.Cause) string {
	a := &control.Judgement{Reason: c.Reason, Rule: c.Rule, Line: c.Line, Group: c.Group, Detail: c.Detail}
	if c.Reason == rules.ReasonOverride {
		a.Settled, a.Detail = c.Detail, ""
	}
	return why.Line(a)
}

// robotsText describes the robots.txt of a site, for a column.
func robotsText(c *plan.Column) string {
	a := c.First
	age := " " + (time.Duration(a.Age) * time.Second).String() + " old"
	if a.By == why.ByHeed || a.Stale {
		age = "," + age
	}
	switch {
	case a.State == "":
		return "not needed"
	case a.By == why.ByOperator:
		return "by robots_file"
	case a.Stale:
		return "stale" + age
	case a.State == "unreachable":
		return a.State
	case a.By == "site" && a.State == "unavailable":
		return "none"
	case a.By == "site":
		return "just now"
	case a.State == "unavailable":
		return "none" + age
	}
	return strings.TrimLeft(age, ", ")
}

// delayOf returns what is known of the delay; never nil.
func delayOf(c *plan.Column) *control.Delay {
	if d := c.First.Delay; d != nil {
		return d
	}
	return &control.Delay{}
}

// delayText explains a delay, and what heed does at max_wait.
func delayText(c *plan.Column) (lines []string) {
	d := delayOf(c)
	if lines = why.DelayLines(c.First); lines == nil {
		return nil
	}
	wait := table.Seconds.Cell(d.MaxWait)
	together := "only the first is"
	switch {
	case d.Unkept:
		return append(lines, "the client is only observed: its requests do not wait")
	case d.Seconds == 0:
		return lines
	case d.Seconds <= d.MaxWait:
		together = fmt.Sprintf("the first %d are", int64(d.MaxWait/d.Seconds)+1)
	}
	lines = append(lines, fmt.Sprintf("a request waits at most %s for its turn (max_wait): of those sent together %s sent, others get 429 with Retry-After", wait, together))
	if len(d.Visits) > 0 {
		lines = append(lines, fmt.Sprintf("requests start only at certain times of the day (%s): %s of it", console.Quoted(strings.Join(d.Visits, "; ")), table.Share.Cell(d.Open)))
	}
	return lines
}

// totalText prints the end for people.
func (o *output) totalText(s *summary) {
	p := s.Progress
	if s.Interrupted {
		fmt.Fprintf(o.w, "\nInterrupted: %s of %s are judged; %s of %s are complete.\n", figures.Commas(p.Judged), figures.Number(p.URLs, "page"), figures.Commas(p.Done), figures.Number(p.Sites, "site"))
	}
	fmt.Fprintf(o.w, "\n%s of %s", figures.Number(p.Judged, "page"), figures.Number(p.Sites, "site"))
	if len(s.Totals) == 1 {
		fmt.Fprintf(o.w, ": %s", s.Totals[0].Counts.Words(figures.Commas))
	}
	fmt.Fprintln(o.w, ".")
	for i := range s.Totals {
		namesText(o.w, &s.Totals[i])
	}
	if len(s.Totals) > 1 {
		o.agents(s.Totals)
	}
	if len(s.Totals) == 1 {
		o.change(&s.Totals[0])
	}
	problemsText(o.w, "", s)
}

// namesText prints the names that an agent is judged under, where it is not a name itself.
func namesText(w io.Writer, t *plan.Total) {
	agent, names := console.Quoted(t.Agent), console.Quoted(strings.Join(t.Names, ", "))
	switch {
	case len(t.Names) == 0:
		fmt.Fprintf(w, "--agent \"%s\" has no product token: the rules for all robots (*) apply.\n", agent)
	case len(t.Names) > 1:
		fmt.Fprintf(w, "--agent \"%s\" is judged as %s: the rules that a site has for these names all count.\n", agent, names)
	case !strings.EqualFold(names, agent):
		fmt.Fprintf(w, "--agent \"%s\" is judged as %s.\n", agent, names)
	}
}

// agents prints a table of what each agent gets.
func (o *output) agents(totals []plan.Total) {
	list := []table.Column{{Head: "agent"}}
	var shown []reason.Class
	for _, k := range reason.Classes() {
		for i := range totals {
			if k == reason.Allowed || totals[i].Counts[k] > 0 {
				shown = append(shown, k)
				list = append(list, table.Column{Head: k.String(), Kind: table.Count})
				break
			}
		}
	}
	list = append(list, table.Column{Head: "time", Kind: table.Seconds}, table.Column{Head: "longest site"})
	t := &table.Table{Columns: list}
	for i := range totals {
		total := &totals[i]
		cells := []any{total.Agent}
		for _, k := range shown {
			cells = append(cells, total.Counts[k])
		}
		longest := any(nil)
		if len(total.Longest) > 0 {
			longest = total.Longest[0].Site
		}
		t.Rows = append(t.Rows, append(cells, tidy(total.Seconds), longest))
	}
	fmt.Fprintf(o.w, "\n%s\n\n", strings.Join(t.Lines(), "\n"))
}

// change prints what decides how long the crawl takes, and what would change it.
func (o *output) change(t *plan.Total) {
	if t.Unavailable > 0 {
		fmt.Fprintf(o.w, "The rules of %s cannot be had; their pages may be allowed later.\n", figures.Number(t.Unavailable, "site"))
	}
	if len(t.Longest) == 0 {
		fmt.Fprintln(o.w, "No site has a delay: the sites decide how long it takes, not heed.")
		return
	}
	first := &t.Longest[0]
	fmt.Fprintf(o.w, "It takes at least %s, beside the transfers: %s decides, with %s at %s.\n", table.Seconds.Cell(tidy(t.Seconds)),
		console.Quoted(first.Site), figures.Number(first.Pages, "request"), table.Seconds.Cell(first.Delay))
	switch {
	case len(t.Longest) > 1:
		second := &t.Longest[1]
		fmt.Fprintf(o.w, "Without it %s, by %s. All sites one after the other: %s.\n", table.Seconds.Cell(tidy(second.Seconds)), console.Quoted(second.Site), table.Seconds.Cell(tidy(t.InTurn)))
	default:
		fmt.Fprintln(o.w, "No other site has a delay.")
	}
	if t.Rejecting > 0 {
		fmt.Fprintf(o.w, "The delay of %s is longer than max_wait: the client must wait itself, or be given a longer max_wait.\n", figures.Number(t.Rejecting, "site"))
	}
	fmt.Fprintln(o.w, "What another name or profile would change: add --agent NAME, or --profile NAME.")
}

// problemsText prints what could not be used.
func problemsText(w io.Writer, before string, s *summary) {
	for i, p := range s.Problems {
		if i == problemsShown {
			fmt.Fprintf(w, "%sand %s more\n", before, figures.Number(int64(len(s.Problems)-i), "reason"))
			return
		}
		if i == 0 && before == "" {
			fmt.Fprintln(w, "\nNot used:")
		}
		fmt.Fprintf(w, "%s  %s (%s): %s\n", before, figures.Commas(p.Count), console.Quoted(strings.Join(p.Places, ", ")), console.Quoted(p.String()))
	}
}
