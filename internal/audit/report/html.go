package report

import (
	_ "embed" // page.html
	"html/template"
	"io"
	"strings"
	"time"

	"heed/internal/base/safetext"
	"heed/internal/output/figures"
	"heed/internal/output/table"
)

//go:embed page.html
var pageText string

// WriteHTML writes the report as one page. Texts of clients and sites are escaped.
func (r *Report) WriteHTML(w io.Writer) error {
	t, err := table.Page(pageText, template.FuncMap{
		"stamp": stamp, "engines": engines, "size": figures.Size, "diff": diffLines, "number": figures.Number,
		"count": func(n int) int64 { return int64(n) },
	})
	if err != nil {
		return err
	}
	return t.Execute(w, &page{r})
}

// page is what the template shows.
type page struct{ *Report }

// rowsOnPage is how many rows of a list the page shows; programs get all.
const rowsOnPage = 30

// Chapters are the tables of the page.
func (p *page) Chapters() []chapter { return p.chapters(rowsOnPage) }

// Shown are the changes of robots.txt files that the page shows, of which it leaves out some.
func (p *page) Shown() []Change { return p.Changes[:min(len(p.Changes), rowsOnPage)] }

// Unshown is how many changes the page leaves out.
func (p *page) Unshown() int64 { return int64(max(0, len(p.Changes)-rowsOnPage)) }

// Whole is all requests as a bar.
func (p *page) Whole() []figures.Piece { return figures.Pieces(&p.Total.Classes, p.Total.Requests) }

// Key are the classes that the page shows, with their numbers.
func (p *page) Key() (list []figures.Piece) {
	for _, k := range p.Total.columns() {
		list = append(list, figures.Piece{Class: figures.Style(k), Name: k.String(), N: p.Total.Classes[k]})
	}
	return list
}

// Coverage says by what the requests were judged.
func (p *page) Coverage() string {
	words := p.Total.coverage()
	return strings.ToUpper(words[:1]) + words[1:]
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
	c := figures.NewChart(p.Periods[0].From, time.Duration(p.PeriodSeconds*float64(time.Second)), "", periods)
	c.Key = nil // it is that of the page
	return c
}
