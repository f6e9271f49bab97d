package store

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"heed/internal/audit"
)

// batch is rows that are written to the tail in one block.
type batch struct {
	rows   []byte
	opened []opened // entries among the rows
	ended  []ended  // outcomes among them
	events []audit.Event
	exempt int64 // exempt requests that the rows count, and lost decisions
	lost   int64
	gap    audit.Gap // the refused decisions that they count
	waits  int       // callers that wait for the write
	done   chan struct{}
	err    error
}

type opened struct {
	e   *audit.Entry
	seq int64
}

// ended is an outcome, which is encoded again when it could not be written.
type ended struct {
	seq int64
	e   *audit.Entry // of a late verdict; else nil
	o   audit.Outcome
}

// addOutcomeLocked adds an outcome to the next batch.
func (w *Writer) addOutcomeLocked(end ended) {
	w.next.rows = w.encode.outcome(w.next.rows, end.seq, end.e, &end.o)
	w.next.ended = append(w.next.ended, end)
}

// addEventLocked adds an event to the next batch. While the tail cannot be written, events
// beyond maxEvents are dropped.
func (w *Writer) addEventLocked(e audit.Event) {
	if len(w.next.events) < maxEvents {
		w.next.rows = w.encode.event(w.next.rows, &e)
		w.next.events = append(w.next.events, e)
	}
}

// maxEvents is the number of events that wait for the tail.
const maxEvents = 1000

// Note records an event within a second; no caller waits for it. It does nothing after Close.
func (w *Writer) Note(e audit.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.addEventLocked(e)
	w.signal()
}

// write writes b to the tail. The first caller that waits for b calls it, and may
// not use b afterwards.
func (w *Writer) write(b *batch) error {
	runtime.Gosched() // others that are about to decide share this write
	w.io.Lock()
	w.mu.Lock()
	if w.next == b {
		if w.next, w.spare = w.spare, nil; w.next == nil {
			w.next = &batch{}
		}
	}
	last := w.encode.last
	w.mu.Unlock()
	if b.err == nil { // else the previous batch has failed
		began := time.Now()
		err := w.present()
		if err == nil {
			err = w.wal.Write(b.rows)
		}
		if w.o.Committed != nil {
			w.o.Committed(time.Since(began))
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

// settle handles the result of writing b; last are the ids allocated up to its
// end. It reports whether b is written and no other caller waits for it.
func (w *Writer) settle(b *batch, last [len(tables)]int64, err error) (alone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setHealthLocked(&w.health.wal, err)
	if err != nil {
		w.failLocked(b, err)
		return false
	}
	w.written, w.queuedTo = last, w.wal.Number
	for _, o := range b.opened {
		w.open[o.e] = o.seq
	}
	w.queue = append(w.queue, b.rows...)
	w.endGapLocked()
	w.signal()
	if cap(b.rows) <= maxSpare {
		clear(b.opened)
		clear(b.ended)
		w.spare = &batch{rows: b.rows[:0], opened: b.opened[:0], ended: b.ended[:0]}
	}
	return b.waits <= 1
}

// failLocked discards b and the next batch, which refers to ids allocated in b,
// but keeps the outcomes of entries that the record has.
func (w *Writer) failLocked(b *batch, err error) {
	after := w.next
	b.err, after.err = err, err
	w.encode.rollback(w.written)
	w.exempt, w.lost = w.exempt+b.exempt+after.exempt, w.lost+b.lost+after.lost
	w.gap = b.gap.And(after.gap).And(w.gap)
	w.next = &batch{}
	if w.encode.run > w.written[runTable] { // the row of this run is discarded
		w.next.rows = w.encode.runRow(nil)
	}
	for _, end := range slices.Concat(b.ended, after.ended) {
		w.addOutcomeLocked(end)
	}
	for _, e := range slices.Concat(b.events, after.events) {
		w.addEventLocked(e)
	}
	w.signal()
}

// row is an encoded row of a table. Its values would take several times its memory.
type row struct {
	id     int64 // of an outcome, that of its entry
	octets []byte
}

// rowsByTable are the rows of a commit, in the order in which it covers them.
type rowsByTable struct {
	of       [len(tables)][]row
	outcomes []byte // the rows of outcomeTable, which have the number of the commit
}

// split sets r to the rows that commit n covers, and returns the encoded others. A commit
// ends before the row of a run: later rows refer to none before it, so that the earlier
// ones can be pruned. r shares memory with rows, and its own is used again.
func (r *rowsByTable) split(l layout, rows []byte, n int64) (rest []byte, err error) {
	r.outcomes = r.outcomes[:0]
	for t := range r.of {
		r.of[t] = r.of[t][:0]
	}
	for begin := len(rows); len(rows) > 0; rows = rest {
		t, id, after, err := l.cutRow(rows)
		if err != nil {
			return nil, err
		}
		if t == runTable && len(rows) < begin {
			break
		}
		octets := rows[:len(rows)-len(after)]
		if rest = after; t == outcomeTable {
			octets = r.outcome(octets, n)
		}
		r.of[t] = append(r.of[t], row{id, octets})
	}
	slices.SortFunc(r.of[outcomeTable], func(a, b row) int { return cmp.Compare(a.id, b.id) })
	return rows, nil
}

// outcome returns the row of an outcome with commit n in place of its second column.
func (r *rowsByTable) outcome(octets []byte, n int64) []byte {
	begin := len(r.outcomes)
	_, id := cutValue(octets[1:])
	_, before := cutValue(octets[1+id:])
	r.outcomes = appendInteger(append(r.outcomes, octets[:1+id]...), n)
	r.outcomes = append(r.outcomes, octets[1+id+before:]...)
	return r.outcomes[begin:]
}

// maxSpare bounds the octets of a buffer that is kept for reuse.
const maxSpare = 4 << 20
