package store

import (
	"bytes"
	"compress/zlib"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// rounds is n, or a tenth of it in the short run of all tests.
func rounds(n int) int {
	if os.Getenv("HEED_TEST_FULL") == "" {
		return max(1, n/10)
	}
	return n
}

// entriesOf is n, or a quarter of it in the short run of all tests.
func entriesOf(n int) int {
	if os.Getenv("HEED_TEST_FULL") == "" {
		return n / 4
	}
	return n
}

// another returns some other value that SQLite keeps as one.
func another(random *rand.Rand, old any) any {
	var now any
	switch v := old.(type) {
	case nil:
		now = []any{int64(random.IntN(5)), "x", []byte{1}, ""}[random.IntN(4)]
	case int64:
		now = []any{v + 1, v - 1, v ^ 1<<random.IntN(40), -v - 1, nil, 0.5, "x"}[random.IntN(7)]
	case string:
		now = []any{v + " ", v + "\x00", "", nil, []byte(v), flipped(random, []byte(v), func(b []byte) any { return string(b) })}[random.IntN(6)]
	case []byte:
		now = []any{append(bytes.Clone(v), 0), []byte{}, nil, string(v), flipped(random, v, func(b []byte) any { return b })}[random.IntN(5)]
	}
	return now
}

// flipped changes one bit.
func flipped(random *rand.Rand, b []byte, as func([]byte) any) any {
	b = bytes.Clone(b)
	if len(b) == 0 {
		b = []byte{0}
	}
	b[random.IntN(len(b))] ^= 1 << random.IntN(8)
	return as(b)
}

// same reports whether SQLite has the same value twice.
func same(a, b any) bool { return fmt.Sprintf("%T %v", a, a) == fmt.Sprintf("%T %v", b, b) }

// some returns the id of a row of t; 0 when it has none.
func some(t testing.TB, db *sql.DB, random *rand.Rand, table table) (id int64) {
	t.Helper()
	var n int64
	must.OK(t, db.QueryRow("SELECT count(*) FROM "+table.String()).Scan(&n))
	if n == 0 {
		return 0
	}
	err := db.QueryRow(fmt.Sprintf("SELECT %s FROM %[2]s ORDER BY 1 LIMIT 1 OFFSET ?", Schema.columns(table)[0], table), random.Int64N(n)).Scan(&id)
	must.OK(t, err)
	return id
}

// change changes one value, expects verify to find it, and puts it right. It
// returns what verify found; nil when SQLite did not take the value.
func (m *made) change(random *rand.Rand, table table, column string, id int64) *Damage {
	m.t.Helper()
	key := Schema.columns(table)[0]
	var old, now any
	var kind string
	read := fmt.Sprintf("SELECT %s FROM %s WHERE %s = ?", column, table, key)
	must.OK(m.t, m.db.QueryRow(fmt.Sprintf("SELECT %s, typeof(%[1]s) FROM %s WHERE %s = ?", column, table, key), id).Scan(&old, &kind))
	if b, _ := old.([]byte); kind == "blob" && len(b) == 0 {
		old = []byte{} // the driver reads it as nil, and writes that as NULL
	}
	write := fmt.Sprintf("UPDATE %s SET %s = ? WHERE %s = ?", table, column, key)
	value, at := another(random, old), id
	if column == key {
		at = []int64{0, -id, id + 1, id + 1e6, 1 << 62}[random.IntN(5)]
		value = at
	}
	if _, err := m.db.Exec(write, value, id); err != nil {
		return nil // NOT NULL, or an id that is there
	}
	if err := m.db.QueryRow(read, at).Scan(&now); err != nil || same(old, now) {
		return nil // an affinity gave back what was there
	}
	proof := prove(m.t, m.path)
	must.True(m.t, !proof.Whole,
		"%s.%s of %d was changed from %#v to %#v, and verify finds nothing", table, column, id, old, now)
	m.exec(write, old, at)
	return proof.Damage
}

// found expects verify to find what was done.
func (m *made) found(what string, args ...any) {
	m.t.Helper()
	if prove(m.t, m.path).Whole {
		m.t.Errorf(what+", and verify finds nothing", args...)
	}
}

// swap has two rows change places, and change them back.
func (m *made) swap(table table, a, b int64) {
	m.t.Helper()
	if a == b {
		return
	}
	const free = 1 << 62
	move := func(from, to int64) {
		m.exec(fmt.Sprintf("UPDATE %s SET %[2]s = ? WHERE %[2]s = ?", table, Schema.columns(table)[0]), to, from)
	}
	for round := range 2 {
		move(a, free)
		move(b, a)
		move(free, b)
		if round == 0 {
			m.found("the rows %d and %d of %s were swapped", a, b, table)
		}
	}
}

// insert adds a copy of a row under another id, and takes it away.
func (m *made) insert(table table, id, as int64) {
	m.t.Helper()
	columns := strings.Join(Schema.columns(table)[1:], ", ")
	key := Schema.columns(table)[0]
	_, err := m.db.Exec(fmt.Sprintf("INSERT INTO %s (%s, %s) SELECT ?, %[3]s FROM %[1]s WHERE %[2]s = ?", table, key, columns), as, id)
	if err != nil {
		return // the id is there
	}
	m.found("the row %d of %s was added again as %d", id, table, as)
	m.exec(fmt.Sprintf("DELETE FROM %s WHERE %s = ?", table, key), as)
}

// remove takes a row away, and puts it back.
func (m *made) remove(table table, id int64) {
	m.t.Helper()
	key := Schema.columns(table)[0]
	m.exec(fmt.Sprintf("CREATE TEMP TABLE gone AS SELECT * FROM %s WHERE %s = ?", table, key), id)
	m.exec(fmt.Sprintf("DELETE FROM %s WHERE %s = ?", table, key), id)
	m.found("the row %d of %s was removed", id, table)
	m.exec(fmt.Sprintf("INSERT INTO %s SELECT * FROM gone", table))
	m.exec("DROP TABLE gone")
}

// TestHeed_AChangedIdentityIsFound: the chain begins with what the file says it is.
func TestHeed_AChangedIdentityIsFound(t *testing.T) {
	t.Parallel()
	for _, change := range []string{
		"UPDATE about SET value = '019ca8f4-1c00-7000-8000-000000000002' WHERE key = 'store'",
		"UPDATE about SET value = '2020-01-01T00:00:00Z' WHERE key = 'created'",
		"UPDATE about SET value = x'00' WHERE key = 'created'",
		"INSERT INTO about VALUES ('a', 'b')",
		"DELETE FROM about WHERE key = 'created'",
	} {
		m := newMade(t).entries(100)
		m.exec(change)
		m.found("%s", change)
	}
}

// TestHeed_AChangedLayoutIsFound: what could make ordinary tools read something else.
func TestHeed_AChangedLayoutIsFound(t *testing.T) {
	t.Parallel()
	for _, change := range []string{
		"CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM entry; END",
		"CREATE INDEX i ON entry (time)",
		"CREATE TABLE more (a)",
		"ALTER TABLE entry ADD COLUMN more",
		"ALTER TABLE exempt RENAME TO old; CREATE VIEW exempt AS SELECT * FROM old",
		"ALTER TABLE exempt RENAME COLUMN count TO number",
		"PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = CAST(sql AS BLOB) WHERE name = 'entry'; PRAGMA writable_schema = OFF",
	} {
		m := newMade(t).entries(100)
		m.exec(change)
		m.found("%s", change)
	}
}

// A record that something else than heed made, with a chain that is right: a value of a type
// that its column never has, a reference to nothing, and a value too large to read.
func TestHeed_ARecordOfAnotherMakerIsNotWhole(t *testing.T) {
	t.Parallel()
	for what, spoil := range map[string]func(*made){
		"a text for a number": func(m *made) { m.add(exemptTable, "soon", 3, nil) },
		"a number for a blob": func(m *made) { m.add(bodyTable, 7, 3, []byte("x")) },
		"a zlib bomb": func(m *made) {
			var packed bytes.Buffer
			z := zlib.NewWriter(&packed)
			_, _ = z.Write(make([]byte, 80<<20))
			z.Close()
			m.add(bodyTable, make([]byte, 32), 80<<20, packed.Bytes())
		},
		"a value of 40 MB": func(m *made) { m.add(configurationTable, "hash", strings.Repeat("x", 40<<20)) },
	} {
		m := newMade(t).entries(20)
		m.exec("PRAGMA foreign_keys = OFF")
		spoil(m)
		m.commit(nil)
		m.found(what)
	}
}

func TestHeed_AFalseViewIsReported(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(100)
	m.exec("DROP VIEW decisions; CREATE VIEW decisions AS SELECT 1")
	m.found("a changed view")
	m = newMade(t).entries(100)
	m.exec("DROP VIEW decisions")
	m.found("a missing view")
}

// TestHeed_AHeadThatWasNotedDownProvesTheEnd: the chain alone cannot tell that
// its end is missing, nor that it was made anew.
func TestHeed_AHeadThatWasNotedDownProvesTheEnd(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(500)
	early := &Seal{Hash: m.before.hash.String(), Commit: m.before.n}
	m.entries(500)
	late := &Seal{Hash: m.before.hash.String()}
	for _, seal := range []*Seal{early, late} {
		proof := prove(t, m.path, seal)
		must.True(t, proof.Whole && proof.Sealed[0].Found, "the head %v is in the chain: %v", seal, proof.Damage)
	}
	m.cut()
	proof := prove(t, m.path)
	must.True(t, !proof.Whole, "the end is missing, but not in counts")
	m.recount()
	proof = prove(t, m.path)
	must.True(t, proof.Whole, "an end that is missing looks like an earlier moment, but %v", proof.Damage)
	proof = prove(t, m.path, late)
	must.True(t, !proof.Whole && !proof.Sealed[0].Found, "the last commit was removed and its head is found")
	proof = prove(t, m.path, early)
	must.True(t, proof.Whole, "all up to the early head is there: %v", proof.Damage)
	other := newMade(t)
	other.random = rand.New(rand.NewPCG(7, 8))
	proof = prove(t, other.entries(1000).path, early)
	must.True(t, !proof.Whole && !proof.Sealed[0].Found, "the chain was made anew and the head of the old one is found")
}

// cut removes the last commit with all it covers.
func (m *made) cut() {
	m.t.Helper()
	var n int64
	must.OK(m.t, m.db.QueryRow("SELECT max(n) FROM commits").Scan(&n))
	m.exec("DELETE FROM outcome WHERE in_commit = ?", n)
	for t := runTable; t <= exemptTable; t++ {
		if t != outcomeTable {
			m.exec(fmt.Sprintf("DELETE FROM %s WHERE %s > (SELECT %[1]s FROM commits WHERE n = ?)", t, Schema.columns(t)[0]), n-1)
		}
	}
	m.exec("DELETE FROM commits WHERE n = ?", n)
}
