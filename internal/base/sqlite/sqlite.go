// Package sqlite opens files of SQLite, and executes statements on them.
//
// Outside package: modernc.org/sqlite, an SQLite that needs no C compiler.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"heed/internal/base/ownfile"
)

// Conn is a connection to a database. It bypasses database/sql, whose conversions would
// double the cost of reading. It is not safe for concurrent use.
type Conn struct {
	driver.Conn
	Context context.Context // ends statements: see Within
	pool    *sql.DB         // of this connection alone
	stopped context.Context // ends those of a reader that must be closed
	release func(error)     // of Within; nil: it was not called
	path    string
	reader  bool // it cannot write
	use     *ownfile.Use
}

// MaxValue is more than heed writes as one value, or one row, in octets. A longer one, which
// a file of others may have, is not read.
const MaxValue = 32 << 20

// Open opens the database at path in a mode of SQLite, ro, rw or rwc, or in the modes for
// a disk on which the index of the write-ahead log is missing and cannot be made, so that
// no process can be writing: immutable, ro without that log, and alone, ro with its index
// in memory. Readers do not block the writer (write-ahead log), and free pages can be
// released (auto_vacuum). Statements wait for those of other connections, no longer than
// wait.
func Open(path, mode string, wait time.Duration) (*Conn, error) {
	stopped, stop := context.Background(), (func())(nil)
	if mode != "rw" && mode != "rwc" {
		ctx, cancel := context.WithCancelCause(stopped)
		stopped, stop = ctx, func() { cancel(errStopped) }
	}
	path, use := ownfile.Using(path, stop)
	c, err := open(Source(path, mode, wait))
	if err != nil {
		use.Ended()
		return nil, err
	}
	use.Opened(path)
	c.Context, c.stopped, c.use, c.path, c.reader = stopped, stopped, use, path, stop != nil
	return c, nil
}

