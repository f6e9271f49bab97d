package store

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Settle completes the record at path from its tail, so that it has all that was
// decided. Where a heed writes to it, that one does within a second.
func Settle(path string) error {
	w := &Writer{path: path, o: Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)}}
	err := w.openFiles(0)
	if errors.Is(err, errHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.shut()
}

// openFiles opens both parts of the record, and adds to audit.db what only the
// tail has. Another process has until patience is over to leave them.
func (w *Writer) openFiles(patience time.Duration) error {
	at, err := placeOf(w.path)
	if err != nil {
		return explain(w.path, err)
	}
	w.path = at
	if w.tail, err = openTail(w.path, patience); err != nil {
		return explain(w.path, err)
	}
	if w.base, err = openBase(w.path, w.o.Now()); err != nil {
		w.tail.close()
		return err
	}
	if err = w.recover(); err != nil {
		w.shut()
		return explain(w.path, err)
	}
	return nil
}

// recover adds to audit.db what only the tail has, and empties the tail.
func (w *Writer) recover() error {
	blocks, torn, err := w.tail.read(w.base.store)
	if err != nil {
		return err
	}
	if torn > 0 {
		w.o.Log.Warn("the record's tail ended in what was not written whole; no decision of it took effect", "file", w.path, "octets", torn)
	}
	var missing []byte
	for _, b := range blocks {
		if missing, err = w.base.missing(missing, b.rows); err != nil {
			return fmt.Errorf("%w: %w", errApart, err)
		}
	}
	if len(missing) > 0 {
		if err := w.base.add(missing, w.o.Now()); err != nil {
			return err
		}
	}
	if err := w.base.keep(); err != nil {
		return err
	}
	return w.tail.drop(true)
}

// shut closes both files.
func (w *Writer) shut() error {
	err := w.base.close()
	w.tail.close()
	return err
}
