package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
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
		t.changes(r)
		t.conduct(r)
	}
	return t.Flush()
}

// text writes tables of plain text.
type text struct{ *tabwriter.Writer }

// line writes cells of a row. Its writer keeps the first error, which Flush tells.
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
		t.line("record", Printable(f.Name)+", "+number(f.Decisions, "decision"))
		if f.Decisions > 0 {
			t.line("", fmt.Sprintf("%s to %s, heed %s", stamp(f.First), stamp(f.Last), Printable(strings.Join(f.Heeds, ", "))))
		}
		for _, note := range f.Notes {
			t.line("", "note: "+Printable(note))
		}
		if f.Pruned > 0 {
			t.line("", number(f.Pruned, "decision")+" before that are no longer kept")
		}
		if f.Head != "" {
			t.line("", fmt.Sprintf("chain: commit %d, %s", f.Commit, f.Head))
		}
	}
	if r.Window != "" {
		t.line("about", Printable(r.Window))
	}
	if r.ClockBack > 0 {
		t.line("clock", "went back "+number(r.ClockBack, "time")+": the order of the record is that of its rows")
	}
	if r.Exempt > 0 {
		t.line("exempt", number(r.Exempt, "request")+" of people: only counted")
	}
	if r.Unrecorded > 0 {
		t.line("UNRECORDED", number(r.Unrecorded, "request")+" that the record could not be written for, let through by [audit] on_failure")
	}
	if r.Total.Requests == 0 {
		t.line("requests", "none")
	}
}

func (t *text) counts(r *Report) {
	c := &r.Total
	t.line("requests", fmt.Sprintf("%s: %s", commas(c.Requests), c.words()))
	t.line("coverage", c.coverage())
	if c.Waited > 0 {
		t.line("waited", c.waits())
	}
	if c.SiteRefused > 0 {
		t.line("refused by sites", commas(c.SiteRefused))
	}
	if c.Unknown > 0 {
		t.line("end not recorded", commas(c.Unknown)+" (still open, or heed was killed)")
	}
	columns := []any{"requests", "allowed", "refused", "would refuse", "not judged", "waited"}
	row := func(c *Counts) []any {
		return []any{commas(c.Requests), commas(c.Allowed), commas(c.Refused), commas(c.WouldRefuse), commas(c.NotJudged), span(c.WaitedTotal)}
	}
	t.title("Agents")
	t.line(append([]any{"agent", "clients"}, columns...)...)
	limited(t, r.Agents, func(a *AgentPart) { t.line(append([]any{Printable(a.Name), a.Where()}, row(&a.Counts)...)...) })
	t.title("Sites")
	t.line(append([]any{"site"}, columns...)...)
	limited(t, r.Sites, func(s *SitePart) { t.line(append([]any{Printable(s.Site)}, row(&s.Counts)...)...) })
}

// Where says which addresses an agent asked from.
func (a *AgentPart) Where() string {
	switch len(a.Clients) {
	case 1:
		return Printable(a.Clients[0].Address)
	case 2:
		return Printable(a.Clients[0].Address + ", " + a.Clients[1].Address)
	}
	return fmt.Sprintf("%s and %d more", Printable(a.Clients[0].Address), len(a.Clients)-1)
}

func (t *text) whys(r *Report) {
	t.title("Decided by")
	t.line("requests", "share", "verdict", "reason", "judged by", "sites", "agents")
	limited(t, r.Reasons, func(w *Reason) {
		t.line(commas(w.Requests), percent(w.Requests, r.Total.Requests), Printable(w.Verdict), Printable(w.Reason), w.judgedBy(), commas(int64(w.Sites)), commas(int64(w.Agents)))
	})
	list := func(title string, all []Deciding, why func(*Deciding) string) {
		if len(all) == 0 {
			return
		}
		t.title(title)
		limited(t, all, func(d *Deciding) {
			t.line(commas(d.Count)+" x", Printable(d.Site), Printable(d.Agent), Printable(d.Verdict), why(d))
		})
	}
	list("Refused by", r.Refusals, (*Deciding).Why)
	list("Not judged because of", r.NotJudged, (*Deciding).Why)
	list("Exceptions that decided", r.Exceptions, (*Deciding).Why)
	if len(r.Trouble) > 0 {
		t.title("robots.txt that could not be had")
		limited(t, r.Trouble, func(u *Unreachable) {
			t.line(Printable(u.Site), u.State, commas(u.Requests)+" asked", commas(u.Refused)+" refused", stamp(u.First)+" to "+stamp(u.Last), Printable(u.Error))
		})
	}
}

// judgedBy says what was judged, in a word.
func (r *Reason) judgedBy() string {
	if r.Judged == judgedNo {
		return "not judged"
	}
	return Printable(r.Judged)
}

// Why says in a line what decided; the texts in it are escaped.
func (d *Deciding) Why() string {
	var parts []string
	switch {
	case d.Line > 0:
		parts = append(parts, fmt.Sprintf("robots.txt line %d %s (group %s)", d.Line, Printable(d.Rule), Printable(d.Group)))
	case d.Rule != "":
		parts = append(parts, Printable(d.Reason)+": "+Printable(d.Rule))
	default:
		parts = append(parts, Printable(d.Reason))
	}
	if d.Settled != "" {
		parts = append(parts, "because: "+Printable(d.Settled))
	}
	return strings.Join(parts, ", ")
}

// limited shows the first rows of a list, and says how many there are beyond.
func limited[T any](t *text, list []T, row func(*T)) {
	for i := range list[:min(len(list), mostRows)] {
		row(&list[i])
	}
	if more := len(list) - mostRows; more > 0 {
		_ = t.Flush()
		fmt.Fprintf(t, "... and %s more (--json and --csv have all)\n", commas(int64(more)))
	}
}

// span writes seconds as a person reads them.
func span(s float64) string {
	if s == 0 {
		return "-"
	}
	d := time.Duration(s * float64(time.Second))
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

func gapTime(s *float64) string {
	if s == nil {
		return "-"
	}
	return span(max(*s, 1e-6))
}
