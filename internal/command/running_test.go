package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/control"
	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

const settledTerms = `
[[client]]
name = "shop"
user_agent = "Mozilla/*"
agent = ["otherbot"]
[[client]]
name = "people"
from = ["192.0.2.0/24"]
mode = "exempt"
[[host]]
match = ["127.0.0.1"]
allow = ["/private/feed"]
refuse = ["/open"]
reason = "letter 14"
[[host]]
match = ["api.test"]
crawl = false
reason = "a registry"
`

// Exceptions, pins and services of the running heed decide in check as they do
// for requests, and the line quotes the operator's reason.
func TestCheckAppliesWhatWasSettled(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, someRules) }))
	defer site.Close()
	testkit.Serve(t, settledTerms)
	for _, c := range []struct {
		url, want string
		args      []string
	}{
		{site.URL + "/private/feed/1", `allow  %s  override: an exception of the operator: Allow: /private/feed (letter 14)`, []string{"--agent", "x"}},
		{site.URL + "/open", `refuse %s  override: an exception of the operator: Disallow: /open (letter 14)`, []string{"--agent", "x"}},
		{site.URL + "/private", `refuse %s  rule: line 2`, []string{"--agent", "x"}},
		{site.URL + "/private", `allow  %s  exempt: an exempt client: people, not a robot`, []string{"--agent", "x", "--client", "people"}},
		{"https://api.test/v1", `allow  %s  not-a-crawl: a service that programs call, not a site they crawl (a registry)`, []string{"--agent", "x"}},
	} {
		got := heed(t, "", append(append([]string{"check"}, c.args...), c.url)...)
		want := strings.ReplaceAll(c.want, "%s", c.url)
		must.True(t, strings.HasPrefix(got.out, want), "%v: %+v, want %s", c.args, got, want)
	}
	explained := heed(t, "", "check", "--explain", "--agent", "x", site.URL+"/private/feed/1")
	if !strings.Contains(strings.Join(strings.Fields(explained.out), " "), "an exception of the operator's, lets it through whatever the rules say (letter 14)") {
		t.Errorf("explained: %s", explained.out)
	}
	var pinned control.Judgement
	s := heed(t, "", "check", "--json", "--agent", "Mozilla/5.0 Chrome/130", site.URL+"/private")
	err := json.Unmarshal([]byte(s.out), &pinned)
	must.True(t, err == nil && pinned.Client == "shop", "pinned: %+v, %v", s, err)
	if s := heed(t, "", "check", "--client", "unknown", "--agent", "x", site.URL); s.status != console.ExitUsage || !strings.Contains(s.errors, "no [[client]] called unknown") {
		t.Errorf("unknown client: %+v", s)
	}
}

// A rejected reload is in the status until one succeeds, and a refused request sent nothing.
func TestWhatDidNotHappenIsSaidSo(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, someRules) }))
	defer site.Close()
	client := "[[client]]\nname = \"mirror\"\nuser_agent = \"*\"\nagent = [\"otherbot\"]\nsend_user_agent = \"MirrorBot/1.0\"\n"
	h := testkit.Serve(t, client)
	through := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: h.Addr})}}
	for path, says := range map[string]string{"/open": "the site received User-Agent: MirrorBot/1.0", "/private": "the site received nothing; an allowed request would have had User-Agent: MirrorBot/1.0"} {
		r := must.Get(through.Get(site.URL + path))(t)
		r.Body.Close()
		testkit.Until(t, "heed why "+path, func() bool {
			return strings.Contains(strings.Join(strings.Fields(heed(t, "", "why", site.URL+path).out), " "), says)
		})
	}
	settings := testkit.Read(t, h.File)
	testkit.Write(t, h.File, settings+"nonsense = 1\n")
	s := heed(t, "", "reload")
	must.True(t, s.status != 0, "%+v", s)
	if s := heed(t, "", "status"); s.status != console.ExitNo || !strings.Contains(s.out+s.errors, "the settings were not reloaded on ") || !strings.Contains(s.out+s.errors, "nonsense") {
		t.Errorf("%+v", s)
	}
	testkit.Write(t, h.File, settings+"[audit]\nmax_size = \"1GiB\"\n")
	s = heed(t, "", "reload")
	must.True(t, s.status != 0, "%+v", s)
	if s := heed(t, "", "status"); !strings.Contains(s.out+s.errors, "these changes need a restart: audit.max_size; Restart heed, or undo them and reload again\n") {
		t.Errorf("%+v", s)
	}
	testkit.Write(t, h.File, settings)
	s = heed(t, "", "reload")
	must.True(t, s.status == 0, "%+v", s)
	s = heed(t, "", "status")
	must.True(t, s.status == 0 && !strings.Contains(s.out, "not reloaded"), "%+v", s)
}

// A file that is no robots.txt does not allow everything.
func TestAFileThatIsNoRobotsIsRefused(t *testing.T) {
	dir := t.TempDir()
	urls := testkit.Write(t, filepath.Join(dir, "urls.txt"), "https://example.org/a\nhttps://example.org/b\n")
	for _, args := range [][]string{
		{"check", "--robots", urls, "--agent", "x", "https://example.org/"}, {"check", "--robots", testkit.Binary(t), "--agent", "x", "https://example.org/"},
		{"study", "--robots", urls, testkit.Write(t, filepath.Join(dir, "log"), `192.0.2.1 - - [01/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "Bot/1"`+"\n")},
	} {
		if s := heed(t, "", args...); s.status != console.ExitUsage || !strings.Contains(s.errors, "no line of it is one of a robots.txt") {
			t.Errorf("%q: %+v", args, s)
		}
	}
	for _, text := range []string{"", "# nothing\n\n", "Disalow: /x", "Sitemap: https://example.org/s"} {
		file := testkit.Write(t, filepath.Join(dir, "robots.txt"), text)
		s := heed(t, "", "check", "--robots", file, "--agent", "x", "https://example.org/")
		must.True(t, s.status == 0, "%q: %+v", text, s)
	}
}
