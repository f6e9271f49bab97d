package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// flags are the columns of decisions that are true or false.
var flags = []string{"declared", "redacted", "policy_stale", "policy_own", "from_site", "truncated"}

// objects are the columns of decisions that contain JSON.
var objects = []string{"tokens", "signals", "page_signals"}

// Lines returns a Sink that writes one JSON object per decision and line.
// Fields without a value are left out.
func Lines(w io.Writer) Sink { return &lines{w: w} }

type lines struct {
	w       io.Writer
	columns []field
	buf     []byte
}

// field is a column and how it is written.
type field struct {
	key       string // quoted for JSON, with its colon
	flag, raw bool   // 0 or 1; JSON already
}

func (l *lines) head(columns []string) error {
	for _, name := range columns {
		l.columns = append(l.columns, field{strconv.Quote(name) + ":", slices.Contains(flags, name), slices.Contains(objects, name)})
	}
	return nil
}

func (l *lines) row(values []any) error {
	b := append(l.buf[:0], '{')
	for i, v := range values {
		if v == nil {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = l.columns[i].append(append(b, l.columns[i].key...), v)
	}
	l.buf = append(b, '}', '\n')
	_, err := l.w.Write(l.buf)
	return err
}

func (l *lines) end() error { return nil }

// append writes a value as JSON.
func (c *field) append(b []byte, v any) []byte {
	switch v := v.(type) {
	case int64:
		if c.flag {
			return strconv.AppendBool(b, v != 0)
		}
		return strconv.AppendInt(b, v, 10)
	case float64:
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	case string:
		if c.raw && json.Valid([]byte(v)) {
			return append(b, v...)
		}
		return appendText(b, v)
	}
	return appendText(b, fmt.Sprint(v))
}

// appendText writes a text as JSON, in most cases without looking twice.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			text, _ := json.Marshal(s) // of a string: it never fails
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// Table returns a Sink that writes a table with every column. In texts what
// cannot be seen is written as escapes, and one that a program for tables might
// take for a formula has a ' before it.
func Table(w io.Writer) Sink { return &table{w: csv.NewWriter(w)} }

type table struct {
	w     *csv.Writer
	cells []string
}

func (t *table) head(columns []string) error { return t.w.Write(columns) }

func (t *table) row(values []any) error {
	t.cells = t.cells[:0]
	for _, v := range values {
		t.cells = append(t.cells, csvCell(v))
	}
	return t.w.Write(t.cells)
}

// csvCell writes a value of a row as a cell.
func csvCell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case int64:
		return whole(v)
	case float64:
		return decimal(v)
	}
	return plain(fmt.Sprint(v))
}

func (t *table) end() error {
	t.w.Flush()
	return t.w.Error()
}
