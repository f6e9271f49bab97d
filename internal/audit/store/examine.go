package store

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"fmt"
	"io"
)

// reference is a column that names a row of another table.
type reference struct {
	column int
	to     Table
}

// references are the columns of a table that name rows of others.
func (t Table) references() []reference {
	switch t {
	case Snapshot:
		return []reference{{1, Site}, {7, Body}}
	case Policy:
		return []reference{{1, Site}, {2, Snapshot}}
	case Ground:
		return []reference{{12, Policy}, {13, Configuration}}
	case Entry:
		return []reference{{3, Run}, {4, Asker}, {6, Site}, {7, Ground}}
	case Outcome:
		return []reference{{9, Ground}}
	}
	return nil
}

// examine finds what is wrong with a row although it may be as it was written:
// a row of another table that it names and that is not there, or bytes that
// are not those of their hash. nil: nothing.
func (v *verifier) examine(c *commit, at *cursor) *Damage {
	for _, r := range at.table.references() {
		id, isNumber := at.values[r.column].(int64)
		if at.values[r.column] == nil || isNumber && v.there(c, at, r.to, id) {
			continue
		}
		return damaged(c, at.table, at.id, fmt.Sprintf("its %s %v is not there", at.table.columns()[r.column], at.values[r.column]))
	}
	if at.table == Body {
		return examineBody(c, at)
	}
	return nil
}

// there reports whether the row id of t is in the file. What an outcome names
// may come with the commit that covers it, which is not read yet.
func (v *verifier) there(c *commit, at *cursor, t Table, id int64) bool {
	if v.stub != nil && id <= v.stub.Last[t] {
		return v.kept[t][id]
	}
	return id >= 1 && (id <= c.last[t] || at.table == Outcome && at.integer(1) > c.n)
}

// maxBody is more than heed reads of any robots.txt, in octets.
const maxBody = 64 << 20

// examineBody holds the bytes of a robots.txt against their size and hash.
func examineBody(c *commit, at *cursor) *Damage {
	sum, _ := at.values[1].([]byte)
	packed, _ := at.values[3].([]byte)
	z, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return damaged(c, Body, at.id, "its bytes cannot be unpacked: "+err.Error())
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(z, min(at.integer(2), maxBody)+1))
	switch {
	case err != nil:
		return damaged(c, Body, at.id, "its bytes cannot be unpacked: "+err.Error())
	case n != at.integer(2):
		return damaged(c, Body, at.id, "its size is not that of its bytes")
	case !bytes.Equal(h.Sum(nil), sum):
		return damaged(c, Body, at.id, "its SHA-256 is not that of its bytes")
	}
	return nil
}
