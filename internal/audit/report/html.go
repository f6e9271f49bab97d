package report

import (
	_ "embed" // page.html, page.css
	"html/template"
	"io"
	"math"
	"reflect"
	"strings"
	"time"

	"heed/internal/reason"
	"heed/internal/safetext"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

// WriteHTML writes the report as one page that needs nothing else: no script,
// no font, no picture from elsewhere. Texts of clients and sites are escaped.
func (r *Report) WriteHTML(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"percent": percent, "span": span, "gap": gapTime, "share": share, "stamp": stamp, "text": safetext.Visible, "words": words, "engines": engines,
		"coverage": func(c *Counts) string {
			words := c.coverage()
			return strings.ToUpper(words[:1]) + words[1:]
		},
		"waits": (*Counts).waits, "first": firstRows, "bar": bar, "diff": diffLines,
		// The lengths of lists are ints, and all other numbers int64.
		"only":   func(c reason.Counts) string { return c.OnlyWords(commas) },
		"commas": func(n any) string { return commas(reflect.ValueOf(n).Int()) },
		"number": func(n any, one string) string { return number(reflect.ValueOf(n).Int(), one) },
	}).Parse(pageText)
	if err != nil {
		return err
	}
	return t.Execute(w, &page{r, template.CSS(pageStyle)})
}

// page is what the template shows.
type page struct {
	*Report
	Style template.CSS
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

// piece is a rectangle of a bar or a column, in percent.
type piece struct {
	Class    string
	At, Size float64
	Name     string
	N        int64
}

// styles are the names of the classes in page.css and of their patterns in page.html:
// each has one beside its colour.
var styles = map[reason.Class]string{
	reason.Allowed: "allowed", reason.RefusedByRule: "rule", reason.RefusedByOperator: "operator", reason.RulesUnavailable: "unavailable",
	reason.Postponed: "postponed", reason.Failed: "failed", reason.NotJudged: "unjudged",
}

// bar draws counts as parts of a bar that is as long as most.
func bar(c *Counts, most int64) []piece { return pieces(&c.Classes, most) }

func pieces(counts *reason.Counts, most int64) []piece {
	var list []piece
	at := 0.0
	for _, k := range reason.Classes() {
		n := counts[k]
		if n == 0 || most <= 0 {
			continue
		}
		size := 100 * float64(n) / float64(most)
		list = append(list, piece{styles[k], round(at), round(size), k.String(), n})
		at += size
	}
	return list
}

// classColumn is a class as a column of tables, in the key and among the figures.
type classColumn struct {
	Class reason.Class
	Style string
}

// Columns are the classes that the page shows.
func (p *page) Columns() (list []classColumn) {
	for _, k := range p.Total.columns() {
		list = append(list, classColumn{k, styles[k]})
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

func round(f float64) float64 { return math.Round(f*1000) / 1000 }

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

// column is a period of the chart over time.
type column struct {
	At, Width float64
	When      string
	All       int64
	Pieces    []piece
}

// chart is the requests over time.
type chart struct {
	Columns           []column
	Top               int64 // the value of the upper line
	From, Middle, End string
	Each              string // how long a period is
}

// Chart draws the periods; nil when there is nothing to see in it.
func (p *page) Chart() *chart {
	if len(p.Periods) < 2 {
		return nil
	}
	var most int64 = 1
	for i := range p.Periods {
		most = max(most, p.Periods[i].All())
	}
	each := time.Duration(p.PeriodSeconds * float64(time.Second))
	c := &chart{Top: ceiling(most), Each: unit(each)}
	form := "2 Jan 2006 15:04"
	switch {
	case each < time.Minute:
		form = "2 Jan 15:04:05"
	case each >= 24*time.Hour:
		form = "2 Jan 2006"
	}
	last := p.Periods[len(p.Periods)-1].From.Add(each)
	c.From, c.End = p.Periods[0].From.Format(form), last.Format(form)
	c.Middle = p.Periods[0].From.Add(last.Sub(p.Periods[0].From) / 2).Format(form)
	width := 100 / float64(len(p.Periods))
	for i := range p.Periods {
		d := &p.Periods[i]
		if d.All() == 0 {
			continue
		}
		c.Columns = append(c.Columns, column{
			At: round(float64(i)*width + width*0.06), Width: round(width * 0.88), When: d.From.Format(form), All: d.All(),
			Pieces: pieces(&d.Classes, c.Top),
		})
	}
	return c
}

// Down is where a piece of a column begins, from above.
func (p piece) Down() float64 { return round(100 - p.At - p.Size) }

// ceiling returns the next even number of one digit and zeros, for an axis.
func ceiling(n int64) int64 {
	unit := int64(1)
	for n > 10*unit {
		unit *= 10
	}
	for _, k := range []int64{1, 2, 4, 6, 8, 10} {
		if k*unit >= n {
			return max(2, k*unit)
		}
	}
	return n
}
