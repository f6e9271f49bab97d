package accesslog

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// line is a line of a combined log, of a client that asks for a target n seconds after noon.
func line(n int, target string) string {
	at := time.Date(2026, time.March, 1, 12, 0, n, 0, time.UTC)
	return fmt.Sprintf("192.0.2.7 - - [%s] \"GET %s HTTP/1.1\" 200 512 \"-\" \"NewsBot/1.0\"\n", at.Format("02/Jan/2006:15:04:05 -0700"), target)
}

// targets reads all requests of logs, in the order in which they come.
func targets(t *testing.T, r *Reader) (all []string) {
	t.Helper()
	defer r.Close()
	for {
		q, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, q.Target)
	}
}

func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReader_FilesAreMergedByTime(t *testing.T) {
	t.Parallel()
	one := write(t, "one.log", []byte(line(1, "/a")+line(4, "/d")+line(3, "/c")+"nonsense\n\n"+line(5, "/f")))
	two := write(t, "two.log", []byte(line(2, "/b")+line(5, "/g")+line(4, "/e")))
	r, err := Open([]string{one, two}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(targets(t, r), ""); got != "/a/b/c/d/e/f/g" {
		t.Errorf("got %s", got)
	}
	c := r.Counts()
	if c.Lines != 9 || c.Unparsed != 2 || c.OutOfOrder != 2 || len(c.Problems) != 2 || c.Problems[0].Lines[0] != one+":4" {
		t.Errorf("%+v", c)
	}
}

func TestReader_LinesOfAllForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		want Request
	}{
		{`2001:db8::7 - - [01/Mar/2026:12:00:00 +0100] "GET /a?b=%zz HTTP/1.1" 304 - "http://x.test/" "A \"b\" \xc3\xa9"`,
			Request{Client: "2001:db8::7", Method: "GET", Target: "/a?b=%zz", Status: 304, Referrer: "http://x.test/", UserAgent: "A \"b\" é"}},
		{`www.site.test:80 192.0.2.7 - joe smith [01/Mar/2026:12:00:00 +0100] "CONNECT x.test:443 HTTP/1.1" 200 7 "-" "-"`,
			Request{Host: "www.site.test:80", Client: "192.0.2.7", Method: "CONNECT", Target: "x.test:443", Status: 200, Bytes: 7}},
		{`host.test - - [01/Mar/2026:12:00:00 +0100] "GET http://x.test/a b HTTP/1.0" 200 7`,
			Request{Client: "host.test", Method: "GET", Target: "http://x.test/a b", Status: 200, Bytes: 7}},
		{`192.0.2.7 - - [01/Mar/2026:12:00:00 +0100] "-" 408 - "-" "-"`, Request{Client: "192.0.2.7", Status: 408}},
	} {
		var got Request
		if reason := new(clock).parse(c.line, &got); reason != "" || got.Time.UTC().Hour() != 11 {
			t.Errorf("%s: %q, %v", c.line, reason, got.Time)
		}
		if got.Time = (time.Time{}); got != c.want {
			t.Errorf("%s:\n%+v, not\n%+v", c.line, got, c.want)
		}
	}
}

// A gzip file that was copied while it was written, or is damaged, has what it has.
func TestReader_DamagedGzipIsReadAsFarAsItGoes(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for n := range 3000 {
		io.WriteString(z, line(n%60, fmt.Sprintf("/%d", n*7919)))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(b.Bytes())
	for i := len(damaged) / 2; i < len(damaged)/2+40; i++ {
		damaged[i] = 0xff
	}
	for name, text := range map[string][]byte{"cut": b.Bytes()[:b.Len()/2], "damaged": damaged} {
		r, err := Open([]string{write(t, name+".gz", text), write(t, "whole.log", []byte(line(1, "/whole")))}, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := len(targets(t, r))
		if c := r.Counts(); n < 1000 || int64(n)+c.Unparsed != c.Lines || len(c.Truncated) != 1 {
			t.Errorf("%s: %d requests, %+v", name, n, c)
		}
	}
}

// Lines as long as a line may be are no reason to hold gigabytes, and none of them is lost.
func TestReader_LongLinesAreHeldInBoundedMemory(t *testing.T) {
	t.Parallel()
	const lines = 200
	long := line(1, "/"+strings.Repeat("x", maxLine-len(line(1, "/"))+1))
	if len(long) != maxLine+1 {
		t.Fatalf("a line of %d octets", len(long))
	}
	r, err := Open([]string{"-"}, io.MultiReader(strings.NewReader(strings.Repeat(long, lines)), strings.NewReader("y"+long)))
	if err != nil {
		t.Fatal(err)
	}
	n, most := 0, 0
	for {
		_, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		n, most = n+1, max(most, r.sources[0].octets)
	}
	if c := r.Counts(); n != lines+1 || c.Cut != 1 || most > maxHeld+maxLine {
		t.Errorf("%d requests, %d octets held, %+v", n, most, c)
	}
}

// Whatever a client has put into a log, each line is a request with a time, or counted.
func FuzzParse(f *testing.F) {
	f.Add(line(1, "/a"))
	f.Add(`h:80 192.0.2.7 - - [01/Mar/2026:12:00:00 +0100] "GET / HTTP/1.1" 200 - "\x" "\`)
	f.Fuzz(func(t *testing.T, text string) {
		var q Request
		if reason := new(clock).parse(text, &q); reason == "" && q.Time.IsZero() {
			t.Errorf("%q is a request without a time", text)
		}
	})
}
