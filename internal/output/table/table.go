// Package table writes tables for people and for programs: columns with kinds, cells in
// words and as CSV, rows of text of which the widths are found or given.
package table

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"heed/internal/base/safetext"
	"heed/internal/output/figures"
)

// Kind is how the values of a column are written.
type Kind uint8

// The kinds of columns. A nil value of any kind is not known, or not defined.
const (
	Text     Kind = iota // string
	Count                // int64
	Share                // float64 from 0 to 1
	Seconds              // float64
	Bytes                // int64
	Moment               // string: RFC 3339, UTC
	Number               // float64
	Digest               // string: hexadecimal digits, of which people see the first
	Interval             // Ratio
	Times                // int64: of what the row is about
	Figure               // string: a number in words
	Sentence             // string, of which people see all
)

// Ratio is a share of two counts, which has a 95 % interval (figures.Wilson).
type Ratio struct{ Part, Of int64 }

// RatioOf returns a Ratio as a cell; nil of none.
func RatioOf(part, of int64) any {
	if of == 0 {
		return nil
	}
	return Ratio{part, of}
}

// String returns the share and its interval, for people.
func (r Ratio) String() string {
	low, high := figures.Wilson(r.Part, r.Of)
	return figures.Percent(r.Part, r.Of) + " (" + figures.Interval(low, high) + ")"
}

// Cells returns the share and the bounds of its interval, for programs; they are nil of none.
func (r Ratio) Cells() []any {
	if r.Of == 0 {
		return []any{nil, nil, nil}
	}
	low, high := figures.Wilson(r.Part, r.Of)
	return []any{float64(r.Part) / float64(r.Of), low, high}
}

// left reports whether cells of the kind begin at the left of their column.
func (k Kind) left() bool { return k == Text || k == Moment || k == Digest || k == Sentence }

// Column is a column of a table.
type Column struct {
	Name  string // in CSV and JSON
	Head  string // for people
	Kind  Kind
	About string // what it counts, one sentence
}

// Table is the rows that people see of a table.
type Table struct {
	Columns  []Column
	Rows     [][]any
	More     int64             // rows that are left out
	Main     int               // the column that the rows are about
	Paged    int               // how many columns, the last ones, only pages have: terminals are narrow
	Bars     [][]figures.Piece // of each row, drawn after the column BarAfter; nil: none are
	BarAfter int
	NoHeads  bool            // terminals show no heads
	Key      []figures.Piece // of Bars; nil: it needs none
}

// List returns a table about a list, of which it has the first most rows.
func List[T any](list []T, most int, row func(*T) []any, columns ...Column) *Table {
	t := &Table{Columns: columns, More: int64(max(0, len(list)-most))}
	for i := range list[:min(len(list), most)] {
		t.Rows = append(t.Rows, row(&list[i]))
	}
	return t
}

// Cell writes a value for people; "-" where it is not known or not defined.
func (k Kind) Cell(v any) string {
	if v == nil {
		return "-"
	}
	switch v := v.(type) {
	case int64:
		switch k {
		case Bytes:
			return figures.Size(v)
		case Times:
			return figures.Commas(v) + " x"
		}
		return figures.Commas(v)
	case float64:
		switch k {
		case Share:
			return figures.Percent(int64(v*1e9+0.5), 1e9)
		case Seconds:
			return duration(v)
		}
		return number(v)
	case string:
		if k == Moment {
			if t, err := time.Parse(time.RFC3339Nano, v); err == nil {
				return t.Format("2006-01-02 15:04:05")
			}
		}
		if k == Digest && len(v) > 12 {
			return v[:12]
		}
		return safetext.Visible(v)
	}
	return safetext.Visible(fmt.Sprint(v))
}

// number writes a statistic.
func number(f float64) string {
	if f == math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	if math.Abs(f) < 0.001 {
		return "< 0.001"
	}
	return strconv.FormatFloat(f, 'f', 3, 64)
}

// duration writes a time in seconds.
func duration(s float64) string {
	switch {
	case s < 120:
		return strconv.FormatFloat(s, 'f', -1, 64) + " s"
	case s < 2*3600:
		return strconv.FormatFloat(s/60, 'f', 1, 64) + " min"
	case s < 48*3600:
		return strconv.FormatFloat(s/3600, 'f', 1, 64) + " h"
	}
	return strconv.FormatFloat(s/86400, 'f', 1, 64) + " d"
}
