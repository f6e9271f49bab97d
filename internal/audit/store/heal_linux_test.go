package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/tools/testkit/must"
)

// beset is an open record that another program is at work on.
type beset struct {
	*Writer
	t        *testing.T
	log      bytes.Buffer
	accepted int
	hour     atomic.Int64 // added to the time
}

func newBeset(t *testing.T, entries int) *beset {
	t.Helper()
	b := &beset{t: t}
	o := Options{Log: slog.New(slog.NewTextHandler(&b.log, nil)), Now: func() time.Time { return time.Now().Add(time.Duration(b.hour.Load()) * time.Hour) }}
	b.Writer = mustOpen(t, filepath.Join(t.TempDir(), "audit.db"), o)
	b.decide(entries)
	b.complete(true)
	return b
}

// decide requests decisions, and counts those that are accepted.
func (b *beset) decide(n int) {
	b.io.Lock()
	b.checked = time.Time{}
	b.io.Unlock()
	for i := range n {
		if b.Decided(request(i)) == nil {
			b.accepted++
		}
	}
}

func (b *beset) complete(want bool) {
	b.t.Helper()
	err := b.Complete()
	must.Need(b.t, (err == nil) == want, "Complete: %v\n%s", err, &b.log)
}

// ended closes the record and fails the test unless it is whole and has what was accepted.
func (b *beset) ended() *Proof {
	b.t.Helper()
	must.OK(b.t, b.Close(""))
	must.Equal(b.t, entries(b.t, b.path), b.accepted, "decisions, %d were accepted", b.accepted)
	return proofOf(b.t, b.path)
}

// without runs SQL in a program that finds no locks, as on a file system without them: it
// takes itself for the only one, and removes the write-ahead log at its end.
func without(t *testing.T, path, sql string) {
	t.Helper()
	out, err := osexec.Command("sqlite3", "-vfs", "unix-none", path, "PRAGMA locking_mode = EXCLUSIVE; "+sql).CombinedOutput()
	must.OK(t, err, out)
}

