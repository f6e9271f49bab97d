package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

// miscountOf returns what Record.Miscount finds in the record at path.
func miscountOf(t testing.TB, path string) string {
	t.Helper()
	r := must.Get(OpenRecord(path))(t)
	return must.Get(r.Miscount(context.Background()))(t)
}

// A row that was removed from any table is seen without reading the hashes, and so is one
// that was added at the end; a record from which heed itself removed old rows has no miscount.
func TestMiscount_MissingAndAddedRowsAreSeen(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		m := newMade(t).entries(400)
		if old {
			m.prune(m.pruner(limits{keep: 10 * time.Second}))
		}
		miscount := miscountOf(t, m.path)
		must.Need(t, miscount == "", "pruned %v: an intact record has rows that its commits do not have: %s", old, miscount)
		for table := commits; table <= exemptTable; table++ {
			if m.count("SELECT count(*) FROM "+table.String()) == 0 {
				continue
			}
			key := Schema.columns(table)[0]
			m.exec("ATTACH ':memory:' AS aside")
			m.exec(fmt.Sprintf("CREATE TABLE aside.gone AS SELECT * FROM %s ORDER BY %s LIMIT 1 OFFSET 0", table, key))
			m.exec(fmt.Sprintf("DELETE FROM %s WHERE %s = (SELECT %[2]s FROM aside.gone)", table, key))
			must.Contain(t, miscountOf(t, m.path), "1 missing in the table "+table.String(), "pruned %v: a row of %s was removed", old, table)
			m.exec(fmt.Sprintf("INSERT INTO %s SELECT * FROM aside.gone", table))
			m.exec("DETACH aside")
		}
		m.exec("INSERT INTO exempt SELECT coalesce(max(id), 0) + 1, 0, 1, 'x' FROM exempt")
		must.Equal(t, miscountOf(t, m.path), "1 added in the table exempt", "pruned %v: a row was added", old)
	}
}
