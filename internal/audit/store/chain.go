package store

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"hash/crc32"
)

// digest is a SHA-256.
type digest = [sha256.Size]byte

// lastTable is the last of the tables of which a commit names the last id.
const lastTable = Entry

// commit is a row of "commits": a link of the chain.
type commit struct {
	n, time  int64
	last     lasts  // the last id of each table, by its number
	outcomes int64  // how many
	exempt   int64  // the last id
	pruned   []byte // a spelt stub (stub.go); nil: nothing was removed
	hash     digest
	marks    []byte // not in the hash: whoever has the rows has them
}

// appendTo spells c as its hash covers it: up to pruned.
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

// link is a commit whose rows are being put into its hash.
type link struct {
	*commit
	h hash.Hash
}

// begin begins the hash of c after before.
func (c *commit) begin(before digest) link {
	l := link{c, sha256.New()}
	c.marks = []byte{}
	l.h.Write([]byte("heed commit\n"))
	l.h.Write(before[:])
	l.h.Write(c.appendTo(nil))
	return l
}

// cover puts in a row that the commit covers, as it is spelt. The order is:
// the rows of each table by its number, in the order of their ids, then the
// outcomes in the order of their entries, then the rows of exempt.
func (l link) cover(row []byte) {
	l.h.Write(row)
	l.marks = binary.LittleEndian.AppendUint16(l.marks, mark(row))
}

// end gives the commit its hash.
func (l link) end() { l.h.Sum(l.hash[:0]) }

// mark tells a row from what it was before it was changed, most of the time:
// it proves nothing, but shows where to look.
func mark(row []byte) uint16 { return uint16(crc32.Checksum(row, castagnoli)) }

// castagnoli is the polynomial that processors know (CRC-32C).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)
