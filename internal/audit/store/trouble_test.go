package store

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"heed/internal/audit"
	"heed/internal/tools/testkit/must"
)

// stuck has nothing be written to w's tail until the function it returns is
// called: as a full disk does, but that this one is a file opened for reading.
func stuck(t *testing.T, w *Writer) (free func()) {
	t.Helper()
	deaf := must.Get(os.Open(w.path + ".tail"))(t)
	w.io.Lock()
	defer w.io.Unlock()
	real := w.wal.Files
	w.wal.Files[w.wal.Active] = deaf
	return func() {
		w.io.Lock()
		defer w.io.Unlock()
		w.wal.Files = real
		deaf.Close()
	}
}

// intact fails the test when the record at path is not whole, and returns the
// numbers of its entries and outcomes.
func intact(t *testing.T, path string) (entries, outcomes int) {
	t.Helper()
	c, err := view(path)
	must.OK(t, err)
	defer c.Close()
	err = c.each("SELECT (SELECT count(*) FROM entry), (SELECT count(*) FROM outcome)", func(f *fields) {
		entries, outcomes = int(f.integer()), int(f.integer())
	})
	must.OK(t, err)
	report, err := Verify(t.Context(), path, nil, nil)
	must.True(t, err == nil && report.Whole, "the record is not whole: %+v, %v", report, err)
	return entries, outcomes
}

func TestHeed_WhatCannotBeRecordedIsRefusedUntilItCan(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	var log bytes.Buffer
	w := mustOpen(t, path, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	open := request(1)
	must.OK(t, w.Decided(open))
	free := stuck(t, w)
	for i := range 5 {
		if err := w.Decided(request(i)); err == nil || !strings.HasPrefix(err.Error(), "the record "+path+" cannot be written: ") {
			t.Fatalf("decision %d: %v", i, err)
		}
	}
	must.True(t, w.Err() != nil, "the record says that it is well")
	w.Ended(open) // its outcome waits
	free()
	later := request(2)
	must.OK(t, w.Decided(later))
	must.OK(t, w.Err(), "the record goes on saying that it is ill")
	must.OK(t, w.Close(""))
	if entries, outcomes := intact(t, path); entries != 2 || outcomes != 2 {
		t.Errorf("%d entries and %d outcomes, want those of the two that were accepted", entries, outcomes)
	}
	gaps := gapsOf(t, path)
	if len(gaps) != 1 || gaps[0].Refused != 5 || !gaps[0].From.Before(gaps[0].To) || !strings.Contains(gaps[0].Why, "audit.db.tail") {
		t.Errorf("the record has the gaps %v, want one of 5 refusals", gaps)
	}
	n := strings.Count(log.String(), "decisions cannot be recorded; requests are refused until they can")
	must.True(t, n == 1, "the log has it %d times:\n%s", n, &log)
	must.Contain(t, log.String(), "decisions are recorded again", "the log does not tell of the end:\n%s", &log)
}

// gapsOf returns the gaps of the record at path, which Verify and readers agree on.
func gapsOf(t *testing.T, path string) (gaps []audit.Gap) {
	t.Helper()
	record := must.Get(OpenRecord(path))(t)
	r := must.Get(record.Read(t.Context()))(t)
	defer r.Close()
	err := r.Counted(&Filter{}, func(n *Counted) { gaps = append(gaps, *n.Gap) })
	proof, err2 := Verify(t.Context(), path, nil, nil)
	must.True(t, err == nil && err2 == nil && proof.Whole && slices.Equal(proof.Gaps, gaps),
		"%v, %v: %+v, and the gaps %v", err, err2, proof, gaps)
	return gaps
}

// A gap ends when there is room for decisions again: the file may have room for the
// row of the gap long before.
func TestWriter_AGapIsOneEntry(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := mustOpen(t, path, Options{})
	free := stuck(t, w)
	for i := range 3 {
		must.Need(t, w.Decided(request(i)) != nil, "recorded all the same")
		must.Need(t, w.Complete() != nil, "completed all the same")
	}
	free()
	for range 2 {
		must.OK(t, errors.Join(w.Complete(), w.Err()))
	}
	if gaps := gapsOf(t, path); len(gaps) != 1 || gaps[0].Refused != 3 {
		t.Errorf("before the next decision the record has the gaps %v, want one of 3 refusals", gaps)
	}
	must.OK(t, w.Decided(request(4)))
	must.OK(t, w.Close(""))
	gaps := gapsOf(t, path)
	must.True(t, len(gaps) == 1, "the record has the gaps %v", gaps)
}

// A heed that stops in a gap leaves it in the tail, for the next one.
func TestWriter_AGapOutlivesARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := mustOpen(t, path, Options{})
	free := stuck(t, w)
	for i := range 4 {
		_ = w.Decided(request(i))
	}
	free()
	must.OK(t, w.Close(""))
	gaps := gapsOf(t, path)
	must.True(t, len(gaps) == 1 && gaps[0].Refused == 4, "the record has the gaps %v, want one of 4 refusals", gaps)

	w = mustOpen(t, path, Options{})
	stuck(t, w)
	_ = w.Decided(request(1))
	must.Fail(t, w.Close(""), "and 1 request was refused", "what the record could not count is lost")

	w = mustOpen(t, filepath.Join(t.TempDir(), "audit.db"), Options{Continue: true})
	stuck(t, w)
	for i := range 2 {
		must.OK(t, w.Decided(request(i)))
	}
	must.Fail(t, w.Close(""), "2 requests that went on unrecorded", "what went on unrecorded is lost")
}

