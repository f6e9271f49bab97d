package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"time"
)

// stub stands in a commit, as JSON, for all that was removed from the file's
// beginning: what went, and the digest of what stays of it for a moment, since
// rows of the same part refer to it. The latest one counts; it tells of all that ever went.
type stub struct {
	Through int64     `json:"through"` // the last commit that went
	Time    int64     `json:"time"`    // of that commit
	Last    lasts     `json:"last"`    // its last ids
	Exempt  int64     `json:"exempt"`  // likewise
	Hash    hexDigest `json:"hash"`    // its hash, the predecessor of the first commit that stays
	Root    hexDigest `json:"root"`    // the root of the chain
	Removed Removed   `json:"removed"`
	Kept    []kept    `json:"kept"` // in the order of their ids, up to Last; empty but while a part is being removed

	at int64 // the commit it stands in
}

// lasts are the last ids of the tables by their number.
type lasts [lastTable + 1]int64

// kept are names, of some of the commits that were removed, that stay until the
// rest of their part is removed.
type kept struct {
	Last   lasts     `json:"last"`   // up to these ids, from those of the part before
	Digest hexDigest `json:"digest"` // over the rows as they are spelt, table by table
}

// Removed is what was removed from the beginning of a record. Zero: nothing.
type Removed struct {
	Commits  int64     `json:"commits"`
	Entries  int64     `json:"entries"`
	Outcomes int64     `json:"outcomes"`
	Exempt   int64     `json:"exempt"`
	From     time.Time `json:"from"` // of the first decision that went
	To       time.Time `json:"to"`   // and of the last
}

// hexDigest is a digest that JSON spells in hexadecimal digits.
type hexDigest digest

// MarshalText spells d.
func (d hexDigest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *hexDigest) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(d) {
		return errors.New("what stands there is no SHA-256")
	}
	copy(d[:], b)
	return nil
}

// readStub reads what a commit has in pruned.
func readStub(b []byte) (*stub, error) {
	s := new(stub)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, err
	}
	return s, nil
}

// last returns the commit that stands before the first that stays.
func (s *stub) last() *commit {
	return &commit{n: s.Through, time: s.Time, last: s.Last, exempt: s.Exempt, hash: digest(s.Hash)}
}

// staying digests rows that stay.
type staying struct{ h hash.Hash }

func newStaying() staying {
	h := sha256.New()
	h.Write([]byte("heed kept\n"))
	return staying{h}
}

func (s staying) cover(row []byte) { s.h.Write(row) }

func (s staying) end() (d hexDigest) {
	s.h.Sum(d[:0])
	return d
}
