package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"heed/internal/audit"
)

// Bounds of healing.
const (
	maxHealings = 6                // within healPeriod; after one more heed stops
	maxKnown    = 4096             // states of audit.db that are remembered, the latest
	endTime     = 10 * time.Second // for the readers of this process to end
	healPeriod  = time.Hour
)

// known is a state in which this process left audit.db.
type known struct {
	commit  int64
	hash    digest
	version string // sqlite.Conn.Version
	block   uint64 // of the tail, the last whose rows it has
}

// remember adds the state of audit.db, which has the rows of the tail up to a block.
func (b *database) remember(block uint64) error {
	version, err := b.Version()
	if err != nil {
		return err
	}
	if len(b.known) == maxKnown {
		b.known = slices.Delete(b.known, 0, maxKnown/2)
	}
	b.known = append(b.known, known{b.head.n, b.head.hash, version, block})
	return nil
}

// Healing is what heed did about a file beside audit.db that another program had removed or
// replaced.
type Healing struct {
	Time    time.Time
	Why     string // what was found
	Refused int64  // requests, meanwhile
}

// Healings returns those since the start, up to maxHealings, the latest last; count is the
// number of all.
func (w *Writer) Healings() (latest []Healing, count int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.healings), w.healed
}

// errHealing is why decisions are refused while audit.db is opened again.
var errHealing = errors.New("another program removed or replaced a file beside it: it is being opened again")

// heal opens audit.db again when the files beside it were removed, replaced or cut, for which
// cause is the error. The process's other connections to it end first: a new one would share
// their index, which is no longer the file that other programs use. None of them writes its
// write-ahead log, which may be out of date, to audit.db: see ownfile.Descriptor.Hold. The
// record is as this process left it at some time, and all that it recorded since is in the
// tail; otherwise decisions are refused until heed is started again. The caller holds
// completing.
func (w *Writer) heal(cause error) error {
	if err := w.canHeal(cause); err != nil {
		return err
	}
	if w.db.found == "" {
		w.db.found = cause.Error()
		if i := strings.LastIndex(w.db.found, ": "); i > 0 { // without what to do
			w.db.found = w.db.found[:i]
		}
	}
	w.pause(errHealing)
	b, err := w.openAgain()
	switch {
	case err == nil:
		w.replaceDatabase(b)
		return nil
	case errors.Is(err, errWrote), errors.Is(err, errLost), errors.Is(err, errPart), isDamage(err):
		err = fmt.Errorf("%s, and %w: restart heed, and see `heed audit verify`", w.db.found, err)
		w.pause(err)
	default: // it is tried again
		err = fmt.Errorf("%s; it cannot be opened again yet: %w", w.db.found, err)
	}
	return err
}

// openAgain closes the connections of this process, and returns a new one.
func (w *Writer) openAgain() (*database, error) {
	if w.db.index != nil {
		if others := w.db.index.Holders(openLock, openLock); len(others) > 0 { // they may write what they have of the log to audit.db
			return nil, fmt.Errorf("the files that were removed are still open in %s: end it", strings.Join(others, ", "))
		}
	}
	resume, err := w.db.claim.EndReaders(endTime)
	if err != nil {
		return nil, err
	}
	defer resume()
	w.db.closeStale()
	return w.reopen()
}

// canHeal returns an error, cause or what is worse, when heal cannot help.
func (w *Writer) canHeal(cause error) error {
	w.io.Lock()
	defer w.io.Unlock()
	if w.paused != nil && !errors.Is(w.paused, errHealing) {
		return w.paused
	}
	if errors.Is(cause, errGone) || !w.db.held || w.db.itself() != nil || w.wal.Present(w.path) != nil {
		return cause
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.healings); w.closed {
		return cause // the next heed completes the record
	} else if n == maxHealings && w.o.Now().Sub(w.healings[0].Time) < healPeriod {
		w.paused = fmt.Errorf("a file beside it was removed or replaced %d times within an hour: end the program that does it, and restart heed (%w)", n+1, cause)
		return w.paused
	}
	return nil
}

// pause makes present return err; nil ends that.
func (w *Writer) pause(err error) {
	w.io.Lock()
	defer w.io.Unlock()
	w.paused, w.checked = err, time.Time{}
}

