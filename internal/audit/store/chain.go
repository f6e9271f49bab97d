package store

import (
	"crypto/sha256"
	"hash"
)

// digest is a SHA-256.
type digest = [sha256.Size]byte

// lastTable is the last of the tables of which a commit names the last id.
const lastTable = Entry

// commit is a row of "commits": a link of the chain.
type commit struct {
	n, time  int64
	last     [lastTable + 1]int64 // the last id of each table, by its number
	outcomes int64                // how many
	exempt   int64                // the last id
	pruned   []byte               // a spelt stub (stub.go); nil: nothing was removed
	hash     digest
}

// appendTo spells c without its hash.
func (c *commit) appendTo(b []byte) []byte {
	b = append(b, byte(commits))
	b = appendInteger(appendInteger(b, c.n), c.time)
	for _, id := range c.last[Run:] {
		b = appendInteger(b, id)
	}
	b = appendInteger(appendInteger(b, c.outcomes), c.exempt)
	if c.pruned == nil {
		return appendNull(b)
	}
	return appendBlob(b, c.pruned)
}

// root stands for the predecessor of the first commit. It binds the chain to
// what "about" says: pairs are its rows, key and value, in the order of their keys.
func root(pairs [][2]string) digest {
	b := []byte("heed record\n")
	for _, p := range pairs {
		b = appendText(appendText(b, p[0]), p[1])
	}
	return sha256.Sum256(b)
}

// link returns the hash of c after before, once the rows that c covers have
// been written to it as they are spelt: those of each table by its number, in
// the order of their ids, then the outcomes in the order of their entries, then
// the rows of exempt.
func (c *commit) link(before digest) hash.Hash {
	h := sha256.New()
	h.Write([]byte("heed commit\n"))
	h.Write(before[:])
	h.Write(c.appendTo(nil))
	return h
}
