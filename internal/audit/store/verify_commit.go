package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash"

	"heed/internal/audit"
)

// commit checks the current commit of chain, and all rows it covers.
func (v *verifier) commit(chain *cursor) (*commit, error) {
	c, err := readCommit(v.conn.layout, chain)
	switch {
	case chain.id != v.before.n+1:
		return nil, v.outOfOrder(chain, v.before.n+1)
	case err != nil:
		return nil, err
	case !c.plausible(v.before):
		return nil, damaged(c, commits, c.n, "its numbers do not fit the rows it covers")
	}
	v.ended, v.bad = v.ended[:0], nil
	actual := *c
	l := actual.begin(v.conn.layout, v.before)
	if err := v.cover(l, c); err != nil {
		return nil, err
	}
	l.end()
	if actual.hash != c.hash || !bytes.Equal(actual.marks, c.marks) || !bytes.Equal(actual.hashes, c.hashes) || !bytes.Equal(actual.ended, c.ended) {
		return nil, v.locate(c, &actual)
	}
	c.tree = actual.tree
	if v.bad != nil {
		return nil, v.bad
	}
	return c, nil
}

// outOfOrder returns the damage when the current row is not the one with id want.
func (v *verifier) outOfOrder(at *cursor, want int64) error {
	if at.id < want {
		return damaged(v.before, at.table, at.id, isExtra)
	}
	d := damaged(&commit{n: v.before.n + 1}, at.table, want, isGone)
	d.Time = moment(v.before.time)
	return d
}

// readCommit reads the current commit of chain, which has the layout.
func readCommit(l layout, chain *cursor) (*commit, error) {
	c := &commit{n: chain.integer(0), time: chain.integer(1)}
	for t := runTable; t <= lastTable; t++ {
		c.last[t] = chain.integer(int(t) + 1)
	}
	c.outcomes, c.exempt = chain.integer(int(lastTable)+2), chain.integer(int(lastTable)+3)
	c.pruned, _ = chain.values[int(lastTable)+4].([]byte)
	hash, _ := chain.values[int(lastTable)+5].([]byte)
	c.marks, _ = chain.values[int(lastTable)+6].([]byte)
	// The values read must be those hashed: no column has a value of another type.
	c.ended = []byte{}
	if l >= treed {
		c.event = chain.integer(int(lastTable) + 7)
		for i, to := range []*[]byte{&c.salt, &c.hashes, &c.ended} {
			*to, _ = chain.values[int(lastTable)+8+i].([]byte)
		}
	}
	// Nor may one be hashed as another: HMAC fills its key up with zeros.
	if copy(c.hash[:], hash); len(hash) != len(c.hash) || l >= treed && len(c.salt) != saltSize || !bytes.Equal(c.row(l).octets, chain.row) {
		return c, damaged(c, commits, c.n, isStrange)
	}
	return c, nil
}

// plausible reports whether c can follow before: no last id decreases, and c has a
// mark for each row.
func (c *commit) plausible(before *commit) bool {
	rows := c.outcomes + c.exempt - before.exempt + c.event - before.event
	for t := runTable; t <= lastTable; t++ {
		if c.last[t] < before.last[t] {
			return false
		}
		rows += c.last[t] - before.last[t]
	}
	return c.outcomes >= 0 && c.exempt >= before.exempt && c.event >= before.event && rows == int64(len(c.marks)/2) && len(c.marks)%2 == 0
}

// cover adds the rows that c covers to the hash.
func (v *verifier) cover(l *link, c *commit) error {
	for t := runTable; t <= lastTable; t++ {
		if err := v.coverUpTo(l, c, t, v.before.last[t], c.last[t]); err != nil {
			return err
		}
	}
	if err := v.coverOutcomes(l, c); err != nil {
		return err
	}
	if err := v.coverUpTo(l, c, exemptTable, v.before.exempt, c.exempt); err != nil {
		return err
	}
	return v.coverUpTo(l, c, eventTable, v.before.event, c.event)
}