// closeStale closes the connection and the files beside audit.db.
func (b *database) closeStale() {
	if b.log == nil {
		return // an earlier try did
	}
	_ = b.closeConn() // what it could not write is in the tail
	_ = b.log.Close()
	_ = b.index.Close()
	b.log, b.index = nil, nil
}

// reopen returns a new connection to audit.db, completed from the tail.
func (w *Writer) reopen() (b *database, err error) {
	c, err := connect(w.path, "rw")
	if err != nil {
		return nil, err
	}
	b = &database{conn: c, files: w.db.files}
	defer func() {
		if err != nil {
			b.closeStale()
			_ = b.conn.Close()
			b = nil
		}
	}()
	var missing []byte
	err = b.InTransaction(func() error { // no other program writes to it meanwhile
		at, err := b.recognize(w.db)
		if err == nil {
			missing, err = w.since(b, at)
		}
		return err
	})
	if err == nil {
		err = b.files.open()
	}
	if err == nil && len(missing) > 0 {
		err = b.add(missing, w.o.Now())
	}
	if err == nil {
		err = b.remember(w.wal.Number)
	}
	if err == nil {
		err = cmp.Or(b.present(), b.whole())
	}
	b.sized()
	return b, err
}

// recognize returns the state of before that audit.db has.
func (b *database) recognize(before *database) (*known, error) {
	err := b.readLayout()
	if err == nil {
		err = b.findHead()
	}
	if err != nil {
		return nil, err
	}
	version, err := b.Version()
	if err != nil {
		return nil, err
	}
	if b.layout != Schema || b.store != before.store {
		return nil, errWrote
	}
	for _, k := range slices.Backward(before.known) {
		if k.commit == b.head.n && k.hash == b.head.hash && k.version == version {
			b.known = before.known
			if k != before.known[len(before.known)-1] {
				err = b.consistent()
			}
			return &k, err
		}
	}
	return nil, errWrote
}

// consistent returns an error when audit.db has a part of what the write-ahead log had: SQLite
// moves what no reader needs of it, page by page.
func (b *database) consistent() error {
	last := b.last()
	for t := runTable; int(t) < len(tables); t++ {
		n, err := b.integer(fmt.Sprintf("SELECT max(%s) FROM %s", tables[t].columns[0], t))
		if err != nil {
			return err
		}
		if t != outcomeTable && n > last[t] || t == outcomeTable && n > last[entryTable] {
			return errPart
		}
	}
	return b.each("PRAGMA integrity_check(1)", func(f *fields) {
		if f.text() != "ok" {
			f.fail(errPart)
		}
	})
}

// since returns the rows of the tail after the state at, without a gap.
func (w *Writer) since(b *database, at *known) (rows []byte, err error) {
	w.io.Lock()
	defer w.io.Unlock()
	blocks, _, err := w.wal.Read(b.store)
	if err != nil {
		return nil, err
	}
	next := at.block + 1
	for _, block := range blocks {
		switch {
		case block.Number < next:
			continue
		case block.Number > next:
			return nil, errLost
		}
		next++
		rows = append(rows, block.Rows...)
	}
	if next != w.wal.Number+1 {
		return nil, errLost
	}
	return rows, nil
}

var (
	errWrote = errors.New("another program wrote to it")
	errPart  = errors.New("a part of what its write-ahead log had is lost")
	errLost  = errors.New("decisions that were only in its write-ahead log are lost")
)

// replaceDatabase makes b the database, and reports the healing.
func (w *Writer) replaceDatabase(b *database) {
	w.io.Lock()
	defer w.io.Unlock()
	found := w.db.found
	w.db, w.pruner.db, w.paused, w.checked = b, b, nil, time.Time{}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue, w.emptied = nil, nil // the record has them
	h := Healing{Time: w.o.Now(), Why: found, Refused: w.gap.Refused}
	if w.healed++; len(w.healings) == maxHealings {
		w.healings = slices.Delete(w.healings, 0, 1)
	}
	w.healings = append(w.healings, h)
	w.addEventLocked(audit.Event{Time: h.Time, Kind: audit.Healed, Count: h.Refused, Detail: h.Why})
	w.o.Log.Warn("another program removed or replaced a file of the record: it was opened again, and nothing is lost", "file", w.path, "found", h.Why, "refused", h.Refused, "healings", w.healed)
	w.setHealthLocked(&w.health.wal, nil)
	w.signal()
}
