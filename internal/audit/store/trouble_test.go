package store

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"heed/internal/audit"
)

// stuck has nothing be written to w's tail until the function it returns is
// called: as a full disk does, but that this one is a file opened for reading.
func stuck(t *testing.T, w *Writer) (free func()) {
	t.Helper()
	deaf, err := os.Open(w.path + ".tail")
	if err != nil {
		t.Fatal(err)
	}
	w.io.Lock()
	defer w.io.Unlock()
	real := w.tail.files
	w.tail.files[w.tail.turn] = deaf
	return func() {
		w.io.Lock()
		defer w.io.Unlock()
		w.tail.files = real
		deaf.Close()
	}
}

// intact fails the test when the record at path is not whole, and returns the
// numbers of its entries and outcomes.
func intact(t *testing.T, path string) (entries, outcomes int) {
	t.Helper()
	db, err := View(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT (SELECT count(*) FROM entry), (SELECT count(*) FROM outcome)").Scan(&entries, &outcomes); err != nil {
		t.Fatal(err)
	}
	report, err := Verify(t.Context(), path, nil, nil)
	if err != nil || !report.Whole {
		t.Errorf("the record is not whole: %+v, %v", report, err)
	}
	return entries, outcomes
}

func TestHeed_WhatCannotBeRecordedIsRefusedUntilItCan(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	var log bytes.Buffer
	w := mustOpen(t, path, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	open := request(1)
	if err := w.Decided(open); err != nil {
		t.Fatal(err)
	}
	free := stuck(t, w)
	for i := range 5 {
		if err := w.Decided(request(i)); err == nil || !strings.HasPrefix(err.Error(), "the record "+path+" cannot be written: ") {
			t.Fatalf("decision %d: %v", i, err)
		}
	}
	if w.Err() == nil {
		t.Error("the record says that it is well")
	}
	w.Ended(open) // its outcome waits
	free()
	later := request(2)
	if err := w.Decided(later); err != nil {
		t.Fatal(err)
	}
	if w.Err() != nil {
		t.Error("the record goes on saying that it is ill:", w.Err())
	}
	if err := w.Close(""); err != nil {
		t.Fatal(err)
	}
	if entries, outcomes := intact(t, path); entries != 2 || outcomes != 2 {
		t.Errorf("%d entries and %d outcomes, want those of the two that were accepted", entries, outcomes)
	}
	if n := strings.Count(log.String(), "decisions cannot be recorded; requests are refused until they can"); n != 1 {
		t.Errorf("the log tells %d times of it:\n%s", n, &log)
	}
	if !strings.Contains(log.String(), "decisions are recorded again") {
		t.Errorf("the log does not tell of the end:\n%s", &log)
	}
}

func TestHeed_ARecordThatNobodyAsksForIsWellAgainByItself(t *testing.T) {
	w := mustOpen(t, filepath.Join(t.TempDir(), "audit.db"), Options{})
	free := stuck(t, w)
	if w.Decided(request(1)) == nil {
		t.Fatal("recorded all the same")
	}
	free()
	if err := w.Complete(); err != nil || w.Err() != nil {
		t.Errorf("still ill: %v, %v", err, w.Err())
	}
}

func TestHeed_UnrecordedDecisionsAreCountedWhereTheyGoOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	w := mustOpen(t, path, Options{Continue: true})
	free := stuck(t, w)
	for i := range 7 {
		e := request(i)
		if err := w.Decided(e); err != nil {
			t.Fatal(err)
		}
		w.Ended(e)
	}
	free()
	if err := w.Close(""); err != nil {
		t.Fatal(err)
	}
	if entries, _ := intact(t, path); entries != 0 || w.Lost() != 7 {
		t.Errorf("%d entries, %d lost; want none and 7", entries, w.Lost())
	}
	db, err := View(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	var why string
	if err := db.QueryRow("SELECT sum(count), max(why) FROM exempt").Scan(&n, &why); err != nil || n != 7 || !strings.Contains(why, "audit.db.tail") {
		t.Errorf("the record says %d: %q (%v)", n, why, err)
	}
}

func TestHeed_ADecisionIsNotRecordedInAFileThatIsGone(t *testing.T) {
	for _, name := range []string{"audit.db", "audit.db.tail", "audit.db.tail2"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := mustOpen(t, filepath.Join(dir, "audit.db"), Options{})
			if err := w.Decided(request(1)); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, "elsewhere")); err != nil {
				t.Fatal(err)
			}
			w.io.Lock()
			w.looked = w.looked.Add(-presentEvery)
			w.io.Unlock()
			if err := w.Decided(request(2)); err == nil || !strings.Contains(err.Error(), "no longer where it was: bring it back, or restart heed") {
				t.Errorf("got %v", err)
			}
			if err := os.Rename(filepath.Join(dir, "elsewhere"), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if err := w.Decided(request(3)); err != nil {
				t.Error(err)
			}
			if err := w.Close(""); err != nil {
				t.Fatal(err)
			}
			if entries, outcomes := intact(t, filepath.Join(dir, "audit.db")); entries != 2 || outcomes != 2 {
				t.Errorf("%d entries and %d outcomes, want 2", entries, outcomes)
			}
		})
	}
}

func TestHeed_OnRequestADecisionWaitsForTheDisk(t *testing.T) {
	w := mustOpen(t, filepath.Join(t.TempDir(), "audit.db"), Options{Disk: true})
	synced := 0
	w.tail.sync = func(f *os.File) error { synced++; return fsync(f) }
	for i := range 3 {
		if err := w.Decided(request(i)); err != nil {
			t.Fatal(err)
		}
		if synced != i+1 {
			t.Errorf("after decision %d the disk was waited for %d times", i+1, synced)
		}
	}
	w.tail.sync = func(*os.File) error { return os.ErrDeadlineExceeded }
	if err := w.Decided(request(4)); err == nil {
		t.Error("recorded although the disk did not take it")
	}
	w.tail.sync = fsync
}

func TestHeed_FailedWritesNeverSpoilTheRecord(t *testing.T) {
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
	if err := w.Close(""); err != nil {
		t.Fatal(err)
	}
	entries, outcomes := intact(t, path)
	if entries != accepted || outcomes != accepted || accepted == 0 {
		t.Errorf("%d entries and %d outcomes of %d accepted decisions", entries, outcomes, accepted)
	}
}
