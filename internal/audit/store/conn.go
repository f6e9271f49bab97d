package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
	"time"

	"heed/internal/base/sqlite"
)

// conn is a connection to the database of a record.
type conn struct {
	*sqlite.Conn
	path   string
	mode   string // of sqlite.Open
	layout layout // set by readLayout

	// Set by findHead.
	store string // the id of the record
	head  commit // the last one; before the first, its number is 0 and its hash the root
}

// connect opens the database at path in a mode of sqlite.Open.
func connect(path, mode string) (*conn, error) {
	c, err := sqlite.Open(path, mode, busyTime)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, path: path, mode: mode}, nil
}

// busyTime is how long a statement waits for other connections.
const busyTime = 5 * time.Second

// Rows is the result of a query with columns of any kind.
type Rows struct {
	Columns []string
	path    string
	rows    *sqlite.Rows
}

// Next returns the values of the next row: int64, float64, string, []byte or
// nil for NULL. After the last row it returns nil.
func (r *Rows) Next() (values []any, err error) {
	row, err := r.rows.Next()
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read to its end: %w", r.path, err)
	}
	for _, v := range row {
		values = append(values, v)
	}
	return values, nil
}

// Close ends the query.
func (r *Rows) Close() { r.rows.Close() }

// readLayout sets the layout.
func (c *conn) readLayout() error {
	n, err := c.integer("PRAGMA user_version")
	c.layout = layout(n)
	return err
}

// each calls row with every row of a query's result, until one has an error.
func (c *conn) each(query string, row func(*fields)) error {
	rows, err := c.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for f := (fields{}); ; f = (fields{}) {
		if f.values, err = rows.Next(); err != nil || f.values == nil {
			return err
		}
		if row(&f); f.err != nil {
			return f.err
		}
	}
}

// row sets what pointers refer to from the only row of a query's result; without one
// nothing is set.
func (c *conn) row(query string, to ...any) error {
	return c.each(query, func(f *fields) { f.read(to...) })
}

// integer returns the value of a query with one column; 0 when the result has no row.
func (c *conn) integer(query string) (n int64, err error) {
	return n, c.row(query, &n)
}

// Reader reads a snapshot of a record, taken when it was opened. Reads fail when its
// context ends. It is not safe for concurrent use; a record may have several.
type Reader struct {
	*conn
	record     *Record
	hasViews   bool // views were created
	hasCounted bool // and the table counted: see Table
}

// Provable reports whether Prove can prove decisions of the record: that its layout has a tree.
func (r *Reader) Provable() bool { return r.layout >= treed }

// Read opens a Reader, which the caller closes.
func (r *Record) Read(ctx context.Context) (*Reader, error) {
	c, err := connect(r.at, r.mode)
	if err != nil {
		return nil, viewError(r.Path, err)
	}
	c.Within(ctx)
	c.layout = r.layout
	if _, err := c.Exec(r.begin + "BEGIN"); err != nil {
		return nil, errors.Join(viewError(r.Path, err), c.Close())
	}
	return &Reader{conn: c, record: r}, nil
}

// tempViews are the views, for one connection: those in a file may be older or forged.
// A decision that is read from another file may replace one of this file.
var tempViews = sync.OnceValue(func() string {
	creates := regexp.MustCompile(`DROP VIEW [^;]*;`).ReplaceAllString(views, "")
	return strings.NewReplacer("CREATE VIEW", "CREATE TEMP VIEW", "SELECT revises FROM entry", "SELECT revises FROM main.entry").Replace(creates)
})

// viewRows returns the result of a query that reads views.
func (r *Reader) viewRows(query string) (*Rows, error) {
	var rows *sqlite.Rows
	var err error
	if !r.hasViews {
		_, err = r.Exec(tempViews())
	}
	if err == nil {
		r.hasViews = true
		rows, err = r.Query(query)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read as a record: %w", r.path, err)
	}
	return &Rows{rows.Columns(), r.path, rows}, nil
}

// Path returns the path of the record.
func (r *Reader) Path() string { return r.path }

// Close closes the Reader. Values that were read remain valid.
func (r *Reader) Close() { _ = r.conn.Close() } // nothing was written

// each is conn.each with the path of the record in the error.
func (r *Reader) each(query string, row func(*fields)) error {
	err := r.conn.each(query, row)
	if err != nil {
		err = fmt.Errorf("%s: %w", r.path, err)
	}
	return err
}

