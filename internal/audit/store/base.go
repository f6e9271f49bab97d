package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"heed/internal/audit"
)

// perStatement is how many rows an INSERT can have: most of its cost is that of
// the statement.
var perStatement = [...]int{64, 16, 4, 1}

// base is audit.db as its one writer has it. Not safe for concurrent use.
type base struct {
	path  string
	db    *sql.DB
	conn  *sql.Conn
	claim *os.File    // locked
	file  os.FileInfo // what stood at path when it was opened
	store string      // the id of the record
	head  commit      // the last one; before the first, its number is 0 and its hash the root

	sorting    sorting
	insertions [len(tables)][len(perStatement)]statementOf // those that were needed so far
	values     []driver.NamedValue                         // of one of them
}

// openBase opens the record at path, which is made when nothing is there. The
// caller is its one writer.
func openBase(path string, now time.Time) (*base, error) {
	claim, err := claimFile(path)
	if err != nil {
		return nil, err
	}
	db, err := connect(path, "rwc")
	if err != nil {
		claim.Close()
		return nil, err
	}
	b := &base{path: path, db: db, claim: claim}
	if err := b.open(now); err != nil {
		db.Close()
		claim.Close()
		return nil, explain(path, err)
	}
	return b, nil
}

// magic is what every SQLite file begins with.
const magic = "SQLite format 3\x00"

var (
	errForeign = errors.New("it is no record of heed's")
	errNewer   = errors.New("it was made by a newer heed")
	errApart   = errors.New("the tail does not belong to this state of the record")
)

// explain says what to do about a record that cannot be used.
func explain(path string, err error) error {
	text := err.Error()
	switch {
	case errors.Is(err, errForeign):
		return fmt.Errorf("the record %s cannot be used: %w\nMove it away, or name another file in [audit] file", path, err)
	case errors.Is(err, errNewer):
		return fmt.Errorf("the record %s cannot be used: %w\nUse that heed, or name another file in [audit] file", path, err)
	case errors.Is(err, errApart):
		return fmt.Errorf("the record %s cannot be used: %w\nKeep a copy of its tail (.tail and .tail2), and move it away", path, err)
	case errors.Is(err, errHeld):
		return fmt.Errorf("the record %s cannot be used: %w\nStop that one, or name another file in [audit] file", path, err)
	case strings.Contains(text, "malformed") || strings.Contains(text, "not a database"):
		return fmt.Errorf("the record %s is damaged: %w\nMove it away with the files beside it (-wal, .tail, .tail2), and look with `heed audit verify` what of it can be read", path, err)
	}
	return fmt.Errorf("the record %s cannot be used: %w", path, err)
}

// open makes the tables when there are none, and finds the end of the chain.
func (b *base) open(now time.Time) error {
	ctx := context.Background()
	var err error
	if b.conn, err = b.db.Conn(ctx); err != nil {
		return err
	}
	if b.file, err = os.Stat(b.path); err != nil {
		return err
	}
	var version, tables int
	if err := b.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if err := b.conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	switch {
	case version > Schema:
		return fmt.Errorf("%w (layout %d, this one knows %d)", errNewer, version, Schema)
	case version == 0 && tables > 0:
		return errForeign
	case version == 0:
		if err := b.create(ctx, now); err != nil {
			return err
		}
	}
	// At once: somebody may be reading.
	if err := b.whole(ctx, func() error { return b.exec(ctx, views) }); err != nil {
		return err
	}
	return b.findHead(ctx)
}

func (b *base) exec(ctx context.Context, text string, values ...any) error {
	_, err := b.conn.ExecContext(ctx, text, values...)
	return err
}

// create makes the tables, whole or not at all.
func (b *base) create(ctx context.Context, now time.Time) error {
	return b.whole(ctx, func() error {
		if err := b.exec(ctx, schema+views); err != nil {
			return err
		}
		if err := b.exec(ctx, "INSERT INTO about VALUES ('store', ?), ('created', ?)",
			audit.NewID().String(), now.UTC().Format(time.RFC3339)); err != nil {
			return err
		}
		return b.exec(ctx, "PRAGMA user_version = "+strconv.Itoa(Schema))
	})
}

// whole runs do in a transaction.
func (b *base) whole(ctx context.Context, do func() error) error {
	if err := b.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := do()
	if err == nil {
		err = b.exec(ctx, "COMMIT")
	}
	if err != nil {
		_ = b.exec(ctx, "ROLLBACK") // what failed says more
	}
	return err
}

// findHead reads the end of the chain.
func (b *base) findHead(ctx context.Context) error {
	pairs, err := b.about(ctx)
	if err != nil {
		return err
	}
	if len(b.store) != storeSize {
		return errForeign
	}
	c := commit{hash: root(pairs)}
	var hash []byte
	into := []any{&c.n, &c.time}
	for t := Run; t <= lastTable; t++ {
		into = append(into, &c.last[t])
	}
	into = append(into, &c.exempt, &hash)
	names := strings.Join(commits.columns()[:len(into)-2], ", ")
	err = b.conn.QueryRowContext(ctx, "SELECT "+names+", exempt, hash FROM commits ORDER BY n DESC LIMIT 1").Scan(into...)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if err == nil {
		copy(c.hash[:], hash)
	}
	b.head = c
	return nil
}

// about reads what the file says it is.
func (b *base) about(ctx context.Context) (pairs [][2]string, err error) {
	rows, err := b.conn.QueryContext(ctx, "SELECT key, value FROM about ORDER BY key")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p [2]string
		if err := rows.Scan(&p[0], &p[1]); err != nil {
			return nil, err
		}
		if p[0] == "store" {
			b.store = p[1]
		}
		pairs = append(pairs, p)
	}
	return pairs, rows.Err()
}

// keep waits until all commits are on the disk. That is true of what SQLite has
// moved from the write-ahead log into the file already.
func (b *base) keep() error {
	f, err := os.Open(b.path + "-wal")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// present fails when another file than the one that was opened stands at path,
// or none.
func (b *base) present() error {
	now, err := os.Stat(b.path)
	if err != nil || !os.SameFile(now, b.file) {
		return errors.New("it is no longer where it was: bring it back, or restart heed to begin a new one")
	}
	return nil
}

func (b *base) close() error {
	_ = b.conn.Raw(func(any) error {
		for t := range b.insertions {
			for _, statement := range b.insertions[t] {
				if statement != nil {
					statement.Close()
				}
			}
		}
		return nil
	}) // which fails for a connection that is gone
	return errors.Join(b.conn.Close(), b.db.Close(), b.claim.Close())
}
