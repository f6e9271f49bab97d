package store

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"log/slog"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// oldest returns the last of the commits after s, up to target, that one step
// removes; nil: there is none.
func (b *database) oldest(s *stub, target int64) (to *commit, err error) {
	at, err := b.openAt(commits, s.Through)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	for ; err == nil && at.id <= target; err = at.next() {
		c, err := readCommit(b.layout, at)
		if err != nil || to != nil && c.last[entryTable]-s.Last[entryTable] > pruneEntries {
			return to, err
		}
		to = c
	}
	return to, err
}

// removeCommits removes the commits after s up to c, and adds them to s. Their names
// are kept until the rest of their part is removed.
func (b *database) removeCommits(s *stub, c *commit) error {
	if err := b.addTimes(s, c); err != nil {
		return err
	}
	names, err := b.digest(s.Last, c.last)
	if err != nil {
		return err
	}
	if err := b.keepHashes(s.Through, c.n); err != nil {
		return err
	}
	if err := b.count(-1, fmt.Sprintf("seq BETWEEN %d AND %d", s.Last[entryTable]+1, c.last[entryTable])); err != nil {
		return err
	}
	outcomes, err := b.Exec("DELETE FROM outcome WHERE entry <= ? AND in_commit <= ?", c.last[entryTable], c.n)
	if err != nil {
		return err
	}
	for _, d := range []struct {
		query string
		last  int64
	}{{"DELETE FROM entry WHERE seq <= ?", c.last[entryTable]}, {"DELETE FROM counts WHERE requests = 0 AND period <= ?", micro(s.Removed.To) / countPeriod},
		{"DELETE FROM exempt WHERE id <= ?", c.exempt}, {"DELETE FROM event WHERE id <= ?", c.event}, {"DELETE FROM commits WHERE n <= ?", c.n}} {
		if _, err := b.Exec(d.query, d.last); err != nil {
			return err
		}
	}
	s.Removed.Commits, s.Removed.Entries, s.Removed.Exempt = c.n, c.last[entryTable], c.exempt
	s.Removed.Outcomes += outcomes
	s.Kept = append(s.Kept, kept{c.last, names})
	s.Through, s.Time, s.Last, s.Exempt, s.Event, s.Hash = c.n, c.time, c.last, c.exempt, c.event, c.hash
	return nil
}

// chunkRow is a row of the table hashes.
type chunkRow struct {
	id, leaves int64
	hashes     []byte
}

// keepHashes adds the hashes of the commits after from up to to, which are about to be removed,
// to the table hashes.
func (b *database) keepHashes(from, to int64) error {
	next := from + 1
	row := chunkRow{id: next >> chunkLevel}
	if from == 0 {
		pairs, _, err := b.about()
		if err != nil {
			return err
		}
		root := rootOf(b.layout, pairs)
		row.leaves, row.hashes = 1, root[:]
	} else if err := b.row(fmt.Sprintf("SELECT leaves, hashes FROM hashes WHERE id = %d", row.id), &row.leaves, &row.hashes); err != nil {
		return err
	}
	err := b.each(fmt.Sprintf("SELECT hashes FROM commits WHERE n > %d AND n <= %d ORDER BY n", from, to), func(f *fields) {
		hashes := f.octets()
		if len(hashes) < tlog.HashSize {
			f.fail(errStrange)
			return
		}
		row.leaves, row.hashes = row.leaves+1, append(row.hashes, hashes[:tlog.HashSize]...)
		if next++; row.leaves == chunk {
			row.hashes = append(row.hashes, hashes[min(len(hashes), chunkLevel*tlog.HashSize):]...)
			f.fail(b.putHashes(&row))
			row = chunkRow{id: row.id + 1}
		}
	})
	if err == nil && row.leaves > 0 {
		err = b.putHashes(&row)
	}
	return err
}

func (b *database) putHashes(row *chunkRow) error {
	_, err := b.Exec("INSERT OR REPLACE INTO hashes VALUES (?, ?, ?)", row.id, row.leaves, row.hashes)
	return err
}

// dropHashes removes the hashes of the oldest leaves while all that are kept take more than max
// octets. Those of the larger subtrees stay, with which later heads are proved.
func (b *database) dropHashes(max int64) error {
	kept, err := b.integer("SELECT coalesce(sum(leaves), 0) FROM hashes")
	for err == nil && kept*tlog.HashSize > max {
		var row chunkRow
		err = b.row("SELECT id, leaves, hashes FROM hashes WHERE leaves = 256 ORDER BY id LIMIT 1", &row.id, &row.leaves, &row.hashes)
		if err != nil || row.leaves == 0 {
			break
		}
		kept -= row.leaves
		row.hashes, row.leaves = row.hashes[row.leaves*tlog.HashSize:], 0
		err = b.putHashes(&row)
	}
	return err
}

// dropNames removes all names up to s, to which no later row refers.
func (b *database) dropNames(s *stub) error {
	for t := runTable; t < lastTable; t++ {
		if _, err := b.Exec(fmt.Sprintf("DELETE FROM %s WHERE id <= ?", t), s.Last[t]); err != nil {
			return err
		}
	}
	s.Kept = nil
	return nil
}

