package report

import (
	"slices"
	"strings"

	"heed/internal/judge/signal"
	"heed/internal/output/figures"
	"heed/internal/output/table"
)

// chapter is a table of the report for people. Programs get all rows of all lists.
type chapter struct {
	Title string
	About string // on pages
	Note  string // on pages and terminals
	*table.Table
}

// chapters returns the tables that have rows, each with at most some rows.
func (r *Report) chapters(most int) []chapter {
	list := []chapter{
		parts(r, r.ByTitle(), r.Agents, most, func(a *AgentPart) (*Counts, []any) { return &a.Counts, []any{a.Name, a.Where()} }, column(r.By, table.Text), column("clients", table.Text)),
		parts(r, "Sites", r.Sites, most, func(s *SitePart) (*Counts, []any) { return &s.Counts, []any{s.Site} }, column("site", table.Text)),
		r.reasons(most),
		decidings(r.NotAllowed(), most, "Not allowed", ""),
		decidings(r.Unjudged(), most, "Not judged", "No verdict on the URL: nothing of these was seen that could be judged by a robots.txt, or the settings say that it is not to be."),
		decidings(r.ByException(), most, "Exceptions that decided", "The operator's, in place of the site's rules, with the reason given for them."),
		r.trouble(most),
	}
	if u := r.Use; u != nil {
		list = append(list, u.purposes(), u.refusals(most), u.answers(most))
	}
	list = append(list, r.conduct(most))
	return slices.DeleteFunc(list, func(c chapter) bool { return len(c.Rows) == 0 })
}

func column(head string, kind table.Kind) table.Column { return table.Column{Head: head, Kind: kind} }

// counted returns the columns of Counts, and the cells of c. The last one is only for pages.
func (r *Report) counted(c *Counts) (columns []table.Column, cells []any) {
	add := func(head string, kind table.Kind, cell any) {
		columns, cells = append(columns, column(head, kind)), append(cells, cell)
	}
	add("requests", table.Count, c.Requests)
	for _, k := range r.Total.columns() {
		add(k.String(), table.Count, c.Classes[k])
	}
	if r.Total.WouldBe.Sum() > 0 {
		add("only observed", table.Count, c.WouldBe.Sum())
	}
	add("waited", table.Figure, spanCell(c.WaitedTotal))
	add("bytes", table.Bytes, c.Bytes)
	if r.Total.BytesIn > 0 {
		add("uploaded", table.Bytes, c.BytesIn)
	}
	add("refused by the site", table.Count, c.SiteRefused)
	return columns, cells
}

// parts returns a table of parts with their counts, each with a bar after its names.
func parts[T any](r *Report, title string, list []T, most int, part func(*T) (c *Counts, names []any), heads ...table.Column) chapter {
	columns, _ := r.counted(&r.Total)
	var bars [][]figures.Piece
	first := int64(0) // the requests of the first one, which has the most
	t := table.List(list, most, func(p *T) []any {
		c, names := part(p)
		_, cells := r.counted(c)
		first = max(first, c.Requests)
		bars = append(bars, figures.Pieces(&c.Classes, first))
		return append(names, cells...)
	}, append(heads, columns...)...)
	t.Paged, t.Bars, t.BarAfter = 1, bars, len(heads)-1
	return chapter{Title: title, Table: t}
}

func (r *Report) reasons(most int) chapter {
	t := table.List(r.Reasons, most, func(w *Reason) []any {
		return []any{w.Requests, figures.Percent(w.Requests, r.Total.Requests), w.Class(), w.Verdict, w.judgedBy(), int64(w.Sites), int64(w.Agents), words(w.Reason)}
	}, column("requests", table.Count), column("share", table.Figure), column("class", table.Text), column("verdict", table.Text), column("judged by", table.Text),
		column("sites", table.Count), column(strings.ToLower(r.ByTitle()), table.Count), column("reason", table.Sentence))
	t.Main = 7
	return chapter{Title: "Decided by", Table: t}
}

// decidings returns a list of decisions, which a terminal shows without heads.
func decidings(list []Listed, most int, title, about string) chapter {
	t := table.List(list, most, func(d *Listed) []any {
		return []any{d.Count, d.Class, d.Site, d.Agent, d.Why(), stamp(d.First), stamp(d.Last)}
	}, column("requests", table.Times), column("class", table.Text), column("site", table.Text), column("agent", table.Text), column("decided by", table.Sentence),
		column("first", table.Moment), column("last", table.Moment))
	t.Main, t.NoHeads, t.Paged = 2, true, 2
	return chapter{Title: title, About: about, Table: t}
}

