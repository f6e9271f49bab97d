package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"heed/internal/audit/uses"
	"heed/internal/base/safetext"
	"heed/internal/judge/reason"
	"heed/internal/output/figures"
	"heed/internal/output/table"
	"heed/rules"
)

// mostRows is how many rows of a list are shown to people; programs get all.
const mostRows = 20

// WriteText writes the report for people, as plain text. Of long lists it shows
// the first rows and says how many more there are.
func (r *Report) WriteText(w io.Writer) error {
	var t text
	t.facts(r)
	if r.Total.Requests > 0 {
		for _, c := range r.chapters(mostRows) {
			t.chapter(&c)
		}
		t.changes(r)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// text is the report as plain text.
type text struct{ strings.Builder }

func (t *text) lines(lines ...string) {
	for _, line := range lines {
		t.WriteString(line + "\n")
	}
}

func (t *text) chapter(c *chapter) {
	t.lines("", c.Title)
	if c.Note != "" {
		t.lines(table.Wrap(c.Note, ""))
	}
	t.lines(c.AsText().Lines()...)
	t.more(c.More)
}

// more says how many rows are left out.
func (t *text) more(n int64) {
	if n > 0 {
		t.lines("... and " + figures.Commas(n) + " more (--json and --csv have all)")
	}
}

// facts are what the numbers are of, and the sums.
func (t *text) facts(r *Report) {
	f := &table.Table{Columns: []table.Column{{}, {Kind: table.Sentence}}}
	line := func(what, value string) { f.Rows = append(f.Rows, []any{what, value}) }
	r.origin(line)
	if r.Total.Requests > 0 {
		r.sums(line)
	}
	t.lines(f.Lines()...)
}

// origin says what the numbers are of.
func (r *Report) origin(line func(what, value string)) {
	for i := range r.Records {
		f := &r.Records[i]
		line("record", safetext.Visible(f.Name)+", "+figures.Number(f.Decisions, "decision"))
		if f.Decisions > 0 {
			line("", fmt.Sprintf("%s to %s, heed %s", stamp(f.First), stamp(f.Last), safetext.Visible(strings.Join(f.Heeds, ", "))))
			line("", "judged by "+engines(f.Engines))
		}
		for _, note := range f.Notes {
			line("", "note: "+safetext.Visible(note))
		}
		if f.Elsewhere > 0 {
			line("", figures.Number(f.Elsewhere, "decision")+" of it are in a file before it too, and count once")
		}
		if f.Pruned > 0 {
			line("", figures.Number(f.Pruned, "decision")+" before that are no longer kept")
		}
		if f.Head != "" {
			line("", fmt.Sprintf("head: commit %d, %s", f.Commit, f.Head))
			line("", "not verified by this report: see heed audit verify")
		}
	}
	if r.Window != "" {
		line("about", safetext.Visible(r.Window))
	}
	if r.ClockBack > 0 {
		line("clock", "went back "+figures.Number(r.ClockBack, "time")+": the order of the record is that of its rows")
	}
	if r.Exempt > 0 {
		line("exempt", figures.Number(r.Exempt, "request")+" of people: only counted")
	}
	for _, g := range r.Gaps {
		line("UNRECORDED", safetext.Visible(g.String()))
	}
	if r.Unrecorded > 0 {
		line("UNRECORDED", figures.Number(r.Unrecorded, "request")+" that the record could not be written for, let through by [audit] on_failure")
	}
	if r.Asked > 0 {
		line("asked besides", figures.Number(r.Asked, "request")+" of heed for robots.txt under the name of a client, after 401 or 403 (--paper: events)")
	}
	if r.Total.Requests == 0 {
		line("requests", "none")
	}
}

// sums says what became of all requests.
func (r *Report) sums(line func(what, value string)) {
	c := &r.Total
	line("requests", fmt.Sprintf("%s: %s", figures.Commas(c.Requests), c.Words()))
	if observed := c.Observed(); observed != "" {
		line("only observed", observed)
	}
	for _, words := range r.Obeyed() {
		line("also obeyed", words)
	}
	line("coverage", c.coverage())
	if c.Waited > 0 {
		line("waited", c.Waits())
	}
	line("answered", figures.Size(c.Bytes)+" of bodies, as clients received them")
	if c.BytesIn > 0 {
		line("uploaded", figures.Size(c.BytesIn)+" of bodies, as clients sent them")
	}
	if c.SiteRefused > 0 {
		line("refused by sites", figures.Commas(c.SiteRefused))
	}
	if c.Unknown > 0 {
		line("end not recorded", figures.Commas(c.Unknown)+" (still open, or heed was killed)")
	}
}

// Obeyed returns which agents obeyed the groups for other names than their own, and which.
func (r *Report) Obeyed() (list []string) {
	for i := range r.Agents {
		if a := &r.Agents[i]; len(a.AlsoObey) > 0 {
			list = append(list, safetext.Visible(a.Name+": the groups for "+strings.Join(a.AlsoObey, ", ")))
		}
	}
	return list
}

// ByTitle returns By as a heading: Agents, Addresses or Users.
func (r *Report) ByTitle() string {
	return map[string]string{ByAgent: "Agents", ByAddress: "Addresses", ByUser: "Users"}[r.By]
}

// Where says which addresses an agent asked from.
func (a *AgentPart) Where() string {
	switch len(a.Clients) {
	case 1:
		return safetext.Visible(a.Clients[0].Address)
	case 2:
		return safetext.Visible(a.Clients[0].Address + ", " + a.Clients[1].Address)
	}
	return fmt.Sprintf("%s and %d more", safetext.Visible(a.Clients[0].Address), len(a.Clients)-1)
}

// judgedBy returns what was judged: path, host or neither.
func (r *Reason) judgedBy() string {
	if r.Judged == judgedNo {
		return "not judged"
	}
	return r.Judged
}

// Why says in a line what decided; the texts in it are escaped.
func (d *Deciding) Why() string {
	why := words(d.Reason)
	switch {
	case d.Line > 0 && !uses.BySignal(d.Reason): // a statement may be on a line of a page
		why = fmt.Sprintf("robots.txt line %d %s (group %s)", d.Line, safetext.Visible(d.Rule), safetext.Visible(d.Group))
	case d.Rule != "":
		why += ": " + safetext.Visible(d.Rule)
	}
	if d.Settled != "" {
		why += ", because: " + safetext.Visible(d.Settled)
	}
	return why
}

func (t *text) changes(r *Report) {
	if len(r.Changes) == 0 {
		return
	}
	t.lines("", "robots.txt that changed")
	for i := range r.Changes[:min(len(r.Changes), mostRows)] {
		c, n := &r.Changes[i], 0
		t.lines(safetext.Visible(c.Site) + "  " + stamp(c.After.Time) + "  " + c.Words())
		for line := range strings.Lines(c.Diff) {
			if n++; n > mostRows {
				t.lines("    ...")
				break
			}
			t.lines("    " + safetext.Visible(strings.TrimRight(line, "\r\n")))
		}
		if c.Cut {
			t.lines("    ... (cut)")
		}
	}
	t.more(int64(len(r.Changes) - mostRows))
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
		words += ", asked as " + safetext.Visible(c.AskedAs)
	}
	return words
}

// Robots says when and how often the client itself asked for /robots.txt.
func (c *Conduct) Robots() string {
	switch {
	case c.RobotsAsked == 0 && c.Tunnels > 0:
		return "not seen" // it may have asked in a tunnel
	case c.RobotsAsked == 0:
		return "never asked"
	case c.RobotsBeforePages:
		return fmt.Sprintf("%d x, first", c.RobotsAsked)
	}
	return fmt.Sprintf("%d x, after pages", c.RobotsAsked)
}

// span writes seconds as a person reads them.
func span(s Seconds) string {
	d := time.Duration(s) * time.Microsecond
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// spanCell returns seconds as a cell; nil for none.
func spanCell(s Seconds) any {
	if s == 0 {
		return nil
	}
	return span(s)
}

func gapTime(s *Seconds) any {
	if s == nil {
		return nil
	}
	return span(max(*s, 1))
}

// words returns the phrase for a reason of a record.
func words(r string) string { return safetext.Visible(reason.Of(rules.Reason(r)).Words) }

// Words says what became of the requests.
func (c *Counts) Words() string { return c.Classes.Words(figures.Commas) }

// Observed says what became of those that were only observed; empty: none was.
func (c *Counts) Observed() string {
	words := c.WouldBe.OnlyWords(figures.Commas)
	if words == "" {
		return ""
	}
	return figures.Number(c.WouldBe.Sum(), "request") + ", which would be: " + words
}

// coverage says by what the requests were judged.
func (c *Counts) coverage() string {
	path := c.Requests - c.NotJudged - c.ByHost
	if c.NotJudged+c.ByHost == 0 {
		return "all judged by their path"
	}
	text := figures.Percent(path, c.Requests) + " judged by their path"
	if c.ByHost > 0 {
		text += ", " + figures.Percent(c.ByHost, c.Requests) + " by their host alone"
	}
	if c.NotJudged > 0 {
		text += "; " + figures.Percent(c.NotJudged, c.Requests) + " could not be judged at all"
	}
	return text
}

// engines names the rules engines with these numbers.
func engines(numbers []int64) string {
	text := make([]string, len(numbers))
	for i, n := range numbers {
		text[i] = strconv.FormatInt(n, 10)
	}
	return enginesNamed(text)
}

func enginesNamed(numbers []string) string {
	if len(numbers) == 1 {
		return "rules engine " + numbers[0]
	}
	return "rules engines " + strings.Join(numbers, ", ")
}

// columns returns the classes that have a column in tables: allowed and refused by rule, and
// others that have requests.
func (c *Counts) columns() []reason.Class {
	return slices.DeleteFunc(reason.Classes(), func(k reason.Class) bool {
		return c.Classes[k] == 0 && k != reason.Allowed && k != reason.RefusedByRule
	})
}

// Waits says how long requests waited.
func (c *Counts) Waits() string {
	return fmt.Sprintf("%s, %s in all, at most %s", figures.Number(c.Waited, "request"), span(c.WaitedTotal), span(c.WaitedMost))
}
