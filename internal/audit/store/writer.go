package store

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store/wal"
	"heed/rules"
)

// maxQueued bounds the octets of rows in the tail that audit.db does not have.
// Decisions beyond it are refused until audit.db is completed.
const maxQueued = 32 << 20

// Options are the options of Open. The zero value keeps everything unchanged, and
// refuses decisions that cannot be recorded.
type Options struct {
	Heed    string   // the version of heed
	Command []string // of heed run; nil: heed serve
	Note    string   // of heed run; empty: none

	Disk     bool // sync each decision to the disk before it takes effect
	Continue bool // accept decisions that cannot be recorded; else they are an error

	Keep    time.Duration // maximum age of decisions; 0: any
	MaxSize int64         // maximum octets of the files together; the oldest decisions are removed; 0: any

	// Committed is called after each write of decisions, with the time that they waited
	// for it; nil is not called.
	Committed func(took time.Duration)

	Privacy *audit.Privacy   // nil: everything is kept
	Log     *slog.Logger     // for errors of the record; nil: none
	Now     func() time.Time // nil: time.Now
}

// Writer is the recorder that keeps audit.db. It is safe for concurrent use.
type Writer struct {
	path    string
	o       Options
	db      *database
	follows string // the head of the record that a new one continues; empty: none

	io      sync.Mutex // held while the tail is written or emptied; before mu
	wal     *wal.Log
	checked time.Time // when present last succeeded
	paused  error     // why nothing may be written, although the files are there; nil: nothing

	completing sync.Mutex // held while audit.db is written; before io
	unsure     bool       // audit.db may have rows of the queue
	pruner     *pruner
	maxLog     int64
	maxKept    int64

	mu       sync.Mutex
	encode   encoder
	next     *batch                 // to be written next
	written  [len(tables)]int64     // the last id of each table in the tail
	open     map[*audit.Entry]int64 // open exchanges, with entry.seq
	exempt   int64                  // exempt requests not counted in a row yet
	lost     int64                  // unrecorded decisions (Continue) not counted in a row yet
	lostWhy  string
	gap      audit.Gap // refused decisions that are not counted in a row yet
	queue    []byte    // rows in the tail that audit.db does not have
	queuedTo uint64    // the number of their last block
	emptied  []byte    // the memory of an earlier queue, for the next
	spare    *batch    // for reuse; nil: none
	closed   bool
	health   health
	healings []Healing // the latest
	healed   int       // how many since the start

	wake chan struct{} // there are new rows
	stop chan struct{} // closed by Close
	done chan struct{} // closed when complete returns
}

var errClosed = errors.New("heed is stopping")

// Decided implements the proxy's Recorder. When it returns nil, the decision is in
// the tail and survives this process; with Options.Continue it may be unrecorded.
func (w *Writer) Decided(e *audit.Entry) error {
	w.mu.Lock()
	if e.Decision.Reason == rules.ReasonExempt {
		defer w.mu.Unlock()
		if w.closed {
			return errClosed
		}
		w.exempt++
		w.signal()
		return nil
	}
	if err := w.refusesLocked(); err != nil {
		defer w.mu.Unlock()
		return w.lostLocked(err)
	}
	b := w.next
	var seq int64
	b.rows, seq = w.encode.entry(b.rows, e)
	b.opened = append(b.opened, opened{e, seq})
	if b.waits++; b.waits > 1 {
		if b.done == nil {
			b.done = make(chan struct{})
		}
		w.mu.Unlock()
		<-b.done
		return w.checkLost(b.err)
	}
	w.mu.Unlock()
	return w.checkLost(w.write(b))
}

// refusesLocked returns why decisions are refused now; nil when they are not.
func (w *Writer) refusesLocked() error {
	switch {
	case w.closed:
		return errClosed
	case len(w.queue) > maxQueued:
		return cmp.Or(w.health.db, wal.ErrFull)
	}
	return nil
}

// checkLost returns the result of Decided after a write that returned err.
func (w *Writer) checkLost(err error) error {
	if err == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lostLocked(err)
}

// lostLocked counts a decision that cannot be recorded: with Continue as unrecorded,
// else as refused, and returns err.
func (w *Writer) lostLocked(err error) error {
	if !w.o.Continue || w.closed {
		if !errors.Is(err, errClosed) {
			w.gap = w.gap.And(audit.Gap{From: w.o.Now(), Refused: 1, Why: err.Error()})
			w.signal()
		}
		return fmt.Errorf("the record %s cannot be written: %w", w.path, err)
	}
	w.lost++
	w.health.lost++
	w.lostWhy = err.Error()
	w.signal()
	return nil
}

