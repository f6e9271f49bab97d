package store

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"heed/internal/audit/store/wal"
)

// Record is a file of decisions, read alone or with others.
type Record struct {
	Path  string
	Store string // the id of the record, the same in a backup
	// First and Last are the first and last entry.seq read from this file; other
	// decisions are read from another file of the same record. Last is less than
	// First when there are none.
	First, Last int64
	Waiting     int64 // decisions that are only in the tail, because the record could not be completed
	Elsewhere   int64 // decisions of this file that are read from the file of another record

	at     string // the path of its connections
	mode   string // and of which kind they are
	layout layout
	begin  string // statements that each Reader executes first
	hidden bool   // all that it has is read from another file
	// Set by Records when it is given several records: the first and the last time of the
	// decisions that are read from this file.
	start, end int64
	head       commit
	stub       *stub // nil: nothing was pruned
}

// Records opens the files at paths, after completing those that no heed writes to.
// Of several files of one record (a file named twice, a backup and its original),
// each decision is read from only one, and so is a decision that several records have,
// by its id: from the first of them. The records are in the order of paths; copies of a
// record that have no decisions of their own are left out.
func Records(paths ...string) ([]*Record, error) {
	var all []*Record
	byStore := map[string][]*Record{}
	for _, path := range paths {
		c, waiting, err := viewWhole(path)
		if err != nil {
			return nil, err
		}
		r, err := newRecord(c)
		if err != nil {
			return nil, err
		}
		r.Waiting = max(r.Waiting, waiting)
		all = append(all, r)
		byStore[r.Store] = append(byStore[r.Store], r)
	}
	for _, same := range byStore {
		if err := share(same); err != nil {
			return nil, err
		}
	}
	if len(byStore) > 1 {
		for _, r := range all {
			if err := r.readTimes(); err != nil {
				return nil, err
			}
		}
		if err := once(all); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(all, func(r *Record) bool { return r.hidden }), nil
}

// OpenRecord opens the file at path without completing it: decisions that are only
// in its tail are not read.
func OpenRecord(path string) (*Record, error) {
	c, err := view(path)
	if err != nil {
		return nil, err
	}
	return newRecord(c)
}

// newRecord returns the Record of the database, and closes c.
func newRecord(c *conn) (*Record, error) {
	defer c.Close()
	r := &Record{Path: c.path, at: c.path, mode: c.mode, layout: c.layout, begin: c.layout.present()}
	if err := r.readHead(c); err != nil {
		return nil, viewError(r.Path, err)
	}
	return r, nil
}

// readHead reads the head of the chain and the range of entries.
func (r *Record) readHead(c *conn) error {
	if err := c.findHead(); err != nil {
		return err
	}
	r.Store, r.head = c.store, c.head
	if isAbandoned(r.Path) { // else a heed adds them
		r.Waiting = c.inTail()
	}
	s, err := c.stub()
	if err != nil {
		return err
	}
	if s.Through > 0 {
		r.stub = s
	}
	r.First, r.Last, err = c.Range() // without a look at all
	return err
}

// readTimes sets start, end and Last.
func (r *Record) readTimes() error {
	c, err := r.Read(context.Background())
	if err != nil {
		return err
	}
	defer c.Close()
	return c.row("SELECT min(time), max(time), max(seq) FROM entry", &r.start, &r.end, &r.Last)
}

// share assigns each entry to one of the files of a record: the latest file that has
// it. Entries pruned from the latest file are read from an earlier copy.
func share(same []*Record) error {
	slices.SortStableFunc(same, func(a, b *Record) int {
		return cmp.Or(cmp.Compare(b.head.n, a.head.n), cmp.Compare(a.First, b.First))
	})
	for i, r := range same[1:] {
		if err := r.prefixOf(same[i]); err != nil {
			return err
		}
	}
	first := same[0].First
	if same[0].Last < same[0].First {
		first = same[0].head.last[entryTable] + 1
	}
	for _, r := range same[1:] {
		if r.Last = min(r.Last, first-1); r.Last < r.First {
			r.hidden = true
			continue
		}
		first = r.First
		r.begin += r.layout.presentEntries(fmt.Sprintf("seq <= %d", r.Last))
	}
	return nil
}

// prefixOf returns an error unless the chain of r is a prefix of that of later.
func (r *Record) prefixOf(later *Record) error {
	reader, err := later.Read(context.Background())
	if err != nil {
		return err
	}
	defer reader.Close()
	var hash []byte
	err = reader.row(fmt.Sprintf("SELECT hash FROM commits WHERE n = %d", r.head.n), &hash)
	switch {
	case err != nil:
		return err
	case hash != nil:
	case later.stub != nil && later.stub.Through == r.head.n:
		hash = later.stub.Hash[:]
	case r.head.n == 0 || later.stub != nil && later.stub.Through > r.head.n:
		return nil // the commit was pruned
	}
	if string(hash) != string(r.head.hash[:]) {
		return fmt.Errorf("%s and %s say that they are one record, but they differ at commit %d\nSee `heed audit verify`, and name one of them", later.Path, r.Path, r.head.n)
	}
	return nil
}

// viewTimeout is how long viewWhole waits for a running heed, which completes the record
// once in completeEvery.
const viewTimeout = 3 * completeEvery

// viewWhole is view after the record was completed from its tail: by this process, or by
// the heed that writes to it. A record that neither completes, on a full or read-only disk
// for example, is read as it is; waiting is the number of decisions that only its tail has.
func viewWhole(path string) (c *conn, waiting int64, err error) {
	if c, err = view(path); err != nil || !wal.HasBlocks(path) {
		return c, 0, err
	}
	err = Settle(path)
	switch {
	case isDamage(err):
	case err != nil:
		if err = c.findHead(); err == nil {
			waiting = c.inTail()
		}
	case !isAbandoned(path):
		_ = waitComplete(c, viewTimeout) // Record.Waiting counts what is missing
	}
	if err != nil {
		c.Close()
		return nil, 0, err
	}
	return c, waiting, nil
}

// Completed completes the record at path, or waits for the heed that does. waiting is the
// number of decisions that only its tail has, since it cannot be written.
func Completed(ctx context.Context, path string) (waiting int64, err error) {
	c, waiting, err := viewComplete(ctx, path)
	if err == nil {
		c.Close()
	}
	return waiting, err
}

// viewComplete is viewWhole for a caller that needs all decisions, and so waits for them.
func viewComplete(ctx context.Context, path string) (c *conn, waiting int64, err error) {
	if c, waiting, err = viewWhole(path); err != nil {
		return nil, 0, err
	}
	if c.Within(ctx); waiting == 0 {
		err = waitComplete(c, completeTimeout)
	}
	if err != nil {
		c.Close()
	}
	return c, waiting, err
}

// abandoned is the time without a write after which no heed is expected to complete
// the record from its tail.
const abandoned = 5 * time.Second

// isAbandoned reports whether the tail of the record at path is abandoned.
func isAbandoned(path string) bool {
	for _, name := range wal.Paths(path) {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) < abandoned {
			return false
		}
	}
	return true
}

