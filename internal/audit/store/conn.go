package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"regexp"
	"strings"
	"time"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// conn is a connection to the database of a record. It bypasses database/sql, whose
// conversions would double the cost of reading. It is not safe for concurrent use.
type conn struct {
	driver.Conn
	pool   *sql.DB // of this connection alone
	path   string
	ctx    context.Context // ends statements
	layout layout          // 0: not read yet
}

// connect opens the database at path in an SQLite mode, ro, rw or rwc, or in the
// modes for a disk on which the index of the write-ahead log is missing and cannot be
// made, so that no process can be writing: immutable, ro without that log, and alone, ro
// with its index in memory. Readers do not block the writer (write-ahead log), and free
// pages can be released (auto_vacuum).
func connect(path, mode string) (*conn, error) {
	return dial(path, source(path, mode))
}

// dial opens the database with a data source name.
func dial(path, name string) (*conn, error) {
	c, err := new(sqlite.Driver).Open(name)
	if err != nil {
		return nil, err
	}
	// Limit takes a connection of database/sql, which closes it in the end.
	pool := sql.OpenDB(alone{c})
	one, err := pool.Conn(context.Background())
	if err == nil {
		_, err = sqlite.Limit(one, sqlite3.SQLITE_LIMIT_LENGTH, maxValue)
		err = errors.Join(err, one.Close())
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &conn{Conn: c, pool: pool, path: path, ctx: context.Background()}, nil
}

// maxValue is more than heed writes as one value, or one row, in octets. A file of others
// may have any.
const maxValue = 32 << 20

// alone is a driver.Connector whose only connection is open.
type alone struct{ driver.Conn }

// Connect returns the connection.
func (o alone) Connect(context.Context) (driver.Conn, error) { return o.Conn, nil }

// Driver returns the driver of SQLite.
func (o alone) Driver() driver.Driver { return new(sqlite.Driver) }

// Close closes the connection.
func (c *conn) Close() error { return c.pool.Close() }

// source returns the data source name for the driver.
func source(path, mode string) string {
	q := url.Values{"mode": {mode}, "_pragma": {"busy_timeout(5000)"}}
	switch mode {
	case "immutable":
		q.Set("mode", "ro")
		q.Set("immutable", "1")
	case "alone": // https://sqlite.org/wal.html, 8
		q.Set("mode", "ro")
		q.Set("vfs", "unix-none")
		q["_pragma"] = append(q["_pragma"], "locking_mode(EXCLUSIVE)")
	case "rw", "rwc":
		q["_pragma"] = append(q["_pragma"], "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)", "synchronous(NORMAL)", "journal_size_limit(8388608)")
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

// exec executes statements, and returns the number of rows that the last one changed.
func (c *conn) exec(text string, values ...driver.Value) (rows int64, err error) {
	named := make([]driver.NamedValue, len(values))
	for i, v := range values {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	result, err := c.Conn.(driver.ExecerContext).ExecContext(c.ctx, text, named)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// inTransaction runs do in a transaction.
func (c *conn) inTransaction(do func() error) error {
	_, err := c.exec("BEGIN IMMEDIATE")
	if err != nil {
		return err
	}
	if err = do(); err == nil {
		_, err = c.exec("COMMIT")
	}
	if err != nil {
		_, _ = c.exec("ROLLBACK") // err is the cause
	}
	return err
}

// Rows is the result of a query with columns of any kind.
type Rows struct {
	Columns []string
	conn    *conn
	rows    driver.Rows
	values  []driver.Value
}

func (c *conn) rows(query string) (*Rows, error) {
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(c.ctx, query, nil)
	if err != nil {
		return nil, err
	}
	return &Rows{rows.Columns(), c, rows, make([]driver.Value, len(rows.Columns()))}, nil
}

// Next returns the values of the next row: int64, float64, string, []byte or
// nil for NULL. After the last row it returns nil.
func (r *Rows) Next() (values []any, err error) {
	row, err := r.next()
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read to its end: %w", r.conn.path, err)
	}
	for _, v := range row {
		values = append(values, v)
	}
	return values, nil
}

// next returns the values of the next row, which are valid until the next call;
// nil after the last row.
func (r *Rows) next() ([]driver.Value, error) {
	switch err := r.rows.Next(r.values); {
	case err == io.EOF:
		return nil, nil
	case r.conn.ctx.Err() != nil: // which the driver does not watch between rows
		return nil, context.Cause(r.conn.ctx)
	case err != nil:
		return nil, err
	}
	return r.values, nil
}

// Close ends the query.
func (r *Rows) Close() { _ = r.rows.Close() } // nothing was written

// readLayout sets the layout.
func (c *conn) readLayout() error {
	n, err := c.integer("PRAGMA user_version")
	c.layout = layout(n)
	return err
}

// each calls row with every row of a query's result, until row returns an error.
func (c *conn) each(query string, row func(*fields) error) error {
	rows, err := c.rows(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for {
		values, err := rows.next()
		if err != nil || values == nil {
			return err
		}
		f := fields{values: values}
		if err := errors.Join(row(&f), f.err); err != nil {
			return err
		}
	}
}

// integer returns the value of a query with one column; 0 when the result has no row.
func (c *conn) integer(query string) (n int64, err error) {
	err = c.each(query, func(f *fields) error { n = f.integer(); return nil })
	return n, err
}

// Reader reads a snapshot of a record, taken when it was opened. Reads fail when its
// context ends. It is not safe for concurrent use; a record may have several.
type Reader struct {
	*conn
	hasViews  bool // views were created
	begin     string
	elsewhere int64 // Record.Elsewhere
}

// Read opens a Reader, which the caller closes.
func (r *Record) Read(ctx context.Context) (*Reader, error) {
	c, err := dial(r.Path, r.source)
	if err != nil {
		return nil, viewError(r.Path, err)
	}
	c.ctx = ctx
	if _, err := c.exec(r.begin + "BEGIN"); err != nil {
		return nil, errors.Join(viewError(r.Path, err), c.Close())
	}
	return &Reader{conn: c, begin: r.begin, elsewhere: r.Elsewhere}, nil
}

// tempViews are the views, for one connection: those in a file may be older or forged.
// A decision that is read from another file may replace one of this file.
var tempViews = strings.NewReplacer("CREATE VIEW", "CREATE TEMP VIEW", "SELECT revises FROM entry", "SELECT revises FROM main.entry").Replace(regexp.MustCompile(`DROP VIEW [^;]*;`).ReplaceAllString(views, ""))

// viewRows returns the result of a query that reads views.
func (r *Reader) viewRows(query string) (rows *Rows, err error) {
	if !r.hasViews {
		_, err = r.exec(tempViews)
	}
	if err == nil {
		r.hasViews = true
		rows, err = r.rows(query)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read as a record: %w", r.path, err)
	}
	return rows, nil
}

// Close closes the Reader. Values that were read remain valid.
func (r *Reader) Close() { _ = r.conn.Close() } // nothing was written

// each is conn.each with the path of the record in the error.
func (r *Reader) each(query string, row func(*fields) error) error {
	err := r.conn.each(query, row)
	if err != nil {
		err = fmt.Errorf("%s: %w", r.path, err)
	}
	return err
}

// one calls row with the only row of a query's result. Without one it returns
// an error that names the table and the id.
func (r *Reader) one(t table, id int64, query string, row func(*fields) error) error {
	found := false
	err := r.each(fmt.Sprintf(query, id), func(f *fields) error { found = true; return row(f) })
	if err == nil && !found {
		err = fmt.Errorf("the record has no %s %d, which it refers to\nSee `heed audit verify`", t, id)
	}
	return err
}

// about returns the table "about", ordered by key, and the id of the record.
func (c *conn) about() (pairs [][2]string, store string, err error) {
	err = c.each("SELECT key, value FROM about ORDER BY key", func(f *fields) error {
		p := [2]string{f.text(), f.text()}
		if p[0] == "store" {
			store = p[1]
		}
		pairs = append(pairs, p)
		return nil
	})
	return pairs, store, err
}

// fields returns the values of a row one after the other; NULL is the zero value.
type fields struct {
	values []driver.Value
	at     int
	err    error // the first value of a wrong type
}

// errStrange is the error of a value of a type that its column never has.
var errStrange = errors.New("which heed never writes")

// take returns the next value as a T.
func take[T any](f *fields) (v T) {
	value := f.values[f.at]
	f.at++
	v, ok := value.(T)
	if !ok && value != nil {
		f.err = fmt.Errorf("column %d of a row has a value of the type %T, %w\nSee `heed audit verify`", f.at, value, errStrange)
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

// cursor iterates over a table in the order of its ids. It is opened on the first
// row.
type cursor struct {
	*Rows
	table table
	row   []byte // the current row, encoded; nil: it cannot be encoded
	id    int64  // of the current row; end after the last
}

// end is the id of a cursor after the last row.
const end = math.MaxInt64

// open opens a cursor of t on its first row. It does not use indexes, which may be
// damaged.
func (c *conn) open(t table) (*cursor, error) { return c.openWhere(t, "TRUE") }

// openAt opens a cursor of t on the first row after the id.
func (c *conn) openAt(t table, after int64) (*cursor, error) {
	return c.openWhere(t, fmt.Sprintf("%s > %d", tables[t].columns[0], after))
}

func (c *conn) openWhere(t table, where string) (*cursor, error) {
	query := fmt.Sprintf("SELECT %s FROM %s NOT INDEXED WHERE %s ORDER BY %s", strings.Join(c.layout.columns(t), ", "), t, where, tables[t].columns[0])
	rows, err := c.rows(query)
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
	values, err := c.Rows.next()
	if values == nil {
		c.id = end
		return err
	}
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
