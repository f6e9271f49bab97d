package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// treed is the first layout whose commits are the leaves of a tree; in earlier ones they are a
// chain, in which each hash covers the one before.
const treed layout = 4

// tree is a Merkle tree (RFC 9162 §2.1.1) that grows at its end. The zero value is empty.
type tree struct {
	size int64       // number of leaves
	edge []tlog.Hash // the roots of the complete subtrees that the leaves form, the largest first
}

// add appends a complete subtree with the root h, of 2^level leaves, and appends to done the
// roots that are complete with it: h, and those of larger subtrees. The size must be a
// multiple of its leaves.
func (t *tree) add(h tlog.Hash, level int, done []byte) []byte {
	done = append(done, h[:]...)
	for n := t.size >> level; n&1 == 1; n >>= 1 {
		last := len(t.edge) - 1
		h, t.edge = tlog.NodeHash(t.edge[last], h), t.edge[:last]
		done = append(done, h[:]...)
	}
	t.edge, t.size = append(t.edge, h), t.size+1<<level
	return done
}

// root returns the root of a tree that is not empty.
func (t *tree) root() digest {
	h := t.edge[len(t.edge)-1]
	for i := len(t.edge) - 2; i >= 0; i-- {
		h = tlog.NodeHash(t.edge[i], h)
	}
	return digest(h)
}

// clone returns a copy of t, which grows separately.
func (t *tree) clone() tree { return tree{t.size, slices.Clone(t.edge)} }

// addChunk adds a row of the table hashes to t, which has up to size leaves then, and reports
// whether it can be one.
func (t *tree) addChunk(row *chunkRow, size int64, head func(n int64, root digest)) bool {
	leaves := row.hashes
	if row.leaves < 0 || row.leaves > chunk || int64(len(leaves)) < row.leaves*tlog.HashSize || len(leaves)%tlog.HashSize != 0 {
		return false
	}
	leaves, larger := leaves[:row.leaves*tlog.HashSize], leaves[row.leaves*tlog.HashSize:]
	var done []byte
	switch {
	case row.leaves == 0 && len(larger) > 0 && t.size+chunk <= size:
		done = t.add(tlog.Hash(larger[:tlog.HashSize]), chunkLevel, nil)
		if head != nil {
			head(t.size-1, t.root())
		}
		return bytes.Equal(done, larger)
	case row.leaves != min(chunk, size-t.size):
		return false
	}
	for ; len(leaves) > 0; leaves = leaves[tlog.HashSize:] {
		done = t.add(tlog.Hash(leaves[:tlog.HashSize]), 0, done[:0])
		if head != nil {
			head(t.size-1, t.root())
		}
	}
	return bytes.Equal(done[min(len(done), chunkLevel*tlog.HashSize):], larger)
}

// saltSize is the size of the salt of a commit. A leaf has two of half its size.
const saltSize = 32

// private are the columns of tables that a proof shows only on request, as bits: the leaf of a
// row that has them covers a salted hash of their values.
var private = [len(tables)]uint32{
	entryTable:    1<<5 | 1<<16, // port, page
	outcomeTable:  1 << 8,       // error
	snapshotTable: 1 << 3,       // asked_as
	policyTable:   1 << 11,      // error
	groundTable:   1 << 11,      // detail
}

// leaves computes the hashes of the leaves of a commit.
type leaves struct {
	inner  [blockSize + 8]byte           // what HMAC (RFC 2104) hashes first: the key, a place
	outer  [blockSize + sha256.Size]byte // and then
	salt   digest                        // of the last leaf: half for the row, half for its private values
	sum    hash.Hash                     // SHA-256; one that is kept needs no memory
	last   tlog.Hash
	leaf   []byte
	hidden []byte
	rows   tree
	done   []byte
}

// blockSize is that of SHA-256, in octets.
const blockSize = 64

// newLeaves returns the leaves of a commit with a salt, of which HMAC is written out here: with
// crypto/hmac it would take a quarter of the time of a commit.
func newLeaves(salt []byte) *leaves {
	l := &leaves{sum: sha256.New()}
	copy(l.inner[:], salt)
	copy(l.outer[:], salt)
	for i := range blockSize {
		l.inner[i] ^= 0x36
		l.outer[i] ^= 0x5c
	}
	return l
}

// add adds the leaf of an encoded row.
func (l *leaves) add(row []byte) {
	l.done = l.rows.add(l.hash(row, l.rows.size), 0, l.done[:0])
}

