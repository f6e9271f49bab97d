package store

import (
	"context"
	"log/slog"
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

// anew begins a part of the record that refers to nothing before it: with the
// row of this run once more, and with all names forgotten.
func (w *Writer) anew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.speller.forget()
	w.next.rows = w.speller.runRow(w.next.rows)
	w.rouse()
}
