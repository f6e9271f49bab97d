package table

import (
	"math"
	"strings"
	"unicode/utf8"
)

// maxCell is the width of the widest column.
const maxCell = 48

// Layout is the columns of a table that are printed as text, and how wide they are. Cells
// that are wider are cut, but not those of the last column and of sentences.
type Layout struct {
	columns []Column
	widths  []int
}

// NewLayout returns a layout of columns that are as wide as their heads.
func NewLayout(columns ...Column) *Layout {
	l := &Layout{columns: columns}
	for _, c := range columns {
		l.widths = append(l.widths, utf8.RuneCountInString(c.Head))
	}
	return l
}

// Fit makes the columns wide enough for a row.
func (l *Layout) Fit(row []any) {
	for i, c := range l.columns {
		l.widths[i] = max(l.widths[i], min(l.limit(i), utf8.RuneCountInString(c.Kind.Cell(row[i]))))
	}
}

// AtLeast makes the columns as wide as given, for rows that are not known yet.
func (l *Layout) AtLeast(widths ...int) *Layout {
	for i, n := range widths {
		l.widths[i] = max(l.widths[i], n)
	}
	return l
}

// limit returns the width at which the cells of a column are cut.
func (l *Layout) limit(i int) int {
	if i == len(l.columns)-1 || l.columns[i].Kind == Sentence {
		return math.MaxInt
	}
	return maxCell
}

// Head returns the heads of the columns as a line; empty when none has one.
func (l *Layout) Head() string {
	cells := make([]string, len(l.columns))
	for i, c := range l.columns {
		cells[i] = c.Head
	}
	return l.line(cells)
}

// Row returns a row as a line without its end.
func (l *Layout) Row(row []any) string {
	cells := make([]string, len(l.columns))
	for i, c := range l.columns {
		cells[i] = c.Kind.Cell(row[i])
	}
	return l.line(cells)
}

func (l *Layout) line(cells []string) string {
	var b strings.Builder
	for i, cell := range cells {
		if n := l.limit(i); utf8.RuneCountInString(cell) > n {
			cell = string([]rune(cell)[:n-1]) + "…"
		}
		pad := strings.Repeat(" ", max(0, l.widths[i]-utf8.RuneCountInString(cell)))
		if i > 0 {
			b.WriteString("  ")
		}
		if l.columns[i].Kind.left() {
			b.WriteString(cell + pad)
		} else {
			b.WriteString(pad + cell)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// Lines returns the table as lines of text, the first with the heads of columns if any has one.
func (t *Table) Lines() (lines []string) {
	l := NewLayout(t.Columns...)
	for _, row := range t.Rows {
		l.Fit(row)
	}
	if head := l.Head(); head != "" {
		lines = append(lines, head)
	}
	for _, row := range t.Rows {
		lines = append(lines, l.Row(row))
	}
	return lines
}

// AsText returns t without the columns of pages, and all cells as text: at the left of their
// columns and whole.
func (t *Table) AsText() *Table {
	x := &Table{Rows: make([][]any, len(t.Rows)), More: t.More}
	for i, c := range t.Columns[:len(t.Columns)-t.Paged] {
		if t.NoHeads {
			c.Head = ""
		}
		x.Columns = append(x.Columns, Column{Head: c.Head, Kind: Sentence})
		for n, row := range t.Rows {
			x.Rows[n] = append(x.Rows[n], c.Kind.Cell(row[i]))
		}
	}
	return x
}

// Wrap breaks a text into lines of 80 characters after an indent. A number keeps its percent
// sign.
func Wrap(text, indent string) string {
	var b strings.Builder
	at := 0
	for _, word := range strings.Fields(strings.ReplaceAll(text, " %", "\x00%")) {
		word = strings.ReplaceAll(word, "\x00", " ")
		switch {
		case at == 0:
			b.WriteString(indent)
			at = len(indent)
		case at+1+len(word) > 80:
			b.WriteString("\n" + indent)
			at = len(indent)
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}
