package signal_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/net/html/charset"

	"heed/internal/judge/signal"
	"heed/internal/judge/signal/page"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// coded returns body in a content coding.
func coded(t testing.TB, coding string, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b)
	default:
		return body
	}
	must.Get(w.Write(body))(t)
	must.OK(t, w.Close())
	return b.Bytes()
}

// TestHeads has heads as well-known generators write them, in the character encodings that
// are usual for them, with a Content-Type that names the encoding and with one that does
// not, in every content coding and in pieces of any size.
func TestHeads_OfWellKnownGenerators(t *testing.T) {
	t.Parallel()
	table := must.Get(os.ReadFile("testdata/heads.txt"))(t)
	count := 0
	for line := range strings.Lines(string(table)) {
		if line[0] == '#' {
			continue
		}
		count++
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		name, label, want := fields[0], fields[1], fields[2]
		text := must.Get(os.ReadFile(filepath.Join("testdata", "heads", name+".html")))(t)
		body := encodedAs(t, label, text)
		for i, coding := range []string{"", "gzip", "deflate", "br", "zstd"} {
			for _, contentType := range []string{"text/html", "text/html; charset=" + label} {
				h := http.Header{"Content-Type": {contentType}}
				if coding != "" {
					h.Set("Content-Encoding", coding)
				}
				in := request{}.input(t)
				in.Header, in.Agent = h, rules.Identify("Mozilla/5.0 (compatible; ExampleBot/2.1)")
				head := readPage(h, signal.PageNames(in.Agent), coded(t, coding, body), 1+i*100)
				in.Page = &head
				v := signal.Judge(in)
				if got := v.Annotation(); got != want || v.Page != "whole" {
					t.Errorf("%s as %s, %s:\ngot  %s (%s)\nwant %s", name, contentType, coding, got, v.Page, want)
				}
				checkVerdict(t, v)
			}
		}
	}
	files, err := filepath.Glob("testdata/heads/*.html")
	must.True(t, err == nil && len(files) == count && count >= 30, "%d files, %d in the table, %v", len(files), count, err)
}

// encodedAs returns UTF-8 text in an encoding; UTF-16 with a byte order mark.
func encodedAs(t *testing.T, label string, text []byte) []byte {
	t.Helper()
	if label == "utf-16" {
		text = append([]byte("\xEF\xBB\xBF"), text...)
	}
	e, _ := charset.Lookup(label)
	must.Need(t, e != nil, "no encoding %s", label)
	body, err := e.NewEncoder().Bytes(text)
	must.OK(t, err, label)
	return body
}

func readPage(h http.Header, names []string, body []byte, piece int) page.Head {
	s := page.NewScanner(h, names)
	for len(body) > 0 && !s.Done() {
		n := min(piece, len(body))
		_, _ = s.Write(body[:n])
		body = body[n:]
	}
	return s.Finish(true)
}
