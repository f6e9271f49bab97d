package store

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Seal is a head that was noted down once, to be looked for in the chain. A
// nil Seal is none.
type Seal struct {
	Store  string `json:"store"`  // empty: not known
	Commit int64  `json:"commit"` // 0: not known
	Hash   string `json:"hash"`

	found bool
}

// Sealed says whether a head that was noted down is in the chain.
type Sealed struct {
	Hash   string `json:"hash"`
	Commit int64  `json:"commit"` // 0: not known
	Found  bool   `json:"found"`
}

var (
	hashPattern   = regexp.MustCompile(`(?i)(?:^|[^0-9a-f])([0-9a-f]{64})(?:[^0-9a-f]|$)`)
	commitPattern = regexp.MustCompile(`(?m)^\s*commit\s+([0-9]+)`)
	storePattern  = regexp.MustCompile(`(?m)^\s*record\s+(\S+)`)
)

// ReadSeal reads a hash in hexadecimal digits, or what heed audit seal printed,
// as text or JSON.
func ReadSeal(text []byte) (*Seal, error) {
	s := new(Seal)
	if json.Unmarshal(text, s) == nil && s.Hash != "" {
		s.Hash = strings.ToLower(s.Hash)
	} else if found := hashPattern.FindSubmatch(text); found != nil {
		s.Hash = strings.ToLower(string(found[1]))
		if n := commitPattern.FindSubmatch(text); n != nil {
			s.Commit, _ = strconv.ParseInt(string(n[1]), 10, 64)
		}
		if id := storePattern.FindSubmatch(text); id != nil {
			s.Store = string(id[1])
		}
	}
	if b, err := hex.DecodeString(s.Hash); err != nil || len(b) != len(digest{}) {
		return nil, errors.New("there is no head in it: 64 hexadecimal digits, as heed audit seal prints them")
	}
	return s, nil
}

// fresh returns the seal as it is before it is looked for.
func (s *Seal) fresh() *Seal {
	if s == nil {
		return nil
	}
	return &Seal{Store: s.Store, Commit: s.Commit, Hash: s.Hash}
}

// met looks at a commit that is as it was written.
func (s *Seal) met(c *commit) {
	if s != nil && s.Hash == hexOf(c.hash) && (s.Commit == 0 || s.Commit == c.n) {
		s.found, s.Commit = true, c.n
	}
}

// sealed holds the chain against the head that was noted down.
func (v *verifier) sealed() error {
	s := v.seal
	if s == nil {
		return nil
	}
	v.proof.Sealed = &Sealed{Hash: s.Hash, Commit: s.Commit, Found: s.found}
	d := &Damage{What: "the sealed head is not in the chain", Commit: s.Commit}
	switch {
	case s.found && v.stub != nil && len(v.stub.Kept) > 0 && s.Commit < v.stub.at:
		d.What = fmt.Sprintf("the sealed head is in the chain, but names of commits before it are proved by commit %d alone", v.stub.at)
		d.Means = "A part of the record is being pruned. Verify again when heed is done with it, which takes it a minute; heed finishes it when it runs the next time."
	case s.found:
		return nil
	case s.Store != "" && s.Store != v.proof.Store:
		d.What = fmt.Sprintf("the seal is of another record, %s", s.Store)
		d.Means = "Each file has a chain of its own. Verify the file that was sealed."
	case v.stub != nil && s.Commit > 0 && s.Commit < v.stub.Through:
		d.What = fmt.Sprintf("the sealed commit was pruned, with all up to commit %d", v.stub.Through)
		d.Means = "What is left is consistent, but this seal proves nothing of it. Use a later one, or a backup from that time."
	case s.Commit > v.before.n:
		d.Means = fmt.Sprintf("The record ends with commit %d, before the sealed one: its end was removed, or it is an older copy.", v.before.n)
	default:
		d.Means = "The chain was made anew after it was sealed, its end was removed, or the seal is of another record."
	}
	return d
}

func hexOf(d digest) string { return hex.EncodeToString(d[:]) }
