package accesslog_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"heed/internal/analysis/accesslog"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// endless is size times the letter a between a beginning and an end.
func endless(begin string, size int64, end string) io.Reader {
	return io.MultiReader(strings.NewReader(begin), io.LimitReader(letters{}, size), strings.NewReader(end))
}

type letters struct{}

// Read fills p with the letter a.
func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// hostileSize is 1 GB, or a tenth of it.
func hostileSize() int64 {
	if testkit.Full {
		return 1 << 30
	}
	return 100 << 20
}

// A line of 1 GB, plain and as a bomb of gzip and zstd, is cut; the lines around it are
// read, and the memory stays small.
func TestReader_AHugeLineTakesNoMemory(t *testing.T) {
	size := hostileSize()
	log := func() io.Reader {
		return endless(combinedLine(0, "/first")+"192.0.2.7 - - [01/Mar/2025:10:00:01 +0000] \"GET /", size, " HTTP/1.1\" 200 5\n"+combinedLine(2, "/last"))
	}
	for _, form := range []string{"plain", "gz", "zst"} {
		in := log()
		if form != "plain" {
			in = bomb(t, form, log())
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, counts := all(t, accesslog.Options{Files: []string{"-"}, Stdin: in})
		runtime.ReadMemStats(&after)
		if len(got) != 2 || got[1].Target != "/last" || got[1].Line != 3 || counts.Cut != 1 || counts.Unparsed != 1 || counts.Problems[0].Reason != "longer than 1 MiB" {
			t.Errorf("%s: %d requests, counts %+v", form, len(got), counts)
		}
		took := after.TotalAlloc - before.TotalAlloc
		must.True(t, took <= 64<<20, "%s: %d MiB were allocated", form, took>>20)
	}
}

// bomb returns the compressed text of in.
func bomb(t *testing.T, form string, in io.Reader) io.Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bomb")
	f := must.Get(os.Create(path))(t)
	var w io.WriteCloser = gzip.NewWriter(f)
	if form == "zst" {
		w = must.Get(zstd.NewWriter(f))(t)
	}
	must.Get(io.Copy(w, in))(t)
	must.OK(t, w.Close())
	must.Get(f.Seek(0, io.SeekStart))(t)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestReader_ControlCharactersAndMarkupAreText(t *testing.T) {
	t.Parallel()
	log := "192.0.2.7 - - [01/Mar/2025:10:00:00 +0000] \"GET /<script>\x1b[2J\x00 HTTP/1.1\" 200 5 \"-\" \"\\x1b]0;x\\x07<b>\xff\"\n" +
		strings.Repeat("[", 100_000) + "\n" + strings.Repeat(" [", 100_000) + "\n" + strings.Repeat(`\"`, 100_000) + "\n" + combinedLine(1, "/last")
	got, counts := all(t, accesslog.Options{Files: []string{file(t, "access.log", log)}})
	if len(got) != 2 || got[0].Target != "/<script>\x1b[2J\x00" || got[0].UserAgent != "\x1b]0;x\x07<b>\xff" || counts.Unparsed != 3 {
		t.Errorf("%q, counts %+v", texts(got), counts)
	}
}

// JSON that nests without end, and arrays and objects in the place of values.
func TestReader_HostileJSON(t *testing.T) {
	t.Parallel()
	good := `{"ts":1740823200,"request":{"method":"GET","uri":["/a","/b"],"host":{"x":1}},"status":200}` + "\n"
	log := good + strings.Repeat(`{"request":`, 50_000) + "\n" + `{"ts":` + strings.Repeat("[", 50_000) + "\n" + `{"ts":1e999,"uri":"/"}` + "\n" + `{"ts":1740823200,"uri":"/"} x` + "\n" + good
	got, counts := all(t, accesslog.Options{Files: []string{file(t, "access.log", log)}})
	check(t, got, `
		2025-03-01T10:00:00Z|||GET|/a|200|0||
		2025-03-01T10:00:00Z|||GET|/a|200|0||
`)
	must.Equal(t, counts.Unparsed, 4, "counts %+v", counts)
}