// When another program removes, replaces or cuts a file beside audit.db, heed opens it again:
// requests that came meanwhile were refused and are counted, none is lost, and the pages of
// the dashboard end and begin again.
func TestHeed_ItHealsARecordWhoseFilesWereRemoved(t *testing.T) {
	t.Parallel()
	remove := func(names ...string) func(string) error {
		return func(path string) (err error) {
			for _, name := range names {
				err = errors.Join(err, os.Remove(path+name))
			}
			return err
		}
	}
	for name, change := range map[string]func(path string) error{
		"-wal removed":       remove("-wal"),
		"-shm removed":       remove("-shm"),
		"both removed":       remove("-wal", "-shm"),
		"-wal cut":           func(path string) error { return os.Truncate(path+"-wal", 5000) },
		"-wal emptied":       func(path string) error { return os.Truncate(path+"-wal", 0) },
		"-wal moved":         func(path string) error { return os.Rename(path+"-wal", path+".away") },
		"read without locks": func(path string) error { without(t, path, "SELECT count(*) FROM decisions;"); return nil },
		"-wal replaced by a copy": func(path string) error {
			return errors.Join(os.WriteFile(path+".copy", mustRead(t, path+"-wal"), 0o600), os.Rename(path+".copy", path+"-wal"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBeset(t, 30)
			record := must.Get(OpenRecord(b.path))(t)
			page, ended := make(chan error, 1), make(chan struct{})
			go func() { // reads until it is ended
				defer close(ended)
				r, err := record.Read(t.Context())
				if err != nil {
					page <- err
					return
				}
				defer r.Close()
				page <- nil
				for err == nil {
					err = r.Entries(&Filter{}, func(*Entry) error { return nil })
				}
			}()
			must.OK(t, <-page)
			must.OK(t, change(b.path))
			b.decide(7)
			refused := 37 - b.accepted
			b.complete(true)
			<-ended
			b.decide(5)
			must.True(t, b.accepted == 42-refused && refused != 0 && b.Err() == nil,
				"%d were accepted, %d refused; %v", b.accepted, refused, b.Err())
			if latest, n := b.Healings(); n != 1 || len(latest) != 1 || latest[0].Refused != int64(refused) || strings.Contains(latest[0].Why, "restart") {
				t.Errorf("%d healings, %+v; %d were refused", n, latest, refused)
			}
			r, err := record.Read(t.Context()) // the page is loaded again
			must.OK(t, err)
			r.Close()
			proof := b.ended()
			must.True(t, len(proof.Gaps) == 1 && proof.Gaps[0].Refused == int64(refused),
				"the gaps are %+v; %d were refused", proof.Gaps, refused)
			n := strings.Count(b.log.String(), "nothing is lost")
			must.True(t, n == 1, "the log reports %d healings:\n%s", n, &b.log)
			var kinds string
			var count int64
			if r, err = record.Read(t.Context()); err == nil {
				err = r.row("SELECT group_concat(kind), sum(count) FROM event", &kinds, &count)
				r.Close()
			}
			must.True(t, err == nil && kinds == string(audit.Healed) && count == int64(refused),
				"the record has the events %s of %d, %v", kinds, count, err)
		})
	}
}

// What another program commits between the removal and the healing stays: heed goes on where
// that changes nothing that it knows, and stops otherwise. At its end it writes nothing over
// it either.
func TestHeed_AForeignCommitSurvivesHealing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql  string
		heal bool // heed tries to
		stop bool
	}{
		"a table":                   {"CREATE TABLE foreign_table AS SELECT 7 AS n;", true, true},
		"many rows":                 {"CREATE TABLE foreign_table AS WITH RECURSIVE c(n) AS (SELECT 7 UNION ALL SELECT n + 1 FROM c LIMIT 5000) SELECT n, hex(randomblob(200)) FROM c;", true, true},
		"and heed ends":             {"CREATE TABLE foreign_table AS SELECT 7 AS n;", false, true},
		"that heed cannot see":      {"UPDATE about SET value = '2001-01-01T00:00:00Z' WHERE key = 'created';", true, false},
		"and vacuums":               {"CREATE TABLE foreign_table AS SELECT 7 AS n; VACUUM;", true, true},
		"nothing, but a checkpoint": {"PRAGMA wal_checkpoint(TRUNCATE);", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBeset(t, 20)
			without(t, b.path, c.sql)
			if c.heal {
				b.complete(!c.stop)
			}
			b.decide(3)
			must.Equal(t, b.accepted == 20, c.stop, "%d were accepted; %v", b.accepted, b.Err())
			if err := b.Close(""); (err != nil) != c.stop {
				t.Errorf("Close: %v", err)
			}
			out, err := osexec.Command("sqlite3", b.path, "PRAGMA integrity_check; SELECT count(*) FROM decisions; SELECT value FROM about WHERE key = 'created'; SELECT count(*) FROM sqlite_schema WHERE name = 'foreign_table'").CombinedOutput()
			text := string(out)
			must.True(t, strings.HasPrefix(text, fmt.Sprintf("ok\n%d\n", b.accepted)), "%s, %v", out, err)
			if strings.Contains(c.sql, "foreign_table") && !strings.HasSuffix(text, "\n1\n") || strings.Contains(c.sql, "2001") && !strings.Contains(text, "2001-01-01") {
				t.Errorf("the foreign commit is gone: %s", out)
			}
			if c.heal && c.stop && !strings.Contains(b.log.String(), "restart heed, and see `heed audit verify`") {
				t.Errorf("the log does not say what to do:\n%s", &b.log)
			}
		})
	}
}

// A program that has the removed files open could write an outdated log to audit.db: heed
// waits for its end, and names it. One that opened audit.db since is no obstacle.
func TestHeed_ItHealsWhenNoProgramHasTheRemovedFiles(t *testing.T) {
	t.Parallel()
	b := newBeset(t, 20)
	before := holding(t, b.path, "SELECT count(*) FROM decisions;")
	must.OK(t, os.Remove(b.path+"-wal"))
	for range 2 {
		b.complete(false)
		b.decide(1)
	}
	if want := fmt.Sprintf(`are still open in "sqlite3" (pid %d): end it`, before.cmd.Process.Pid); b.accepted != 20 || !strings.Contains(b.log.String(), fmt.Sprintf("%q", want)[1:20]) {
		t.Errorf("%d were accepted; the log has %s, want %s", b.accepted, &b.log, want)
	}
	before.end()
	b.complete(true)
	b.complete(true) // the gap
	must.OK(t, errors.Join(os.Remove(b.path+"-wal"), os.Remove(b.path+"-shm")))
	since := holding(t, b.path, "BEGIN; SELECT count(*) FROM about;")
	b.decide(5)
	b.complete(true)
	b.decide(5)
	b.complete(true)
	since.end()
	_, n := b.Healings()
	must.True(t, n == 2, "%d healings", n)
	proof := b.ended()
	must.True(t, len(proof.Gaps) == 2, "the gaps are %+v", proof.Gaps)
}

