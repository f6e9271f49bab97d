package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/audit/store"
	"heed/internal/tools/testkit/must"
)

// TestHeed_ABackupHasAllThatWasDecidedBefore: while many decide.
func TestHeed_ABackupHasAllThatWasDecidedBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, to := filepath.Join(dir, "audit.db"), filepath.Join(dir, "copy.db")
	w := open(t, path, store.Options{Heed: "test"})
	defer w.Close("the test is over")
	ctx, stop := context.WithCancel(context.Background())
	p := policy("site.test")
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				e := asked(p, fmt.Sprintf("/%d", n))
				err := w.Decided(e)
				must.True(t, err == nil, "%v", err)
				w.Ended(e)
				_ = w.Complete()
			}
		})
	}
	last := asked(p, "/before")
	must.OK(t, w.Decided(last))
	proof, err := store.Backup(ctx, path, to, nil)
	stop()
	clients.Wait()
	must.Need(t, err == nil && proof.Whole, "%+v, %v", proof, err)
	must.Equal(t, count(t, view(t, to), "SELECT count(*) FROM entry WHERE id = ?", last.ID[:]), 1, "what was decided before the backup is not in it")
	info, err := os.Stat(to)
	must.True(t, err == nil && info.Mode().Perm() == 0o600, "the backup has the mode %v: %v", info.Mode(), err)
	_, err = store.Backup(context.Background(), path, to, nil)
	must.True(t, err != nil && strings.Contains(err.Error(), "is there already"), "a second backup under the same name: %v", err)
	left, _ := filepath.Glob(filepath.Join(dir, ".heed-backup-*"))
	must.True(t, len(left) == 0, "left behind: %v", left)
}

// entries are the numbers of the entries in all files, with the file of each.
func entries(t *testing.T, records []*store.Record) string {
	t.Helper()
	var all []string
	for _, r := range records {
		reader := must.Get(r.Read(t.Context()))(t)
		n := 0
		must.OK(t, reader.Entries(&store.Filter{}, func(*store.Entry) error { n++; return nil }))
		reader.Close()
		all = append(all, fmt.Sprintf("%s:%d-%d(%d)", filepath.Base(r.Path), r.First, r.Last, n))
		if beside := len(decisions(t, r)); int64(beside) != r.Last-r.First+1 {
			t.Errorf("the view of %s has %d decisions with those of other files", r.Path, beside)
		}
	}
	return strings.Join(all, " ")
}

// decisions returns the rows of the view decisions.
func decisions(t *testing.T, record *store.Record) (all []map[string]any) {
	t.Helper()
	r := must.Get(record.Read(t.Context()))(t)
	defer r.Close()
	rows := must.Get(r.Decisions(&store.Filter{}))(t)
	defer rows.Close()
	for {
		values := must.Get(rows.Next())(t)
		if values == nil {
			return all
		}
		row := map[string]any{}
		for i, column := range rows.Columns {
			row[column] = values[i]
		}
		all = append(all, row)
	}
}

// TestHeed_FilesOfOneRecordAreReadAsOne: a file named twice, a backup beside its
// original, and one that has what was pruned since.
func TestHeed_FilesOfOneRecordAreReadAsOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, old, recent := filepath.Join(dir, "audit.db"), filepath.Join(dir, "old.db"), filepath.Join(dir, "recent.db")
	var late time.Duration
	w := open(t, path, store.Options{Heed: "test", Keep: time.Hour, Now: func() time.Time { return time.Now().Add(late) }})
	p := policy("site.test")
	ask := func(n int) {
		t.Helper()
		for i := range n {
			e := asked(p, fmt.Sprintf("/%d", i))
			must.OK(t, w.Decided(e))
		}
		must.OK(t, w.Complete())
	}
	back := func(to string) {
		t.Helper()
		must.Get(store.Backup(context.Background(), path, to, nil))(t)
	}
	ask(10)
	back(old)
	must.OK(t, w.Close(""))
	late = 2 * time.Hour
	w = open(t, path, store.Options{Heed: "test", Keep: time.Hour, Now: func() time.Time { return time.Now().Add(late) }})
	ask(5)
	waitFor(t, path, func(p *store.Proof) bool { return p.Pruned != nil })
	back(recent)
	ask(3)
	must.OK(t, w.Close(""))
	for _, c := range []struct {
		files []string
		want  string
	}{
		{[]string{path}, "audit.db:11-18(8)"},
		{[]string{path, path}, "audit.db:11-18(8)"},
		{[]string{path, recent}, "audit.db:11-18(8)"},
		{[]string{recent, old, path}, "old.db:1-10(10) audit.db:11-18(8)"},
		{[]string{old, recent}, "old.db:1-10(10) recent.db:11-15(5)"},
	} {
		records := must.Get(store.Records(c.files...))(t)
		must.Equal(t, entries(t, records), c.want, "%v", c.files)
	}
}

// TestHeed_TwoFilesThatSayTheyAreOneAreNotMixed: a copy that somebody else wrote on.
func TestHeed_TwoFilesThatSayTheyAreOneAreNotMixed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, other := filepath.Join(dir, "audit.db"), filepath.Join(dir, "other.db")
	w := open(t, path, store.Options{Heed: "test"})
	must.OK(t, w.Decided(asked(policy("site.test"), "/")))
	must.OK(t, w.Close(""))
	must.Get(store.Backup(context.Background(), path, other, nil))(t)
	for _, file := range []string{path, other} {
		must.OK(t, open(t, file, store.Options{Heed: "test"}).Close(""))
	}
	records, err := store.Records(path, other)
	must.Fail(t, err, "they differ at commit", records)
}

// TestHeed_ARecordIsReadTogetherWithItsTail: after a kill.
func TestHeed_ARecordIsReadTogetherWithItsTail(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := open(t, path, store.Options{Heed: "test"})
	for range 7 {
		must.OK(t, w.Decided(asked(policy("site.test"), "/")))
	}
	killed := store.Killed(t, path)
	w.Close("")
	records := must.Get(store.Records(killed))(t)
	must.Equal(t, entries(t, records), "audit.db:1-7(7)")
}

// TestHeed_AFalseViewDeceivesNoCommandOfHeed: the views in a file are no part of
// what verify proves.
func TestHeed_AFalseViewDeceivesNoCommandOfHeed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := open(t, path, store.Options{Heed: "test"})
	must.OK(t, w.Decided(asked(policy("site.test"), "/private/x")))
	must.OK(t, w.Close(""))
	db := must.Get(sql.Open("sqlite", path))(t)
	defer db.Close()
	must.Get(db.Exec("DROP VIEW decisions; CREATE VIEW decisions AS SELECT seq, 'allow' AS verdict FROM entry"))(t)
	records := must.Get(store.Records(path))(t)
	if rows := decisions(t, records[0]); len(rows) != 1 || rows[0]["verdict"] != "refuse" || rows[0]["rule"] != "Disallow: /private" {
		t.Error("a view in the file was believed")
	}
}
