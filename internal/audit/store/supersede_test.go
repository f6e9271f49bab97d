package store

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store/wal"
	"heed/internal/tools/testkit/must"
)

// killedWithLayout2 returns a record of layout 2 as a heed of then left it when it was
// killed: its last decision is in the tail only.
func killedWithLayout2(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.db")
	write(t, path, mustRead(t, filepath.Join("testdata", "layout2.db")))
	c := must.Get(view(path))(t)
	b := &database{conn: c}
	must.OK(t, b.findHead())
	at := must.Get(c.openWhere(entryTable, "seq = (SELECT max(seq) FROM entry)"))(t)
	values := []any{}
	for _, v := range at.values {
		values = append(values, v)
	}
	id := audit.NewID()
	values[0], values[1] = at.id+1, id[:]
	at.Close()
	c.Close()
	row := must.Get(appendRow(nil, entryTable, values))(t)
	tail := must.Get(wal.Open(path, time.Second))(t)
	defer tail.Close()
	must.Two(tail.Read(b.store))(t)
	must.OK(t, tail.Write(row))
	return path
}

func TestASupersededRecordHasItsWholeTail(t *testing.T) {
	t.Parallel()
	path := killedWithLayout2(t)
	before := entries(t, path)
	w := mustOpen(t, path, Options{})
	aside := strings.TrimSuffix(path, ".db") + ".layout2.db"
	must.Equal(t, entries(t, aside), before+1, "decisions moved aside")
	for _, name := range wal.Paths(aside) {
		_, err := os.Lstat(name)
		must.True(t, err != nil, "%s was left", name)
	}
	must.OK(t, w.Close(""))
	old, err := Verify(t.Context(), aside, nil, nil)
	must.Need(t, err == nil && old.Whole, "%+v, %v", old, err)
	now, err := Verify(t.Context(), path, nil, nil)
	if err != nil || !now.Whole || now.Follows != "record "+old.Store+" commit "+strconv.FormatInt(old.Head.Commit, 10)+" hash "+old.Head.Hash {
		t.Errorf("%+v, %v", now, err)
	}
}

// A reader that completes the record of another heed leaves its layout.
func TestReadingARecordOfAnEarlierLayoutCompletesIt(t *testing.T) {
	t.Parallel()
	path := killedWithLayout2(t)
	before := entries(t, path)
	all, err := Records(path)
	must.Need(t, err == nil && len(all) == 1 && all[0].Last == int64(before)+1, "%+v, %v", all, err)
	r := must.Get(all[0].Read(t.Context()))(t)
	defer r.Close()
	var last *Entry
	err = r.Entries(&Filter{}, func(e *Entry) error { last = e; return nil })
	must.True(t, err == nil && last.Seq == int64(before)+1, "%+v, %v", last, err)
	c, err := r.Client(last.Client)
	must.True(t, err == nil && c.SignedKey == "", "%+v, %v", c, err)
}

func TestSupersedingNeverReplacesAFile(t *testing.T) {
	t.Parallel()
	path := killedWithLayout2(t)
	other := strings.TrimSuffix(path, ".db") + ".layout2.db"
	write(t, other, []byte("kept"))
	mustOpen(t, path, Options{})
	must.Equal(t, string(mustRead(t, other)), "kept", "a file was replaced")
	n := entries(t, strings.TrimSuffix(path, ".db")+".layout2-2.db")
	must.True(t, n != 0, "the record was not moved")
}
