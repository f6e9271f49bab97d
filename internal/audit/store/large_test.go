//go:build !race

package store

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

// What is here takes many rows and one goroutine: under the race detector, which
// makes SQLite fifteen times as slow, it would show nothing more. all.sh runs it
// without.

// TestHeed_AnyChangedValueIsFound changes every column of every table in some
// of its rows, one after the other, and puts it right again.
func TestHeed_AnyChangedValueIsFound(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(max(3_000, rounds(10_000)))
	random := rand.New(rand.NewPCG(3, 4))
	tried, exact := 0, 0
	for table := range table(len(tables)) {
		for place, column := range Schema.columns(table) {
			for range rounds(20) {
				id := some(t, m.db, random, table)
				d := m.change(random, table, column, id)
				if d == nil {
					continue
				}
				if tried++; place > 0 && table != commits && d.Table == table.String() && d.ID == id {
					exact++
				}
			}
		}
	}
	t.Logf("%d changes, %d of them named by table and id", tried, exact)
	must.True(t, exact >= tried/2, "of %d changes only %d were named by table and id", tried, exact)
	proof := prove(t, m.path)
	must.True(t, proof.Whole, "after all was put right: %v", proof.Damage)
}

// TestHeed_AnySwappedInsertedOrDeletedRowIsFound does each to some rows of
// every table, one after the other, and puts them right again.
func TestHeed_AnySwappedInsertedOrDeletedRowIsFound(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(max(3_000, rounds(10_000)))
	random := rand.New(rand.NewPCG(5, 6))
	for table := range table(len(tables)) {
		for range rounds(40) {
			m.swap(table, some(t, m.db, random, table), some(t, m.db, random, table))
			m.insert(table, some(t, m.db, random, table), random.Int64N(1<<40)-1<<39)
			m.remove(table, some(t, m.db, random, table))
		}
	}
	proof := prove(t, m.path)
	must.True(t, proof.Whole, "after all was put right: %v", proof.Damage)
}

// TestHeed_AnyChangeOfAPrunedRecordIsFound: also in what stays of what went.
func TestHeed_AnyChangeOfAPrunedRecordIsFound(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(3000)
	m.prune(m.pruner(limits{keep: 100 * time.Second}))
	for table := range table(len(tables)) {
		for _, column := range Schema.columns(table) {
			for range rounds(20) {
				m.change(m.random, table, column, some(t, m.db, m.random, table))
			}
		}
		for range rounds(20) {
			m.remove(table, some(t, m.db, m.random, table))
			m.insert(table, some(t, m.db, m.random, table), m.random.Int64N(3000))
		}
	}
	m.exec("UPDATE about SET value = 'x' WHERE key = 'store'")
	m.found("the id of a pruned record was changed")
}

// TestHeed_TheRecordStaysUnderItsSize writes far more than fits.
func TestHeed_TheRecordStaysUnderItsSize(t *testing.T) {
	t.Parallel()
	const limit, some = 6 << 20, 2500
	times := 9 // half as much again as fits
	if rounds(10) == 10 {
		times = 16
	}
	m := newMade(t)
	p := m.pruner(limits{size: limit})
	p.tail = func() int64 { return limit / 20 } // and as much again is kept free for it, twice
	largest := int64(0)
	for range times {
		m.entries(some)
		must.OK(t, p.db.findHead())
		m.prune(p)
		m.before = p.db.head
		s := must.Get(p.size())(t)
		largest = max(largest, s.file)
		must.True(t, s.used+limit/10 <= limit/10*9, "pruned, %d octets are in use", s.used)
	}
	must.True(t, largest <= limit, "the file had %d octets, more than %d", largest, limit)
	left := m.count("SELECT count(*) FROM entry")
	must.True(t, left != 0 && left != int64(times*some), "%d of %d entries are left", left, times*some)
}

// TestHeed_ASmallerSizeGivesRoomBack: when the bound is set lower than the record is.
func TestHeed_ASmallerSizeGivesRoomBack(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(10_000)
	m.exec("PRAGMA wal_checkpoint(TRUNCATE)")
	if info, err := os.Stat(m.path); err != nil || info.Size() < 1<<20 {
		t.Fatalf("the record has %d octets, which tests nothing (%v)", info.Size(), err)
	}
	m.prune(m.pruner(limits{size: 1 << 19}))
	m.exec("PRAGMA wal_checkpoint(TRUNCATE)")
	info, err := os.Stat(m.path)
	if err != nil || info.Size() > 1<<19 {
		t.Errorf("the file has %d octets (%v), %d pages are free, and %d entries left", info.Size(), err, m.count("PRAGMA freelist_count"), m.count("SELECT count(*) FROM entry"))
	}
}
