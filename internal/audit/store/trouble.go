package store

import (
	"errors"
	"os"
	"time"
)

// trouble is what keeps the record from being written. The zero value is none.
type trouble struct {
	tail, base error // nil: it can be written
	told       bool  // the log knows
	lost       int64 // decisions that took effect unrecorded, since the start
}

// Err says why decisions cannot be recorded now; nil when they can.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble.tail != nil {
		return w.trouble.tail
	}
	return w.trouble.base
}

// Lost returns how many decisions took effect unrecorded since the start, which
// Options.Continue allows.
func (w *Writer) Lost() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trouble.lost
}

// troubleLocked notes what became of an attempt at one part of the record, and
// tells the log when that is news.
func (w *Writer) troubleLocked(part *error, err error) {
	*part = err
	t := &w.trouble
	ill := t.tail != nil || t.base != nil
	switch {
	case ill && !t.told && w.o.Continue:
		w.o.Log.Error("decisions cannot be recorded; requests go on all the same, since the settings say so", "file", w.path, "error", err)
	case ill && !t.told && t.tail != nil:
		w.o.Log.Error("decisions cannot be recorded; requests are refused until they can", "file", w.path, "error", err)
	case ill && !t.told:
		w.o.Log.Error("the record cannot be completed; decisions wait in its tail", "file", w.path, "error", err)
	case !ill && t.told:
		w.o.Log.Info("decisions are recorded again", "file", w.path, "unrecorded", t.lost)
	}
	t.told = ill
}

// present fails when the files are not where they were: what is written to them
// then is lost. It is called by who holds io, and looks now and then.
func (w *Writer) present() error {
	now := time.Now()
	if now.Sub(w.looked) < presentEvery {
		return nil
	}
	if err := w.base.present(); err != nil {
		return err
	}
	for i, name := range tailPaths(w.path) {
		if err := sameFile(name, w.tail.files[i], w.tail.size[i]); err != nil {
			return err
		}
	}
	w.looked = now
	return nil
}

// sameFile fails when f does not stand at name any more, or has fewer octets
// than were written to it.
func sameFile(name string, f *os.File, size int64) error {
	is, err := f.Stat()
	if err != nil {
		return err
	}
	at, err := os.Stat(name)
	switch {
	case err != nil || !os.SameFile(at, is):
		return errors.New("its tail " + name + " is no longer where it was: bring it back, or restart heed")
	case is.Size() < size:
		return errors.New("somebody has cut its tail " + name + ": restart heed")
	}
	return nil
}