// row is conn.row with the path of the record in the error.
func (r *Reader) row(query string, to ...any) error {
	return r.each(query, func(f *fields) { f.read(to...) })
}

// one calls row with the only row of a query's result. Without one it returns
// an error that names the table and the id.
func (r *Reader) one(t table, id int64, query string, row func(*fields)) error {
	found := false
	err := r.each(fmt.Sprintf(query, id), func(f *fields) { found = true; row(f) })
	if err == nil && !found {
		err = fmt.Errorf("the record has no %s %d, which it refers to\nSee `heed audit verify`", t, id)
	}
	return err
}

// about returns the table "about", ordered by key, and the id of the record.
func (c *conn) about() (pairs [][2]string, store string, err error) {
	err = c.each("SELECT key, value FROM about ORDER BY key", func(f *fields) {
		p := [2]string{f.text(), f.text()}
		if p[0] == "store" {
			store = p[1]
		}
		pairs = append(pairs, p)
	})
	return pairs, store, err
}

// fields returns the values of a row one after the other; NULL is the zero value.
type fields struct {
	values []driver.Value
	at     int
	err    error // of a value of a wrong type, or of what was done with the row
}

// fail sets an error, if it is the first one.
func (f *fields) fail(err error) { f.err = cmp.Or(f.err, err) }

// errStrange is the error of a value of a type that its column never has.
var errStrange = errors.New("which heed never writes")

// take returns the next value as a T.
func take[T any](f *fields) (v T) {
	value := f.values[f.at]
	f.at++
	v, ok := value.(T)
	if !ok && value != nil {
		f.fail(fmt.Errorf("column %d of a row has a value of the type %T, %w\nSee `heed audit verify`", f.at, value, errStrange))
	}
	return v
}

func (f *fields) integer() int64 { return take[int64](f) }
func (f *fields) text() string   { return take[string](f) }
func (f *fields) octets() []byte { return take[[]byte](f) }
func (f *fields) flag() bool     { return take[int64](f) != 0 }
func (f *fields) null() bool     { return f.values[f.at] == nil }

// time returns the next value as a time; zero for NULL.
func (f *fields) time() time.Time {
	if f.null() {
		f.at++
		return time.Time{}
	}
	return moment(f.integer())
}

// read sets what pointers refer to, int64, string, []byte or time.Time, to the next values.
func (f *fields) read(to ...any) {
	for _, p := range to {
		switch p := p.(type) {
		case *int64:
			*p = f.integer()
		case *string:
			*p = f.text()
		case *[]byte:
			*p = f.octets()
		case *time.Time:
			*p = f.time()
		}
	}
}

// cursor iterates over a table in the order of its ids. It is opened on the first
// row.
type cursor struct {
	*sqlite.Rows
	values []driver.Value // of the current row
	table  table
	row    []byte // the current row, encoded; nil: it cannot be encoded
	id     int64  // of the current row; end after the last
}

// end is the id of a cursor after the last row.
const end = math.MaxInt64

// openAt opens a cursor of t on the first row after the id.
func (c *conn) openAt(t table, after int64) (*cursor, error) {
	return c.openWhere(t, fmt.Sprintf("%s > %d", tables[t].columns[0], after))
}

// openWhere opens a cursor of t on the first row of a condition. It does not use indexes,
// which may be damaged.
func (c *conn) openWhere(t table, where string) (*cursor, error) {
	query := fmt.Sprintf("SELECT %s FROM %s NOT INDEXED WHERE %s ORDER BY %s", strings.Join(c.layout.columns(t), ", "), t, where, tables[t].columns[0])
	rows, err := c.Query(query)
	if err != nil {
		return nil, err
	}
	at := &cursor{Rows: rows, table: t}
	if err := at.next(); err != nil {
		at.Close()
		return nil, err
	}
	return at, nil
}

// next moves to the next row.
func (c *cursor) next() error {
	values, err := c.Next()
	if values == nil {
		c.id = end
		return err
	}
	c.values = values
	c.id = c.integer(0)
	if c.row, err = appendRow(c.row[:0], c.table, c.values); err != nil {
		c.row = nil
	}
	return nil
}

// close ends the query of the cursor, which may be nil.
func (c *cursor) close() {
	if c != nil {
		c.Close()
	}
}

// integer returns the value of a column by its index; 0 when it is not an integer.
func (c *cursor) integer(column int) int64 {
	n, _ := c.values[column].(int64)
	return n
}