// hash returns the hash of the leaf of an encoded row at a place in its commit.
func (l *leaves) hash(row []byte, place int64) tlog.Hash {
	binary.BigEndian.PutUint64(l.inner[blockSize:], uint64(place))
	l.hashTo(l.outer[blockSize:blockSize], l.inner[:])
	l.hashTo(l.salt[:0], l.outer[:])
	l.leaf = append(append(l.leaf[:0], 0), l.salt[:saltSize/2]...)
	if mask := private[row[0]]; mask == 0 {
		l.leaf = append(l.leaf, row...)
	} else {
		var some bool
		if l.leaf, l.hidden, some = hide(l.leaf, append(l.hidden[:0], l.salt[saltSize/2:]...), row, mask); some {
			l.leaf = l.hashTo(l.leaf, l.hidden)
		}
	}
	l.hashTo(l.last[:0], l.leaf)
	return l.last
}

// hashTo appends the SHA-256 of octets to b.
func (l *leaves) hashTo(b, octets []byte) []byte {
	l.sum.Reset()
	l.sum.Write(octets) // never fails
	return l.sum.Sum(b)
}

// hide appends to shown a row with NULL in place of its private values, and to hidden these
// values. some reports whether one of them is not NULL.
func hide(shown, hidden, row []byte, mask uint32) (_, _ []byte, some bool) {
	shown = append(shown, row[0])
	for rest := row[1:]; len(rest) > 0; mask >>= 1 {
		_, size := cutValue(rest)
		if mask&1 == 0 {
			shown = append(shown, rest[:size]...)
		} else {
			shown, hidden, some = appendNull(shown), append(hidden, rest[:size]...), some || rest[0] != tagNull
		}
		rest = rest[size:]
	}
	return shown, hidden, some
}

// chunk is the number of commits whose hashes one row of the table hashes keeps.
const (
	chunkLevel = 8
	chunk      = 1 << chunkLevel
)

// errForgotten is the error of a hash that was removed after its commit was.
var errForgotten = errors.New("the hashes of commits from that time were removed")

// ReadHashes implements tlog.HashReader: with the hashes that commits have, and those that are
// kept of removed ones.
func (c *conn) ReadHashes(indexes []int64) (all []tlog.Hash, err error) {
	for _, index := range indexes {
		level, n := tlog.SplitStoredHashIndex(index)
		h, err := c.treeHash(level, n)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, nil
}

// treeHash returns the root of the n-th complete subtree of 2^level leaves.
func (c *conn) treeHash(level int, n int64) (h tlog.Hash, err error) {
	last := (n+1)<<level - 1 // the leaf that completes it
	if last == 0 {
		pairs, _, err := c.about()
		return tlog.Hash(rootOf(c.layout, pairs)), err
	}
	var hashes []byte
	if err := c.row(fmt.Sprintf("SELECT hashes FROM commits WHERE n = %d", last), &hashes); err != nil {
		return h, err
	}
	if hashes != nil {
		return hashAt(hashes, level)
	}
	var count int64
	if err := c.row(fmt.Sprintf("SELECT leaves, hashes FROM hashes WHERE id = %d", last>>chunkLevel), &count, &hashes); err != nil {
		return h, err
	}
	if level >= chunkLevel {
		return hashAt(hashes, int(count)+level-chunkLevel)
	}
	if last&(chunk-1) >= count {
		return h, errForgotten
	}
	var t tree
	for leaf := n << level; leaf <= last; leaf++ {
		h, err := hashAt(hashes, int(leaf&(chunk-1)))
		if err != nil {
			return h, err
		}
		t.add(h, 0, nil)
	}
	return tlog.Hash(t.root()), nil
}

// hashAt returns the i-th of hashes.
func hashAt(hashes []byte, i int) (h tlog.Hash, err error) {
	if i < 0 || len(hashes) < (i+1)*tlog.HashSize {
		return h, errForgotten
	}
	return tlog.Hash(hashes[i*tlog.HashSize:][:tlog.HashSize]), nil
}

// treeOf returns the tree of the first size leaves.
func (c *conn) treeOf(size int64) (t tree, err error) {
	for level := 62; level >= 0; level-- {
		if size>>level&1 == 0 {
			continue
		}
		h, err := c.treeHash(level, t.size>>level)
		if err != nil {
			return t, err
		}
		t.add(h, level, nil)
	}
	return t, nil
}

// appendEnded appends the entries of outcomes, in their order: the first, and then differences.
func appendEnded(b []byte, before, entry int64) []byte {
	return binary.AppendUvarint(b, uint64(entry-before))
}

// endedOf returns the entries that appendEnded has appended; nil of other octets.
func endedOf(b []byte) (entries []int64) {
	for last := int64(0); len(b) > 0; {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			return nil
		}
		last, b = last+int64(n), b[size:]
		entries = append(entries, last)
	}
	return entries
}
