package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"heed/internal/audit/uses"
	"heed/internal/figures"
	"heed/internal/measure"
	"heed/internal/safetext"
)

// mostRows is how many rows of a list are shown to people; programs get all.
const mostRows = 20

// WriteText writes the report for people, as plain text. Of long lists it shows
// the first rows and says how many more there are.
func (r *Report) WriteText(w io.Writer) error {
	t := &text{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.head(r)
	if r.Total.Requests > 0 {
		t.counts(r)
		t.whys(r)
		t.use(r)
		t.changes(r)
		t.conduct(r)
	}
	return t.Flush()
}

// text writes tables of plain text.
type text struct{ *tabwriter.Writer }

// line writes the cells of a row. Flush returns the first error of the writer.
func (t *text) line(cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(t, "\t")
		}
		fmt.Fprint(t, c)
	}
	fmt.Fprintln(t)
}

// title begins a part.
func (t *text) title(s string) {
	_ = t.Flush()
	fmt.Fprintf(t, "\n%s\n", s)
}

func (t *text) head(r *Report) {
	for i := range r.Records {
		f := &r.Records[i]
		t.line("record", safetext.Visible(f.Name)+", "+figures.Number(f.Decisions, "decision"))
		if f.Decisions > 0 {
			t.line("", fmt.Sprintf("%s to %s, heed %s", stamp(f.First), stamp(f.Last), safetext.Visible(strings.Join(f.Heeds, ", "))))
			t.line("", "judged by "+engines(f.Engines))
		}
		for _, note := range f.Notes {
			t.line("", "note: "+safetext.Visible(note))
		}
		if f.Elsewhere > 0 {
			t.line("", figures.Number(f.Elsewhere, "decision")+" of it are in a file before it too, and count once")
		}
		if f.Pruned > 0 {
			t.line("", figures.Number(f.Pruned, "decision")+" before that are no longer kept")
		}
		if f.Head != "" {
			t.line("", fmt.Sprintf("chain: commit %d, %s", f.Commit, f.Head))
			t.line("", "not verified by this report: see heed audit verify")
		}
	}
	if r.Window != "" {
		t.line("about", safetext.Visible(r.Window))
	}
	if r.ClockBack > 0 {
		t.line("clock", "went back "+figures.Number(r.ClockBack, "time")+": the order of the record is that of its rows")
	}
	if r.Exempt > 0 {
		t.line("exempt", figures.Number(r.Exempt, "request")+" of people: only counted")
	}
	for _, g := range r.Gaps {
		t.line("UNRECORDED", safetext.Visible(g.String()))
	}
	if r.Unrecorded > 0 {
		t.line("UNRECORDED", figures.Number(r.Unrecorded, "request")+" that the record could not be written for, let through by [audit] on_failure")
	}
	if r.Total.Requests == 0 {
		t.line("requests", "none")
	}
}

