package report

import (
	_ "embed" // page.html, page.css
	"html/template"
	"io"
	"math"
	"strings"
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
