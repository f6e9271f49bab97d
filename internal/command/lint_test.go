package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules/lint"
)

func TestLintPrintsPlaceMeaningAndCure(t *testing.T) {
	file := testkit.Write(t, filepath.Join(t.TempDir(), "robots.txt"), "Useragent: *\nDisallow: private\nAllow: /a%\n")
	heed(t, "", "lint", file).is(t, console.ExitNo,
		file+":1:1: misspelt-field  Useragent\n"+
			"    The field is misspelt but understood; other robots may ignore the line.\n"+
			"    Write User-agent, Allow, Disallow or Sitemap.\n"+
			file+":2:11: no-slash  private\n"+
			"    The path does not begin with /; it is read as if it did, other robots may ignore it.\n"+
			"    Begin it with / or *.\n"+
			file+":3:10: bad-escape  %\n"+
			"    A % without two hexadecimal digits after it is an ordinary character.\n"+
			"    Write %25 for the character.\n", "")
	heed(t, "", "lint", "-q", file).is(t, console.ExitNo, "", "")
}

func TestLintStatusFollowsTheWorstFile(t *testing.T) {
	dir := t.TempDir()
	clean := testkit.Write(t, filepath.Join(dir, "clean"), someRules)
	slight := testkit.Write(t, filepath.Join(dir, "slight"), "User-agent: examplebot/1.0\nDisallow: /a\n")
	bad := testkit.Write(t, filepath.Join(dir, "bad"), "Disallow: /a\n")
	heed(t, "", "lint", clean).is(t, 0, "", "heed: "+clean+": nothing odd\n")
	heed(t, "", "lint", "-q", slight, clean).is(t, 0, "", "")
	heed(t, "", "lint", "-q", slight, bad, clean).is(t, console.ExitNo, "", "")
	heed(t, "", "lint", "-q", bad, filepath.Join(dir, "none")).is(t, console.ExitUsage, "",
		"heed: the robots.txt cannot be read: open "+filepath.Join(dir, "none")+": no such file or directory\nTo look at a site's, write its URL, such as https://example.org/\n")
	s := heed(t, "Disallow: /a\n", "lint", "-")
	must.True(t, s.status == console.ExitNo && strings.HasPrefix(s.out, "-:1:1: orphan-rule"), "stdin: %+v", s)
}

func TestLintAsJSONAndForASite(t *testing.T) {
	file := testkit.Write(t, filepath.Join(t.TempDir(), "robots.txt"), "User-agent: *\nDisallow: https://h.test/<a>\n")
	for site, kind := range map[string]lint.Kind{"": "foreign-url", "https://h.test/": "absolute-url", "https://other.test/": "foreign-url"} {
		s := heed(t, "", "lint", "--json", "--site", site, file)
		type finding struct {
			File                 string
			Line, Column         int
			Kind                 lint.Kind
			Text, Means, Instead string
			Serious              bool
		}
		var got finding
		must.OK(t, json.Unmarshal([]byte(s.out), &got))
		want := finding{file, 2, 11, kind, "https://h.test/<a>", kind.Means(), kind.Instead(), true}
		must.True(t, got == want && s.status == console.ExitNo, "%q: got %+v, want %+v", site, got, want)
	}
}

func TestLintFetchesAsTheProxyWould(t *testing.T) {
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
	s := heed(t, "", "lint", site.URL+"/some/page")
	must.True(t, s.status == console.ExitNo && strings.Contains(s.out, ":1:1: orphan-rule"), "%+v", s)
	status = http.StatusNotFound
	heed(t, "", "lint", site.URL).is(t, console.ExitUsage, "",
		"heed: there is no robots.txt to look at: "+site.URL+"/robots.txt is answered with status 404\nWhat that means for a page: heed check --explain --agent NAME URL\n")
}

func TestLintNamesADirectory(t *testing.T) {
	dir := t.TempDir()
	heed(t, "", "lint", dir).is(t, console.ExitUsage, "", "heed: "+dir+" is a directory\nName the file in it, such as "+dir+"/robots.txt\n")
}