func TestHeed_UnrecordedDecisionsAreCountedWhereTheyGoOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := mustOpen(t, path, Options{Continue: true})
	free := stuck(t, w)
	for i := range 7 {
		e := request(i)
		must.OK(t, w.Decided(e))
		w.Ended(e)
	}
	free()
	must.OK(t, w.Close(""))
	entries, _ := intact(t, path)
	must.True(t, entries == 0 && w.Lost() == 7, "%d entries, %d lost; want none and 7", entries, w.Lost())
	c, err := view(path)
	must.OK(t, err)
	defer c.Close()
	var n int64
	var why string
	err = c.row("SELECT sum(count), max(why) FROM exempt", &n, &why)
	must.True(t, err == nil && n == 7 && strings.Contains(why, "audit.db.tail"), "the record says %d: %q (%v)", n, why, err)
}

func TestHeed_ADecisionIsNotRecordedInAFileThatIsGone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"audit.db", "audit.db.tail", "audit.db.tail2"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := mustOpen(t, filepath.Join(dir, "audit.db"), Options{})
			must.OK(t, w.Decided(request(1)))
			must.OK(t, os.Rename(filepath.Join(dir, name), filepath.Join(dir, "elsewhere")))
			w.io.Lock()
			w.checked = w.checked.Add(-presentEvery)
			w.io.Unlock()
			must.Fail(t, w.Decided(request(2)), "no longer where it was: bring it back, or restart heed")
			must.OK(t, os.Rename(filepath.Join(dir, "elsewhere"), filepath.Join(dir, name)))
			must.OK(t, w.Decided(request(3)))
			must.OK(t, w.Close(""))
			entries, outcomes := intact(t, filepath.Join(dir, "audit.db"))
			must.True(t, entries == 2 && outcomes == 2, "%d entries and %d outcomes, want 2", entries, outcomes)
		})
	}
}

func TestHeed_OnRequestADecisionWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	w := mustOpen(t, filepath.Join(t.TempDir(), "audit.db"), Options{Disk: true})
	synced := 0
	w.wal.Sync = func(f *os.File) error { synced++; return f.Sync() }
	for i := range 3 {
		must.OK(t, w.Decided(request(i)))
		must.True(t, synced == i+1, "after decision %d the disk was waited for %d times", i+1, synced)
	}
	w.wal.Sync = func(*os.File) error { return os.ErrDeadlineExceeded }
	err := w.Decided(request(4))
	must.True(t, err != nil, "recorded although the disk did not take it")
	w.wal.Sync = (*os.File).Sync
}

func TestHeed_FailedWritesNeverSpoilTheRecord(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := mustOpen(t, path, Options{})
	var all sync.WaitGroup
	var mu sync.Mutex
	accepted := 0
	for range 8 {
		all.Go(func() {
			for i := range 300 {
				e := request(i)
				e.Host, e.UserAgent = "site"+string(rune('a'+i%20))+".test", "Bot/"+string(rune('a'+i%7))
				if w.Decided(e) != nil {
					continue
				}
				mu.Lock()
				accepted++
				mu.Unlock()
				e.Outcome = audit.Outcome{Status: 200}
				w.Ended(e)
			}
		})
	}
	for range 30 {
		free := stuck(t, w)
		_ = w.Complete() // some fail before
		free()
		_ = w.Complete()
	}
	all.Wait()
	must.OK(t, w.Close(""))
	entries, outcomes := intact(t, path)
	must.True(t, entries == accepted && outcomes == accepted && accepted != 0,
		"%d entries and %d outcomes of %d accepted decisions", entries, outcomes, accepted)
}