// Where the system has no lock that other descriptors leave alone, heed stops as soon as a
// file is gone, and writes nothing at its end.
func TestHeed_WithoutALockOfItsOwnItStops(t *testing.T) {
	t.Parallel()
	b := newBeset(t, 20)
	must.OK(t, b.db.claim.Release())
	b.db.held = false
	without(t, b.path, "CREATE TABLE foreign_table AS SELECT 7 AS n;")
	b.complete(false)
	b.decide(3)
	if err := b.Close(""); err == nil || b.accepted != 20 {
		t.Errorf("%d were accepted; Close: %v", b.accepted, err)
	}
	left := filepath.Join(t.TempDir(), "audit.db") // without the index that this process still has
	write(t, left, mustRead(t, b.path))
	out, err := osexec.Command("sqlite3", left, "PRAGMA integrity_check; SELECT count(*) FROM decisions; SELECT n FROM foreign_table").CombinedOutput()
	must.True(t, string(out) == "ok\n20\n7\n", "%s, %v", out, err)
}

// While a reader keeps decisions in the write-ahead log alone, the tail keeps them too, until
// they are too many. When the log is removed, audit.db may have a part of it: heed stops, and
// the next start makes a record of what the tail has.
func TestHeed_TheTailKeepsWhatAReaderKeepsInTheLog(t *testing.T) {
	t.Parallel()
	for _, kept := range []int64{maxKept, 0} {
		b := newBeset(t, 5)
		reader := holding(t, b.path, "BEGIN; SELECT count(*) FROM decisions;")
		b.io.Lock()
		b.wal.SwitchAt, b.maxKept = 1, kept
		b.io.Unlock()
		for range 4 { // the files of the tail are used in turn, and emptied
			b.decide(5)
			b.complete(true)
		}
		reader.end()
		must.OK(t, errors.Join(os.Remove(b.path+"-wal"), os.Remove(b.path+"-shm")))
		b.complete(false)
		b.decide(1)
		must.True(t, b.accepted == 25 && b.Err() != nil && strings.Contains(b.Err().Error(), "lost: restart heed"),
			"%d were accepted; %v", b.accepted, b.Err())
		err := b.Close("")
		must.True(t, err != nil, "it ends well")
		if kept > 0 {
			b.Writer = mustOpen(t, b.path, Options{})
			b.ended()
		}
	}
}

// The tail keeps its rows until the log of SQLite that has them was seen in its place.
func TestWriter_TheTailIsNotEmptiedForALogThatIsGone(t *testing.T) {
	t.Parallel()
	b := newBeset(t, 5)
	b.io.Lock()
	b.wal.SwitchAt = 1
	b.io.Unlock()
	b.decide(5)
	b.decide(5)
	b.completing.Lock()
	number := b.wal.Number
	before := b.tailOctets()
	must.OK(t, os.Remove(b.path+"-wal"))
	err := b.dropSpent(number)
	must.True(t, err != nil && b.tailOctets() == before, "%v; %d octets of %d are left", err, b.tailOctets(), before)
	b.completing.Unlock()
	b.complete(true)
	b.ended()
}

// A program that removes the files again and again does not make heed do the same: after six
// times in an hour it stops, until it is started again.
func TestHeed_ItHealsAtMostSixTimesAnHour(t *testing.T) {
	t.Parallel()
	b := newBeset(t, 1)
	remove := func() {
		t.Helper()
		must.OK(t, os.Remove(b.path+"-wal"))
	}
	for n := range 8 {
		if n == 3 {
			b.hour.Add(1)
		}
		remove()
		b.complete(true)
		b.decide(1)
	}
	if _, n := b.Healings(); n != 8 || b.accepted != 9 {
		t.Fatalf("%d healings, %d accepted", n, b.accepted)
	}
	for range 2 {
		remove()
		b.complete(n(b) < 9)
		b.decide(1)
	}
	if b.accepted != 10 || b.Err() == nil || !strings.Contains(b.Err().Error(), "7 times within an hour: end the program that does it, and restart heed") {
		t.Errorf("%d accepted; %v", b.accepted, b.Err())
	}
	err := b.Close("")
	must.True(t, err != nil, "it ends well")
	w := mustOpen(t, b.path, Options{})
	must.OK(t, w.Decided(request(1)))
	b.Writer, b.accepted = w, b.accepted+1
	b.ended()
}

func n(b *beset) int { _, n := b.Healings(); return n }
