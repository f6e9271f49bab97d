package table

import (
	"math"
	"strings"
	"unicode/utf8"
)

// maxCell is the width of the widest column.
const maxCell = 48

// Layout is the columns of a table that are printed as text, and how wide they are. Cells
// that are wider are cut, but not those of the last column.
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

// limit returns the width at which the cells of a column are cut. Those of the last one
// are not.
func (l *Layout) limit(i int) int {
	if i == len(l.columns)-1 {
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
		if l.columns[i].Kind.left() {
			b.WriteString("  " + cell + pad)
		} else {
			b.WriteString("  " + pad + cell)
		}
	}
	return strings.TrimRight(b.String(), " ")
}
