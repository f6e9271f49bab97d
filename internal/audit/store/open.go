package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"heed/internal/audit/store/wal"
	"heed/internal/base/ownfile"
	"heed/internal/base/sqlite"
)

// view opens the record at path for reading, to which a heed may be writing. The error
// says what to do about a file that is not a record, is damaged, or has a newer layout.
func view(path string) (c *conn, err error) {
	if err = canBeRecord(path); err != nil {
		return nil, err
	}
	modes := []string{"ro", "immutable"} // immutable on a disk that cannot be written to
	if hasWAL(path) {
		modes[1] = "alone"
	}
	for _, mode := range modes {
		if c, err = connect(path, mode); err == nil {
			if err = isRecord(c); err == nil {
				return c, nil
			}
			c.Close()
		}
		if !cannotOpen(err) {
			break
		}
	}
	return nil, cmp.Or(refusal(path, err), viewError(path, err))
}

var (
	errNoRecord  = errors.New("it is a file of SQLite, but no record of heed's")
	errNewLayout = errors.New("a newer heed wrote it")
)

// viewError returns err with the path and what to do about it.
func viewError(path string, err error) error {
	switch {
	case errors.Is(err, errNewLayout):
		return fmt.Errorf("the record %s cannot be read: %w\nRead it with that heed", path, err)
	case errors.Is(err, errNoRecord):
		return fmt.Errorf("%s cannot be read: %w\nName the file that [audit] file names; for a copy of a record that a heed writes to, use `heed audit backup`", path, err)
	case isBusy(err):
		return fmt.Errorf("the record %s is locked by another program: %w\nTry again when that one is done with it", path, err)
	case broken(err) != nil:
		return fmt.Errorf("the record %s is damaged: %w\nSee what `heed audit verify` says of it", path, err)
	}
	return fmt.Errorf("the record %s cannot be read: %w", path, err)
}

// canBeRecord returns an error for a file that cannot be a record, with a clearer text than
// SQLite's.
func canBeRecord(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no record %s\nName the file that [audit] file names, or that heed run --audit made", path)
	case err != nil:
		return unreadable(err)
	case info.IsDir():
		return fmt.Errorf("%s is a directory, not a record\nName the file in it", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file, and no record\nName the file that [audit] file names, or that heed run --audit made", path)
	case info.Size() == 0:
		return fmt.Errorf("%s is empty: nothing was recorded in it", path)
	}
	return nil
}

// unreadable returns the error for a record that the system does not open, or look at, for err.
func unreadable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("the record cannot be read: %w\nRun the command as the user that it belongs to (sudo -u), or name a copy that this user may read", err)
	}
	return fmt.Errorf("the record cannot be read: %w", err)
}

// refusal returns an error for a file that SQLite refuses to read for the reason cause, and
// whose header says why; else nil.
func refusal(path string, cause error) error {
	if !sqlite.IsDamage(cause) && !cannotOpen(cause) {
		return nil
	}
	head, err := ownfile.Head(path, headerSize)
	switch n := min(len(head), len(magic)); {
	case err != nil:
		return unreadable(err)
	case string(head[:n]) != magic[:n]:
		return fmt.Errorf("%s is no record: heed keeps records in files of SQLite, and this is none\nName the file that [audit] file names, or that heed run --audit made", path)
	case n == 0: // it is open, and a database
		return nil
	case len(head) < headerSize:
		return cutOff(path, int64(len(head)), headerSize)
	}
	return checkSize(path, wholeSize(head))
}

// checkSize returns an error for a file that is smaller than its header says. While a process
// writes, pages are in the write-ahead log.
func checkSize(path string, whole int64) error {
	info, err := os.Stat(path)
	if err == nil && info.Size() < whole && !hasWAL(path) {
		return cutOff(path, info.Size(), whole)
	}
	return err
}

// headerSize is the size of the header of an SQLite file, in octets
// (https://sqlite.org/fileformat2.html, 1.3).
const headerSize = 100

// wholeSize returns the size of the file according to its header, in octets; 0
// when the header has none.
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

// cutOff returns the error for a truncated file.
func cutOff(path string, has, whole int64) error {
	return fmt.Errorf("the record %s is damaged: %w\nTake another copy of it", path, &Damage{
		What:  fmt.Sprintf("its end is missing: it has %d octets of %d", has, whole),
		Means: "A copy of it broke off, or the disk was full. Nothing in it is proved; take another copy.",
	})
}

// isRecord reads the layout, and returns an error unless the database has the tables
// and a known layout of a record.
func isRecord(c *conn) error {
	err := c.readLayout()
	if err != nil {
		return err
	}
	whole, err := c.Size()
	if err == nil {
		err = checkSize(c.path, whole)
	}
	if err != nil {
		return err
	}
	about, err := c.integer("SELECT count(*) FROM sqlite_schema WHERE name IN ('about', 'commits')")
	switch {
	case err != nil:
		return err
	case about != 2 || c.layout < oldest:
		return errNoRecord
	case c.layout > Schema:
		return fmt.Errorf("%w: its layout is number %d, and this heed knows those up to %d", errNewLayout, c.layout, Schema)
	}
	return nil
}

// cannotOpen reports whether SQLite could not create the files that readers share
// with the writer.
func cannotOpen(err error) bool {
	code := sqlite.Primary(err)
	return code == sqlite.CantOpen || code == sqlite.ReadOnly
}

// hasWAL reports whether there is a write-ahead log of SQLite that is not empty.
func hasWAL(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() != 0
}

// resolvePath returns the path of the record with links resolved, since its tail is
// beside the file itself. The record need not exist.
func resolvePath(path string) (string, error) {
	at, err := filepath.EvalSymlinks(path)
	if err == nil {
		if info, err := os.Stat(at); err == nil && !info.Mode().IsRegular() {
			return "", errForeign
		}
		return at, nil
	}
	if _, err := os.Lstat(path); err == nil {
		return "", errors.New("it is a link to a file that does not exist: remove it, or name another file in [audit] file")
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no directory %s: make it, or name another file in [audit] file", filepath.Dir(path))
	}
	return filepath.Join(dir, filepath.Base(path)), err
}

// claim opens and locks the file at path, which it creates for its owner when there is
// none, and checks that it can be a record.
func claim(path string) (*ownfile.Descriptor, error) {
	f, err := ownfile.Claim(path)
	if errors.Is(err, ownfile.ErrClaimed) {
		return nil, explain(path, wal.ErrHeld)
	}
	if err != nil {
		return nil, fmt.Errorf("the record cannot be opened: %w\nMake it writable, or name another file in [audit] file", err)
	}
	head := make([]byte, len(magic))
	if n, _ := f.ReadAt(head, 0); n > 0 && string(head[:n]) == strings.Repeat("\x00", n) && wal.HasBlocks(path) {
		err = errCut(path)
	} else if n > 0 && string(head[:n]) != magic[:n] {
		err = errForeign
	}
	if err != nil {
		f.Close()
		return nil, explain(path, err)
	}
	return f, nil
}

// DropWAL removes the files of the tail beside a record that is closed permanently,
// so that the record is one file. A file that is not empty is kept.
func DropWAL(path string) error {
	var all error
	for _, name := range wal.Paths(path) {
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			err = os.Remove(name)
		}
		all = errors.Join(all, err)
	}
	return all
}
