package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	sqlite "modernc.org/sqlite"
)

// Record is one file of several that are read together.
type Record struct {
	Path  string
	Store string // the id of the record; a backup has that of its original
	// DB has the entries from First to Last alone, in the table entry and
	// in the views: the others stand in another file of the same record.
	DB          *sql.DB
	First, Last int64 // entry.seq; Last is before First when it has none
	Waiting     int64 // decisions that stand in the tail alone, since nobody could complete the record

	mode string // in which it was opened
	head commit
	stub *stub // nil: nothing was pruned
}

// Records opens the files at paths for reading, after having completed those that
// no heed writes to. Files of one record (a file named twice, a backup beside its
// original) are read as one: each entry is in one of them alone. The caller closes
// what is returned; it is never more than there are paths, and in their order.
func Records(paths ...string) (all []*Record, err error) {
	defer func() {
		if err != nil {
			Close(all)
			all = nil
		}
	}()
	for _, path := range paths {
		r, err := openRecord(path)
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	byStore := map[string][]*Record{}
	for _, r := range all {
		byStore[r.Store] = append(byStore[r.Store], r)
	}
	for _, same := range byStore {
		if err := share(same); err != nil {
			return all, err
		}
	}
	return slices.DeleteFunc(all, func(r *Record) bool { return r.DB == nil }), nil
}

// Close closes the files of all records.
func Close(records []*Record) {
	for _, r := range records {
		r.close()
	}
}

func (r *Record) close() {
	if r.DB != nil {
		r.DB.Close()
		r.DB = nil
	}
}

// openRecord opens one file with all that it has.
func openRecord(path string) (*Record, error) {
	db, mode, err := viewWhole(path)
	if err != nil {
		return nil, err
	}
	r := &Record{Path: path, DB: db, mode: mode}
	if err := r.look(); err != nil {
		r.close()
		return nil, viewError(path, err)
	}
	if err := r.again(""); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// look reads what the file has.
func (r *Record) look() (err error) {
	ctx := context.Background()
	b := &base{path: r.Path, db: r.DB}
	if b.conn, err = r.DB.Conn(ctx); err != nil {
		return err
	}
	defer b.conn.Close()
	if err := b.findHead(ctx); err != nil {
		return err
	}
	r.Store, r.head = b.store, b.head
	r.Waiting = left(r.Path, b.store, b.head.last[Entry])
	s, err := b.stub(ctx)
	if err != nil {
		return err
	}
	if s.Through > 0 {
		r.stub = s
	}
	return b.conn.QueryRowContext(ctx, "SELECT coalesce(min(seq), 1), coalesce(max(seq), 0) FROM entry").Scan(&r.First, &r.Last)
}

// share gives each of the files of one record the entries that no other has:
// what was pruned from the latest comes from an earlier copy.
func share(same []*Record) error {
	slices.SortStableFunc(same, func(a, b *Record) int {
		return cmp.Or(cmp.Compare(b.head.n, a.head.n), cmp.Compare(a.First, b.First))
	})
	for i, r := range same[1:] {
		if err := r.prefixOf(same[i]); err != nil {
			return err
		}
	}
	first := same[0].First
	if same[0].Last < same[0].First {
		first = same[0].head.last[Entry] + 1
	}
	for _, r := range same[1:] {
		if r.Last = min(r.Last, first-1); r.Last < r.First {
			r.close()
			continue
		}
		first = r.First
		own := fmt.Sprintf("CREATE TEMP VIEW entry AS SELECT * FROM main.entry WHERE seq <= %d;\n", r.Last)
		if err := r.again(own); err != nil {
			return err
		}
	}
	return nil
}

// prefixOf returns an error when the chain of r is no part of that of later.
func (r *Record) prefixOf(later *Record) error {
	var hash []byte
	err := later.DB.QueryRow("SELECT hash FROM commits WHERE n = ?", r.head.n).Scan(&hash)
	switch {
	case errors.Is(err, sql.ErrNoRows) && later.stub != nil && later.stub.Through == r.head.n:
		hash = later.stub.Hash[:]
	case errors.Is(err, sql.ErrNoRows) && (r.head.n == 0 || later.stub != nil && later.stub.Through > r.head.n):
		return nil // it was pruned, and nobody knows its hash any more
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return err
	}
	if string(hash) != string(r.head.hash[:]) {
		return fmt.Errorf("%s and %s say that they are one record, but they differ at commit %d\nSee `heed audit verify`, and name one of them", later.Path, r.Path, r.head.n)
	}
	return nil
}

// again opens r anew, with what is its own to tell, and with this heed's views:
// those in the file may be older, or false.
func (r *Record) again(own string) error {
	over := strings.ReplaceAll(dropping.ReplaceAllString(views, ""), "CREATE VIEW", "CREATE TEMP VIEW")
	db := sql.OpenDB(narrowed{source(r.Path, r.mode), own + over})
	if err := db.Ping(); err != nil {
		db.Close()
		return viewError(r.Path, err)
	}
	r.close()
	r.DB = db
	return nil
}

// dropping is what makes room for the views in a file.
var dropping = regexp.MustCompile(`DROP VIEW [^;]*;`)

// narrowed opens connections to a database that begin with a statement.
type narrowed struct{ name, begin string }

// Driver implements driver.Connector.
func (narrowed) Driver() driver.Driver { return new(sqlite.Driver) }

// Connect implements driver.Connector.
func (n narrowed) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := n.Driver().Open(n.name)
	if err != nil {
		return nil, err
	}
	if _, err := c.(driver.ExecerContext).ExecContext(ctx, n.begin, nil); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}