func open(source string) (*Conn, error) {
	c, err := new(sqlite.Driver).Open(source)
	if err != nil {
		return nil, err
	}
	// Limit takes a connection of database/sql, which closes it in the end.
	pool := sql.OpenDB(alone{c})
	one, err := pool.Conn(context.Background())
	if err == nil {
		_, err = sqlite.Limit(one, sqlite3.SQLITE_LIMIT_LENGTH, MaxValue)
		err = errors.Join(err, one.Close())
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &Conn{Conn: c, pool: pool}, nil
}

// alone is a driver.Connector whose only connection is open.
type alone struct{ driver.Conn }

// Connect returns the connection.
func (o alone) Connect(context.Context) (driver.Conn, error) { return o.Conn, nil }

// Driver returns the driver of SQLite.
func (o alone) Driver() driver.Driver { return new(sqlite.Driver) }

// Close closes the connection. The files that readers make beside a database which had none are
// removed by SQLite, as the last connection that may write does, unless another process has it
// open.
func (c *Conn) Close() error {
	err := c.pool.Close()
	left := c.use.Ended()
	if c.release != nil {
		c.release(nil)
	}
	if left && c.reader {
		if last, err := Open(c.path, "rw", 0); err == nil {
			_ = last.Close() // the files stay where they cannot be removed
		}
	}
	return err
}

// Within ends statements with ctx too.
func (c *Conn) Within(ctx context.Context) {
	both, cancel := context.WithCancelCause(ctx)
	context.AfterFunc(c.stopped, func() { cancel(errStopped) })
	c.Context, c.release = both, cancel
}

var errStopped = errors.New("heed opens the database again: another program removed or replaced the files beside it")

// Version returns the change counter of the database and the number of its pages
// (https://sqlite.org/fileformat2.html, 1.3.7 and 1.3.8).
func (c *Conn) Version() (string, error) {
	return Value[string](c, "SELECT hex(substr(data, 25, 8)) FROM sqlite_dbpage WHERE pgno = 1")
}

// Source returns the data source name with which the driver does what Open does.
func Source(path, mode string, wait time.Duration) string {
	q := url.Values{"mode": {mode}, "_pragma": {fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds())}}
	switch mode {
	case "immutable":
		q.Set("mode", "ro")
		q.Set("immutable", "1")
	case "alone": // https://sqlite.org/wal.html, 8
		q.Set("mode", "ro")
		q.Set("vfs", "unix-none")
		q["_pragma"] = append(q["_pragma"], "locking_mode(EXCLUSIVE)")
	case "rw", "rwc":
		if mode == "rwc" { // it writes to the database
			q["_pragma"] = append(q["_pragma"], "auto_vacuum(INCREMENTAL)")
		}
		q["_pragma"] = append(q["_pragma"], "journal_mode(WAL)", "synchronous(NORMAL)", "journal_size_limit(8388608)")
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

// Exec executes statements, and returns the number of rows that the last one changed.
func (c *Conn) Exec(text string, values ...driver.Value) (rows int64, err error) {
	result, err := c.Conn.(driver.ExecerContext).ExecContext(c.Context, text, named(values))
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func named(values []driver.Value) []driver.NamedValue {
	named := make([]driver.NamedValue, len(values))
	for i, v := range values {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return named
}

// InTransaction runs do in a transaction.
func (c *Conn) InTransaction(do func() error) error {
	_, err := c.Exec("BEGIN IMMEDIATE")
	if err != nil {
		return err
	}
	if err = do(); err == nil {
		_, err = c.Exec("COMMIT")
	}
	if err != nil {
		_, _ = c.Exec("ROLLBACK") // err is the cause
	}
	return err
}

// IsDatabase reports whether the file at path is one of SQLite, or may be one that cannot be
// read now. An empty file is none.
func IsDatabase(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		return false
	}
	c, err := Open(path, "ro", 0)
	if err == nil {
		_, err = c.One("PRAGMA schema_version")
		c.Close()
	}
	return Primary(err) != NotADB
}

// Size returns the size of the database according to its header, in octets; that of the file
// when the header has none.
func (c *Conn) Size() (int64, error) {
	return Value[int64](c, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
}

// CopyTo writes a copy of the database to a new file that only its owner can read, and syncs
// it.
func (c *Conn) CopyTo(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close() // after SQLite, which closes it at the end of the statement
	if _, err := c.Exec("VACUUM INTO ?", path); err != nil {
		return err
	}
	return f.Sync()
}

// Rows is the result of a query.
type Rows struct {
	conn   *Conn
	rows   driver.Rows
	values []driver.Value
}

// Query starts a query.
func (c *Conn) Query(query string, values ...driver.Value) (*Rows, error) {
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(c.Context, query, named(values))
	if err != nil {
		return nil, err
	}
	return &Rows{c, rows, make([]driver.Value, len(rows.Columns()))}, nil
}

// Columns returns the names of the columns.
func (r *Rows) Columns() []string { return r.rows.Columns() }

// Next returns the values of the next row, which are valid until the next call: int64,
// float64, string, []byte or nil for NULL. After the last row it returns nil.
func (r *Rows) Next() ([]driver.Value, error) {
	switch err := r.rows.Next(r.values); {
	case err == io.EOF:
		return nil, nil
	case r.conn.Context.Err() != nil: // which the driver does not watch between rows
		return nil, context.Cause(r.conn.Context)
	case err != nil:
		return nil, err
	}
	return r.values, nil
}

// Close ends the query.
func (r *Rows) Close() { _ = r.rows.Close() } // nothing was written

// Value returns the value of a query with one column; the zero value when there is no row, or
// when it has another type.
func Value[T any](c *Conn, query string) (v T, err error) {
	row, err := c.One(query)
	if row != nil {
		v, _ = row[0].(T)
	}
	return v, err
}

// One returns the values of the only row of a query's result; nil when there is none.
func (c *Conn) One(query string, values ...driver.Value) ([]driver.Value, error) {
	rows, err := c.Query(query, values...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	row, err := rows.Next()
	return append([]driver.Value(nil), row...), err
}

// Primary returns the primary result code of SQLite in err
// (https://sqlite.org/rescode.html); 0 when err has none.
func Primary(err error) int { return code(err) & 0xff }

func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// IsDamage reports whether err says that the file is not one of SQLite, or not any more as
// it was written.
func IsDamage(err error) bool {
	primary := Primary(err)
	return primary == Corrupt || primary == NotADB || code(err) == sqlite3.SQLITE_IOERR_SHORT_READ
}

// Primary result codes.
const (
	Failed   = sqlite3.SQLITE_ERROR // the statement: it names no such table, for example
	Busy     = sqlite3.SQLITE_BUSY
	ReadOnly = sqlite3.SQLITE_READONLY
	IOErr    = sqlite3.SQLITE_IOERR
	Corrupt  = sqlite3.SQLITE_CORRUPT
	Full     = sqlite3.SQLITE_FULL
	CantOpen = sqlite3.SQLITE_CANTOPEN
	TooBig   = sqlite3.SQLITE_TOOBIG
	NotADB   = sqlite3.SQLITE_NOTADB
	// Constraint is that of a row that there is already.
	Constraint = sqlite3.SQLITE_CONSTRAINT
	Format     = sqlite3.SQLITE_FORMAT
)
