package store

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store/wal"
)

const (
	completeEvery = 700 * time.Millisecond // minimum time between commits
	lockTimeout   = 2 * time.Second        // for a reader that completes the record
	retryEvery    = time.Second            // after a failed commit
	pruneEvery    = time.Minute            // while nothing is recorded
	presentEvery  = 50 * time.Millisecond  // minimum time between checks that the files are in place
)

// Open opens the record at path for writing, completes it from its tail, and
// starts a goroutine that completes it until Close. A record of an earlier layout is
// moved aside, and a new one continues it. Only one process can have a record open for
// writing.
func Open(path string, o Options) (*Writer, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Writer{path: path, o: o, next: &batch{}, open: map[*audit.Entry]int64{}, maxLog: maxLog, maxKept: maxKept,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	err := w.openFiles(lockTimeout)
	if err != nil {
		err = w.replaceDamaged(err)
	}
	if err != nil {
		return nil, err
	}
	if w.db.layout != Schema {
		if err := w.supersede(); err != nil {
			return nil, explain(path, err)
		}
	}
	if o.Disk {
		w.wal.Sync = (*os.File).Sync
	}
	w.encode.o = &w.o
	w.written = w.db.last()
	w.encode.last = w.written
	w.encode.begun = o.Now()
	w.next.rows = w.encode.runRow(w.next.rows)
	if err := w.Complete(); err != nil {
		w.closeFiles()
		return nil, explain(path, err)
	}
	w.pruner = &pruner{db: w.db, limits: limits{o.Keep, o.MaxSize}, tail: w.tailOctets, newPart: w.newPart}
	go w.complete()
	return w, nil
}

// complete completes audit.db when there are new rows, until stop is closed.
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
		if wait = completeEvery; w.completeWithin() != nil {
			wait = retryEvery
			w.signal()
		}
	}
}

// completeWithin completes audit.db, and removes what is too old or too much: all that is beyond
// the size at once, and audit.db is completed in between.
func (w *Writer) completeWithin() error {
	for {
		if err := w.Complete(); err != nil || !w.prune() {
			return err
		}
		select {
		case <-w.stop:
			return nil
		default:
		}
	}
}

// Complete adds to audit.db everything recorded before the call, which otherwise
// happens within a second. It returns an error while the record cannot be written.
func (w *Writer) Complete() error {
	w.flush()
	w.completing.Lock()
	defer w.completing.Unlock()
	w.mu.Lock()
	rows, number := w.queue, w.queuedTo
	w.queue, w.emptied = w.emptied, nil
	w.mu.Unlock()
	rows, err := w.add(rows, number)
	w.unsure = err != nil
	var long error
	if err == nil {
		long = w.long(longLog)
	}
	w.mu.Lock()
	w.health.long = long
	w.setHealthLocked(&w.health.db, err)
	if err != nil {
		w.queue = append(rows, w.queue...)
	} else if cap(rows) <= maxSpare {
		w.emptied = rows[:0]
	}
	failed := w.health.wal
	w.mu.Unlock()
	if err == nil {
		err = w.dropSpent(number)
		w.db.sized()
	}
	return errors.Join(err, failed)
}

// add adds rows of the tail, up to a block, to audit.db, and returns those that it still does
// not have.
func (w *Writer) add(rows []byte, block uint64) ([]byte, error) {
	if err := w.db.complete(); err != nil {
		if err := w.heal(err); err != nil {
			return rows, err
		}
		return rows[:0], nil // the tail has them, and now audit.db
	}
	var err error
	if w.unsure { // an earlier try may have added them
		rows, err = w.db.missing(nil, rows)
	}
	if err == nil && len(rows) > 0 {
		err = w.long(w.maxLog)
	}
	if err != nil || len(rows) == 0 {
		return rows, w.heldBy(err)
	}
	if err = w.db.add(rows, w.o.Now()); err == nil {
		err = w.db.remember(block)
	}
	if err == nil {
		w.db.sized()
		err = w.db.complete() // SQLite does not notice
	}
	return rows, w.heldBy(err)
}

// flush writes the next batch unless a caller that waits for it does.
func (w *Writer) flush() {
	w.mu.Lock()
	b := w.next
	if w.exempt > 0 {
		b.rows, b.exempt, w.exempt = w.encode.exempt(b.rows, w.o.Now(), w.exempt, ""), w.exempt, 0
	}
	if w.lost > 0 {
		b.rows, b.lost, w.lost = w.encode.exempt(b.rows, w.o.Now(), w.lost, w.lostWhy), w.lost, 0
	}
	// The last octets of a file may have room for a row while the disk is full, which
	// must not end the gap before there is room for decisions, but can be used at the end.
	if w.closed || w.health.wal == nil && w.refusesLocked() == nil {
		w.endGapLocked()
	}
	if b.waits > 0 { // a caller that waits writes it
		w.mu.Unlock()
		return
	}
	if len(b.rows) == 0 {
		failing := w.health.wal != nil
		w.mu.Unlock()
		if failing && w.probe() {
			w.flush() // the gap
		}
		return
	}
	b.waits++
	w.mu.Unlock()
	_ = w.write(b) // health has the error
}

