package report

import (
	_ "embed" // page.html, page.css
	"html/template"
	"io"
	"math"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

// WriteHTML writes the report as one page that needs nothing else: no script,
// no font, no picture from elsewhere. Texts of clients and sites are escaped.
func (r *Report) WriteHTML(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"commas": commasOf, "percent": percent, "span": span, "gap": gapTime, "share": share, "stamp": stamp,
		"text": Printable, "number": numberOf, "first": firstRows, "bar": bar, "diff": diffLines, "short": short,
	}).Parse(pageText)
	if err != nil {
		return err
	}
	return t.Execute(w, &page{r, template.CSS(pageStyle)})
}

// The lengths of lists are ints, and all other numbers int64.
func commasOf(n any) string { return commas(whichever(n)) }

func numberOf(n any, one string) string { return number(whichever(n), one) }

func whichever(n any) int64 {
	if i, ok := n.(int); ok {
		return int64(i)
	}
	i, _ := n.(int64)
	return i
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

// firstRows returns the beginning of a list of the report.
func firstRows(list any) shown {
	switch l := list.(type) {
	case []AgentPart:
		return cut(l)
	case []SitePart:
		return cut(l)
	case []Deciding:
		return cut(l)
	case []Change:
		return cut(l)
	case []Unreachable:
		return cut(l)
	case []Conduct:
		return cut(l)
	}
	return shown{}
}

func cut[T any](list []T) shown {
	n := min(len(list), rowsOnPage)
	return shown{list[:n], int64(len(list) - n)}
}

// piece is a rectangle of a bar or a column, in percent.
type piece struct {
	Class    string
	At, Size float64
	Name     string
	N        int64
}

// kinds are the classes of counts in the order in which they are drawn, with
// what they are called.
var kinds = [classes]struct{ class, name string }{
	{"allowed", "allowed"}, {"refused", "refused"}, {"would", "would be refused"}, {"unjudged", "not judged"},
}

// bar draws counts as parts of a bar that is as long as most.
func bar(c Counts, most int64) []piece {
	return pieces([classes]int64{c.Allowed, c.Refused, c.WouldRefuse, c.NotJudged}, most)
}

func pieces(counts [classes]int64, most int64) []piece {
	var list []piece
	at := 0.0
	for i, n := range counts {
		if n == 0 || most <= 0 {
			continue
		}
		size := 100 * float64(n) / float64(most)
		list = append(list, piece{kinds[i].class, round(at), round(size), kinds[i].name, n})
		at += size
	}
	return list
}

func round(f float64) float64 { return math.Round(f*1000) / 1000 }

// Bar is the whole of the report as one bar.
func (p *page) Bar() []piece { return bar(p.Total, p.Total.Requests) }

// Coverage says how much was seen.
func (p *page) Coverage() string {
	words := p.Total.coverage()
	return strings.ToUpper(words[:1]) + words[1:]
}

// Waits says what had to wait.
func (p *page) Waits() string { return p.Total.waits() }

// MostOfAgents is the most requests that one agent made.
func (p *page) MostOfAgents() int64 {
	if len(p.Agents) == 0 {
		return 0
	}
	return p.Agents[0].Requests
}

// MostOfSites is the most requests that one site got.
func (p *page) MostOfSites() int64 {
	if len(p.Sites) == 0 {
		return 0
	}
	return p.Sites[0].Requests
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
	Top               int64 // what the upper line stands for
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
			Pieces: pieces([classes]int64{d.Allowed, d.Refused, d.WouldRefuse, d.NotJudged}, c.Top),
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

// diffLine is a line of a diff.
type diffLine struct{ Class, Text string }

func diffLines(text string) []diffLine {
	var list []diffLine
	for line := range strings.Lines(text) {
		class := map[byte]string{'+': "plus", '-': "minus", '@': "hunk"}[line[0]]
		list = append(list, diffLine{class, Printable(strings.TrimRight(line, "\r\n"))})
	}
	return list
}

// short is the beginning of a hash: enough to tell it from others.
func short(hash string) string { return hash[:min(16, len(hash))] }
