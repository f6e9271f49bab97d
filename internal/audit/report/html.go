package report

import (
	_ "embed" // page.html, page.css, patterns.svg
	"html/template"
	"io"
	"reflect"
	"strings"
	"time"

	"heed/internal/figures"
	"heed/internal/reason"
	"heed/internal/safetext"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

//go:embed patterns.svg
var pagePatterns string

// PageStyle returns the style sheet of heed's pages, light and dark, for screens and
// paper. Parts of bars have a class of it: allowed, rule, statement, operator, unavailable, postponed,
// failed or unjudged.
func PageStyle() template.CSS { return template.CSS(pageStyle) }

// PagePatterns returns the fill patterns that the classes of PageStyle refer to. A page has
// them once, at its beginning.
func PagePatterns() template.HTML { return template.HTML(pagePatterns) }

// WriteHTML writes the report as one page that needs nothing else: no script,
// no font, no picture from elsewhere. Texts of clients and sites are escaped.
func (r *Report) WriteHTML(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"percent": figures.Percent, "span": span, "gap": gapTime, "share": shareOf, "stamp": stamp, "text": safetext.Visible, "words": words, "engines": engines,
		"coverage": func(c *Counts) string {
			words := c.coverage()
			return strings.ToUpper(words[:1]) + words[1:]
		},
		"size": figures.Size, "waits": (*Counts).waits, "first": firstRows, "bar": bar, "diff": diffLines,
		// The lengths of lists are ints, and all other numbers int64.
		"only":   func(c reason.Counts) string { return c.OnlyWords(figures.Commas) },
		"commas": func(n any) string { return figures.Commas(reflect.ValueOf(n).Int()) },
		"number": func(n any, one string) string { return figures.Number(reflect.ValueOf(n).Int(), one) },
	}).Parse(pageText)
	if err != nil {
		return err
	}
	return t.Execute(w, &page{r, PageStyle(), PagePatterns()})
}

// page is what the template shows.
type page struct {
	*Report
	Style    template.CSS
	Patterns template.HTML
}

// rowsOnPage is how many rows of a list the page shows; programs get all.
const rowsOnPage = 30

// shown is the part of a list that a page shows.
type shown struct {
	Rows any
	More int64 // how many there are beyond
}

// firstRows returns the beginning of a list.
func firstRows(list any) shown {
	l := reflect.ValueOf(list)
	n := min(l.Len(), rowsOnPage)
	return shown{l.Slice(0, n).Interface(), int64(l.Len() - n)}
}

// bar draws counts as parts of a bar that is as long as most.
func bar(c *Counts, most int64) []figures.Piece { return figures.Pieces(&c.Classes, most) }

// classColumn is a class as a column of tables, in the key and among the figures.
type classColumn struct {
	Class reason.Class
	Style string
}

// Columns are the classes that the page shows.
func (p *page) Columns() (list []classColumn) {
	for _, k := range p.Total.columns() {
		list = append(list, classColumn{k, figures.Style(k)})
	}
	return list
}

// Words are all numbers by class.
func (p *page) Words() string { return p.Total.words() }

// Observed says what became of the requests that were only observed.
func (p *page) Observed() string { return p.Total.observed() }

// cells are the numbers of a row of a table by class.
type cells struct {
	*Counts
	Classes []cell // and those that were only observed, when there are any
}

type cell struct {
	Name string
	N    int64
}

// Cells returns the cells of a row.
func (p *page) Cells(c *Counts) cells {
	row := cells{Counts: c}
	for _, k := range p.Total.columns() {
		row.Classes = append(row.Classes, cell{k.String(), c.Classes[k]})
	}
	if p.Total.WouldBe.Sum() > 0 {
		row.Classes = append(row.Classes, cell{"only observed", c.WouldBe.Sum()})
	}
	return row
}

// diffLine is a line of a diff.
type diffLine struct{ Class, Text string }

func diffLines(text string) []diffLine {
	var list []diffLine
	for line := range strings.Lines(text) {
		class := map[byte]string{'+': "plus", '-': "minus", '@': "hunk"}[line[0]]
		list = append(list, diffLine{class, safetext.Visible(strings.TrimRight(line, "\r\n"))})
	}
	return list
}

// Chart draws the periods; nil when there is nothing to see in it.
func (p *page) Chart() *figures.Chart {
	if len(p.Periods) < 2 {
		return nil
	}
	periods := make([][]figures.Part, len(p.Periods))
	for i := range p.Periods {
		periods[i] = figures.Parts(&p.Periods[i].Classes)
	}
	return figures.NewChart(p.Periods[0].From, time.Duration(p.PeriodSeconds*float64(time.Second)), "", periods)
}
