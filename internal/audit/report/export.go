package report

import (
	"context"
	"slices"

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
	err = audit.Merge(sources, func(a, b *decision) bool { return a.time < b.time }, func(_ int, d *decision) error {
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
