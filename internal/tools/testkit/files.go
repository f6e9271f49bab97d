package testkit

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// BuiltIn returns the proxy.toml that heed carries.
func BuiltIn(t testing.TB) []byte {
	t.Helper()
	return []byte(Read(t, filepath.Join(Root(t), "proxy.toml")))
}

// Write writes a file that only its owner may read, and returns its path.
func Write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Read returns the text of a file.
func Read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Copy copies a file into a directory of the test, and returns its path.
func Copy(t testing.TB, path string) string {
	t.Helper()
	return Write(t, filepath.Join(t.TempDir(), filepath.Base(path)), Read(t, path))
}

// Serve runs the real heed on any free port with the settings of config, and sets
// HEED_STATE, so that the verbs of this process find it.
func Serve(t *testing.T, config string) *Heed {
	t.Helper()
	h := Start(t, Options{Config: AnyPort + config})
	t.Setenv("HEED_STATE", h.State)
	return h
}

// Page returns the URL of a site without a robots.txt, whose pages are the
// User-Agent of the request.
func Page(t testing.TB) string {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, r.UserAgent())
	}))
	t.Cleanup(site.Close)
	return site.URL
}

// Hostile is text that a terminal would obey or that would deceive its reader: ESC
// and other C0, DEL, C1 as a character and as an octet, marks of direction, octets
// that are no UTF-8, a line separator.
const Hostile = "\x1b[2J\a\x7f\u009b31m\x9b32m\u202e\u2066\u2069\xff\u2028\U000e0041"

// Harmless reports an error when a terminal would obey some of text. Newlines are
// allowed.
func Harmless(t testing.TB, what, text string) {
	t.Helper()
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		if r != '\n' && (!unicode.IsPrint(r) || r == utf8.RuneError && size == 1) {
			t.Errorf("%s has %q at %d: %q", what, r, i, text)
			return
		}
	}
}

// ManualLines returns the lines of a topic of the manual that follow the comment first, as a
// reader copies them, to the next empty line.
func ManualLines(t testing.TB, topic, first string) string {
	t.Helper()
	_, after, found := strings.Cut(Read(t, filepath.Join(Root(t), "internal", "output", "manual", topic+".md")), "    "+first+"\n    ")
	if !found {
		t.Fatalf("the topic %s has no lines after %q", topic, first)
	}
	lines, _, _ := strings.Cut(after, "\n\n")
	return strings.ReplaceAll(lines, "\n    ", "\n") + "\n"
}
