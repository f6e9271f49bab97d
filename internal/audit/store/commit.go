package store

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"heed/rules"
)

// add adds encoded rows to audit.db as one commit for each run, in one
// transaction.
func (b *database) add(rows []byte, now time.Time) error {
	before := b.head
	if len(rows) > maxSpare {
		defer func() { b.rows, b.values = rowsByTable{}, nil }()
	}
	err := b.InTransaction(func() (err error) {
		for len(rows) > 0 && err == nil {
			rows, err = b.addOne(rows, now)
		}
		return err
	})
	if err != nil {
		b.head = before
	}
	return err
}

// addOne adds the rows of one commit to audit.db, and returns the others.
func (b *database) addOne(rows []byte, now time.Time) (rest []byte, err error) {
	all := &b.rows.of
	if rest, err = b.rows.split(b.layout, rows, b.head.n+1); err != nil {
		return nil, err
	}
	c, err := b.commit(all, now)
	if err != nil {
		return nil, err
	}
	t, err := tallyOf(b, all)
	if err == nil && len(t.changed) > 0 {
		err = b.count(-1, t.condition())
	}
	for t := runTable; int(t) < len(tables) && err == nil; t++ {
		err = b.insert(t, all[t])
	}
	if err == nil {
		err = b.insert(commits, []row{c.row(b.layout)})
	}
	if err == nil {
		err = t.apply(b)
	}
	if err != nil {
		return nil, err
	}
	b.head = *c
	return rest, nil
}

// commit returns the commit over all, which follows the last one.
func (b *database) commit(all *[len(tables)][]row, now time.Time) (*commit, error) {
	last := b.last()
	c := &commit{salt: newSalt(), n: b.head.n + 1, time: max(micro(now), b.head.time), last: b.head.last, outcomes: int64(len(all[outcomeTable])), exempt: b.head.exempt + int64(len(all[exemptTable])), event: b.head.event + int64(len(all[eventTable]))}
	for t := range c.last {
		c.last[t] += int64(len(all[t]))
	}
	l := c.begin(b.layout, &b.head)
	for t := runTable; int(t) < len(tables); t++ {
		for _, row := range all[t] {
			if last[t]++; row.id != last[t] && t != outcomeTable {
				return nil, fmt.Errorf("row %d of %s comes after row %d: %w", row.id, t, last[t]-1, errApart)
			}
			l.cover(row.octets, row.id)
		}
	}
	l.end()
	return c, nil
}

// row returns c encoded, as a record of the layout has it.
func (c *commit) row(l layout) row {
	octets := appendBlob(appendBlob(c.appendBefore(nil), c.hash[:]), c.marks)
	if l >= treed {
		octets = appendBlob(appendBlob(appendBlob(appendInteger(octets, c.event), c.salt), c.hashes), c.ended)
	}
	return row{c.n, octets}
}

// insert adds rows to t, many with one statement.
func (b *database) insert(t table, rows []row) error {
	for size, n := range perStatement {
		for ; len(rows) >= n; rows = rows[n:] {
			if err := b.insertOnce(t, size, rows[:n]); err != nil {
				return fmt.Errorf("%s: %w", t, err)
			}
		}
	}
	return nil
}

// insertOnce adds perStatement[size] rows.
func (b *database) insertOnce(t table, size int, rows []row) error {
	literals := usual[t]
	n, ok := b.setValues(rows, literals)
	if !ok {
		literals = nil
		if n, ok = b.setValues(rows, nil); !ok {
			return errRow
		}
	}
	statement := &b.insertions[t][min(len(literals), 1)][size]
	if *statement == nil {
		prepared, err := b.Prepare(insertion(b.layout, t, len(rows), literals))
		if err != nil {
			return err
		}
		*statement = prepared.(execStmt)
	}
	_, err := (*statement).ExecContext(b.Context, b.values[:n])
	return err
}

// usual are the values that the columns of most rows have, as literals; empty: they differ. To
// bind a value costs as much as to store it.
var usual = [len(tables)][]string{
	entryTable:   {10: "NULL", 11: "0", 12: "NULL", 13: "NULL", 15: "NULL", 16: "NULL", 17: "NULL", 18: "NULL"},
	outcomeTable: {7: "0", 8: "NULL", 9: "NULL", 10: "NULL", 11: "NULL", 12: "NULL"},
}

// setValues sets b.values to the values of rows, and returns their number: without those that
// are literals. ok is false when a row has another value there, or cannot be read.
func (b *database) setValues(rows []row, literals []string) (n int, ok bool) {
	for _, row := range rows {
		for rest, column := row.octets[1:], 0; len(rest) > 0; column++ {
			v, size := cutValue(rest)
			if size == 0 {
				return 0, false
			}
			if rest = rest[size:]; column < len(literals) && literals[column] != "" {
				if v.tag == tagNull != (literals[column] == "NULL") || v.tag > tagInteger || v.number != 0 {
					return 0, false
				}
				continue
			}
			if n == len(b.values) {
				b.values = append(b.values, driver.NamedValue{Ordinal: n + 1})
			}
			v.set(&b.values[n].Value)
			n++
		}
	}
	return n, true
}

// execStmt is a prepared statement of the driver.
type execStmt interface {
	driver.Stmt
	driver.StmtExecContext
}

// insertion returns the statement that adds n rows with literals to t.
func insertion(l layout, t table, n int, literals []string) string {
	values := slices.Repeat([]string{"?"}, len(l.columns(t)))
	for i := range min(len(values), len(literals)) {
		values[i] = cmp.Or(literals[i], "?")
	}
	row := "(" + strings.Join(values, ",") + ")"
	return "INSERT INTO " + t.String() + " VALUES " + row + strings.Repeat(","+row, n-1)
}

