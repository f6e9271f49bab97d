package policyfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"heed/internal/base/ownfile"
	"heed/internal/base/sqlite"
)

// failure is why a File cannot be written. The zero value is none.
type failure struct {
	Health
	logged   bool      // it was logged
	loggedAt time.Time // when a failure was last logged
}

// Health is the state of a File.
type Health struct {
	// Why is what prevents policies from being saved now; empty: nothing.
	Why string `json:"why,omitempty"`
	// Since is when that began.
	Since time.Time `json:"since,omitzero"`
	// Unsaved is the number of policies that could not be saved since the start: after the next
	// start their sites are requested again.
	Unsaved uint64 `json:"unsaved"`
}

// Health returns the state of f.
func (f *File) Health() Health {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failure.Health
}

// failedLocked records why nothing can be saved. It logs the first failure, at most once a
// minute.
func (f *File) failedLocked(why error) {
	now := time.Now()
	if f.failure.Why == "" {
		f.failure.Since = now
	}
	f.failure.Why = why.Error()
	if !f.failure.logged && now.Sub(f.failure.loggedAt) > time.Minute {
		f.failure.logged, f.failure.loggedAt = true, now
		f.log.Warn("policies cannot be saved for now: heed goes on with what is in memory, and sites may be asked again after a restart",
			"file", f.path, "error", f.failure.Why)
	}
}

// recoveredLocked records that all changes are saved.
func (f *File) recoveredLocked() {
	if f.failure.logged {
		f.log.Info("policies are saved again", "file", f.path, "not_saved", f.failure.Unsaved)
	}
	f.failure.Why, f.failure.Since, f.failure.logged = "", time.Time{}, false
}

// openLocked opens the file, or begins a new one when it is damaged.
func (f *File) openLocked() error {
	db, err := openDatabase(f.path)
	if damage := (*damage)(nil); errors.As(err, &damage) {
		f.damages++
		if err := f.setAside(damage); err != nil {
			return err
		}
		db, err = openDatabase(f.path)
	}
	if err != nil {
		return err
	}
	if f.info, err = os.Stat(f.path); err != nil {
		return errors.Join(err, db.close())
	}
	f.db = db
	return nil
}

// isTemporary reports whether a file that cannot be opened may become usable without a change
// of the configuration.
func isTemporary(err error) bool {
	for _, e := range []error{
		errInUse, fs.ErrPermission, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EMFILE, syscall.ENFILE,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return slices.Contains([]int{sqlite.ReadOnly, sqlite.IOErr, sqlite.CantOpen}, sqlite.Primary(err))
}

// openError returns what is wrong with the path of a file that cannot be opened.
func openError(path string, err error) error {
	var place *fs.PathError
	if errors.As(err, &place) {
		err = place.Err
	}
	return fmt.Errorf("the policies file %s cannot be opened: %w\nMake its directory, move away what is in its place, or name another file in [cache] file", path, err)
}

// readyLocked returns the file to write to: the open one, or another one when that was removed
// or never opened.
func (f *File) readyLocked() (*database, error) {
	switch {
	case f.closed:
		return nil, errClosed
	case len(f.writing) == 0:
		return f.db, nil
	}
	if f.db != nil {
		is, err := os.Stat(f.path)
		switch here := err == nil && os.SameFile(is, f.info); {
		case here && f.db.hasLogs(f.path):
			return f.db, nil
		case here:
			f.db.writing.Lock()
			err := f.db.settle()
			f.db.writing.Unlock()
			if err != nil {
				return nil, explained(err)
			}
			f.log.Warn("a file beside the policies file was removed or replaced while heed used it: it was opened again, and nothing is lost", "file", f.path)
		default:
			f.log.Warn("the policies file was removed or replaced while heed used it: what is there now is used", "file", f.path)
		}
		f.db.close() // its file is gone already
		f.db = nil
		if unused(f.path) {
			removeLogs(f.path)
		}
	}
	err := f.openLocked()
	return f.db, err
}

var (
	errClosed  = errors.New("nothing is kept on disk any more")
	errInUse   = errors.New("another program keeps the file locked: end it, or name another file in [cache] file")
	errForeign = errors.New("it is an SQLite database of something else")
	errNoFile  = errors.New("it is a pipe or a device")
	errTooFast = errors.New("they come faster than the disk takes them")
)

// setAside renames a damaged file.
func (f *File) setAside(why *damage) error {
	aside := f.path + damagedSuffix
	if err := os.Rename(f.path, aside); err != nil {
		return fmt.Errorf("the policies file %s is damaged and cannot be moved: %w\nRemove it", f.path, err)
	}
	removeLogs(f.path)
	f.log.Warn("the policies file is damaged: it was set aside, and policies are fetched anew",
		"file", f.path, "moved_to", aside, "damage", why.what)
	return nil
}

// removeLogs removes the logs that SQLite kept beside a file that was renamed: SQLite would
// apply them to the next one.
func removeLogs(path string) {
	for _, suffix := range logSuffixes {
		_ = os.Remove(path + suffix) // there may be none
	}
}

// unused reports whether no heed has the file at path, which is created when there is none.
func unused(path string) bool {
	file, err := ownfile.Claim(path)
	return err == nil && file.Close() == nil
}

// damaged renames the file of db, so that a new one is begun. When that is damaged too, the
// disk is not trusted, and f continues without a file.
func (f *File) damaged(db *database, why *damage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.db != db || f.closed {
		return // another goroutine found it first
	}
	f.db = nil
	_ = db.close() // it is damaged
	if f.damages++; f.damages > 1 {
		f.closed, f.pending, f.bytes = true, map[string]change{}, 0
		f.log.Error("the policies file is damaged again: nothing is kept on disk until the next start", "file", f.path, "damage", why.what)
		return
	}
	if err := f.setAside(why); err != nil {
		f.log.Error(err.Error())
	}
	if err := f.openLocked(); err != nil {
		f.failedLocked(err)
	}
}
