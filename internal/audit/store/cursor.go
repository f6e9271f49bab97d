package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// reader reads rows within one transaction: all as they were at one moment,
// however long it takes and whatever is written meanwhile. It goes past
// database/sql, whose conversions would cost as much as all the rest.
type reader struct{ conn driver.QueryerContext }

// read has f read from db. Nothing of it is to be used afterwards.
func read(ctx context.Context, db *sql.DB, f func(reader) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(c any) error {
		exec := c.(driver.ExecerContext)
		if _, err := exec.ExecContext(context.Background(), "BEGIN", nil); err != nil {
			return err
		}
		err := f(reader{c.(driver.QueryerContext)})
		_, end := exec.ExecContext(context.Background(), "ROLLBACK", nil)
		return errors.Join(err, end)
	})
}

// read has f read on the writer's own connection, in the transaction that may
// be under way.
func (b *base) read(f func(reader) error) error {
	return b.conn.Raw(func(c any) error { return f(reader{c.(driver.QueryerContext)}) })
}

// query has row take each row of the answer. What it is given is valid until
// it returns.
func (r reader) query(query string, row func([]driver.Value) error) error {
	rows, err := r.conn.QueryContext(context.Background(), query, nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	values := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(values); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := row(values); err != nil {
			return err
		}
	}
}

// cursor goes through a table in the order of its ids. It stands before the
// first row when it is opened.
type cursor struct {
	table  Table
	rows   driver.Rows
	values []driver.Value
	row    []byte // the row it stands on, as it is spelt; nil: it cannot be spelt
	id     int64  // of that row; math.MaxInt64 when there is none
}

// end is the id of no row.
const end = math.MaxInt64

// open opens a cursor of t on its first row. No index has a say in what it finds.
func (r reader) open(t Table) (*cursor, error) { return r.openWhere(t, "TRUE") }

// openAt opens a cursor of t on the first row after the id.
func (r reader) openAt(t Table, after int64) (*cursor, error) {
	return r.openWhere(t, fmt.Sprintf("%s > %d", t.columns()[0], after))
}

func (r reader) openWhere(t Table, where string) (*cursor, error) {
	query := fmt.Sprintf("SELECT %s FROM %s NOT INDEXED WHERE %s ORDER BY %s", strings.Join(t.columns(), ", "), t, where, t.columns()[0])
	rows, err := r.conn.QueryContext(context.Background(), query, nil)
	if err != nil {
		return nil, err
	}
	c := &cursor{table: t, rows: rows, values: make([]driver.Value, len(t.columns()))}
	if err := c.next(); err != nil {
		rows.Close()
		return nil, err
	}
	return c, nil
}

// next goes to the next row.
func (c *cursor) next() (err error) {
	switch err = c.rows.Next(c.values); {
	case err == io.EOF:
		c.id = end
		return nil
	case err != nil:
		return err
	}
	c.id = c.integer(0)
	if c.row, err = appendRow(c.row[:0], c.table, c.values); err != nil {
		c.row = nil
	}
	return nil
}

// close closes the cursor; nil is closed.
func (c *cursor) close() {
	if c != nil {
		c.rows.Close()
	}
}

// integer returns the value of a column by its place; 0 for what is none.
func (c *cursor) integer(column int) int64 {
	n, _ := c.values[column].(int64)
	return n
}
