package store

import (
	"cmp"
	"slices"
)

// spelt is a row as its table has it.
type spelt struct {
	id     int64 // or of an outcome, the entry
	octets []byte
}

// sorting is rows by table, in the order in which a commit covers them. It is
// used again for the next one.
type sorting struct {
	rows  [len(tables)][]spelt
	ended []byte // outcomes, which name the commit
}

// of sorts those of rows that commit n is to cover, and returns the others: what
// comes after the beginning of a run refers to nothing before it, and the commits
// keep the two apart, so that one can go without the other. What it holds shares
// memory with rows.
func (s *sorting) of(rows []byte, n int64) (rest []byte, err error) {
	s.ended = s.ended[:0]
	for t := range s.rows {
		s.rows[t] = s.rows[t][:0]
	}
	for begin := len(rows); len(rows) > 0; {
		t, id, length, err := measureRow(rows)
		if err != nil {
			return nil, err
		}
		if t == Run && len(rows) < begin {
			break
		}
		row := rows[:length]
		if rows = rows[length:]; t == Outcome {
			begin := len(s.ended)
			s.ended = appendEnded(s.ended, row, id, n)
			row = s.ended[begin:]
		}
		s.rows[t] = append(s.rows[t], spelt{id, row})
	}
	slices.SortStableFunc(s.rows[Outcome], func(a, b spelt) int { return cmp.Compare(a.id, b.id) })
	return rows, nil
}

// clear forgets the rows, and gives back memory that few commits need.
func (s *sorting) clear() {
	if cap(s.ended) > maxSpare {
		*s = sorting{}
	}
	for t := range s.rows {
		clear(s.rows[t])
	}
}

// maxSpare bounds the octets of a buffer that is kept for the next commit.
const maxSpare = 4 << 20

// appendEnded spells the outcome of an entry, which names no commit yet, so that
// it names commit n.
func appendEnded(b, row []byte, entry, n int64) []byte {
	begin := len(b)
	b = appendInteger(append(b, byte(Outcome)), entry)
	head := len(b) - begin
	return append(appendInteger(b, n), row[head+len(noCommit):]...)
}

// noCommit is how the tail spells in_commit.
var noCommit = appendInteger(nil, 0)