func (v *verifier) coverUpTo(l *link, c *commit, t table, from, to int64) error {
	at := v.at[t]
	for id := from + 1; id <= to; id++ {
		if at.id != id {
			return v.outOfOrder(at, id)
		}
		if at.row == nil {
			return damaged(c, at.table, at.id, isStrange)
		}
		l.cover(at.row, id)
		if err := v.pass(c, at); err != nil {
			return err
		}
	}
	return nil
}

// pass counts and examines the current row of at, and moves to the next.
func (v *verifier) pass(c *commit, at *cursor) error {
	v.count(at)
	if v.bad == nil {
		v.bad = v.examine(c, at)
	}
	return at.next()
}

// count counts the current row of at.
func (v *verifier) count(at *cursor) {
	v.proof.Rows[at.table.String()]++
	if at.table == exemptTable {
		why, _ := at.values[3].(string)
		if g, ok := audit.ParseGap(why, at.integer(2)); ok {
			v.proof.Gaps = append(v.proof.Gaps, g)
		}
	}
	if at.table == entryTable {
		v.proof.To = moment(at.integer(2))
		if v.proof.From.IsZero() {
			v.proof.From = v.proof.To
		}
	}
}

// coverOutcomes adds the outcomes of commit c to the hash. The entry of an outcome is
// in the same commit or an earlier one, so that they are among the pending ones and
// those of the entries up to c's.
func (v *verifier) coverOutcomes(l *link, c *commit) error {
	for _, o := range v.pending[c.n] {
		l.cover(o.row, o.entry)
		v.ended = append(v.ended, o.entry)
	}
	delete(v.pending, c.n)
	for at := v.at[outcomeTable]; at.id <= c.last[entryTable]; {
		in := at.integer(1)
		if at.row == nil || at.id < 1 {
			return damaged(c, outcomeTable, at.id, isStrange)
		}
		if in < c.n {
			return damaged(c, outcomeTable, at.id, fmt.Sprintf("it names commit %d, which does not cover it", in))
		}
		if in > c.n {
			v.pending[in] = append(v.pending[in], pendingOutcome{at.id, bytes.Clone(at.row)})
		}
		if in == c.n {
			v.ended = append(v.ended, at.id)
			l.cover(at.row, at.id)
		}
		if err := v.pass(c, at); err != nil {
			return err
		}
	}
	return nil
}

// locate returns the damage of a commit whose hash is wrong: actual is c with the
// hash and the marks of the rows in the file.
func (v *verifier) locate(c, actual *commit) error {
	if actual.hash == c.hash {
		return damaged(c, commits, c.n, "what it has of its rows, or of the commits before, was changed")
	}
	for i := 0; i+2 <= min(len(c.marks), len(actual.marks)); i += 2 {
		if !bytes.Equal(c.marks[i:i+2], actual.marks[i:i+2]) {
			t, id := v.covered(c, int64(i/2))
			return damaged(c, t, id, isChanged)
		}
	}
	if len(c.marks) != len(actual.marks) {
		return damaged(c, outcomeTable, 0, fmt.Sprintf("%d rows name this commit, which counted %d", len(v.ended), c.outcomes))
	}
	d := damaged(c, commits, c.n, linkBroken)
	if c.n == 1 {
		d.What += ", or what the table about says was changed"
	}
	return d
}

// covered returns the row of c at an index in the order of the hash.
func (v *verifier) covered(c *commit, place int64) (table, int64) {
	for t := runTable; t <= lastTable; t++ {
		if n := c.last[t] - v.before.last[t]; place >= n {
			place -= n
			continue
		}
		return t, v.before.last[t] + 1 + place
	}
	if n := int64(len(v.ended)); place < n {
		return outcomeTable, v.ended[place]
	} else if place -= n; place < c.exempt-v.before.exempt {
		return exemptTable, v.before.exempt + 1 + place
	}
	return eventTable, v.before.event + 1 + place - (c.exempt - v.before.exempt)
}

