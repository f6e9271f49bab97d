package study

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"heed/internal/figures"
)

// othersInText is how many rows a table on a terminal has beyond those of the built-in
// list.
const othersInText = 20

// WriteText writes the tables for a terminal: of every agent of the built-in list a row,
// however few its requests, and those of the others with most requests.
func (r *Result) WriteText(w io.Writer) error {
	p := &printer{w: w}
	p.line("%s", r.headline())
	for _, finding := range findings(r) {
		p.line("- %s", strings.ReplaceAll(wrap(finding, ""), "\n", "\n  "))
	}
	for _, t := range r.Tables {
		if !t.idle() {
			p.table(t, len(r.Sites) > 1)
		}
	}
	if text := emptyTables(r); text != "" {
		p.line("\n%s", wrap(text, ""))
	}
	p.line("\n%d. Methods\n\n%s", r.MethodsNumber(), r.Methods())
	return p.err
}

// headline sums the study up in two lines.
func (r *Result) headline() string {
	if r.Requests == 0 {
		return "No requests were read."
	}
	text := fmt.Sprintf("%s to %s from %s to %s UTC.", figures.Number(r.Requests, "request"), figures.Number(int64(len(r.Sites)), "site"),
		r.First.Format("2006-01-02 15:04:05"), r.Last.Format("2006-01-02 15:04:05"))
	text += fmt.Sprintf("\n%s are of %s by name", figures.Commas(r.Robots), figures.Number(r.Agents, "program"))
	switch {
	case r.WithRules:
	case r.Known:
		text += "; no robots.txt could be read that would allow or disallow anything"
	default:
		text += "; no rules known for " + map[bool]string{true: "this site", false: "these sites"}[len(r.Sites) == 1]
	}
	return text + "."
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// table prints a table.
func (p *printer) table(t *Table, sites bool) {
	p.line("\n%d. %s\n", t.Number, t.Title)
	for _, note := range t.Notes {
		p.line("   note: %s", Text.Cell(note))
	}
	rows, more := t.shown(othersInText)
	var show []int
	for i := range t.Columns {
		if t.seen(i, sites) {
			show = append(show, i)
		}
	}
	widths := make([]int, len(t.Columns))
	for _, i := range show {
		widths[i] = utf8.RuneCountInString(t.Columns[i].Head)
		for _, row := range rows {
			widths[i] = max(widths[i], min(limitOf(i, show), utf8.RuneCountInString(t.cell(row, i))))
		}
	}
	heads, headed := make([]any, len(t.Columns)), false
	for i, c := range t.Columns {
		heads[i] = c.Head
		headed = headed || c.Head != ""
	}
	if headed {
		p.row(t, show, widths, heads, true)
	}
	for _, row := range rows {
		p.row(t, show, widths, row, false)
	}
	if more > 0 {
		p.line("   and %s more: --csv, --json and --html have them", figures.Commas(int64(more)))
	}
}

// maxCell is the width of the widest column.
const maxCell = 48

// limitOf returns the width at which the cells of a column are cut. Those of the last one
// are not: it has the files and lines of what could not be read.
func limitOf(i int, show []int) int {
	if i == show[len(show)-1] {
		return math.MaxInt
	}
	return maxCell
}

func (p *printer) row(t *Table, show, widths []int, row []any, head bool) {
	var b strings.Builder
	for _, i := range show {
		cell, kind := "", t.Columns[i].Kind
		if head {
			cell = row[i].(string)
		} else {
			cell = t.cell(row, i)
		}
		if n := limitOf(i, show); utf8.RuneCountInString(cell) > n {
			cell = string([]rune(cell)[:n-1]) + "…"
		}
		pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
		if kind == Text || kind == Moment || kind == Digest {
			b.WriteString("  " + cell + pad)
		} else {
			b.WriteString("  " + pad + cell)
		}
	}
	p.line(" %s", strings.TrimRight(b.String(), " "))
}

// shown returns the rows that are listed and the first of the others, in their order, in
// which cumulative shares are; more is how many are left out.
func (t *Table) shown(others int) (rows [][]any, more int) {
	for i, row := range t.Rows {
		switch {
		case t.Listed[i]:
			rows = append(rows, row)
		case t.Listed == nil || others > 0:
			rows = append(rows, row)
			others--
		default:
			more++
		}
	}
	return rows, more
}

// rare are the columns that people do not miss when they are 0 in every row.
var rare = map[string]bool{"no_file": true, "unreachable": true, "unknown": true, "no_path": true, "s401": true, "s402": true, "s403": true, "s429": true, "s503": true, "undecidable": true, "within_cache_life": true}

// blank reports whether a column has nothing to show in any row; it is left out for people.
func (t *Table) blank(i int) bool {
	if i == 0 || t.Columns[i].Kind == Text || t.Columns[i].Kind == Digest {
		return false
	}
	for _, row := range t.Rows {
		if row[i] != nil && (row[i] != int64(0) || !rare[t.Columns[i].Name]) {
			return false
		}
	}
	return len(t.Rows) > 0
}

// cell writes the value of a column in a row for people: beside a share its interval.
func (t *Table) cell(row []any, i int) string {
	c := t.Columns[i]
	text := c.Kind.Cell(row[i])
	if row[i] == nil || t.ratio(c.Name) == nil {
		return text
	}
	return text + " (" + figures.Interval(row[i+1].(float64), row[i+2].(float64)) + ")"
}

// seen reports whether people see a column of its own.
func (t *Table) seen(i int, sites bool) bool {
	c := t.Columns[i]
	return c.Kind != Bound && (c.Name != "site" || sites) && !t.blank(i)
}
