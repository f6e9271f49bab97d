package store

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// View opens the record at path for reading, while a heed writes to it or
// none does. The error says what to do about a file that is no record, is
// damaged, or is of a layout that this heed does not know.
func View(path string) (*sql.DB, error) {
	db, _, err := view(path)
	return db, err
}

// view is View, and says in which mode the record was opened.
func view(path string) (db *sql.DB, mode string, err error) {
	if err := looksLikeRecord(path); err != nil {
		return nil, "", err
	}
	for _, mode = range []string{"ro", "immutable"} { // the second on a disk that cannot be written to
		if db, err = connect(path, mode); err != nil {
			return nil, "", err
		}
		if err = isRecord(db); err == nil {
			return db, mode, nil
		}
		db.Close()
		if !cannotOpen(err) || !alone(path) {
			break
		}
	}
	return nil, "", viewError(path, err)
}

var (
	errNoRecord  = errors.New("it is a file of SQLite, but no record of heed's")
	errNewLayout = errors.New("a newer heed wrote it")
)

// viewError says what to do about err.
func viewError(path string, err error) error {
	var e *sqlite.Error
	switch {
	case errors.Is(err, errNewLayout):
		return fmt.Errorf("the record %s cannot be read: %w\nRead it with that heed", path, err)
	case errors.Is(err, errNoRecord):
		return fmt.Errorf("%s cannot be read: %w\nName the file that [audit] file names", path, err)
	case errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY:
		return fmt.Errorf("the record %s is locked by another program: %w\nTry again when that one is done with it", path, err)
	case broken(err) != nil:
		return fmt.Errorf("the record %s is damaged: %w\nSee what `heed audit verify` says of it", path, err)
	}
	return fmt.Errorf("the record %s cannot be read: %w", path, err)
}

// looksLikeRecord says in words what SQLite would say in a number.
func looksLikeRecord(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no record %s\nName the file that [audit] file names, or that heed run --audit made", path)
	}
	if err != nil {
		return fmt.Errorf("the record cannot be read: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("the record cannot be read: %w", err)
	case info.IsDir():
		return fmt.Errorf("%s is a directory, not a record\nName the file in it", path)
	case info.Size() == 0:
		return fmt.Errorf("%s is empty: nothing was recorded in it", path)
	}
	head := make([]byte, headerSize)
	if n, err := io.ReadFull(f, head); string(head[:min(n, len(magic))]) != magic[:min(n, len(magic))] {
		return fmt.Errorf("%s is no record: heed keeps records in files of SQLite, and this is none", path)
	} else if err != nil {
		return cutOff(path, info.Size(), headerSize)
	}
	// While somebody writes, pages are in the log beside it and on their way.
	if whole := wholeSize(head); info.Size() < whole && alone(path) {
		return cutOff(path, info.Size(), whole)
	}
	return nil
}

// headerSize is how long what a file of SQLite begins with is
// (https://sqlite.org/fileformat2.html, 1.3).
const headerSize = 100

// wholeSize is how long the file with this header was when the header was
// written, in octets; 0 when it does not say.
func wholeSize(header []byte) int64 {
	if string(header[24:28]) != string(header[92:96]) {
		return 0
	}
	size := int64(binary.BigEndian.Uint16(header[16:]))
	if size == 1 {
		size = 65536
	}
	return size * int64(binary.BigEndian.Uint32(header[28:]))
}

// cutOff is the damage of a file that has lost its end.
func cutOff(path string, has, whole int64) error {
	return fmt.Errorf("the record %s is damaged: %w\nTake another copy of it", path, &Damage{
		What:  fmt.Sprintf("its end is missing: it has %d octets of %d", has, whole),
		Means: "A copy of it broke off, or the disk was full. Nothing in it is proved; take another copy.",
	})
}

// isRecord asks the database what it is.
func isRecord(db *sql.DB) error {
	var layout, about int
	if err := db.QueryRow("PRAGMA user_version").Scan(&layout); err != nil {
		return err
	}
	if err := db.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name IN ('about', 'commits')").Scan(&about); err != nil {
		return err
	}
	switch {
	case about != 2 || layout < 1:
		return errNoRecord
	case layout > Schema:
		return fmt.Errorf("%w: its layout is number %d, and this heed knows those up to %d", errNewLayout, layout, Schema)
	}
	return nil
}

// cannotOpen reports whether SQLite could not make the files beside the record
// that a reader shares with the writer.
func cannotOpen(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == sqlite3.SQLITE_CANTOPEN || e.Code()&0xff == sqlite3.SQLITE_READONLY)
}

// alone reports whether there is nothing beside the record that belongs to it.
func alone(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err != nil || info.Size() == 0
}
