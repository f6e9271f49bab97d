package report

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"heed/internal/audit"
	"heed/internal/audit/store"
)

// Sink takes the decisions of an export one by one: a table.Writer, or Lines.
type Sink interface {
	Head(columns []string) error
	Row(values ...any) error
	Flush() error
}

// Export writes every decision that the query asks about, with every field of
// the view "decisions", by time. Reading goes on while a heed writes.
func Export(ctx context.Context, records []*store.Record, query Query, to Sink) error {
	all, release, err := readers(ctx, records)
	if err != nil {
		return err
	}
	defer release()
	var total, n int64
	var sources []func() (*decision, error)
	var columns []string
	for _, r := range all {
		f, err := r.File()
		if err != nil {
			return err
		}
		total += f.Decisions
		rows, err := r.Decisions(&query.Filter)
		if err != nil {
			return err
		}
		defer rows.Close()
		columns = rows.Columns
		sources = append(sources, decisionsOf(rows))
	}
	if len(all) == 0 {
		return to.Flush()
	}
	if err := to.Head(columns); err != nil {
		return err
	}
	err = audit.Merge(sources, func(a, b *decision) bool { return a.time < b.time }, func(d *decision) error {
		if n++; n%progressEvery == 0 && query.Progress != nil {
			query.Progress(n, total)
		}
		return to.Row(d.values...)
	})
	if err != nil {
		return err
	}
	return to.Flush()
}

// decision is a row of the view "decisions". As texts, times are in order.
type decision struct {
	time   string
	values []any
}

// decisionsOf returns a func that returns the next of rows; nil after the last.
func decisionsOf(rows *store.Rows) func() (*decision, error) {
	column := slices.Index(rows.Columns, "time")
	return func() (*decision, error) {
		values, err := rows.Next()
		if values == nil {
			return nil, err
		}
		time, _ := values[column].(string)
		return &decision{time, values}, nil
	}
}

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

// Head takes the names of the fields.
func (l *lines) Head(columns []string) error {
	for _, name := range columns {
		l.columns = append(l.columns, field{strconv.Quote(name) + ":", slices.Contains(flags, name), slices.Contains(objects, name)})
	}
	return nil
}

// Row writes a decision.
func (l *lines) Row(values ...any) error {
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

// Flush does nothing: each line is written.
func (l *lines) Flush() error { return nil }

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
