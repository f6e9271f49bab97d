package store

import (
	"context"
	"log/slog"
	"runtime"
)

// prune removes some of what is too old or too much. Traffic goes on: what is
// recorded meanwhile waits in the tail. When it fails, it is tried again later.
func (w *Writer) prune() {
	w.completing.Lock()
	defer w.completing.Unlock()
	more, err := w.pruner.step(context.Background(), w.o.Now())
	if err != nil && !w.pruner.failed {
		w.o.Log.Warn("what is too old could not be removed from the record; heed tries again", slog.String("file", w.path), slog.Any("error", err))
	}
	if w.pruner.failed = err != nil; more && err == nil {
		w.rouse()
	}
}

func (w *Writer) tailOctets() int64 {
	w.io.Lock()
	defer w.io.Unlock()
	return w.tail.octets()
}

// forgetLocked forgets the rows that names have, and waits until audit.db has
// all that was spelt before: what comes later refers to rows that come later.
func (w *Writer) forgetLocked() error {
	w.mu.Lock()
	w.speller.forget()
	b := w.next
	w.mu.Unlock()
	for !w.begun(b) {
		w.flush()
		runtime.Gosched() // one who waits for b is about to write it
	}
	w.io.Lock() // b is written
	w.io.Unlock()
	return w.completeLocked()
}

// begun reports whether all that was in b before now is being written, or is.
func (w *Writer) begun(b *batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next != b || len(b.rows) == 0
}
