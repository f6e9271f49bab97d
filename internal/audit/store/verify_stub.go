package store

import (
	"database/sql/driver"
	"fmt"
)

// latest finds the latest stub, and how many entries there should be.
func (v *verifier) latest() error {
	row := func(values []driver.Value) error {
		n, _ := values[0].(int64)
		b, _ := values[1].([]byte)
		s, err := readStub(b)
		if err != nil {
			return damaged(&commit{n: n}, commits, n, "what it says was pruned cannot be read: "+err.Error())
		}
		if !s.plausible() {
			return damaged(&commit{n: n}, commits, n, "what it says was pruned contradicts itself")
		}
		s.at, v.stub = n, s
		return nil
	}
	err := v.query("SELECT n, pruned FROM commits NOT INDEXED WHERE pruned IS NOT NULL ORDER BY n DESC LIMIT 1", row)
	if err != nil {
		return err
	}
	return v.query("SELECT entry FROM commits NOT INDEXED ORDER BY n DESC LIMIT 1", func(values []driver.Value) error {
		v.all, _ = values[0].(int64)
		return nil
	})
}

// removed holds what stays of the removed commits against their stub. The stub
// itself is proved when the commit that has it is.
func (v *verifier) removed(root digest) error {
	s := v.stub
	v.proof.Pruned = &s.Removed
	v.proof.Head.Outcomes = s.Removed.Outcomes
	if digest(s.Root) != root {
		return &Damage{Table: "about", What: linkBroken,
			Means: "What the table about says was changed, or what the commits say of those that were pruned."}
	}
	for t := range v.kept {
		v.kept[t] = map[int64]bool{}
	}
	for _, part := range s.Kept {
		d := newStaying()
		for t := Run; t < lastTable; t++ {
			if err := v.stay(d, t, part.Last[t]); err != nil {
				return err
			}
		}
		if d.end() != part.Digest {
			return v.notStaying()
		}
	}
	return v.bare()
}

// stay covers the rows of t up to the id last.
func (v *verifier) stay(d staying, t Table, last int64) error {
	at := v.at[t]
	for ; at.id <= last; v.count(at) {
		if at.row == nil {
			return damaged(nil, t, at.id, isStrange)
		}
		d.cover(at.row)
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

// plausible reports whether what s says went is what can have gone.
func (s *stub) plausible() bool {
	r := &s.Removed
	return s.Through > 0 && r.Commits == s.Through && r.Entries == s.Last[Entry] && 0 <= r.Outcomes && r.Outcomes <= r.Entries
}

func (v *verifier) notStaying() *Damage {
	return &Damage{What: fmt.Sprintf("the rows of the commits up to %d that stayed when they were pruned are not as they were written", v.stub.Through),
		Means: "A name, a robots.txt or a reason that decisions refer to was changed, added or removed. The chain from there on says who asked and when, but not for sure what those names stand for."}
}

// bare finds rows of removed commits that the stub knows nothing of.
func (v *verifier) bare() error {
	for t := Run; t < lastTable; t++ {
		if id := v.at[t].id; id <= v.stub.Last[t] {
			return damaged(v.stub.last(), t, id, isExtra)
		}
	}
	return nil
}
