package store

import (
	"cmp"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store/wal"
)

// perStatement are the numbers of rows of an INSERT: its cost is mostly that of the
// statement, not of the rows.
var perStatement = [...]int{64, 16, 4, 1}

// database is audit.db, open for writing. It is not safe for concurrent use.
type database struct {
	*conn
	files
	known []known // states in which this process left it, the latest last
	found string  // why it is opened again; empty: it is not

	rows       rowsByTable                                 // of the last commit, for reuse
	insertions [len(tables)][2][len(perStatement)]execStmt // without and with literals; prepared on first use
	values     []driver.NamedValue                         // of the last insertion, for reuse
	counting   execStmt                                    // adds a row to counts; prepared on first use
}

// openDatabase opens the record at path for writing. When there is none, it creates one
// with an id, empty: a new one, that follows another, whose head is named; empty: it
// follows none. It returns wal.ErrHeld while another process has it open.
func openDatabase(path string, now time.Time, id, follows string) (*database, error) {
	claim, err := claim(path)
	if err != nil {
		return nil, err
	}
	c, err := connect(path, "rwc")
	if err != nil {
		claim.Close()
		return nil, explain(path, err)
	}
	b := &database{conn: c, files: files{name: path, claim: claim}}
	if err = b.begin(now, cmp.Or(id, audit.NewID().String()), follows); err != nil {
		return nil, explain(path, errors.Join(err, c.Close(), b.files.close()))
	}
	return b, nil
}

// magic is the beginning of every SQLite file.
const magic = "SQLite format 3\x00"

var (
	errForeign = errors.New("it is no record of heed's")
	errNewer   = errors.New("it was made by a newer heed")
	errApart   = errors.New("the tail does not belong to this state of the record")
)

// explain returns err with the path and what to do about it.
func explain(path string, err error) error {
	for cause, advice := range map[error]string{
		errForeign:  "Move it away, or name another file in [audit] file",
		errNewer:    "Use that heed, or name another file in [audit] file",
		errApart:    "Keep a copy of its tail (.tail and .tail2), and move it away",
		wal.ErrHeld: "Stop that one, or name another file in [audit] file",
	} {
		if errors.Is(err, cause) {
			return fmt.Errorf("the record %s cannot be used: %w\n%s", path, err, advice)
		}
	}
	if text := err.Error(); strings.Contains(text, "malformed") || strings.Contains(text, "not a database") {
		return fmt.Errorf("the record %s is damaged: %w\nMove it away with the files beside it (-wal, .tail, .tail2), and look with `heed audit verify` what of it can be read", path, err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if info, no := os.Lstat(path + suffix); no == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("the record %s cannot be used, since %[1]s%s is not a file that SQLite made (%w)\nMove it away: what was only in there is in the tail", path, suffix, err)
		}
	}
	return fmt.Errorf("the record %s cannot be used: %w", path, err)
}

// begin creates the tables when there are none, and reads the end of the chain.
func (b *database) begin(now time.Time, id, follows string) (err error) {
	if err = b.readLayout(); err != nil {
		return err
	}
	tables, err := b.integer("SELECT count(*) FROM sqlite_schema")
	switch {
	case err != nil:
		return err
	case b.layout > Schema:
		return fmt.Errorf("%w (layout %d, this one knows %d)", errNewer, b.layout, Schema)
	case b.layout < oldest && tables > 0:
		return errForeign
	case b.layout == 0:
		err = b.InTransaction(func() error { return b.create(now, id, follows) })
	case b.layout == Schema:
		err = b.InTransaction(func() error { // a reader may be using them
			_, err := b.Exec(views)
			return err
		})
	}
	if err != nil {
		return err
	}
	if err = b.findHead(); err == nil {
		err = b.files.open()
	}
	b.held = err == nil && b.claim.Hold() == nil
	if err == nil && b.head.n == 0 {
		_, err = b.sync() // audit.db has the tables and the id, whatever happens to the files beside it
	}
	return err
}

// create creates the tables and the views.
func (b *database) create(now time.Time, id, follows string) error {
	if _, err := b.Exec(schema + views); err != nil {
		return err
	}
	_, err := b.Exec("INSERT INTO about VALUES ('store', ?), ('created', ?)", id, now.UTC().Format(time.RFC3339))
	if err == nil && follows != "" {
		_, err = b.Exec("INSERT INTO about VALUES ('follows', ?)", follows)
	}
	if err != nil {
		return err
	}
	_, err = b.Exec(fmt.Sprintf("PRAGMA user_version = %d", Schema))
	b.layout = Schema
	return err
}

// findHead reads the id of the record and its last commit, with the tree up to it.
func (b *database) findHead() error {
	err := b.conn.findHead()
	if err == nil && b.layout >= treed {
		b.head.tree, err = b.treeOf(b.head.n + 1)
	}
	return err
}

// findHead reads the id of the record and its last commit.
func (c *conn) findHead() error {
	pairs, store, err := c.about()
	if err != nil {
		return err
	}
	if c.store = store; len(store) != wal.IDSize {
		return errForeign
	}
	head := first(c.layout, pairs)
	names := strings.Join(tables[commits].columns[:2+lastTable], ", ")
	if c.layout.has(eventTable) {
		names += ", event"
	} else {
		names += ", 0"
	}
	err = c.each("SELECT "+names+", exempt, hash FROM commits ORDER BY n DESC LIMIT 1", func(f *fields) {
		head.n, head.time = f.integer(), f.integer()
		for t := runTable; t <= lastTable; t++ {
			head.last[t] = f.integer()
		}
		head.event, head.exempt = f.integer(), f.integer()
		copy(head.hash[:], f.octets())
		head.tree = tree{}
	})
	if err == nil {
		c.head = head
	}
	return err
}

// sync syncs all commits to the disk. It moves them from SQLite's write-ahead log into
// the file, which SQLite syncs. Unless that moves all of them, since a reader needs the file
// as it is, they are lost with the log: alone is true.
func (b *database) sync() (alone bool, err error) {
	var busy, frames, done int64
	if err := b.row("PRAGMA wal_checkpoint(PASSIVE)", &busy, &frames, &done); err != nil {
		return false, err
	}
	return done < frames, b.log.Sync()
}

// close closes audit.db. The last action of SQLite is to move the write-ahead log into
// audit.db and to remove it. When another program removed, replaced or damaged the log, this
// must not happen: the lock of the claim prevents it; without one SQLite keeps the file open.
func (b *database) close() error {
	err := cmp.Or(b.present(), b.whole())
	switch {
	case b.log == nil && b.held: // an attempt to open it again has failed
		return errors.Join(err, b.files.close())
	case err == nil && b.held:
		err = b.claim.Release()
	case err != nil && !b.held:
		return errors.Join(err, b.claim.Close())
	}
	return errors.Join(err, b.closeConn(), b.files.close())
}

// closeConn closes the connection of SQLite.
func (b *database) closeConn() error {
	statements := []execStmt{b.counting}
	for _, of := range b.insertions {
		statements = append(append(statements, of[0][:]...), of[1][:]...)
	}
	for _, statement := range statements {
		if statement != nil {
			statement.Close()
		}
	}
	return b.conn.Close()
}