// latest reads the latest stub and the number of entries.
func (v *verifier) latest() error {
	at, err := v.openWhere(commits, "pruned IS NOT NULL AND n = (SELECT max(n) FROM commits NOT INDEXED WHERE pruned IS NOT NULL)")
	if err != nil {
		return err
	}
	defer at.Close()
	if at.id != end {
		b, _ := at.values[lastTable+4].([]byte)
		s := new(stub)
		if err := json.Unmarshal(b, s); err != nil {
			return damaged(&commit{n: at.id}, commits, at.id, "what it says was pruned cannot be read: "+err.Error())
		}
		if !s.plausible() {
			return damaged(&commit{n: at.id}, commits, at.id, "what it says was pruned contradicts itself")
		}
		s.at, v.stub = at.id, s
	}
	v.all, err = v.integer("SELECT entry FROM commits NOT INDEXED ORDER BY n DESC LIMIT 1")
	if errors.Is(err, errStrange) {
		err = nil // found with the commit
	}
	return err
}

// pastHashes reads the hashes of the removed commits into the tree of the record, and returns a
// *Damage when they are not those of the stub. head is called with each commit of which the
// head is known.
func (v *verifier) pastHashes(head func(n int64, root digest)) (t tree, err error) {
	wrong := func(id int64, what string) error {
		return &Damage{Table: "hashes", ID: id, What: what, Means: "The rows that are left are proved by the commits that cover them. Heads from before what was pruned cannot be proved."}
	}
	through := int64(0)
	if v.stub != nil {
		through = v.stub.Through
	}
	id := int64(0)
	err = v.each("SELECT id, leaves, hashes FROM hashes NOT INDEXED ORDER BY id", func(f *fields) {
		row := chunkRow{f.integer(), f.integer(), f.octets()}
		if row.id != id || t.size > through || !t.addChunk(&row, through+1, head) {
			f.fail(wrong(row.id, isChanged))
		}
		v.proof.Hashes += int64(len(row.hashes))
		id++
	})
	if err == nil && through > 0 && (t.size != through+1 || t.root() != v.stub.Hash) {
		err = wrong(0, "the hashes of the commits that were pruned are not those that heed kept")
	}
	return t, err
}

// removed compares the kept names of the removed commits with the stub. The stub
// itself is verified with the commit that contains it.
func (v *verifier) removed(root digest) error {
	s := v.stub
	v.proof.Pruned = &s.Removed
	v.proof.Head.Outcomes = s.Removed.Outcomes
	if s.Root != root {
		return &Damage{Table: "about", What: linkBroken,
			Means: "What the table about says was changed, or what the commits say of those that were pruned."}
	}
	for t := range v.kept {
		v.kept[t] = map[int64]bool{}
	}
	for _, part := range s.Kept {
		d := newKeptHash()
		for t := runTable; t < lastTable; t++ {
			if err := v.coverKept(d, t, part.Last[t]); err != nil {
				return err
			}
		}
		if digest(d.Sum(nil)) != part.Digest {
			return &Damage{What: fmt.Sprintf("the rows of the commits up to %d that stayed when they were pruned are not as they were written", s.Through),
				Means: "A name, a robots.txt or a reason that decisions refer to was changed, added or removed. The chain from there on says who asked and when, but the names themselves are not proved."}
		}
	}
	for t := runTable; t < lastTable; t++ { // rows that the stub does not list as kept
		if id := v.at[t].id; id <= s.Last[t] {
			return damaged(s.last(), t, id, isExtra)
		}
	}
	return nil
}

// coverKept adds the rows of t up to the id last to d.
func (v *verifier) coverKept(d hash.Hash, t table, last int64) error {
	at := v.at[t]
	for ; at.id <= last; v.count(at) {
		if at.row == nil {
			return damaged(nil, t, at.id, isStrange)
		}
		d.Write(at.row)
		v.kept[t][at.id] = true
		if v.bad = v.examine(v.stub.last(), at); v.bad != nil {
			return v.bad
		}
		if err := at.next(); err != nil {
			return err
		}
	}
	return nil
}

// plausible reports whether the numbers of s are consistent.
func (s *stub) plausible() bool {
	r := &s.Removed
	return s.Through > 0 && r.Commits == s.Through && r.Entries == s.Last[entryTable] && 0 <= r.Outcomes && r.Outcomes <= r.Entries
}
