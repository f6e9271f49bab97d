package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

const someRules = "User-agent: *\nDisallow: /private\n\nUser-agent: GoodBot\nAllow: /\n"

func TestHeed_CheckSaysRuleLineAndGroup(t *testing.T) {
	robots := write(t, filepath.Join(t.TempDir(), "robots.txt"), someRules)
	check := func(args ...string) said {
		return heed(t, "", append([]string{"check", "--robots", robots}, args...)...)
	}
	check("--agent", "x", "https://h.test/private/1", "https://h.test/").is(t, exitNo,
		"refuse https://h.test/private/1  rule: line 2, Disallow: /private, group * (by "+robots+")\n"+
			"allow  https://h.test/  no-rule: no rule speaks of it, group * (by "+robots+")\n", "")
	check("--agent", "Mozilla/5.0 (compatible; GoodBot/1.0)", "https://h.test/private").is(t, 0,
		"allow  https://h.test/private  rule: line 5, Allow: /, group GoodBot (by "+robots+")\n", "")
	check("--agent", "x", "https://h.test/robots.txt").is(t, 0,
		"allow  https://h.test/robots.txt  robots-txt: robots.txt may always be asked for\n", "")
	check("--agent", "x", "https://h.test/%00").is(t, exitNo,
		"refuse https://h.test/%00  malformed: the URL cannot be judged (the path contains a NUL octet)\n", "")
	check("--agent", "", "-q", "https://h.test/private").is(t, exitNo, "", "")
	check("--agent", "x", "-q", "https://h.test/").is(t, 0, "", "")
}

func TestHeed_CheckAsJSON(t *testing.T) {
	robots := write(t, filepath.Join(t.TempDir(), "robots.txt"), someRules)
	s := heed(t, "", "check", "--json", "--robots", robots, "--agent", "GoodBot/1.0", "https://h.test/private?a=<b>")
	var got judgement
	if err := json.Unmarshal([]byte(s.out), &got); err != nil {
		t.Fatal(err)
	}
	want := judgement{
		URL: "https://h.test/private?a=<b>", Agent: "GoodBot/1.0", Allowed: true, Reason: "rule",
		Group: "GoodBot", Rule: "Allow: /", Line: 5, Token: "goodbot", Robots: robots, By: "file", Profile: "standard",
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestHeed_CheckOfWhatIsNoURL(t *testing.T) {
	robots := write(t, filepath.Join(t.TempDir(), "robots.txt"), someRules)
	for url, says := range map[string]string{
		"example.org/page":         `"example.org/page" is not the URL of a site; write it out, such as "https://example.org/page"`,
		"ftp://example.org/":       `"ftp://example.org/" is not the URL of a site; write it out, such as "https://example.org/page"`,
		"https:///x":               `"https:///x" is not the URL of a site; write it out, such as "https://example.org/page"`,
		"https://h.test/%zz":       `"https://h.test/%zz" is not a URL: invalid URL escape "%zz"`,
		"https://h.test:99999/":    `"https://h.test:99999/" names no site: `,
		"https://0x7f.1/":          `"https://0x7f.1/" names no site: `,
		"https://h.test/a\x1b[31m": `"https://h.test/a\x1b[31m" is not a URL: `,
	} {
		s := heed(t, "", "check", "--robots", robots, "--agent", "x", url, "https://h.test/")
		if s.status != exitUsage || !strings.HasPrefix(s.errors, "heed: "+says) || strings.Count(s.errors, "\n") != 1 {
			t.Errorf("%q: status %d, stderr %q, want %q", url, s.status, s.errors, says)
		}
		if !strings.HasPrefix(s.out, "allow  https://h.test/ ") {
			t.Errorf("%q: the URL after it is answered by %q", url, s.out)
		}
	}
	heed(t, "", "check", "--robots", robots+".none", "--agent", "x", "https://h.test/").is(t, exitUsage, "",
		"heed: the robots.txt cannot be read: open "+robots+".none: no such file or directory\n")
}

func TestHeed_CheckEscapesWhatASiteWrote(t *testing.T) {
	robots := write(t, filepath.Join(t.TempDir(), "robots.txt"), "User-agent: *\nDisallow: /\x1b[2J"+strings.Repeat("a", 4000)+"\nDisallow: /p\x1b]0;x\x07*\n")
	s := heed(t, "", "check", "--robots", robots, "--agent", "x", "https://h.test/p%1B]0;x%07")
	if s.status != exitNo || strings.ContainsAny(s.out, "\x1b\x07") || len(s.out) > 1000 {
		t.Errorf("%+v", s)
	}
}

func TestHeed_CheckFetchesAsTheProxyWould(t *testing.T) {
	t.Setenv("HEED_STATE", filepath.Join(t.TempDir(), "none"))
	var agents []string
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agents = append(agents, r.URL.Path+" "+r.UserAgent())
		fmt.Fprint(w, someRules)
	}))
	defer site.Close()
	s := heed(t, "", "check", "--agent", "x", site.URL+"/private", site.URL+"/")
	s.is(t, exitNo,
		"refuse "+site.URL+"/private  rule: line 2, Disallow: /private, group * (asked just now)\n"+
			"allow  "+site.URL+"/  no-rule: no rule speaks of it, group * (asked just now)\n", "")
	if len(agents) != 1 || agents[0] != "/robots.txt heed/1.0" {
		t.Errorf("the site was asked for %q", agents)
	}
	site.Close()
	s = heed(t, "", "check", "--agent", "x", site.URL+"/")
	if s.status != exitNo || !strings.Contains(s.out, "origin-unreachable: the site cannot be reached (") {
		t.Errorf("%+v", s)
	}
}
