package store

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/audit/store/wal"
	"heed/internal/tools/testkit/must"
)

// overwrite puts octets into the file at path.
func overwrite(t *testing.T, path string, at int64, octets []byte) {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_WRONLY, 0))(t)
	defer f.Close()
	must.Get(f.WriteAt(octets, at))(t)
}

// laterKilled returns a copy of the record as the end of its process leaves it.
func laterKilled(t *testing.T, path string) string {
	t.Helper()
	for _, suffix := range []string{"", "-wal", ".tail", ".tail2"} {
		if _, err := os.Lstat(path + suffix); errors.Is(err, fs.ErrNotExist) {
			write(t, path+suffix, nil)
		}
	}
	return killed(t, path)
}

// A file of the record that another program changes under heed is found before the next
// decision is accepted, or before the tail drops what it had. Nothing that was accepted is
// lost while the tail has it; the next start writes it again, with the gap.
func TestHeed_FilesThatChangeUnderItLoseNothing(t *testing.T) {
	t.Parallel()
	empty := func(suffix string) func(*testing.T, string) {
		return func(t *testing.T, path string) { write(t, path+suffix, nil) }
	}
	remove := func(suffix string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			must.OK(t, os.Remove(path+suffix))
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, path string)
		lost   string // by what is left, of a record with ten decisions of an earlier run
	}{
		"-wal emptied":     {empty("-wal"), ""},
		"-wal removed":     {remove("-wal"), ""},
		"-wal overwritten": {func(t *testing.T, path string) { overwrite(t, path+"-wal", 8, make([]byte, 200)) }, ""},
		"-wal cut": {func(t *testing.T, path string) {
			must.OK(t, os.Truncate(path+"-wal", 4096))
		}, ""},
		"-shm emptied":       {empty("-shm"), ""},
		"-shm removed":       {remove("-shm"), ""},
		"audit.db emptied":   {empty(""), "14 decisions are missing"},
		"audit.db with gaps": {func(t *testing.T, path string) { overwrite(t, path, 0, make([]byte, 8192)) }, "14 decisions are missing"},
		"tail emptied":       {empty(".tail"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "audit.db")
			for run, n := range []int{10, 4} {
				w := mustOpen(t, path, Options{})
				for i := range n {
					must.OK(t, w.Decided(request(i)))
				}
				must.OK(t, w.Complete())
				if run == 1 {
					c.change(t, path)
					w.io.Lock()
					w.checked = w.checked.Add(-presentEvery)
					w.io.Unlock()
					err := w.Decided(request(99))
					must.Need(t, err != nil && w.Err() != nil, "a decision was accepted: %v; the record is %v", err, w.Err())
				}
				err := w.Close("")
				must.True(t, (err != nil) == (run == 1), "run %d ended with %v", run, err)
			}
			var log bytes.Buffer
			path = laterKilled(t, path)
			w := mustOpen(t, path, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
			must.OK(t, w.Decided(request(5)))
			must.OK(t, w.Close(""))
			want, proof := 15, proofOf(t, path)
			if c.lost != "" {
				want = 1
			}
			if n := entries(t, path); n != want || !strings.Contains(proof.Follows, c.lost) || (c.lost != "") != strings.Contains(log.String(), "lost=14") {
				t.Errorf("%d decisions, want %d; it continues %q\n%s", n, want, proof.Follows, &log)
			}
			must.True(t, c.lost != "" || name == "tail emptied" || len(proof.Gaps) == 1 && proof.Gaps[0].Refused == 1,
				"the gap is not recorded: %+v", proof.Gaps)
		})
	}
}

// proofOf fails the test unless the record is whole.
func proofOf(t *testing.T, path string) *Proof {
	t.Helper()
	proof, err := Verify(t.Context(), path, nil, nil)
	must.Need(t, err == nil && proof.Whole, "not whole: %+v, %v", proof, err)
	return proof
}

// What a damaged tail has does not wait to be added: the next start moves it aside.
func TestHeed_NothingWaitsInADamagedTail(t *testing.T) {
	t.Parallel()
	path := begun(t, 3)
	must.Is(t, proofOf(t, path).Waiting, 3, "decisions that wait")
	overwrite(t, path+".tail", wal.Start+wal.BlockStart+3, []byte{0xff})
	must.Equal(t, proofOf(t, path).Waiting, 0, "decisions are said to be added by the next start")
}

// A record that was damaged before the start is moved aside with its tail, and the new one
// names it and counts what is missing in both.
func TestHeed_ADamagedRecordIsMovedAsideAndFollowed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil   func(t *testing.T, path string)
		follows string
		entries int // of the new record
	}{
		"a block in the middle": {func(t *testing.T, path string) {
			tail := mustRead(t, path+".tail")
			tail[wal.Start+wal.BlockStart+3] ^= 1
			write(t, path+".tail", tail)
		}, "was damaged; 3 decisions are missing in it", 0},
		"the length of a block": {func(t *testing.T, path string) {
			tail := mustRead(t, path+".tail")
			tail[wal.Start+2] ^= 1
			write(t, path+".tail", tail)
		}, "was damaged; 3 decisions are missing in it", 0},
		"zeros in the tail": {func(t *testing.T, path string) {
			_, length := wal.Cut(mustRead(t, path+".tail")[wal.Start:])
			overwrite(t, path+".tail", wal.Start+int64(length), make([]byte, 100))
		}, "was damaged; 3 decisions are missing in it", 0},
		"the tail of another record": {func(t *testing.T, path string) {
			write(t, path+".tail", mustRead(t, begun(t, 1)+".tail"))
		}, ", which was damaged", 1},
		"an older copy": {func(t *testing.T, path string) {
			tail, at := mustRead(t, path+".tail"), int(wal.Start)
			for range 2 {
				_, length := wal.Cut(tail[at:])
				at += length
			}
			write(t, path+".tail", append(tail[:wal.Start:wal.Start], tail[at:]...))
		}, "commit 1 hash", 0},
		"a tree of zeros": {func(t *testing.T, path string) {
			write(t, path+"-wal", nil)
			overwrite(t, path, 4096, make([]byte, 8192))
		}, "a record that was damaged", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := begun(t, 3)
			c.spoil(t, path)
			tail := mustRead(t, path+".tail")
			must.OK(t, mustOpen(t, path, Options{}).Close(""))
			proof := proofOf(t, path)
			if n := entries(t, path); n != c.entries || !strings.Contains(proof.Follows, c.follows) {
				t.Errorf("%d decisions, want %d; it continues %q", n, c.entries, proof.Follows)
			}
			aside := strings.TrimSuffix(path, ".db") + ".damaged.db"
			must.Get(os.Stat(aside))(t)
			must.True(t, c.entries != 0 || bytes.Equal(mustRead(t, aside+".tail"), tail), "the tail was not kept")
		})
	}
}