// inTail returns the number of decisions in the tail of a record that are after its head.
func (c *conn) inTail() (n int64) {
	for id := range c.layout.decisions(wal.Blocks(c.path, c.store, false)) {
		if id > c.head.last[entryTable] {
			n++
		}
	}
	return n
}

// decisions returns the ids of the decisions in blocks.
func (l layout) decisions(blocks []wal.Block) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for _, b := range blocks {
			for rows := b.Rows; len(rows) > 0; {
				t, id, rest, err := l.cutRow(rows)
				if err != nil {
					break
				}
				if rows = rest; t == entryTable && !yield(id) {
					return
				}
			}
		}
	}
}

// File describes a record.
type File struct {
	Name    string   `json:"name"`
	Store   string   `json:"store"`   // the id of the record
	Created string   `json:"created"` // RFC 3339
	Heeds   []string `json:"heed"`    // the versions that wrote to it
	Engines []int64  `json:"engines"` // the numbers of the engines that judged
	Configs []string `json:"configurations"`
	Notes   []string `json:"notes,omitempty"` // of heed run --note

	Decisions int64     `json:"decisions"`
	Elsewhere int64     `json:"elsewhere,omitempty"` // decisions that are counted in the file of another record
	First     time.Time `json:"first"`               // of the decisions in the file
	Last      time.Time `json:"last"`
	Pruned    int64     `json:"pruned"` // decisions that were removed
	Commit    int64     `json:"commit"` // the number of the last commit; 0: there is none
	Head      string    `json:"head"`   // its hash, in hexadecimal digits; empty: there is none

	FirstSeq    int64 `json:"-"` // entry.seq
	LastSeq     int64 `json:"-"` // before FirstSeq when it has no decisions
	CommittedTo int64 `json:"-"` // the last entry.seq that the last commit covers
}

