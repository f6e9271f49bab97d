package store

import (
	"errors"
	"log/slog"
	"time"

	"heed/internal/audit"
)

const (
	completeEvery = 700 * time.Millisecond // at most one commit in that time
	lockPatience  = 2 * time.Second        // for who completes the record to read it
	retryEvery    = time.Second            // when one has failed
	pruneEvery    = time.Minute            // how often it is looked for what is too old when nothing is recorded
	presentEvery  = 50 * time.Millisecond  // how often it is looked whether the files are where they were
)

// Open opens the record at path for writing, completes it from its tail, and
// begins to complete it from then on. Only one process can at a time.
func Open(path string, o Options) (*Writer, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Writer{path: path, o: o, next: &batch{}, open: map[*audit.Entry]int64{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	if err := w.openFiles(lockPatience); err != nil {
		return nil, err
	}
	if o.Disk {
		w.tail.sync = fsync
	}
	w.speller.o = &w.o
	w.written = w.base.last()
	w.speller.last = w.written
	w.speller.begun = o.Now()
	w.next.rows = w.speller.runRow(w.next.rows)
	if err := w.Complete(); err != nil {
		w.shut()
		return nil, explain(path, err)
	}
	w.pruner = &pruner{base: w.base, limits: limits{o.Keep, o.MaxSize}, tail: w.tailOctets, anew: w.anew}
	go w.complete()
	return w, nil
}

// complete completes audit.db now and then, until stop is closed.
func (w *Writer) complete() {
	defer close(w.done)
	wait := completeEvery
	for {
		select {
		case <-w.wake:
		case <-time.After(pruneEvery):
		case <-w.stop:
			return
		}
		select {
		case <-time.After(wait):
		case <-w.stop:
			return
		}
		wait = completeEvery
		if w.Complete() != nil {
			wait = retryEvery
			w.rouse()
			continue
		}
		w.prune()
	}
}

// Complete has audit.db hold all that was recorded before the call. Nobody needs
// to call it but who cannot wait for a second.
func (w *Writer) Complete() error {
	w.flush()
	w.completing.Lock()
	defer w.completing.Unlock()
	return w.completeLocked()
}

// completeLocked has audit.db hold what the tail has.
func (w *Writer) completeLocked() error {
	w.mu.Lock()
	rows, number := w.queue, w.queuedTo
	w.queue = w.emptied[:0]
	w.mu.Unlock()
	err := w.base.present()
	if err == nil && len(rows) > 0 {
		err = w.base.add(rows, w.o.Now())
	}
	w.mu.Lock()
	w.troubleLocked(&w.trouble.base, err)
	if err != nil {
		w.queue = append(rows, w.queue...)
	} else if w.emptied = rows; cap(rows) > maxSpare {
		w.emptied = nil
	}
	failed := w.trouble.tail
	w.mu.Unlock()
	if err == nil {
		err = w.dropSpent(number)
	}
	return errors.Join(err, failed)
}

// flush writes what nobody waits for.
func (w *Writer) flush() {
	w.mu.Lock()
	b := w.next
	if w.exempt > 0 {
		b.rows, b.exempt, w.exempt = w.speller.exempt(b.rows, w.o.Now(), w.exempt, ""), w.exempt, 0
	}
	if w.lost > 0 {
		b.rows, b.lost, w.lost = w.speller.exempt(b.rows, w.o.Now(), w.lost, w.lostWhy), w.lost, 0
	}
	if b.waits > 0 { // one who waits writes it
		w.mu.Unlock()
		return
	}
	if len(b.rows) == 0 {
		ill := w.trouble.tail != nil
		w.mu.Unlock()
		if ill {
			w.probe()
		}
		return
	}
	b.waits++
	w.mu.Unlock()
	_ = w.write(b) // trouble says it
}

// probe looks whether the tail can be written again when nobody asks for it.
func (w *Writer) probe() {
	w.io.Lock()
	defer w.io.Unlock()
	err := w.present()
	if err == nil {
		err = w.tail.probe()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.troubleLocked(&w.trouble.tail, err)
}

// dropSpent empties the part of the tail that audit.db has for good.
func (w *Writer) dropSpent(number uint64) error {
	w.io.Lock()
	spent := w.tail.spent(number)
	w.io.Unlock()
	if !spent { // nobody but us makes it less so
		return nil
	}
	if err := w.base.keep(); err != nil {
		return err
	}
	w.io.Lock()
	defer w.io.Unlock()
	return w.tail.drop(false)
}

// finish ends the record: all is in audit.db, and the tail is empty.
func (w *Writer) finish() error {
	for {
		if err := w.Complete(); err != nil {
			return errors.Join(err, w.shut()) // the tail has it for the next who opens the record
		}
		if ended, err := w.end(); ended {
			return errors.Join(err, w.shut())
		}
		time.Sleep(time.Millisecond) // somebody is about to write what was decided before
	}
}

// end empties the tail when nothing is under way any more.
func (w *Writer) end() (ended bool, err error) {
	w.io.Lock()
	defer w.io.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.next.rows) > 0 || len(w.queue) > 0 {
		return false, nil
	}
	if err := w.base.keep(); err != nil {
		return true, err
	}
	return true, w.tail.drop(true)
}
