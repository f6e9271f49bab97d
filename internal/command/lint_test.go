package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"heed/rules"
)

func TestHeed_LintTellsPlaceMeaningAndCure(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "robots.txt"), "Useragent: *\nDisallow: private\nAllow: /a%\n")
	heed(t, "", "lint", file).is(t, exitNo,
		file+":1:1: misspelt-field  Useragent\n"+
			"    The word is misspelt and understood; other robots may ignore the line.\n"+
			"    Write User-agent, Allow, Disallow or Sitemap.\n"+
			file+":2:11: no-slash  private\n"+
			"    The path does not begin with /; it is read as if it did, other robots may ignore it.\n"+
			"    Begin it with / or *.\n"+
			file+":3:10: bad-escape  %\n"+
			"    A % that two hexadecimal digits do not follow stands for itself.\n"+
			"    Write %25 for the character.\n", "")
	heed(t, "", "lint", "-q", file).is(t, exitNo, "", "")
}

func TestHeed_LintStatusFollowsTheWorstFile(t *testing.T) {
	dir := t.TempDir()
	clean := write(t, filepath.Join(dir, "clean"), someRules)
	slight := write(t, filepath.Join(dir, "slight"), "User-agent: examplebot/1.0\nDisallow: /a\n")
	bad := write(t, filepath.Join(dir, "bad"), "Disallow: /a\n")
	heed(t, "", "lint", clean).is(t, 0, "", "heed: "+clean+": nothing odd\n")
	heed(t, "", "lint", "-q", slight, clean).is(t, 0, "", "")
	heed(t, "", "lint", "-q", slight, bad, clean).is(t, exitNo, "", "")
	heed(t, "", "lint", "-q", bad, filepath.Join(dir, "none")).is(t, exitUsage, "",
		"heed: the robots.txt cannot be read: open "+filepath.Join(dir, "none")+": no such file or directory\nTo look at a site's, write its URL, such as https://example.org/\n")
	if s := heed(t, "Disallow: /a\n", "lint", "-"); s.status != exitNo || !strings.HasPrefix(s.out, "-:1:1: orphan-rule") {
		t.Errorf("stdin: %+v", s)
	}
}

func TestHeed_LintAsJSONAndForASite(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "robots.txt"), "User-agent: *\nDisallow: https://h.test/<a>\n")
	for site, kind := range map[string]rules.FindingKind{"": rules.ForeignURL, "https://h.test/": rules.AbsoluteURL, "https://other.test/": rules.ForeignURL} {
		s := heed(t, "", "lint", "--json", "--site", site, file)
		var got finding
		if err := json.Unmarshal([]byte(s.out), &got); err != nil {
			t.Fatal(err)
		}
		want := finding{file, 2, 11, kind, "https://h.test/<a>", kind.Means(), kind.Instead(), true}
		if got != want || s.status != exitNo {
			t.Errorf("%q: got %+v, want %+v", site, got, want)
		}
	}
}

func TestHeed_LintFetchesAsTheProxyWould(t *testing.T) {
	status := http.StatusOK
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt" && status == http.StatusOK:
			http.Redirect(w, r, "/moved.txt", http.StatusFound)
		case r.URL.Path == "/moved.txt" && r.UserAgent() == "heed/1.0":
			fmt.Fprint(w, "Disallow: /\n")
		default:
			w.WriteHeader(status)
		}
	}))
	defer site.Close()
	if s := heed(t, "", "lint", site.URL+"/some/page"); s.status != exitNo || !strings.Contains(s.out, ":1:1: orphan-rule") {
		t.Errorf("%+v", s)
	}
	status = http.StatusNotFound
	heed(t, "", "lint", site.URL).is(t, exitUsage, "",
		"heed: there is no robots.txt to look at: "+site.URL+"/robots.txt is answered with status 404\n")
}

func TestHeed_LintEscapesWhatASiteWrote(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "robots.txt"), "\x1b[2J\x07\n")
	if s := heed(t, "", "lint", file); s.status != exitNo || strings.ContainsAny(s.out, "\x1b\x07") {
		t.Errorf("%+v", s)
	}
}

func TestHeed_ColoursAreForTerminals(t *testing.T) {
	if got := colours(nil, &strings.Builder{})(red, "x"); got != "x" {
		t.Errorf("%q", got)
	}
}
