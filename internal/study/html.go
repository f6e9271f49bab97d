package study

import (
	_ "embed" // page.html
	"html/template"
	"io"
	"strings"

	"heed/internal/audit/report"
	"heed/internal/figures"
	"heed/internal/safetext"
)

//go:embed page.html
var pageText string

// WriteHTML writes the tables and charts as one page that needs nothing else: no script,
// no font, no picture from elsewhere. Texts of logs and sites are escaped.
func (r *Result) WriteHTML(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{"commas": figures.Commas, "percent": figures.Percent, "text": safetext.Visible}).Parse(pageText)
	if err != nil {
		return err
	}
	return t.Execute(w, &page{Result: r, Style: report.PageStyle(), Patterns: report.PagePatterns(), Caveats: caveats})
}

// page is what the template shows.
type page struct {
	*Result
	Style    template.CSS
	Patterns template.HTML
	Caveats  []string
}

// Findings are what was found, in sentences.
func (p *page) Findings() []string { return findings(p.Result) }

// Empty names the tables without rows.
func (p *page) Empty() string { return emptyTables(p.Result) }

// Span is the time of the requests.
func (p *page) Span() string {
	const form = "2 Jan 2006 15:04"
	return p.First.Format(form) + " to " + p.Last.Format(form) + " UTC"
}

// SiteNames are the sites, at most three by name.
func (p *page) SiteNames() string {
	if len(p.Sites) > 3 {
		return figures.Number(int64(len(p.Sites)), "site")
	}
	return safetext.Visible(strings.Join(p.Sites, ", "))
}

// pageTable is a table on the page.
type pageTable struct {
	*Table
	Heads []pageHead
	Rows  []pageRow
	More  int64
	Key   []figures.Piece
	Drawn bool
}

type pageHead struct {
	Head, Class, About string
	BarAfter           int
}

type pageRow struct {
	Cells    []pageCell
	Bar      []figures.Piece
	BarAfter int
}

type pageCell struct{ Text, Class, Label string }

// othersOnPage is how many rows a table on the page has beyond those of the built-in list.
const othersOnPage = 30

// Shown are the tables with rows, as they are shown.
func (p *page) Shown() (list []*pageTable) {
	for _, t := range p.Tables {
		if !t.idle() {
			list = append(list, p.table(t))
		}
	}
	return list
}

func (p *page) table(t *Table) *pageTable {
	x := &pageTable{Table: t, Drawn: len(t.Bars) > 0}
	rows, more := t.shown(othersOnPage)
	x.More = int64(more)
	var show []int
	for i := range t.Columns {
		if t.seen(i, len(p.Sites) > 1) {
			show = append(show, i)
		}
	}
	barAfter := min(1, len(show)-1)
	for n, i := range show {
		c := t.Columns[i]
		x.Heads = append(x.Heads, pageHead{c.Head, cellClass(c, n, nil, true), c.About, barAfter})
	}
	most := t.most(rows)
	for _, row := range rows {
		r := pageRow{BarAfter: barAfter, Bar: t.bar(row, most)}
		for n, i := range show {
			c := t.Columns[i]
			label := c.Head
			if n == 0 {
				label = ""
			}
			r.Cells = append(r.Cells, pageCell{t.cell(row, i), cellClass(c, n, row[i], false), label})
		}
		x.Rows = append(x.Rows, r)
	}
	if len(t.Bars) > 1 {
		for _, b := range t.Bars {
			x.Key = append(x.Key, figures.Piece{Class: b.Style, Name: t.head(b.Column)})
		}
	}
	return x
}

// cellClass returns the classes of a cell, the n-th that is shown.
func cellClass(c Column, n int, v any, head bool) string {
	class := "n"
	if c.Kind == Text || c.Kind == Digest || n == 0 {
		class = "text"
	}
	if c.Kind == Moment {
		class = "when"
	}
	if n == 0 && !head {
		class += " name first"
	}
	if !head && n > 0 && (v == nil || v == "" || v == int64(0)) {
		class += " none"
	}
	return class
}

// column returns the index of a column.
func (t *Table) column(name string) int {
	for i, c := range t.Columns {
		if c.Name == name {
			return i
		}
	}
	return -1
}

func (t *Table) head(name string) string { return t.Columns[t.column(name)].Head }

// most returns the largest sum that the bars are parts of.
func (t *Table) most(rows [][]any) (most int64) {
	if t.Of == "" {
		return 0
	}
	at := t.column(t.Of)
	for _, row := range rows {
		if n, ok := row[at].(int64); ok {
			most = max(most, n)
		}
	}
	return most
}

// bar draws a row: counts of requests by the size of the largest, parts of a whole by
// their share.
func (t *Table) bar(row []any, most int64) []figures.Piece {
	if len(t.Bars) == 0 {
		return nil
	}
	if t.Of != t.Bars[0].Column {
		most, _ = row[t.column(t.Of)].(int64)
	}
	var parts []figures.Part
	for _, b := range t.Bars {
		n, _ := row[t.column(b.Column)].(int64)
		parts = append(parts, figures.Part{Style: b.Style, Name: t.head(b.Column), N: n})
	}
	return figures.Bar(parts, most)
}

// classStyles are the classes of the style sheet, from below.
var classStyles = []struct {
	class class
	style string
}{{classAllowed, "allowed"}, {classRobots, "postponed"}, {classGrace, "failed"}, {classRefused, "rule"}, {classUnavailable, "operator"}, {classUnreachable, "unavailable"}, {classUnknown, "unjudged"}, {classNoPath, "unjudged"}}

// Periods draws the chart; nil when there is nothing to see in it.
func (p *page) Periods() *figures.Chart {
	if p.Chart == nil || len(p.Chart.Periods) < 2 {
		return nil
	}
	periods := make([][]figures.Part, len(p.Chart.Periods))
	for i, bin := range p.Chart.Periods {
		for _, k := range classStyles {
			periods[i] = append(periods[i], figures.Part{Style: k.style, Name: k.class.String(), N: bin[k.class]})
		}
	}
	return figures.NewChart(p.Chart.From, p.Chart.Width, "", periods)
}
