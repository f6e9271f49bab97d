package store

import (
	"bytes"
	"fmt"
)

// commit checks the commit that chain stands on, and all rows it covers.
func (v *verifier) commit(chain *cursor) (*commit, error) {
	c, err := readCommit(chain)
	switch {
	case chain.id != v.before.n+1:
		return nil, v.astray(chain, v.before.n+1)
	case err != nil:
		return nil, err
	case !c.plausible(v.before):
		return nil, damaged(c, commits, c.n, "its numbers do not fit the rows it covers")
	}
	v.ended, v.bad = v.ended[:0], nil
	again := *c
	l := again.begin(v.before.hash)
	if err := v.cover(l, c); err != nil {
		return nil, err
	}
	l.end()
	if again.hash != c.hash || !bytes.Equal(again.marks, c.marks) {
		return nil, v.blame(c, &again)
	}
	if v.bad != nil {
		return nil, v.bad
	}
	return c, nil
}

// astray is the damage of a cursor that is not on the row it should be on.
func (v *verifier) astray(at *cursor, want int64) error {
	if at.id < want {
		return damaged(v.before, at.table, at.id, isExtra)
	}
	next := &commit{n: v.before.n + 1}
	d := damaged(next, at.table, want, isGone)
	d.Time = moment(v.before.time)
	return d
}

// readCommit reads the commit that chain stands on.
func readCommit(chain *cursor) (*commit, error) {
	c := &commit{n: chain.integer(0), time: chain.integer(1)}
	for t := Run; t <= lastTable; t++ {
		c.last[t] = chain.integer(int(t) + 1)
	}
	c.outcomes, c.exempt = chain.integer(int(lastTable)+2), chain.integer(int(lastTable)+3)
	c.pruned, _ = chain.values[int(lastTable)+4].([]byte)
	hash, _ := chain.values[int(lastTable)+5].([]byte)
	c.marks, _ = chain.values[int(lastTable)+6].([]byte)
	if chain.row == nil || copy(c.hash[:], hash) != len(c.hash) || len(hash) != len(c.hash) {
		return c, damaged(c, commits, c.n, isStrange)
	}
	// What was read is what is hashed: no column has a value of another kind.
	spelt := appendBlob(appendBlob(c.appendTo(nil), hash), c.marks)
	if !bytes.Equal(spelt, chain.row) {
		return c, damaged(c, commits, c.n, isStrange)
	}
	return c, nil
}

// plausible reports whether c can follow before: it takes no id back, and has
// a mark for each row.
func (c *commit) plausible(before *commit) bool {
	rows := c.outcomes + c.exempt - before.exempt
	for t := Run; t <= lastTable; t++ {
		if c.last[t] < before.last[t] {
			return false
		}
		rows += c.last[t] - before.last[t]
	}
	return c.outcomes >= 0 && c.exempt >= before.exempt && rows == int64(len(c.marks)/2) && len(c.marks)%2 == 0
}

// cover puts the rows that c covers into the hash.
func (v *verifier) cover(l link, c *commit) error {
	for t := Run; t <= lastTable; t++ {
		if err := v.coverUpTo(l, c, t, v.before.last[t], c.last[t]); err != nil {
			return err
		}
	}
	if err := v.coverOutcomes(l, c); err != nil {
		return err
	}
	return v.coverUpTo(l, c, Exempt, v.before.exempt, c.exempt)
}

func (v *verifier) coverUpTo(l link, c *commit, t Table, from, to int64) error {
	at := v.at[t]
	for id := from + 1; id <= to; id++ {
		if at.id != id {
			return v.astray(at, id)
		}
		if err := v.coverRow(l, c, at); err != nil {
			return err
		}
	}
	return nil
}

// coverRow puts in the row that at stands on, and goes to the next.
func (v *verifier) coverRow(l link, c *commit, at *cursor) error {
	if at.row == nil {
		return damaged(c, at.table, at.id, isStrange)
	}
	l.cover(at.row)
	v.count(at)
	if v.bad == nil {
		v.bad = v.examine(c, at)
	}
	return at.next()
}

// count counts a row in.
func (v *verifier) count(at *cursor) {
	v.proof.Rows[at.table.String()]++
	if at.table == Entry {
		v.proof.To = moment(at.integer(2))
		if v.proof.From.IsZero() {
			v.proof.From = v.proof.To
		}
	}
}

// coverOutcomes puts in the outcomes that name c. An entry is in the same
// commit as its outcome or in one before, so they are among those met already
// and those of the entries up to c's.
func (v *verifier) coverOutcomes(l link, c *commit) error {
	for _, o := range v.late[c.n] {
		l.cover(o.row)
		v.ended = append(v.ended, o.entry)
	}
	delete(v.late, c.n)
	for at := v.at[Outcome]; at.id <= c.last[Entry]; {
		in := at.integer(1)
		if at.row == nil || at.id < 1 {
			return damaged(c, Outcome, at.id, isStrange)
		}
		if in < c.n {
			return damaged(c, Outcome, at.id, fmt.Sprintf("it names commit %d, which does not cover it", in))
		}
		if in > c.n {
			v.late[in] = append(v.late[in], early{at.id, bytes.Clone(at.row)})
		}
		if in == c.n {
			v.ended = append(v.ended, at.id)
			l.cover(at.row)
		}
		v.count(at)
		if v.bad == nil {
			v.bad = v.examine(c, at)
		}
		if err := at.next(); err != nil {
			return err
		}
	}
	return nil
}

// blame finds the row because of which the hash of c does not fit: again is c
// with the hash and the marks that its rows have now.
func (v *verifier) blame(c, again *commit) error {
	if again.hash == c.hash {
		return damaged(c, commits, c.n, "the marks of its rows were changed")
	}
	for i := 0; i+2 <= min(len(c.marks), len(again.marks)); i += 2 {
		if !bytes.Equal(c.marks[i:i+2], again.marks[i:i+2]) {
			t, id := v.covered(c, int64(i/2))
			return damaged(c, t, id, isChanged)
		}
	}
	if len(c.marks) != len(again.marks) {
		return damaged(c, Outcome, 0, fmt.Sprintf("%d rows name this commit, which counted %d", len(v.ended), c.outcomes))
	}
	d := damaged(c, commits, c.n, linkBroken)
	if c.n == 1 {
		d.What += ", or what the table about says was changed"
	}
	return d
}

// covered names the row of c with the given place.
func (v *verifier) covered(c *commit, place int64) (Table, int64) {
	for t := Run; t <= lastTable; t++ {
		if n := c.last[t] - v.before.last[t]; place >= n {
			place -= n
			continue
		}
		return t, v.before.last[t] + 1 + place
	}
	if n := int64(len(v.ended)); place >= n {
		return Exempt, v.before.exempt + 1 + place - n
	}
	return Outcome, v.ended[place]
}