// digest returns the digest of the names after the ids from, up to the ids to.
func (c *conn) digest(from, to lasts) (digest, error) {
	d := newKeptHash()
	for t := runTable; t < lastTable; t++ {
		at, err := c.openAt(t, from[t])
		for ; err == nil && at.id <= to[t]; err = at.next() {
			if at.row == nil {
				err = damaged(nil, t, at.id, isStrange)
				break
			}
			d.Write(at.row)
		}
		at.close()
		if err != nil {
			return digest{}, err
		}
	}
	return digest(d.Sum(nil)), nil
}

// addTimes adds the times of the entries after s up to c to s.
func (b *database) addTimes(s *stub, c *commit) error {
	if c.last[entryTable] == s.Last[entryTable] {
		return nil
	}
	var first, last int64
	query := fmt.Sprintf("SELECT (SELECT time FROM entry WHERE seq = %d), (SELECT time FROM entry WHERE seq = %d)", s.Last[entryTable]+1, c.last[entryTable])
	if err := b.row(query, &first, &last); err != nil {
		return err
	}
	if s.Removed.From.IsZero() {
		s.Removed.From = moment(first)
	}
	s.Removed.To = moment(last)
	return nil
}

// stub returns the latest stub; an empty one when nothing was removed.
func (c *conn) stub() (s *stub, err error) {
	var n int64
	var text []byte // nil also of a value without octets, which is no stub
	if err = c.row("SELECT n, pruned FROM commits WHERE pruned IS NOT NULL ORDER BY n DESC LIMIT 1", &n, &text); err != nil {
		return nil, err
	}
	if s = new(stub); n != 0 {
		return s, json.Unmarshal(text, s)
	}
	pairs, _, err := c.about()
	s.Root = rootOf(c.layout, pairs)
	return s, err
}

// addStub adds a commit over no rows that contains s.
func (b *database) addStub(s *stub, now time.Time) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	c := &commit{salt: newSalt(), n: b.head.n + 1, time: max(micro(now), b.head.time), last: b.head.last, exempt: b.head.exempt, event: b.head.event, pruned: text}
	c.begin(b.layout, &b.head).end()
	if err := b.insert(commits, []row{c.row(b.layout)}); err != nil {
		return err
	}
	b.head = *c
	return nil
}

// stub describes, as JSON in a commit, everything removed from the beginning of the
// record, and the names kept until the rest of their part is removed. The latest
// stub is valid; it includes the earlier ones.
type stub struct {
	Through int64   `json:"through"` // the last commit removed
	Time    int64   `json:"time"`    // of that commit
	Last    lasts   `json:"last"`    // its last ids
	Exempt  int64   `json:"exempt"`  // likewise
	Event   int64   `json:"event"`   // likewise
	Hash    digest  `json:"hash"`    // its hash, the predecessor of the first commit in the file
	Root    digest  `json:"root"`    // the root of the chain
	Removed Removed `json:"removed"`
	Kept    []kept  `json:"kept"` // in the order of their ids, up to Last; only while a part is being removed

	at int64 // the commit that contains it
}

// lasts are the last ids of the tables by their number.
type lasts [lastTable + 1]int64

// kept are names of removed commits that are kept until the rest of their part is
// removed.
type kept struct {
	Last   lasts  `json:"last"`   // up to these ids, from those of the part before
	Digest digest `json:"digest"` // over the encoded rows, table by table
}

// Removed is what was removed from the beginning of a record. Zero: nothing.
type Removed struct {
	Commits  int64     `json:"commits"`
	Entries  int64     `json:"entries"`
	Outcomes int64     `json:"outcomes"`
	Exempt   int64     `json:"exempt"`
	From     time.Time `json:"from"` // of the first decision removed
	To       time.Time `json:"to"`   // and of the last
}

// last returns the last commit removed.
func (s *stub) last() *commit {
	return &commit{n: s.Through, time: s.Time, last: s.Last, exempt: s.Exempt, event: s.Event, hash: s.Hash}
}

// newKeptHash returns the hash of kept rows.
func newKeptHash() hash.Hash {
	h := sha256.New()
	h.Write([]byte("heed kept\n"))
	return h
}

// prune does one step of pruning, and reports whether the record is still too large. Decisions
// are written to the tail meanwhile. After an error it is tried again later.
func (w *Writer) prune() (urgent bool) {
	w.completing.Lock()
	defer w.completing.Unlock()
	if w.db.log == nil { // it is not open
		return false
	}
	more, err := w.pruner.step(w.o.Now())
	if n := len(w.db.known); err == nil {
		err = w.db.remember(w.db.known[n-1].block)
	}
	w.db.sized()
	if err != nil && !w.pruner.failed {
		w.o.Log.Warn("what is too old could not be removed from the record; heed tries again", slog.String("file", w.path), slog.Any("error", err))
	}
	if w.pruner.failed = err != nil; more && err == nil {
		w.signal()
		return w.pruner.large
	}
	return false
}

func (w *Writer) tailOctets() int64 {
	w.io.Lock()
	defer w.io.Unlock()
	return w.wal.Octets()
}

// newPart begins a part of the record, which refers to no earlier row: it repeats
// the row of this run, and names get new rows.
func (w *Writer) newPart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.encode.clear()
	w.next.rows = w.encode.runRow(w.next.rows)
	w.signal()
}