// probe tests whether the tail can be written again while no decision arrives, and
// reports the result.
func (w *Writer) probe() bool {
	w.io.Lock()
	defer w.io.Unlock()
	err := w.present()
	if err == nil {
		err = w.wal.Probe()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setHealthLocked(&w.health.wal, err)
	return err == nil
}

// dropSpent empties the file of the tail whose rows audit.db has, after a sync of
// audit.db.
func (w *Writer) dropSpent(number uint64) error {
	w.io.Lock()
	spent := w.wal.Spent(number)
	w.io.Unlock()
	if !spent { // only this goroutine empties files
		return nil
	}
	if on, err := w.onDisk(false); !on {
		return err
	}
	w.io.Lock()
	defer w.io.Unlock()
	return w.wal.Drop(false)
}

// onDisk syncs audit.db, and reports whether the tail can be emptied, as a whole or in part.
// While a reader keeps rows in the write-ahead log alone, which another program could remove,
// the tail keeps them too; while heed runs, until they are maxKept bytes.
func (w *Writer) onDisk(all bool) (bool, error) {
	alone, err := w.db.sync()
	if err == nil {
		err = w.db.complete()
	}
	return err == nil && (!alone || !all && w.wal.Octets() > w.maxKept), err
}

const maxKept = 32 << 20

// finish completes audit.db, empties the tail and closes the files.
func (w *Writer) finish() error {
	for {
		if err := w.Complete(); err != nil {
			return errors.Join(err, w.uncounted(), w.closeFiles()) // the next writer completes it from the tail
		}
		if ended, err := w.end(); ended {
			return errors.Join(err, w.closeFiles())
		}
		time.Sleep(time.Millisecond) // a caller is about to write an earlier decision
	}
}

// uncounted returns an error with the requests that were refused or went on unrecorded and
// could not be counted in the record either; nil when there are none.
func (w *Writer) uncounted() (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gap.Refused > 0 {
		err = errors.New("it does not count: " + w.gap.String())
	}
	if w.lost > 0 {
		err = errors.Join(err, fmt.Errorf("it does not count %d requests that went on unrecorded: %s", w.lost, w.lostWhy))
	}
	return err
}

// end empties the tail unless a write is pending.
func (w *Writer) end() (ended bool, err error) {
	w.io.Lock()
	defer w.io.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.next.rows) > 0 || len(w.queue) > 0 {
		return false, nil
	}
	on, err := w.onDisk(true)
	if on {
		err = w.wal.Drop(true)
	}
	return true, err
}

// Settle completes the record at path from its tail. It does nothing while another
// process has the record open, which completes it within a second.
func Settle(path string) error {
	w := &Writer{path: path, o: Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)}}
	err := w.openFiles(0)
	if errors.Is(err, wal.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.closeFiles()
}

// openFiles opens the tail and audit.db, and adds to audit.db the rows that only the
// tail has. It waits for another process to close them until timeout. Another program may
// remove a file beside audit.db meanwhile: the tail has all, and it begins anew.
func (w *Writer) openFiles(timeout time.Duration) (err error) {
	for range maxHealings {
		if err = w.tryFiles(timeout); !errors.Is(err, wal.ErrMoved) {
			break
		}
	}
	return err
}

func (w *Writer) tryFiles(timeout time.Duration) error {
	resolved, err := resolvePath(w.path)
	if err != nil {
		return explain(w.path, err)
	}
	w.path = resolved
	if w.wal, err = wal.Open(w.path, timeout); err != nil {
		return explain(w.path, err)
	}
	if err := settleMove(w.path); err != nil {
		w.wal.Close()
		return explain(w.path, err)
	}
	return w.openRecord()
}

// openRecord is openFiles with an open tail, which it closes on an error.
func (w *Writer) openRecord() (err error) {
	if w.db, err = openDatabase(w.path, w.o.Now(), w.wal.Record(), w.follows); err != nil {
		w.wal.Close()
		return err
	}
	if err = w.recover(); err != nil {
		w.closeFiles()
		return explain(w.path, err)
	}
	return nil
}

// recover adds to audit.db the rows that only the tail has, and empties the tail.
func (w *Writer) recover() error {
	blocks, torn, err := w.wal.Read(w.db.store)
	if err != nil {
		return err
	}
	if torn > 0 {
		w.o.Log.Warn("the record's tail ended in what was not written whole; no decision of it took effect", "file", w.path, "octets", torn)
	}
	var missing []byte
	var has uint64 // the last block whose rows audit.db has
	for _, b := range blocks {
		if missing, err = w.db.missing(missing, b.Rows); err != nil {
			return fmt.Errorf("%w: %w", errApart, err)
		}
		if len(missing) == 0 {
			has = b.Number
		}
	}
	if len(missing) > 0 {
		if has == 0 {
			has = blocks[0].Number - 1
		}
		if err := w.db.remember(has); err != nil {
			return err
		}
		if err := w.db.add(missing, w.o.Now()); err != nil {
			return err
		}
	}
	on, err := w.onDisk(true)
	if on {
		err = w.wal.Drop(true)
	}
	return errors.Join(err, w.db.remember(w.wal.Number))
}

// closeFiles closes the tail and audit.db.
func (w *Writer) closeFiles() error {
	err := w.db.close()
	w.wal.Close()
	return err
}
