package report

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Sink takes the decisions of an export one by one.
type Sink interface {
	head(columns []string) error
	row(values []any) error
	end() error
}

// Export writes every decision that the query asks about, with every field of
// the view "decisions", by time. Reading goes on while a heed writes.
func Export(ctx context.Context, records []Record, query Query, to Sink) error {
	var all int64
	var open []*cursor
	defer func() {
		for _, c := range open {
			_ = c.rows.Close()
		}
	}()
	for _, r := range records {
		x, err := extentOf(r)
		if err != nil {
			return err
		}
		all += x.n
		c, err := newCursor(ctx, r, &query)
		if err != nil {
			return err
		}
		open = append(open, c)
	}
	if len(open) > 0 {
		if err := to.head(open[0].columns); err != nil {
			return err
		}
	}
	if err := merge(open, to, func(n int64) {
		if query.Progress != nil {
			query.Progress(n, all)
		}
	}); err != nil {
		return err
	}
	return to.end()
}

// merge hands the rows of all cursors to the sink, the oldest first; of one
// record in its own order.
func merge(open []*cursor, to Sink, progress func(int64)) error {
	for _, c := range open {
		if err := c.next(); err != nil {
			return err
		}
	}
	for n := int64(1); ; n++ {
		var first *cursor
		for _, c := range open {
			if !c.done && (first == nil || c.time() < first.time()) {
				first = c
			}
		}
		if first == nil {
			return nil
		}
		if err := to.row(first.values); err != nil {
			return err
		}
		if err := first.next(); err != nil {
			return err
		}
		if n%told == 0 {
			progress(n)
		}
	}
}

// cursor stands at a row of a record's decisions.
type cursor struct {
	record  Record
	rows    *sql.Rows
	columns []string
	at      int // where the time stands
	values  []any
	into    []any
	done    bool
}

func newCursor(ctx context.Context, r Record, q *Query) (*cursor, error) {
	where, args := q.where()
	rows, err := r.query(ctx, "SELECT * FROM decisions WHERE "+where+" ORDER BY seq", args...)
	if err != nil {
		return nil, err
	}
	c := &cursor{record: r, rows: rows}
	if c.columns, err = rows.Columns(); err != nil {
		return nil, err
	}
	c.values, c.into = make([]any, len(c.columns)), make([]any, len(c.columns))
	for i, name := range c.columns {
		if c.into[i] = &c.values[i]; name == "time" {
			c.at = i
		}
	}
	return c, nil
}

func (c *cursor) next() error {
	if c.done = !c.rows.Next(); !c.done {
		return c.rows.Scan(c.into...)
	}
	if err := c.rows.Err(); err != nil {
		return fmt.Errorf("%s cannot be read to its end: %w", c.record.Name, err)
	}
	return nil
}

// time returns when the row was decided; times are written so that they are in
// order as texts.
func (c *cursor) time() string {
	s, _ := c.values[c.at].(string)
	return s
}

// where returns the query as a condition on the view "decisions".
func (q *Query) where() (string, []any) {
	all, args := []string{"1"}, []any(nil)
	add := func(condition string, values ...any) { all, args = append(all, condition), append(args, values...) }
	if !q.From.IsZero() {
		add("time >= ?", moment(q.From))
	}
	if !q.To.IsZero() {
		add("time < ?", moment(q.To))
	}
	if below, ok := strings.CutPrefix(q.Host, "*"); ok {
		add("substr(host, -length(?)) = ?", below, strings.ToLower(below))
	} else if q.Host != "" {
		add("host = ?", strings.ToLower(q.Host))
	}
	if q.Client != "" {
		add("(client = ? OR user = ? OR client_name = ? OR EXISTS (SELECT 1 FROM json_each(tokens) WHERE value = ? COLLATE NOCASE))", q.Client, q.Client, q.Client, q.Client)
	}
	return strings.Join(all, " AND "), args
}