func (t *text) counts(r *Report) {
	c := &r.Total
	t.line("requests", fmt.Sprintf("%s: %s", figures.Commas(c.Requests), c.words()))
	if observed := c.observed(); observed != "" {
		t.line("only observed", observed)
	}
	t.line("coverage", c.coverage())
	if c.Waited > 0 {
		t.line("waited", c.waits())
	}
	t.line("answered", figures.Size(c.Bytes)+" of bodies, as clients received them")
	uploads := c.BytesIn > 0
	if uploads {
		t.line("uploaded", figures.Size(c.BytesIn)+" of bodies, as clients sent them")
	}
	if c.SiteRefused > 0 {
		t.line("refused by sites", figures.Commas(c.SiteRefused))
	}
	if c.Unknown > 0 {
		t.line("end not recorded", figures.Commas(c.Unknown)+" (still open, or heed was killed)")
	}
	classes, observed := c.columns(), c.WouldBe.Sum() > 0
	columns := []any{"requests"}
	for _, k := range classes {
		columns = append(columns, k.String())
	}
	if observed {
		columns = append(columns, "only observed")
	}
	columns = append(columns, "waited", "bytes")
	if uploads {
		columns = append(columns, "uploaded")
	}
	row := func(c *Counts) []any {
		cells := []any{figures.Commas(c.Requests)}
		for _, k := range classes {
			cells = append(cells, figures.Commas(c.Classes[k]))
		}
		if observed {
			cells = append(cells, figures.Commas(c.WouldBe.Sum()))
		}
		if cells = append(cells, span(c.WaitedTotal), figures.Size(c.Bytes)); uploads {
			cells = append(cells, figures.Size(c.BytesIn))
		}
		return cells
	}
	t.title(r.ByTitle())
	t.line(append([]any{r.By, "clients"}, columns...)...)
	limited(t, r.Agents, func(a *AgentPart) { t.line(append([]any{safetext.Visible(a.Name), a.Where()}, row(&a.Counts)...)...) })
	t.title("Sites")
	t.line(append([]any{"site"}, columns...)...)
	limited(t, r.Sites, func(s *SitePart) { t.line(append([]any{safetext.Visible(s.Site)}, row(&s.Counts)...)...) })
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

func (t *text) whys(r *Report) {
	t.title("Decided by")
	t.line("requests", "share", "class", "verdict", "judged by", "sites", strings.ToLower(r.ByTitle()), "reason")
	limited(t, r.Reasons, func(w *Reason) {
		t.line(figures.Commas(w.Requests), figures.Percent(w.Requests, r.Total.Requests), w.Class(), safetext.Visible(w.Verdict), w.judgedBy(), figures.Commas(int64(w.Sites)), figures.Commas(int64(w.Agents)), words(w.Reason))
	})
	list := func(title string, all []Listed) {
		if len(all) == 0 {
			return
		}
		t.title(title)
		limited(t, all, func(d *Listed) {
			t.line(figures.Commas(d.Count)+" x", d.Class, safetext.Visible(d.Site), safetext.Visible(d.Agent), d.Why())
		})
	}
	list("Not allowed", r.NotAllowed())
	list("Not judged", r.Unjudged())
	list("Exceptions that decided", r.ByException())
	if len(r.Trouble) > 0 {
		t.title("robots.txt that could not be read")
		limited(t, r.Trouble, func(u *Unreachable) {
			t.line(safetext.Visible(u.Site), u.State, figures.Commas(u.Requests)+" asked: "+u.Classes.OnlyWords(figures.Commas), stamp(u.First)+" to "+stamp(u.Last), safetext.Visible(u.Error))
		})
	}
}

// judgedBy returns what was judged: path, host or neither.
func (r *Reason) judgedBy() string {
	if r.Judged == judgedNo {
		return "not judged"
	}
	return safetext.Visible(r.Judged)
}

// Why says in a line what decided; the texts in it are escaped.
func (d *Deciding) Why() string {
	var parts []string
	switch {
	case d.Line > 0 && !uses.BySignal(d.Reason): // a statement may be on a line of a page
		parts = append(parts, fmt.Sprintf("robots.txt line %d %s (group %s)", d.Line, safetext.Visible(d.Rule), safetext.Visible(d.Group)))
	case d.Rule != "":
		parts = append(parts, words(d.Reason)+": "+safetext.Visible(d.Rule))
	default:
		parts = append(parts, words(d.Reason))
	}
	if d.Settled != "" {
		parts = append(parts, "because: "+safetext.Visible(d.Settled))
	}
	return strings.Join(parts, ", ")
}

func (t *text) changes(r *Report) {
	if len(r.Changes) == 0 {
		return
	}
	t.title("robots.txt that changed")
	limited(t, r.Changes, func(c *Change) {
		t.line(safetext.Visible(c.Site), stamp(c.After.Time), c.Words())
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
			fmt.Fprintln(t, "    "+safetext.Visible(strings.TrimRight(line, "\r\n")))
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
		words += ", asked as " + safetext.Visible(c.AskedAs)
	}
	return words
}

// conductNote says what the times and shares of conduct are of.
const conductNote = `Gaps are the times between successive requests of one row that were let through, its robots.txt
apart: the median and the 5th percentile as the client sent them. Kept is the share of gaps not
shorter than the delay that the site asked for, beside it its 95 % interval (Wilson).`

// shareOf writes a share with its interval; "-" of none.
func shareOf(part, all int64) string {
	if all == 0 {
		return "-"
	}
	low, high := measure.Wilson(part, all)
	return figures.Percent(part, all) + " (" + figures.Interval(low, high) + ")"
}

func (t *text) conduct(r *Report) {
	if !r.Query.Conduct {
		return
	}
	t.title("Conduct: client behaviour, regardless of heed's verdicts")
	_ = t.Flush()
	fmt.Fprintln(t, conductNote)
	t.line(r.By, "site", "requests", "robots.txt", "against rules", "delay", "kept", "kept as sent", "median gap", "5 %", "fastest minute", "repeated", "User-Agents")
	limited(t, r.Conduct, func(c *Conduct) {
		t.line(safetext.Visible(c.Agent), safetext.Visible(c.Site), figures.Commas(c.Requests), c.Robots(), shareOf(c.Breaches, c.Pages), gapTime(c.Asked.Delay), shareOf(c.Asked.KeptCount, c.Asked.Limited), shareOf(c.Sent.KeptCount, c.Sent.Limited),
			gapTime(c.Asked.Median), gapTime(c.Asked.P5), c.Fastest, figures.Commas(c.Repeated), len(c.Agents))
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

// limited shows the first rows of a list, and says how many there are beyond.
func limited[T any](t *text, list []T, row func(*T)) {
	for i := range list[:min(len(list), mostRows)] {
		row(&list[i])
	}
	if more := len(list) - mostRows; more > 0 {
		_ = t.Flush()
		fmt.Fprintf(t, "... and %s more (--json and --csv have all)\n", figures.Commas(int64(more)))
	}
}

// span writes seconds as a person reads them.
func span(s Seconds) string {
	if s == 0 {
		return "-"
	}
	d := time.Duration(s) * time.Microsecond
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

func gapTime(s *Seconds) string {
	if s == nil {
		return "-"
	}
	return span(max(*s, 1))
}
