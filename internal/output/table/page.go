package table

import (
	"embed"
	"html/template"
	"maps"

	"heed/internal/base/safetext"
	"heed/internal/output/figures"
)

// files are the templates and the style of pages: light and dark, for screens and paper. Parts
// of bars have a class of it: allowed, rule, statement, operator, unavailable, postponed, failed
// or unjudged, of which each has a fill pattern.
//
//go:embed page.html page.css patterns.svg
var files embed.FS

func file(name string) string {
	text, _ := files.ReadFile(name) // it is embedded
	return string(text)
}

// Patterns returns the fill patterns of the classes, which a page has once, before what refers
// to them. Their colours are variables of its style.
func Patterns() template.HTML { return template.HTML(file("patterns.svg")) }

// Page parses the template of a page that needs nothing else: no script, no font, no picture
// from elsewhere. It may use the templates of page.html: head, key, mark, pieces, chart, table
// and more.
func Page(text string, more template.FuncMap) (*template.Template, error) {
	functions := template.FuncMap{
		"commas": figures.Commas, "percent": figures.Percent, "text": safetext.Visible,
		"style": func() template.CSS { return template.CSS(file("page.css")) }, "patterns": Patterns,
	}
	maps.Copy(functions, more)
	return template.Must(template.New("").Funcs(functions).Parse(file("page.html"))).New("page").Parse(text)
}

// pageCell is a cell of a table on a page. A bar may be drawn after it.
type pageCell struct {
	Text, Class string
	Label       string // names it on a narrow page
	About       string
	Drawn       bool
	Bar         []figures.Piece
}

// Heads are the heads of the columns on a page.
func (t *Table) Heads() (heads []pageCell) {
	for i, c := range t.Columns {
		heads = append(heads, pageCell{Text: c.Head, Class: t.class(i, nil, true), About: c.About, Drawn: t.Bars != nil && i == t.BarAfter})
	}
	return heads
}

// Cells are the cells of the rows on a page.
func (t *Table) Cells() (rows [][]pageCell) {
	for n, row := range t.Rows {
		var cells []pageCell
		for i, c := range t.Columns {
			cell := pageCell{Text: c.Kind.Cell(row[i]), Class: t.class(i, row[i], false), Label: c.Head}
			if i == t.Main {
				cell.Label = ""
			}
			if t.Bars != nil && i == t.BarAfter {
				cell.Drawn, cell.Bar = true, t.Bars[n]
			}
			cells = append(cells, cell)
		}
		rows = append(rows, cells)
	}
	return rows
}

// class returns the classes of the cell of a column.
func (t *Table) class(i int, v any, head bool) string {
	class, main := "n", i == t.Main
	switch k := t.Columns[i].Kind; {
	case k == Moment:
		class = "when"
	case k == Sentence && !main:
		class = "wrap all"
	case k.left() || main:
		class = "text"
	}
	if head {
		return class
	}
	if main {
		return class + " name first"
	}
	if v == nil || v == "" || v == int64(0) {
		class += " none"
	}
	return class
}
