package store

import (
	"context"
	"fmt"
	"hash/maphash"
	"strings"
)

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
		err := r.ids(r.start, r.end, func(seq int64, id [16]byte, content uint64) error {
			first, ok := known[id]
			if ok && first.content != content {
				return fmt.Errorf("%s and %s have the decision %x, but with different contents\nSee `heed audit verify`, and name one of them", first.record.Path, r.Path, id)
			}
			if ok {
				r.leaveOut(seq)
			}
			return nil
		})
		if err != nil {
			return err
		}
		r.begin = r.beginWithout()
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
FROM entry e JOIN ground g ON g.id = e.ground WHERE e.time BETWEEN %d AND %d AND e.seq <= %d ORDER BY e.seq`, from, to, r.Last), func(f *fields) error {
		seq, id, content := f.integer(), f.octets(), f.text()
		if len(id) != 16 {
			return nil
		}
		return each(seq, [16]byte(id), maphash.String(seed, content))
	})
}

// seed is that of the hashes of contents.
var seed = maphash.MakeSeed()

// leaveOut adds the decision seq, which is after those added before.
func (r *Record) leaveOut(seq int64) {
	r.Elsewhere++
	if n := len(r.without); n > 0 && r.without[n-1].last == seq-1 {
		r.without[n-1].last = seq
		return
	}
	r.without = append(r.without, span{seq, seq})
}

// beginWithout returns the statements that replace the table entry by a view without
// the decisions left out.
func (r *Record) beginWithout() string {
	var b strings.Builder
	b.WriteString("CREATE TEMP TABLE elsewhere (first INTEGER PRIMARY KEY, last INTEGER NOT NULL);\n")
	for i, s := range r.without {
		separator := ", "
		if i%500 == 0 { // SQLite bounds the rows of a statement
			separator = ";\nINSERT INTO elsewhere VALUES "
		}
		fmt.Fprintf(&b, "%s(%d, %d)", separator, s.first, s.last)
	}
	fmt.Fprintf(&b, ";\nCREATE TEMP VIEW entry AS SELECT * FROM main.entry WHERE seq <= %d AND coalesce((SELECT last FROM elsewhere WHERE first <= seq ORDER BY first DESC LIMIT 1), 0) < seq;\n", r.Last)
	return b.String()
}
