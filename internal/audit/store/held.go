package store

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Bounds of the write-ahead log of SQLite, which begins anew only when no reader needs what
// it has.
const (
	longLog = 64 << 20 // octets after which it is reported
	maxLog  = 1 << 30  // octets after which audit.db is not completed, so that decisions wait in the tail
)

// Octets of the index of the write-ahead log that programs lock
// (https://sqlite.org/walformat.html, 2.3.1).
const (
	openLock            = 128 // while a program has it open
	writeLock           = 120
	firstRead, lastRead = 123, 127
)

// errHeld is wrapped by the error of a record that another program holds: decisions wait in
// the tail until it ends, or the tail is full.
var errHeld = errors.New("it is held by another program")

// heldBy returns err, with the programs that hold audit.db where the system shows them.
func (w *Writer) heldBy(err error) error {
	if !isBusy(err) || w.db.index == nil {
		return err
	}
	return fmt.Errorf("%w%s: end it (%w)", errHeld, holders(w.db.index.Holders(writeLock, lastRead)), err)
}

// holders returns programs in words.
func holders(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ", " + strings.Join(names, ", ")
}

// long returns an error when the write-ahead log has more than most octets, and cannot begin
// anew, since another program reads an earlier state of the record.
func (w *Writer) long(most int64) error {
	info, err := os.Stat(w.path + "-wal")
	if err != nil || info.Size() <= most {
		return nil // a missing file is found elsewhere
	}
	var busy, frames, done int64
	if err := w.db.row("PRAGMA wal_checkpoint(PASSIVE)", &busy, &frames, &done); err != nil || frames == done {
		return w.heldBy(err)
	}
	return fmt.Errorf("%w, which reads an old state of it%s, so that audit.db-wal has %d MB: end it", errHeld, holders(w.db.index.Holders(firstRead, lastRead)), info.Size()>>20)
}
