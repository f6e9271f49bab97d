package proof

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// sqlite is the program sqlite3 with the record open; it executes the statements that a
// test sends.
type sqlite struct {
	in  io.WriteCloser
	out *bufio.Reader
}

func openSQLite(t *testing.T, path string) *sqlite {
	t.Helper()
	cmd := exec.Command("sqlite3", path)
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	cmd.Stderr = os.Stderr
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // it was told to do what fails, too
	})
	return &sqlite{in, bufio.NewReader(out)}
}

// do sends a statement and waits until it is done.
func (s *sqlite) do(t *testing.T, statement string) string {
	t.Helper()
	fmt.Fprintln(s.in, statement+";\nSELECT 'done';")
	var said strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		must.Need(t, err == nil, "%s: %v", statement, err)
		if line == "done\n" {
			return said.String()
		}
		said.WriteString(line)
	}
}

// A program that reads the record, or locks it, delays no request and loses none: the
// tail has them meanwhile.
func TestHeed_WhoLocksTheRecordHoldsUpNothing(t *testing.T) {
	t.Parallel()
	s, dir := newSite(t), t.TempDir()
	path := filepath.Join(dir, "audit.db")
	h := withRecord(t, s, path, "")
	c, n := client(t, h), &notes{}
	n.ask(c, "http://proof.test/page/first")
	reader, locker := openSQLite(t, path), openSQLite(t, path)
	reader.do(t, "BEGIN; SELECT count(*) FROM entry")
	locker.do(t, ".timeout 5000\nBEGIN EXCLUSIVE")
	answered := make(chan int, 1)
	go func() {
		for i := range 500 {
			n.ask(c, fmt.Sprint("http://proof.test/page/", i))
		}
		answered <- len(n.all)
	}()
	select {
	case got := <-answered:
		must.Equal(t, got, 501, "of 501 requests were answered")
	case <-time.After(testkit.Patience): // no two of them may wait for the lock
		t.Fatal("the requests wait for the lock")
	}
	locker.do(t, "ROLLBACK")
	testkit.Until(t, "the record has all entries", func() bool {
		rows, _ := rowsAfter(t, path, 0)
		return len(rows) == 501
	})
	reader.do(t, "COMMIT")
	if said := h.Stderr(); strings.Count(said, "\"level\":\"ERROR\"") > 1 {
		t.Errorf("it said:\n%s", said)
	}
	agreeAtTheEnd(t, h, s, path, n)
}
