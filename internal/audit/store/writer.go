package store

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"heed/internal/audit"
	"heed/rules"
)

// maxQueued bounds the octets of rows in the tail that audit.db does not have:
// more is refused until it has caught up.
const maxQueued = 32 << 20

// Options say how a record is kept. The zero value keeps everything as it is
// and lets nothing go unrecorded.
type Options struct {
	Heed    string   // the version of heed
	Command []string // of heed run; nil: heed serve
	Note    string   // of heed run; empty: none

	Disk     bool // a decision is recorded when it is on the disk, not only with the system
	Continue bool // what cannot be recorded goes on all the same; else it is an error

	Keep    time.Duration // how old what is recorded may become; 0: any age
	MaxSize int64         // how many octets the files may have together, and what is oldest goes; 0: any

	Privacy *audit.Privacy   // nil: everything is kept
	Log     *slog.Logger     // of what is no decision; nil: none
	Now     func() time.Time // nil: time.Now
}

// Writer is the recorder that keeps audit.db. It is safe for concurrent use.
type Writer struct {
	path string
	o    Options
	base *base

	io     sync.Mutex // held while the tail is written or emptied; before mu
	tail   *tail
	looked time.Time // when the files were last seen where they were

	completing sync.Mutex // held while audit.db is written; before io
	emptied    []byte     // a buffer for queue
	pruner     *pruner

	mu       sync.Mutex
	speller  speller
	next     *batch                 // what is to be written next
	written  [len(tables)]int64     // the last number of each table that the tail has
	open     map[*audit.Entry]int64 // the exchanges that have not ended, and the numbers of their entries
	exempt   int64                  // requests of exempt clients that no row counts yet
	lost     int64                  // decisions that took effect unrecorded (Continue) and that no row counts yet
	lostWhy  string
	queue    []byte // rows that the tail has and audit.db has not
	queuedTo uint64 // the last block of them
	spare    *batch // to be used again; nil: none
	closed   bool
	trouble  trouble

	wake chan struct{} // there is something to do
	stop chan struct{} // closed by Close
	done chan struct{} // closed when complete has ended
}

var errClosed = errors.New("heed is stopping")

// Decided implements the proxy's Recorder: when it returns nil, the decision
// outlives this process.
func (w *Writer) Decided(e *audit.Entry) error {
	w.mu.Lock()
	if e.Decision.Reason == rules.ReasonExempt {
		defer w.mu.Unlock()
		return w.exemptLocked()
	}
	if err := w.refusesLocked(); err != nil {
		defer w.mu.Unlock()
		return w.lostLocked(err)
	}
	b := w.next
	var seq int64
	b.rows, seq = w.speller.entry(b.rows, e)
	b.opened = append(b.opened, opened{e, seq})
	if b.waits++; b.waits > 1 {
		if b.done == nil {
			b.done = make(chan struct{})
		}
		w.mu.Unlock()
		<-b.done
		return w.lose(b.err)
	}
	w.mu.Unlock()
	return w.lose(w.write(b))
}

// refusesLocked says why no decision is accepted now; nil when it is.
func (w *Writer) refusesLocked() error {
	switch {
	case w.closed:
		return errClosed
	case len(w.queue) > maxQueued:
		return cmp.Or(w.trouble.base, errTailFull)
	}
	return nil
}

// lose is what becomes of a decision whose writing ended with err.
func (w *Writer) lose(err error) error {
	if err == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lostLocked(err)
}

// lostLocked is what comes of a decision that could not be recorded.
func (w *Writer) lostLocked(err error) error {
	if !w.o.Continue || w.closed {
		return fmt.Errorf("the record %s cannot be written: %w", w.path, err)
	}
	w.lost++
	w.trouble.lost++
	w.lostWhy = err.Error()
	w.rouse()
	return nil
}

func (w *Writer) exemptLocked() error {
	if w.closed {
		return errClosed
	}
	w.exempt++
	w.rouse()
	return nil
}

// rouse has the record completed soon.
func (w *Writer) rouse() {
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
		return // it is told, or there is nothing to be told
	}
	delete(w.open, e)
	o := e.Outcome
	if e.Decision.Reason == rules.ReasonRecord { // another recorder has refused what this one took
		o = audit.Outcome{Status: 503, Duration: w.o.Now().Sub(e.Time), Err: "heed: refused after all: " + e.Detail}
	}
	w.endLocked(seq, e, o)
}

// endLocked adds an outcome to what is written next; nobody waits for it.
func (w *Writer) endLocked(seq int64, e *audit.Entry, o audit.Outcome) {
	end := ended{seq: seq, o: o}
	if o.Late != nil {
		copied := *e
		end.e = &copied
	}
	w.againLocked(end)
	w.rouse()
}

// Close gives the exchanges that have not ended why as what ended them, completes
// audit.db, and accepts nothing more.
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
