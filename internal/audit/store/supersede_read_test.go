package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/audit/store/wal"
	"heed/internal/tools/testkit/must"
)

// While a program reads the record of an earlier layout, part of it may be in SQLite's
// write-ahead log, which a move would leave behind.
func TestARecordIsNotSupersededWhileItIsRead(t *testing.T) {
	t.Parallel()
	path := killedWithLayout2(t)
	before := entries(t, path)
	writing, err := connect(path, "rwc") // from now on its journal is a write-ahead log
	must.OK(t, err)
	must.OK(t, writing.Close())
	c := must.Get(view(path))(t)
	err = c.each("SELECT seq FROM entry LIMIT 1", func(*fields) {
		if w, err := Open(path, Options{}); err == nil {
			t.Error("it was superseded")
			w.Close("")
		} else if !strings.Contains(err.Error(), "another program reads it") {
			t.Error(err)
		}
	})
	must.OK(t, err)
	c.Close()
	mustOpen(t, path, Options{})
	must.Equal(t, entries(t, strings.TrimSuffix(path, ".db")+".layout2.db"), before+1, "decisions moved aside")
}

// A heed that is killed between the two renames leaves no record, but the next one.
func TestAMoveThatWasInterruptedIsContinued(t *testing.T) {
	t.Parallel()
	path := killedWithLayout2(t)
	w := mustOpen(t, path, Options{})
	follows := w.follows
	must.OK(t, w.Close(""))
	must.OK(t, os.Rename(path, nextOf(path)))
	must.OK(t, mustOpen(t, path, Options{}).Close(""))
	v, err := Verify(t.Context(), path, nil, nil)
	must.True(t, err == nil && v.Whole && v.Follows == follows && follows != "", "%+v, %v; want it to follow %q", v, err, follows)
}

// A new record that a killed heed had not completed is made again.
func TestAnIncompleteNextRecordIsMadeAgain(t *testing.T) {
	t.Parallel()
	path := killedWithLayout2(t)
	write(t, nextOf(path), []byte("SQLite format 3\x00cut off"))
	write(t, nextOf(path)+"-wal", []byte("cut off"))
	w := mustOpen(t, path, Options{})
	must.True(t, w.follows != "", "it follows no record")
	left, _ := filepath.Glob(nextOf(path) + "*")
	must.True(t, len(left) == 0, "%q were left", left)
}

// The tail stays locked while the record is moved, so that another heed cannot move the
// new one.
func TestTheTailIsTheSameAfterAMove(t *testing.T) {
	t.Parallel()
	path := killedWithLayout2(t)
	name := wal.Paths(path)[0]
	before := must.Get(os.Stat(name))(t)
	mustOpen(t, path, Options{})
	after, err := os.Stat(name)
	must.True(t, err == nil && os.SameFile(before, after), "the tail was made again: %v", err)
}
