package store

import (
	"bufio"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// shell is a sqlite3 that holds a record.
type shell struct {
	t   *testing.T
	cmd *osexec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// holding starts a sqlite3 that executes SQL on the record and stays.
func holding(t *testing.T, path, sql string) *shell {
	t.Helper()
	s := &shell{t: t, cmd: osexec.Command("sqlite3", path)}
	in := must.Get(s.cmd.StdinPipe())(t)
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	must.OK(t, err)
	s.in, s.out = in, bufio.NewScanner(out)
	t.Cleanup(s.end)
	s.do(sql)
	return s
}

// do executes SQL, and waits for its end.
func (s *shell) do(sql string) {
	s.t.Helper()
	must.Get(io.WriteString(s.in, sql+"\n.print done\n"))(s.t)
	for s.out.Scan() {
		if s.out.Text() == "done" {
			return
		}
	}
	s.t.Fatalf("sqlite3 has ended: %v", s.out.Err())
}

// end ends the program.
func (s *shell) end() {
	s.in.Close()
	s.cmd.Wait()
}

// While another program holds the record, decisions go on: they wait in the tail, and what is
// reported names the program. When it has ended, the record has all of them.
func TestHeed_DecisionsGoOnWhileAnotherProgramHoldsTheRecord(t *testing.T) {
	t.Parallel()
	const longReader = "BEGIN; SELECT count(*) FROM decisions;"
	for name, c := range map[string]struct {
		sql   string
		names string // in what is reported
	}{
		"a write lock":      {"BEGIN EXCLUSIVE;", `it is held by another program, "sqlite3" (pid %d): end it (database is locked`},
		"a browser's write": {"BEGIN; UPDATE about SET value = value WHERE key = 'created';", `it is held by another program, "sqlite3" (pid %d): end it`},
		"a long reader":     {longReader, `it is held by another program, which reads an old state of it, "sqlite3" (pid %d), so that audit.db-wal has 0 MB: end it`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBeset(t, 5)
			b.maxLog = 1 << 16
			must.Get(b.db.Exec("PRAGMA busy_timeout = 1"))(t)
			other := holding(t, b.path, c.sql)
			for n := 0; b.Held() == nil && n < 100; n++ {
				b.decide(20)
				_ = b.Complete()
			}
			b.decide(20)
			want := fmt.Sprintf(c.names, other.cmd.Process.Pid)
			must.True(t, b.Held() != nil && strings.HasPrefix(b.Held().Error(), want), "it reports %v\nwant %s", b.Held(), want)
			if b.Err() != nil || b.Waiting() == 0 {
				t.Errorf("%d octets wait; %v", b.Waiting(), b.Err())
			}
			before := b.accepted
			size := sizeOf(t, b.path+"-wal")
			must.True(t, c.sql != longReader || size <= b.maxLog+1<<20, "the log has %d octets", size)
			other.end()
			b.complete(true)
			b.decide(1)
			if b.Held() != nil || b.Waiting() > 1000 || b.accepted != before+1 {
				t.Errorf("afterwards: %v, %d octets wait, %d of %d", b.Held(), b.Waiting(), b.accepted, before+1)
			}
			b.ended()
		})
	}
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info := must.Get(os.Stat(path))(t)
	return info.Size()
}

// What programs do that keep the rules of SQLite is no damage: a file that VACUUM has made
// smaller, and a log that a checkpoint has emptied.
func TestHeed_OtherProgramsMayVacuumAndCheckpoint(t *testing.T) {
	t.Parallel()
	b := newBeset(t, 5)
	other := holding(t, b.path, "CREATE TABLE large AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 3000) SELECT hex(randomblob(500)) FROM c; PRAGMA wal_checkpoint(TRUNCATE);")
	b.decide(5)
	b.complete(true)
	before := sizeOf(t, b.path)
	for _, sql := range []string{"DROP TABLE large;", "VACUUM;", "PRAGMA wal_checkpoint(TRUNCATE);", "VACUUM; PRAGMA wal_checkpoint(RESTART);", "PRAGMA wal_checkpoint(TRUNCATE);"} {
		other.do(sql)
		b.decide(5)
		b.complete(true)
	}
	after := sizeOf(t, b.path)
	must.True(t, after < before, "the file has %d octets, before %d", after, before)
	_, n := b.Healings()
	must.True(t, n == 0 && b.accepted == 35, "%d healings, %d accepted", n, b.accepted)
	other.end()
	b.ended()
	must.True(t, b.log.Len() == 0, "the log has %s", &b.log)
}