// last returns the last id of each table.
func (c *conn) last() (last [len(tables)]int64) {
	copy(last[:], c.head.last[:])
	last[exemptTable], last[eventTable] = c.head.exempt, c.head.event
	return last
}

// missing appends to found those of the encoded rows that audit.db does not have.
func (c *conn) missing(found, rows []byte) ([]byte, error) {
	last := c.last()
	for len(rows) > 0 {
		t, id, rest, err := c.layout.cutRow(rows)
		if err != nil {
			return nil, err
		}
		has := t != outcomeTable && id <= last[t]
		if t == outcomeTable && id <= last[entryTable] {
			if has, err = c.hasOutcome(id); err != nil {
				return nil, err
			}
		}
		if !has {
			found = append(found, rows[:len(rows)-len(rest)]...)
		}
		rows = rest
	}
	return found, nil
}

// hasOutcome reports whether audit.db has the outcome of an entry, or the entry
// was pruned.
func (c *conn) hasOutcome(entry int64) (bool, error) {
	has, err := c.integer(fmt.Sprintf("SELECT EXISTS (SELECT 1 FROM outcome WHERE entry = %d) OR NOT EXISTS (SELECT 1 FROM entry WHERE seq = %[1]d)", entry))
	return has != 0, err
}

// digest is a SHA-256.
type digest = rules.Digest

// lastTable is the last table whose last id is recorded in commits.
const lastTable = entryTable

// commit is a row of "commits".
type commit struct {
	n, time  int64
	last     lasts  // the last id of each table, by its number
	outcomes int64  // how many
	exempt   int64  // the last id
	event    int64  // likewise
	pruned   []byte // an encoded stub; nil: nothing was removed
	hash     digest // of the record up to it
	salt     []byte // from layout 4 on

	// Not in the hash: derived from the rows, or from the commits before.
	marks  []byte
	hashes []byte // from layout 4 on, as ended
	ended  []byte
	tree   tree // up to the commit; empty: not known
}

// appendTo appends the encoded columns of c that its hash covers in a record of the layout.
func (c *commit) appendTo(b []byte, l layout) []byte {
	if b = c.appendBefore(b); l >= treed {
		b = appendInteger(b, c.event)
	}
	return b
}

// appendBefore appends the encoded columns of c up to pruned.
func (c *commit) appendBefore(b []byte) []byte {
	b = append(b, byte(commits))
	b = appendInteger(appendInteger(b, c.n), c.time)
	for _, id := range c.last[runTable:] {
		b = appendInteger(b, id)
	}
	b = appendInteger(appendInteger(b, c.outcomes), c.exempt)
	if c.pruned == nil {
		return appendNull(b)
	}
	return appendBlob(b, c.pruned)
}

// rootOf returns the hash before the first commit's in a record of the layout. It binds the
// commits to the table "about": pairs are its rows, key and value, ordered by key.
func rootOf(l layout, pairs [][2]string) digest {
	var b []byte
	if l >= treed {
		b = append(b, 0) // a leaf
	}
	b = append(b, "heed record\n"...)
	for _, p := range pairs {
		b = appendText(appendText(b, p[0]), p[1])
	}
	return sha256.Sum256(b)
}

// first returns what the first commit follows in a record of the layout.
func first(l layout, pairs [][2]string) commit {
	c := commit{hash: rootOf(l, pairs)}
	if l >= treed {
		c.tree.add(tlog.Hash(c.hash), 0, nil)
	}
	return c
}

// link is a commit whose hash is being computed.
type link struct {
	*commit
	before *commit
	h      hash.Hash // of a chain; nil of a tree
	leaves *leaves
	entry  int64 // of the last outcome
}

// begin begins the hash of c, which follows before in a record of the layout.
func (c *commit) begin(of layout, before *commit) *link {
	l := &link{commit: c, before: before}
	c.marks, c.ended = []byte{}, []byte{}
	if of >= treed {
		l.leaves = newLeaves(c.salt)
		l.leaves.add(c.appendTo(nil, of))
		return l
	}
	l.h = sha256.New()
	l.h.Write([]byte("heed commit\n"))
	l.h.Write(before.hash[:])
	l.h.Write(c.appendTo(nil, of))
	return l
}

// cover adds an encoded row with its id to the hash. The order is that of the tables' numbers,
// and of the ids in each: of outcomes, those of their entries.
func (l *link) cover(row []byte, id int64) {
	l.marks = binary.LittleEndian.AppendUint16(l.marks, mark(row))
	if l.h != nil {
		l.h.Write(row)
		return
	}
	if table(row[0]) == outcomeTable {
		l.ended, l.entry = appendEnded(l.ended, l.entry, id), id
	}
	l.leaves.add(row)
}

// end sets the hash of the commit.
func (l *link) end() {
	if l.h != nil {
		l.h.Sum(l.hash[:0])
		return
	}
	l.tree = l.before.tree.clone()
	l.hashes = l.tree.add(leafOf(tlog.Hash(l.leaves.rows.root()), l.leaves.rows.size), 0, nil)
	l.hash = l.tree.root()
}

// leafOf returns the leaf of a commit in the tree of the record: of the root of its own tree, and
// of the number of leaves there, which a root does not determine.
func leafOf(root tlog.Hash, leaves int64) tlog.Hash {
	return tlog.RecordHash(binary.BigEndian.AppendUint64(root[:], uint64(leaves)))
}

// newSalt returns the salt of a new commit.
func newSalt() []byte {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	return salt
}

// mark returns a checksum of a row. It proves nothing, but locates a change.
func mark(row []byte) uint16 { return uint16(crc32.Checksum(row, castagnoli)) }

// castagnoli is the table of CRC-32C, which processors compute in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)
