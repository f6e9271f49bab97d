package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heed/internal/base/sqlite"
)

// supersede moves a record of an earlier layout, which has all rows of its tail, aside
// and begins a new one in its place, whose chain names the head of the old one. The new
// one is complete before the old one is moved: a heed that is killed between leaves both,
// and the next one continues with settleMove. The tail stays locked all the while.
func (w *Writer) supersede() error {
	head := w.db.head
	if err := w.closeAlone(); err != nil {
		return err
	}
	w.follows = headOf(w.db.store, &w.db.head)
	aside, err := w.replace()
	if err != nil {
		w.wal.Close()
		return fmt.Errorf("it has the layout of an earlier heed, and cannot be moved aside: %w\nMove it away with the files beside it, or name another file in [audit] file", err)
	}
	w.o.Log.Warn("the record has the layout of an earlier heed: it was completed and moved, and a new one continues it",
		"file", w.path, "moved_to", aside, "commit", head.n, "head", head.hash)
	return w.openRecord()
}

// headOf describes the last commit of a record.
func headOf(store string, h *commit) string {
	return fmt.Sprintf("record %s commit %d hash %s", store, h.n, h.hash)
}

// Continued returns the records that the one at path continues, the latest first: a heed that
// was upgraded to another layout has moved them aside. A record that is no longer beside it,
// or does not end as the next one says, is left out, with those before it.
func Continued(path string) (all []string, err error) {
	extension := filepath.Ext(path)
	beside, err := filepath.Glob(strings.TrimSuffix(path, extension) + ".layout*" + extension)
	if len(beside) == 0 || err != nil {
		return nil, err
	}
	heads := map[string]string{}
	for _, name := range beside {
		if r, err := OpenRecord(name); err == nil {
			heads[headOf(r.Store, &r.head)] = name
		}
	}
	for len(all) < len(beside) {
		c, err := view(path)
		if err != nil {
			return nil, err
		}
		pairs, _, err := c.about()
		if err = errors.Join(err, c.Close()); err != nil {
			return nil, viewError(path, err)
		}
		i := slices.IndexFunc(pairs, func(p [2]string) bool { return p[0] == "follows" })
		if i < 0 || heads[pairs[i][1]] == "" {
			break
		}
		path = heads[pairs[i][1]]
		all = append(all, path)
	}
	return all, nil
}

// closeAlone closes audit.db with all of it in the file itself. A reader would keep rows
// in the write-ahead log, which does not move with the file.
func (w *Writer) closeAlone() error {
	err := w.db.claim.Release() // SQLite needs it for itself
	if err != nil {
		return errors.Join(err, w.closeFiles())
	}
	for end := time.Now().Add(lockTimeout); ; time.Sleep(20 * time.Millisecond) {
		_, err = w.db.Exec("PRAGMA journal_mode = DELETE") // at once busy while there is a reader
		if !isBusy(err) || time.Now().After(end) {
			break
		}
	}
	if isBusy(err) {
		err = fmt.Errorf("it has the layout of an earlier heed, and cannot be moved aside while another program reads it: %w\nEnd that program, and start heed again", err)
	}
	if err == nil {
		err = w.wal.Drop(true)
	}
	if err != nil {
		return errors.Join(err, w.closeFiles())
	}
	if err = errors.Join(w.db.closeConn(), w.db.files.close()); err != nil { // SQLite has removed its log
		w.wal.Close()
	}
	return err
}

func isBusy(err error) bool {
	return sqlite.Primary(err) == sqlite.Busy
}

// replace puts a new record in the place of the one at w.path, and returns the old
// one's new name.
func (w *Writer) replace() (aside string, err error) {
	next := nextOf(w.path)
	b, err := openDatabase(next, w.o.Now(), "", w.follows)
	if err != nil {
		return "", err
	}
	_, err = b.sync()
	if err = errors.Join(err, b.close()); err != nil {
		return "", err
	}
	if aside, err = asideOf(w.path, fmt.Sprintf("layout%d", w.db.layout)); err == nil {
		err = os.Rename(w.path, aside)
	}
	if err == nil {
		err = os.Rename(next, w.path)
	}
	return aside, err
}

// nextOf returns the name of a new record until the one at path is moved aside.
func nextOf(path string) string { return path + ".next" }

// settleMove ends a move that supersede began in a process that was killed. The tail is
// locked.
func settleMove(path string) error {
	next := nextOf(path)
	if _, err := os.Lstat(next); err != nil {
		return nil
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(next, path)
	}
	for _, name := range []string{next, next + "-wal", next + "-shm", next + "-journal"} { // it may be incomplete
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// asideOf returns an unused name for the record at path, beside it.
func asideOf(path, kind string) (string, error) {
	extension := filepath.Ext(path)
	base := strings.TrimSuffix(path, extension) + "." + kind
	for n := 1; ; n++ {
		name := base + extension
		if n > 1 {
			name = fmt.Sprintf("%s-%d%s", base, n, extension)
		}
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
}