// File returns the description of the record.
func (r *Reader) File() (File, error) {
	f := File{Name: r.path, Elsewhere: r.record.Elsewhere}
	for query, row := range map[string]func(*fields){
		"SELECT (SELECT value FROM about WHERE key = 'store'), (SELECT value FROM about WHERE key = 'created')": func(c *fields) { c.read(&f.Store, &f.Created) },
		"SELECT coalesce(min(seq), 1), max(seq), min(time), max(time), count(*), (SELECT coalesce(min(seq), 1) FROM main.entry) FROM entry": func(c *fields) {
			c.read(&f.FirstSeq, &f.LastSeq, &f.First, &f.Last, &f.Decisions, &f.Pruned)
			f.Pruned--
		},
		"SELECT DISTINCT heed FROM run ORDER BY 1":                               func(c *fields) { f.Heeds = append(f.Heeds, c.text()) },
		"SELECT DISTINCT engine FROM ground ORDER BY 1":                          func(c *fields) { f.Engines = append(f.Engines, c.integer()) },
		"SELECT DISTINCT hash FROM configuration ORDER BY 1":                     func(c *fields) { f.Configs = append(f.Configs, c.text()) },
		"SELECT DISTINCT note FROM run WHERE note IS NOT NULL ORDER BY 1":        func(c *fields) { f.Notes = append(f.Notes, c.text()) },
		"SELECT n, entry, lower(hex(hash)) FROM commits ORDER BY n DESC LIMIT 1": func(c *fields) { c.read(&f.Commit, &f.CommittedTo, &f.Head) },
	} {
		if err := r.each(query, row); err != nil {
			return f, err
		}
	}
	return f, nil
}

// span is the decisions with entry.seq from first to last.
type span struct{ first, last int64 }

// once leaves out of each record the decisions that one before it has as well, by their
// ids: those of a heed run --audit are in the record of its heed too. It compares only
// records of different ids, and of these only the time that they share. The decisions of
// that time are kept in memory, 32 octets each. No record has decisions after its Last
// then. A decision that two records have with different contents is an error.
func once(records []*Record) error {
	for i, r := range records {
		known := map[[16]byte]copied{}
		for _, before := range records[:i] {
			if before.Store == r.Store || before.hidden || r.hidden || before.end < r.start || r.end < before.start {
				continue
			}
			err := before.ids(max(r.start, before.start), min(r.end, before.end), func(_ int64, id [16]byte, content uint64) error {
				known[id] = copied{before, content}
				return nil
			})
			if err != nil {
				return err
			}
		}
		if len(known) == 0 {
			continue
		}
		var without []span
		err := r.ids(r.start, r.end, func(seq int64, id [16]byte, content uint64) error {
			first, ok := known[id]
			switch n := len(without); {
			case !ok:
				return nil
			case first.content != content:
				return fmt.Errorf("%s and %s have the decision %x, but with different contents\nSee `heed audit verify`, and name one of them", first.record.Path, r.Path, id)
			case n > 0 && without[n-1].last == seq-1:
				without[n-1].last = seq
			default:
				without = append(without, span{seq, seq})
			}
			r.Elsewhere++
			return nil
		})
		if err != nil {
			return err
		}
		r.begin = r.beginWithout(without)
	}
	return nil
}

// copied is a decision of another record, and a hash of its content.
type copied struct {
	record  *Record
	content uint64
}

// ids calls each with every decision of a time, in the order of the record, and a hash of
// what does not depend on the record: outcomes may be missing, and secrets have other keys.
func (r *Record) ids(from, to int64, each func(seq int64, id [16]byte, content uint64) error) error {
	c, err := r.Read(context.Background())
	if err != nil {
		return err
	}
	defer c.Close()
	return c.each(fmt.Sprintf(`SELECT e.seq, e.id, concat_ws(' ', e.time, e.method, g.verdict, g.reason, g.group_name, g.rule, g.line)
FROM entry e JOIN ground g ON g.id = e.ground WHERE e.time BETWEEN %d AND %d AND e.seq <= %d ORDER BY e.seq`, from, to, r.Last), func(f *fields) {
		if seq, id, content := f.integer(), f.octets(), f.text(); len(id) == 16 {
			f.fail(each(seq, [16]byte(id), maphash.String(seed, content)))
		}
	})
}

// seed is that of the hashes of contents.
var seed = maphash.MakeSeed()

// beginWithout returns the statements that replace the table entry by a view without
// some decisions.
func (r *Record) beginWithout(without []span) string {
	var b strings.Builder
	b.WriteString("CREATE TEMP TABLE elsewhere (first INTEGER PRIMARY KEY, last INTEGER NOT NULL);\n")
	for i, s := range without {
		separator := ", "
		if i%500 == 0 { // SQLite bounds the rows of a statement
			separator = ";\nINSERT INTO elsewhere VALUES "
		}
		fmt.Fprintf(&b, "%s(%d, %d)", separator, s.first, s.last)
	}
	b.WriteString(";\n" + r.layout.presentEntries(fmt.Sprintf("seq <= %d AND coalesce((SELECT last FROM elsewhere WHERE first <= seq ORDER BY first DESC LIMIT 1), 0) < seq", r.Last)))
	return r.layout.present() + b.String()
}
