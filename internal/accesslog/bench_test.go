package accesslog_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heed/internal/accesslog"
)

// traffic writes a log of n lines as a busy site has it, of about 200 octets each, and
// returns its path.
func traffic(t testing.TB, n int, zipped bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access.log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var out io.Writer = f
	var z *gzip.Writer
	if zipped {
		z = gzip.NewWriter(f)
		out = z
	}
	w := bufio.NewWriterSize(out, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	at := time.Date(2025, 3, 1, 0, 0, 0, 0, time.FixedZone("", 3600))
	for i := range n {
		if i%25 == 24 {
			at = at.Add(time.Second)
		}
		fmt.Fprintf(w, "10.%d.%d.%d - - [%s] \"GET /articles/%d/page-%d?ref=%d HTTP/1.1\" 200 %d \"https://example.org/articles/%d\" \"Mozilla/5.0 (compatible; ExampleBot/%d.0; +https://bot.example/about)\"\n",
			random.IntN(4), random.IntN(256), random.IntN(256), at.Format("02/Jan/2006:15:04:05 -0700"), random.IntN(5000), random.IntN(90), random.IntN(9), random.IntN(100_000), random.IntN(5000), random.IntN(300))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if z != nil {
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// BenchmarkNext is the cost of a line, for two lengths of a log and for one in gzip.
func BenchmarkNext(b *testing.B) {
	for _, c := range []struct {
		name  string
		lines int
		gz    bool
		stdin bool
	}{{"100000", 100_000, false, false}, {"400000", 400_000, false, false}, {"gz", 100_000, true, false}, {"stdin", 400_000, false, true}} {
		b.Run(c.name, func(b *testing.B) {
			path := traffic(b, c.lines, c.gz)
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(info.Size())
			b.ReportAllocs()
			for b.Loop() {
				o := accesslog.Options{Files: []string{path}}
				if c.stdin {
					f, err := os.Open(path)
					if err != nil {
						b.Fatal(err)
					}
					defer f.Close()
					o.Files[0], o.Stdin = "-", f
				}
				r, err := accesslog.Open(o)
				if err != nil {
					b.Fatal(err)
				}
				n := -1
				for ; err == nil; n++ {
					_, err = r.Next()
				}
				if err != io.EOF || n != c.lines {
					b.Fatal(n, err)
				}
				r.Close()
			}
			b.ReportMetric(float64(b.N)*float64(c.lines)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