func (r *Report) trouble(most int) chapter {
	t := table.List(r.Trouble, most, func(u *Unreachable) []any {
		done := "nothing is allowed until it can be read"
		if u.State == "stale" {
			done = "judged by an old copy"
		}
		return []any{u.Site, u.State, figures.Commas(u.Requests) + " asked: " + u.Classes.OnlyWords(figures.Commas), stamp(u.First) + " to " + stamp(u.Last), u.Error, done}
	}, column("site", table.Text), column("policy", table.Text), column("requests", table.Text), column("first and last", table.Text), column("why, at the last", table.Sentence),
		column("what was done", table.Sentence))
	t.NoHeads, t.Paged = true, 1
	return chapter{Title: "robots.txt that could not be read", Table: t}
}

// conductNote says what the times and shares of conduct are of.
const conductNote = "Gaps are the times between successive requests of one row that were let through, its robots.txt " +
	"apart: the median and the 5th percentile as the client sent them. Kept is the share of gaps not " +
	"shorter than the delay that the site asked for; kept as sent, of those with which heed sent the requests to the site. " +
	"Beside a share is its 95 % interval (Wilson)."

func (r *Report) conduct(most int) chapter {
	t := table.List(r.Conduct, most, func(c *Conduct) []any {
		texts := slices.Clone(c.Agents) // in order: an empty one is the first
		if len(texts) > 0 && texts[0] == "" {
			texts[0] = "no User-Agent"
		}
		return []any{
			c.Agent, c.Site, c.Requests, c.Robots(), table.RatioOf(c.Breaches, c.Pages), gapTime(c.Asked.Delay), table.RatioOf(c.Asked.KeptCount, c.Asked.Limited), table.RatioOf(c.Sent.KeptCount, c.Sent.Limited),
			gapTime(c.Asked.Median), gapTime(c.Asked.P5), c.Fastest, c.Repeated, int64(len(c.Agents)), strings.Join(texts, " | "),
		}
	}, column(r.By, table.Text), column("site", table.Text), column("requests", table.Count), column("robots.txt", table.Text), column("against rules", table.Figure), column("delay", table.Figure),
		column("kept", table.Figure), column("kept as sent", table.Figure), column("median gap", table.Figure), column("5 %", table.Figure), column("fastest minute", table.Count),
		column("repeated", table.Count), column("User-Agents", table.Count), column("their texts", table.Sentence))
	t.Paged = 1
	about := "Against rules: the share of requested pages that a rule of the site disallows, of those that its rules were applied to."
	return chapter{Title: "Conduct: client behaviour, regardless of heed's verdicts", About: about, Note: conductNote, Table: t}
}

// purposes returns what sites state by purpose. The first row of each has its sums.
func (u *Use) purposes() chapter {
	t := &table.Table{Columns: []table.Column{
		column("purpose", table.Text), column("requests", table.Count), column("refused", table.Count), column("category", table.Text),
		column("allowed", table.Count), column("refused", table.Count), column("unknown", table.Count),
	}}
	for i := range u.Purposes {
		p := &u.Purposes[i]
		cells := []any{p.Purpose, p.Requests, p.Refused}
		for _, c := range p.Known() {
			t.Rows = append(t.Rows, append(cells, string(c.Category), c.Allowed, c.Refused, c.Unknown))
			cells = []any{"", "", ""}
		}
	}
	return chapter{Title: "Use of pages, by purpose: what sites state, of requests that robots.txt allows", About: "Unknown: nothing was stated, or not all was read.", Table: t}
}

func (u *Use) refusals(most int) chapter {
	t := table.List(u.Refusals, most, func(r *UseRefusal) []any {
		return []any{r.Count, r.Verdict, r.Site, string(r.Purpose), r.Why(), stamp(r.First), stamp(r.Last)}
	}, column("requests", table.Times), column("verdict", table.Text), column("site", table.Text), column("purpose", table.Text), column("statement", table.Sentence),
		column("first", table.Moment), column("last", table.Moment))
	t.Main, t.NoHeads, t.Paged = 2, true, 2
	return chapter{Title: "Refused by what sites state", Table: t}
}

func (u *Use) answers(most int) chapter {
	t := table.List(u.Answers, most, func(a *SiteAnswer) []any {
		return []any{a.Count, a.Site, a.Answer, signal.SiteAnswer(a.Answer).Words()}
	}, column("requests", table.Times), column("site", table.Text), column("answer", table.Text), column("what it means", table.Sentence))
	t.Main, t.NoHeads = 1, true
	return chapter{Title: "Refused or priced by sites", Table: t}
}
