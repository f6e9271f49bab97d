package command_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// Pages in the habits of well-known generators, in every coding, come from nginx to a
// client with a purpose as they come to one without.
func TestPagesAreTheSameForClientsWithAPurpose(t *testing.T) {
	t.Parallel()
	heads, err := filepath.Glob(filepath.Join(testkit.Root(t), "internal/judge/signal/testdata/heads/*.html"))
	must.Need(t, err == nil && len(heads) >= 30, "%d heads, %v", len(heads), err)
	files := map[string]string{}
	var paths []string
	for _, name := range heads {
		page := must.Get(os.ReadFile(name))(t)
		page = append(page, bytes.Repeat([]byte("<p>text of the page\n"), 500)...)
		for coding, body := range coded(t, page) {
			path := "/" + coding + "/" + filepath.Base(name)
			files[path] = string(body)
			paths = append(paths, path)
		}
	}
	config := "etag on;\n"
	for _, coding := range []string{"gzip", "br", "zstd"} {
		config += fmt.Sprintf("location /%s/ { add_header Content-Encoding %s; }\n", coding, coding)
	}
	o := testkit.NewOrigin(t, testkit.Site{Name: "site.test", Robots: "User-agent: *\nDisallow: /private\n", Files: files, Config: config})
	h := testkit.Start(t, testkit.Options{Config: o.Config("") + `
[[client]]
name = "archive"
user_agent = "ArchiveBot*"
purpose = ["agent", "archive"]
`})
	c := trusting(t, h)
	ask := func(agent, path, byteRange string) (int, http.Header, []byte) {
		r := must.Get(http.NewRequest(http.MethodGet, "http://site.test"+path, nil))(t)
		r.Header.Set("User-Agent", agent)
		r.Header.Set("Accept-Encoding", "identity")
		if byteRange != "" {
			r.Header.Set("Range", byteRange)
		}
		resp := must.Get(c.Do(r))(t)
		defer resp.Body.Close()
		body := must.Get(io.ReadAll(resp.Body))(t)
		resp.Header.Del("Date")
		return resp.StatusCode, resp.Header, body
	}
	delivered := 0
	for _, path := range slices.Sorted(maps.Keys(files)) {
		refused := false
		for _, byteRange := range []string{"", "bytes=3-40"} {
			status, header, body := ask("PlainBot/1.0", path, byteRange)
			must.True(t, byteRange != "" || status == http.StatusOK && string(body) == files[path],
				"%s without a purpose: %d, %d octets", path, status, len(body))
			with, withHeader, withBody := ask("ArchiveBot/1.0", path, byteRange)
			if refused = with == http.StatusForbidden && (byteRange == "" || refused); refused {
				continue // its head says so, which the tests of signal compare; so is a part of that page
			}
			delivered++
			if with != status || !reflect.DeepEqual(withHeader, header) || !bytes.Equal(withBody, body) {
				t.Errorf("%s %s: %d %v, %d octets; without a purpose %d %v, %d octets", path, byteRange, with, withHeader, len(withBody), status, header, len(body))
			}
		}
	}
	must.True(t, delivered >= len(paths), "%d answers of %d were delivered", delivered, 2*len(paths))
	must.Lack(t, h.Stderr(), "panic")
}

// coded returns page in each coding.
func coded(t *testing.T, page []byte) map[string][]byte {
	t.Helper()
	var zipped, br bytes.Buffer
	for _, w := range []io.WriteCloser{gzip.NewWriter(&zipped), brotli.NewWriter(&br)} {
		must.Get(w.Write(page))(t)
		must.OK(t, w.Close())
	}
	z := must.Get(zstd.NewWriter(nil))(t)
	defer z.Close()
	return map[string][]byte{"identity": page, "gzip": zipped.Bytes(), "br": br.Bytes(), "zstd": z.EncodeAll(page, nil)}
}