// endGapLocked adds a row for the gap to the next batch, if there is one.
func (w *Writer) endGapLocked() {
	if g := w.gap; g.Refused > 0 {
		g.To = w.o.Now()
		w.next.rows = w.encode.exempt(w.next.rows, g.To, g.Refused, g.Text())
		w.next.gap, w.gap = w.next.gap.And(g), audit.Gap{}
	}
}

// signal wakes the goroutine that completes audit.db.
func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Ended implements the proxy's Recorder.
func (w *Writer) Ended(e *audit.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seq, known := w.open[e]
	if !known {
		return // its outcome is recorded, or its entry is not
	}
	delete(w.open, e)
	o := e.Outcome
	if e.Decision.Reason == rules.ReasonRecord { // another recorder refused it after this one recorded it
		o = audit.Outcome{Status: 503, Duration: w.o.Now().Sub(e.Time), Err: "heed: refused after all: " + e.Detail}
	}
	w.endLocked(seq, e, o)
}

// endLocked adds an outcome to the next batch; no caller waits for it.
func (w *Writer) endLocked(seq int64, e *audit.Entry, o audit.Outcome) {
	end := ended{seq: seq, o: o}
	if o.Late != nil {
		copied := *e
		end.e = &copied
	}
	w.addOutcomeLocked(end)
	w.signal()
}

// Close records why as the error of the exchanges that have not ended, completes
// audit.db, and refuses all later decisions.
func (w *Writer) Close(why string) error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		<-w.done
		return nil
	}
	w.closed = true
	now := w.o.Now()
	for e, seq := range w.open {
		w.endLocked(seq, e, audit.Outcome{Truncated: true, Duration: now.Sub(e.Time), Err: why})
	}
	clear(w.open)
	w.mu.Unlock()
	close(w.stop)
	<-w.done
	return w.finish()
}

// health is the result of the last writes. The zero value is healthy.
type health struct {
	wal, db error // nil: it can be written
	long    error // a reader keeps the write-ahead log from beginning anew; nil: none does
	logged  int   // what has been logged: 0 nothing, 1 the error of db, 2 that of wal
	lost    int64 // unrecorded decisions since the start
}

// Err returns why decisions cannot be recorded now; nil when they can.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waitsLocked() {
		return nil
	}
	return cmp.Or(w.health.wal, w.health.db)
}

// Held returns why decisions are not in audit.db, although they are recorded: another program
// holds it, and they wait in its tail; or what a program does that will lead to that. Nil:
// none does.
func (w *Writer) Held() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waitsLocked() {
		return w.health.db
	}
	return w.health.long
}

// waitsLocked reports whether decisions are accepted, and wait for another program.
func (w *Writer) waitsLocked() bool {
	return w.health.wal == nil && errors.Is(w.health.db, errHeld) && w.refusesLocked() == nil
}

// Waiting returns the octets of what was recorded and audit.db does not have yet.
func (w *Writer) Waiting() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int64(len(w.queue))
}

// Lost returns the number of decisions that took effect unrecorded since the start,
// which is 0 without Options.Continue.
func (w *Writer) Lost() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.health.lost
}

// setHealthLocked sets *part, w.health.wal or db, to the result of a write. It logs
// the first error, an error of the WAL, after which requests are refused, and when
// both can be written again.
func (w *Writer) setHealthLocked(part *error, err error) {
	*part = err
	t := &w.health
	before, now := t.logged, 0
	switch {
	case t.wal != nil, t.db != nil && w.o.Continue: // one line reports both
		now = 2
	case t.db != nil:
		now = 1
	}
	if 0 < now && now <= before { // reported
		return
	}
	switch t.logged = now; {
	case now == 0 && before > 0:
		w.o.Log.Info("decisions are recorded again", "file", w.path, "unrecorded", t.lost)
	case now == 0:
	case w.o.Continue:
		w.o.Log.Error("decisions cannot be recorded; requests go on all the same, since the settings say so", "file", w.path, "error", err)
	case now == 2:
		w.o.Log.Error("decisions cannot be recorded; requests are refused until they can", "file", w.path, "error", err)
	default:
		w.o.Log.Error("the record cannot be completed; decisions wait in its tail", "file", w.path, "error", err)
	}
}

// present returns an error when a file was moved, removed or cut, since what is written
// to it would be lost. The caller holds io. It looks at the file of the tail that is written
// each time, and at the others once per presentEvery: what audit.db loses until then is in
// the tail. At the end, the tail is all that is left to be written.
func (w *Writer) present() error {
	if w.paused != nil {
		return w.paused
	}
	now := time.Now()
	if now.Sub(w.checked) < presentEvery && !w.wal.Gone() {
		return nil
	}
	if err := w.wal.Present(w.path); err != nil {
		return err
	}
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	if !closed {
		if err := cmp.Or(w.db.present(), w.db.whole()); err != nil {
			return err
		}
	}
	w.checked = now
	return nil
}
