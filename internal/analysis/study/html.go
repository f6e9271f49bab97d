package study

import (
	_ "embed" // page.html
	"io"
	"slices"
	"strings"

	"heed/internal/base/safetext"
	"heed/internal/output/figures"
	"heed/internal/output/table"
)

//go:embed page.html
var pageText string

// WriteHTML writes the tables and charts as one page. Texts of logs and sites are escaped.
func (r *Result) WriteHTML(w io.Writer) error {
	t, err := table.Page(pageText, nil)
	if err != nil {
		return err
	}
	return t.Execute(w, &page{r})
}

// page is what the template shows.
type page struct{ *Result }

// Caveats hold for every table.
func (p *page) Caveats() []string { return caveats }

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
	*Definition
	Notes []string
	*table.Table
}

// othersOnPage is how many rows a table on the page has beyond those of the built-in list.
const othersOnPage = 30

// Shown are the tables with rows, as they are shown.
func (p *page) Shown() (list []*pageTable) {
	for _, t := range p.Tables {
		if !t.idle() {
			list = append(list, &pageTable{t.Definition, t.Notes, t.people(othersOnPage, len(p.Sites) > 1)})
		}
	}
	return list
}

// column returns the index of a column.
func (t *Table) column(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
}

func (t *Table) head(name string) string { return t.Columns[t.column(name)].Head }

// most returns the largest sum that the bars are parts of.
func (t *Table) most(rows [][]any) (most int64) {
	if t.Of == "" {
		return 0
	}
	at := t.column(t.Of)
	for _, row := range rows {
		n, _ := row[at].(int64) // nil: not known
		most = max(most, n)
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
