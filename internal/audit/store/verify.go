package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Proof is what Verify found in a record.
type Proof struct {
	File    string           `json:"file"`
	Store   string           `json:"store"`            // the id of the record
	Created string           `json:"created"`          // RFC 3339
	Whole   bool             `json:"whole"`            // every row is as heed wrote it
	Commits int64            `json:"commits"`          // that are in the file
	Rows    map[string]int64 `json:"rows"`             // of each table, as far as they were read
	From    time.Time        `json:"from,omitzero"`    // of the first decision in the file
	To      time.Time        `json:"to,omitzero"`      // and of the last
	Head    Head             `json:"head"`             // the last commit that is as it was written
	Pruned  *Removed         `json:"pruned"`           // nil: nothing was removed
	Sealed  *Sealed          `json:"sealed"`           // nil: no head was asked for
	Damage  *Damage          `json:"damage"`           // nil: none was found
	Remarks []string         `json:"remarks,omitzero"` // what is no damage and should be known
}

// Head names all that a record holds up to a commit: as long as the head is
// known, nothing of it can be changed unnoticed.
type Head struct {
	Store    string    `json:"store"`
	Commit   int64     `json:"commit"` // 0: before the first
	Hash     string    `json:"hash"`   // SHA-256, hexadecimal
	Time     time.Time `json:"time,omitzero"`
	Entries  int64     `json:"entries"`  // ever, those that were pruned among them
	Outcomes int64     `json:"outcomes"` // likewise
}

// Verify reads the record at path, which a heed may be writing to, and holds
// all of it against the chain. When seal is given, its head has to be in the
// chain. progress, which may be nil, is told now and then how many entries of
// how many were read. An error means that the file could not be examined; what
// is wrong with the record is in the Proof.
func Verify(ctx context.Context, path string, seal *Seal, progress func(done, all int64)) (*Proof, error) {
	proof := &Proof{File: path, Rows: map[string]int64{}, Remarks: []string{}}
	seal = seal.fresh()
	db, err := View(path)
	if err == nil {
		defer db.Close()
		err = read(ctx, db, func(r reader) error {
			v := &verifier{reader: r, ctx: ctx, proof: proof, seal: seal, progress: progress, late: map[int64][]early{}}
			defer v.close()
			return v.verify()
		})
	}
	if !errors.As(err, &proof.Damage) {
		if proof.Damage = broken(err); proof.Damage == nil && err != nil {
			return nil, err
		}
	}
	proof.Whole = proof.Damage == nil
	return proof, nil
}

// verifier goes through a record from its first commit to its last.
type verifier struct {
	reader
	ctx      context.Context
	proof    *Proof
	seal     *Seal
	progress func(done, all int64)

	at     [len(tables)]*cursor // where it stands in each table
	before *commit              // the last one that was good
	stub   *stub                // nil: nothing was removed
	kept   [Entry]map[int64]bool
	all    int64             // entries there should be
	late   map[int64][]early // outcomes by the commit that is to come
	ended  []int64           // the entries whose outcomes the commit at hand covers
	bad    *Damage           // in a commit whose hash may be good
}

// early is an outcome met before its commit.
type early struct {
	entry int64
	row   []byte
}

// verify returns a *Damage, or another error when it cannot tell.
func (v *verifier) verify() error {
	if err := v.layout(); err != nil {
		return err
	}
	if err := v.begin(); err != nil {
		return err
	}
	for chain := v.at[commits]; chain.id != end; {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		c, err := v.commit(chain)
		if err != nil {
			return err
		}
		if v.advance(c); v.progress != nil {
			v.progress(v.proof.Rows[Entry.String()], v.all)
		}
		if err := chain.next(); err != nil {
			return err
		}
	}
	if err := v.nothingLeft(); err != nil {
		return err
	}
	if err := v.pages(); err != nil {
		return err
	}
	if n := left(v.proof.File, v.proof.Store, v.before.last[Entry]); n > 0 {
		v.proof.Remarks = append(v.proof.Remarks, fmt.Sprintf("%d more decisions stand in the tail beside it, which the next heed completes it from", n))
	}
	return v.sealed()
}

func (v *verifier) close() {
	for _, c := range v.at {
		c.close()
	}
}

// begin opens the tables and sets out from the root of the chain, or from the
// stub of what was removed.
func (v *verifier) begin() error {
	pairs, err := v.about()
	if err != nil {
		return err
	}
	for t := range v.at {
		if v.at[t], err = v.open(Table(t)); err != nil {
			return err
		}
	}
	v.before = &commit{hash: root(pairs)}
	if err := v.latest(); err != nil {
		return err
	}
	if v.stub != nil {
		if err := v.removed(v.before.hash); err != nil {
			return err
		}
		v.before = v.stub.last()
	}
	v.all -= v.before.last[Entry]
	v.advance(v.before)
	v.proof.Commits = 0
	return nil
}

// advance takes c for the last good commit.
func (v *verifier) advance(c *commit) {
	v.before = c
	v.proof.Commits++
	h := &v.proof.Head
	h.Commit, h.Hash, h.Entries = c.n, hexOf(c.hash), c.last[Entry]
	if c.n > 0 {
		h.Time = moment(c.time)
	}
	if c.n > 0 && (v.stub == nil || c.n > v.stub.Through) {
		h.Outcomes += c.outcomes
	}
	v.seal.met(c)
}

// nothingLeft finds rows after the last commit.
func (v *verifier) nothingLeft() error {
	for t := Run; t <= Exempt; t++ {
		if v.at[t].id != end {
			return uncovered(v.before, t, v.at[t].id)
		}
	}
	for _, rows := range v.late {
		return uncovered(v.before, Outcome, rows[0].entry)
	}
	return nil
}
