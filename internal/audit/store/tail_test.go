package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store/wal"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// begun returns a record that was left by a heed that was killed: so many
// decisions are in its tail, each in a block of its own, and not in audit.db.
func begun(t *testing.T, decisions int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.db")
	w := mustOpen(t, path, Options{})
	w.completing.Lock() // nothing comes into audit.db any more
	defer w.completing.Unlock()
	for i := range decisions {
		must.OK(t, w.Decided(request(i)))
	}
	return killed(t, path)
}

// killed returns a copy of the record at path, as a kill would leave it now.
func killed(t *testing.T, path string) (copied string) {
	t.Helper()
	copied = filepath.Join(t.TempDir(), "audit.db")
	for _, suffix := range []string{"", "-wal", ".tail", ".tail2"} {
		write(t, copied+suffix, mustRead(t, path+suffix))
	}
	return copied
}

// Killed is killed for the tests of package store_test.
var Killed = killed

func mustOpen(t *testing.T, path string, o Options) *Writer {
	t.Helper()
	w := must.Get(Open(path, o))(t)
	t.Cleanup(func() { w.Close("") })
	return w
}

func request(i int) *audit.Entry {
	return &audit.Entry{
		ID: audit.NewID(), Time: time.Now(), Client: "192.0.2.7:4711", Mode: "enforce", UserAgent: "TestBot/1.0",
		Method: "GET", Scheme: "http", Host: "site.test", Target: fmt.Sprint("/", i), Judged: audit.ByPath,
		Decision: rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonNoRule},
	}
}

// entries counts what the record at path holds, without its tail.
func entries(t *testing.T, path string) (n int) {
	t.Helper()
	c := must.Get(view(path))(t)
	defer c.Close()
	all := must.Get(c.integer("SELECT count(*) FROM entry"))(t)
	return int(all)
}

func TestHeed_ATailThatWasCutAnywhereHasItsWholeBlocks(t *testing.T) {
	t.Parallel()
	path := begun(t, 6)
	whole := must.Get(os.ReadFile(path + ".tail"))(t)
	db, log := mustRead(t, path), mustRead(t, path+"-wal")
	var ends []int // of the blocks
	for at := int(wal.Start); at < len(whole); {
		_, length := wal.Cut(whole[at:])
		must.Need(t, length != 0, "no block at %d of %d", at, len(whole))
		at += length
		ends = append(ends, at)
	}
	ends = ends[1:]
	must.Need(t, len(ends) == 6, "%d blocks", len(ends)) // the first has the row of the run, which audit.db has, too
	for cut := 0; cut <= len(whole); cut += 23 {
		dir := filepath.Join(t.TempDir(), "audit.db")
		write(t, dir, db)
		write(t, dir+"-wal", log)
		write(t, dir+".tail", whole[:cut])
		must.OK(t, Settle(dir), "cut at %d", cut)
		want := 0
		for _, end := range ends {
			if end <= cut {
				want++
			}
		}
		must.Equal(t, entries(t, dir), want, "cut at %d: entries", cut)
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(path))(t)
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	must.OK(t, os.WriteFile(path, data, 0o600))
}

func TestHeed_ATailIsReadOnceHoweverOften(t *testing.T) {
	t.Parallel()
	path := begun(t, 5)
	tail := mustRead(t, path+".tail")
	for range 3 { // as when heed is killed before it could empty the tail
		write(t, path+".tail", tail)
		must.OK(t, Settle(path))
		must.Is(t, entries(t, path), 5, "entries")
	}
}

func TestHeed_ARecordThatCannotBeTrustedStopsTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string)
		want  string
	}{
		"the tail is something else": {func(t *testing.T, path string) {
			write(t, path+".tail", []byte(strings.Repeat("notes\n", 20)))
		}, "is no tail of a record: move it away"},
		"audit.db is something else": {func(t *testing.T, path string) {
			write(t, path, []byte("my notes\n"))
		}, "it is no record of heed's\nMove it away, or name another file in [audit] file"},
		"audit.db is another program's": {func(t *testing.T, path string) {
			os.Remove(path)
			os.Remove(path + "-wal")
			exec(t, path, "CREATE TABLE notes (text)")
		}, "it is no record of heed's\nMove it away"},
		"audit.db is a newer heed's": {func(t *testing.T, path string) {
			exec(t, path, "PRAGMA user_version = 99")
		}, fmt.Sprintf("it was made by a newer heed (layout 99, this one knows %d)\nUse that heed", Schema)},
	} {
		t.Run(name, func(t *testing.T) {
			path := begun(t, 3)
			c.spoil(t, path)
			before := mustRead(t, path+".tail")
			_, err := Open(path, Options{})
			must.True(t, err != nil && strings.Contains(err.Error(), c.want) && strings.Contains(err.Error(), path),
				"got  %v\nwant %s", err, c.want)
			must.Equal(t, string(mustRead(t, path+".tail")), string(before), "the tail was changed")
		})
	}
}

func exec(t *testing.T, path string, statements ...string) {
	t.Helper()
	db := must.Get(connect(path, "rwc"))(t)
	defer db.Close()
	for _, s := range statements {
		must.Get(db.Exec(s))(t)
	}
}

// The two files of the tail take turns many times; heed is killed in between.
func TestHeed_AKillLosesNothingWhereverTheTailIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := mustOpen(t, path, Options{})
	w.wal.SwitchAt = 1500
	random := rand.New(rand.NewPCG(1, 2))
	turns, was := 0, 0
	for i := range max(200, entriesOf(400)) {
		must.OK(t, w.Decided(request(i)))
		if random.IntN(9) == 0 {
			must.OK(t, w.Complete())
		}
		w.completing.Lock()
		w.io.Lock()
		if w.wal.Active != was {
			turns, was = turns+1, w.wal.Active
		}
		if random.IntN(16) == 0 {
			left := killed(t, path)
			must.OK(t, Settle(left))
			n, _ := intact(t, left)
			must.Need(t, n == i+1, "%d of %d entries outlive a kill", n, i+1)
		}
		w.io.Unlock()
		w.completing.Unlock()
	}
	must.True(t, turns >= 10, "the files took turns %d times only", turns)
}
