package store

import (
	"slices"

	"heed/internal/audit"
)

// batch is rows that are written to the tail at once.
type batch struct {
	rows   []byte
	opened []opened // entries among the rows
	ended  []ended  // outcomes among them
	exempt int64    // requests that are only counted among them, and those that were lost
	lost   int64
	waits  int // how many wait for the write
	done   chan struct{}
	err    error
}

type opened struct {
	e   *audit.Entry
	seq int64
}

// ended is an outcome that has to be spelt again when it could not be written.
type ended struct {
	seq int64
	e   *audit.Entry // of a late verdict; else nil
	o   audit.Outcome
}

// againLocked spells an outcome, for the first time or after a failure.
func (w *Writer) againLocked(end ended) {
	w.next.rows = w.speller.outcome(w.next.rows, end.seq, end.e, &end.o)
	w.next.ended = append(w.next.ended, end)
}

// write writes b to the tail, for the first of those who wait for it. When it
// returns, b is the Writer's again, or that of the others who wait.
func (w *Writer) write(b *batch) error {
	w.io.Lock()
	w.mu.Lock()
	if w.next == b {
		if w.next, w.spare = w.spare, nil; w.next == nil {
			w.next = &batch{}
		}
	}
	last := w.speller.last
	w.mu.Unlock()
	if b.err == nil { // else the batch before it has failed
		err := w.present()
		if err == nil {
			err = w.tail.write(b.rows)
		}
		if alone := w.settle(b, last, err); alone {
			w.io.Unlock()
			return nil
		}
	}
	w.io.Unlock()
	if b.done != nil {
		close(b.done)
	}
	return b.err
}

// settle notes what became of the writing of b; last are the numbers given out
// up to its end. It reports whether b is written and nobody else waits for it.
func (w *Writer) settle(b *batch, last [len(tables)]int64, err error) (alone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.troubleLocked(&w.trouble.tail, err)
	if err != nil {
		w.failLocked(b, err)
		return false
	}
	w.written, w.queuedTo = last, w.tail.number
	for _, o := range b.opened {
		w.open[o.e] = o.seq
	}
	w.queue = append(w.queue, b.rows...)
	w.rouse()
	if b.waits > 1 || cap(b.rows) > maxSpare {
		return b.waits <= 1
	}
	clear(b.opened)
	clear(b.ended)
	*b = batch{rows: b.rows[:0], opened: b.opened[:0], ended: b.ended[:0]}
	w.spare = b
	return true
}

// failLocked gives up b and what was to be written after it, since that refers
// to numbers that b has given out; but not how exchanges ended whose entries the
// record has.
func (w *Writer) failLocked(b *batch, err error) {
	after := w.next
	b.err, after.err = err, err
	w.speller.back(w.written)
	w.exempt, w.lost = w.exempt+b.exempt+after.exempt, w.lost+b.lost+after.lost
	w.next = &batch{}
	if w.speller.run > w.written[Run] { // the row of this run is among what is given up
		w.next.rows = w.speller.runRow(nil)
	}
	for _, end := range slices.Concat(b.ended, after.ended) {
		w.againLocked(end)
	}
	w.rouse()
}
