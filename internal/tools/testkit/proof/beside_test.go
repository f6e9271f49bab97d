package proof

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// besides are programs that work on the record of a running heed, in a shell in which DB is
// its path and AWAY a directory.
var besides = []struct {
	name, shell string
	removes     bool // it removes a file of the record once, so that some requests are answered 503
}{
	{name: "sqlite3", shell: `sqlite3 $DB 'SELECT count(*) FROM decisions'`},
	{name: "Python", shell: `/usr/bin/python3 -c 'import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute("SELECT count(*) FROM decisions").fetchone(); c.close()' $DB`},
	{name: ".backup", shell: `sqlite3 $DB ".backup $AWAY/copy.db"`},
	{name: "heed audit backup", shell: `rm -f $AWAY/own.db; $HEED audit backup --file $DB $AWAY/own.db`},
	{name: "a checkpoint", shell: `sqlite3 -cmd '.timeout 5000' $DB 'PRAGMA wal_checkpoint(TRUNCATE)'`},
	{name: "VACUUM", shell: `sqlite3 -cmd '.timeout 5000' $DB VACUUM`},
	{name: "cp", shell: `cp $DB* $AWAY/`},
	{name: "rsync", shell: `rsync --inplace --checksum $DB* $AWAY/`},
	{name: "a scanner", shell: `find $(dirname $DB) -type f -exec sha256sum {} + > $AWAY/sums`},
	{name: "BEGIN EXCLUSIVE", shell: `sqlite3 -cmd '.timeout 5000' $DB 'BEGIN EXCLUSIVE' '.shell sleep 0.2' COMMIT`},
	{name: "rm -wal", shell: `rm $DB-wal`, removes: true},
	{name: "rm -shm", shell: `rm $DB-shm`, removes: true},
	{name: "a reader without locks", shell: `sqlite3 -vfs unix-none $DB 'PRAGMA locking_mode = EXCLUSIVE' 'SELECT count(*) FROM decisions'`, removes: true},
	// The last one: if its commit were the last in audit.db when the write-ahead log is removed, heed would refuse until a restart.
	{name: "a browser that writes", shell: `sqlite3 -cmd '.timeout 5000' $DB 'BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS notes (text); INSERT INTO notes VALUES (hex(randomblob(3000)))' '.shell sleep 0.1' COMMIT 'DROP TABLE notes'`},
}

// run runs the shell once.
func runBeside(ctx context.Context, t *testing.T, shell, path, away string) {
	cmd := exec.CommandContext(ctx, "sh", "-c", shell)
	cmd.Env = append(os.Environ(), "DB="+path, "AWAY="+away, "HEED="+testkit.Binary(t), testkit.RaceOptions)
	_ = cmd.Run() // the record may be locked, or be opened again
}

// beside runs the shell again and again until stop is called.
func beside(t *testing.T, shell, path string) (runs *atomic.Int32, stop func()) {
	t.Helper()
	away, runs := t.TempDir(), new(atomic.Int32)
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() {
		for ctx.Err() == nil {
			runBeside(ctx, t, shell, path, away)
			runs.Add(1)
		}
	})
	stop = func() { cancel(); over.Wait() }
	t.Cleanup(stop)
	return runs, stop
}

// Whatever other programs do with the record, requests are answered, and at once; where they
// remove a file of it, some are answered 503, for a short time. Nothing that was answered is
// missing in the record.
func TestHeed_OtherProgramsAtWorkOnTheRecord(t *testing.T) {
	t.Parallel()
	requests := 30
	if testkit.Full {
		requests = 300
	}
	s, dir := newSite(t), t.TempDir()
	path, admin := filepath.Join(dir, "audit.db"), testkit.FreeAddr(t)
	h := withRecord(t, s, path, fmt.Sprintf("[admin]\nlisten = %q\n", admin))
	c, n := client(t, h), &notes{}
	ask := func(page string) (int, time.Duration) {
		t.Helper()
		began := time.Now()
		must.Need(t, n.ask(c, fmt.Sprintf("http://proof.test/%s/%d", page, len(n.all))), "no answer")
		return n.all[len(n.all)-1].status, time.Since(began)
	}
	ask("page")
	verify(t, path) // waits for the record
	pages := watchPages(t, "http://"+admin)
	healings := 0
	for _, b := range besides {
		statuses, longest := map[int]int{}, time.Duration(0)
		count := func() int {
			status, took := ask([]string{"page", "private"}[len(n.all)%2])
			statuses[status]++
			longest = max(longest, took)
			return status
		}
		if b.removes {
			runBeside(t.Context(), t, b.shell, path, t.TempDir())
			testkit.Until(t, "the file is missed", func() bool { return count() == http.StatusServiceUnavailable })
			testkit.Until(t, "the record is opened again", func() bool { return count() != http.StatusServiceUnavailable })
			healings++
		} else {
			runs, stop := beside(t, b.shell, path)
			for i := 0; i < requests || runs.Load() == 0; i++ {
				count()
			}
			stop()
		}
		for range requests {
			count()
		}
		t.Logf("%-24s %v, the longest wait %v", b.name, statuses, longest.Round(time.Millisecond))
		if (statuses[503] > 0) != b.removes || statuses[200] < requests/2 || statuses[403] < requests/2 || statuses[200]+statuses[403]+statuses[503] != total(statuses) {
			t.Errorf("%s: %v", b.name, statuses)
		}
		testkit.Until(t, "heed is ready", func() bool { return status(t, http.DefaultClient, "http://"+admin+"/readyz") == 200 })
	}
	if shown := pages(); shown == 0 {
		t.Error("no page was shown meanwhile")
	}
	if said := h.Stderr(); strings.Count(said, "it was opened again, and nothing is lost") != healings {
		t.Errorf("%d healings, and the log is\n%s", healings, said)
	}
	agreeAtTheEnd(t, h, s, path, n)
}

// watchPages loads pages that read the record again and again, and keeps a stream of them
// open, until the function is called that it returns; that returns how many were shown.
func watchPages(t *testing.T, address string) (stop func() (shown int)) {
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	var shown atomic.Int32
	for _, path := range []string{"/live/overview", "/", "/decisions?q=nothing-has-this&within=all", "/clients"} {
		over.Go(func() {
			for ctx.Err() == nil {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					shown.Add(1)
				}
			}
		})
	}
	stop = func() int { cancel(); over.Wait(); return int(shown.Load()) }
	t.Cleanup(func() { stop() })
	return stop
}

func total(counts map[int]int) (n int) {
	for _, of := range counts {
		n += of
	}
	return n
}
