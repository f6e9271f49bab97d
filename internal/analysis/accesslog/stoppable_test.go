package accesslog_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heed/internal/analysis/accesslog"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A live log is passed on by a pipe. Stop returns the lines that had come, also when they
// are few, when they are compressed, and when a line has no end yet.
func TestReader_StopEndsAnInputThatBlocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lines int
		gz    bool
	}{{"nothing", 0, false}, {"few lines", 3, false}, {"many lines", 20_000, false}, {"gzip", 20_000, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			for i := range c.lines {
				log.WriteString(combinedLine(i, fmt.Sprintf("/%d", i)))
			}
			data := []byte(log.String())
			least := c.lines
			if c.gz {
				data = compressed(t, "gz", log.String())
				data, least = data[:len(data)*3/4], c.lines/2
			} else if c.lines > 0 {
				data = append(data, `192.0.2.7 - - [01/Mar/2025:23:00:00 +0000] "GET /half HTTP/1.1" 20`...)
			}
			in, out := io.Pipe()
			defer out.Close()
			r := must.Get(accesslog.Open(accesslog.Options{Files: []string{"-"}, Stdin: in}))(t)
			defer r.Close()
			go func() { _, _ = out.Write(data) }() // to the end, or until the pipe is closed
			ended := make(chan int)
			go func() {
				n := 0
				for {
					q, err := r.Next()
					if err != nil {
						must.Equal(t, err, io.EOF)
						ended <- n
						return
					}
					must.Equal(t, q.Target, fmt.Sprintf("/%d", n), "request %d is for", n)
					n++
				}
			}()
			testkit.Until(t, "all octets are read", func() bool {
				done, _ := r.Progress()
				return done == int64(len(data))
			})
			r.Stop()
			n := <-ended
			if got := r.Counts(); n < least || n > c.lines || got.Unparsed != 0 || len(got.Truncated) != 0 {
				t.Errorf("%d of %d requests, counts %+v", n, c.lines, got)
			}
		})
	}
}

// The shell passes the output of a command on as a pipe with a name; it is read once.
func TestReader_ANamedPipeIsRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "access.log")
	must.OK(t, syscall.Mkfifo(path, 0o600))
	go func() {
		err := os.WriteFile(path, bytes.Repeat([]byte(combinedLine(0, "/a")), 100), 0o600)
		must.True(t, err == nil, "%v", err)
	}()
	got, counts := all(t, accesslog.Options{Files: []string{path}})
	must.True(t, len(got) == 100 && counts.Unparsed == 0, "%d requests, counts %+v", len(got), counts)
}
