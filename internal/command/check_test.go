package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"heed/internal/control"
	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

const someRules = "User-agent: *\nDisallow: /private\n\nUser-agent: GoodBot\nAllow: /\n"

func TestCheckSaysRuleLineAndGroup(t *testing.T) {
	robots := testkit.Write(t, filepath.Join(t.TempDir(), "robots.txt"), someRules)
	check := func(args ...string) said {
		return heed(t, "", append([]string{"check", "--robots", robots}, args...)...)
	}
	check("--agent", "x", "https://h.test/private/1", "https://h.test/").is(t, console.ExitNo,
		"refuse https://h.test/private/1  rule: line 2, Disallow: /private, group * (by "+robots+")\n"+
			"allow  https://h.test/  no-rule: no rule applies, group * (by "+robots+")\n", "")
	check("--agent", "Mozilla/5.0 (compatible; GoodBot/1.0)", "https://h.test/private").is(t, 0,
		"allow  https://h.test/private  rule: line 5, Allow: /, group GoodBot (by "+robots+")\n", "")
	check("--agent", "x", "https://h.test/robots.txt").is(t, 0,
		"allow  https://h.test/robots.txt  robots-txt: robots.txt itself may always be fetched\n", "")
	check("--agent", "x", "https://h.test/%00").is(t, console.ExitNo,
		"refuse https://h.test/%00  malformed: the request or its URL is malformed (the path contains a NUL octet)\n", "")
	check("--agent", "x", "https://h.test/%u0070rivate/1").is(t, console.ExitNo,
		"refuse https://h.test/%u0070rivate/1  malformed: the request or its URL is malformed (the path contains %u0070, which some servers decode; "+
			"write the character in UTF-8 with an escape for each octet)\n", "")
	check("--agent", "", "-q", "https://h.test/private").is(t, console.ExitNo, "", "")
	check("--agent", "x", "-q", "https://h.test/").is(t, 0, "", "")
}

func TestCheckAsJSON(t *testing.T) {
	robots := testkit.Write(t, filepath.Join(t.TempDir(), "robots.txt"), someRules)
	s := heed(t, "", "check", "--json", "--robots", robots, "--agent", "GoodBot/1.0", "https://h.test/private?a=<b>")
	var got control.Judgement
	must.OK(t, json.Unmarshal([]byte(s.out), &got))
	d := got.Delay
	must.True(t, d != nil, "the judgement has no delay")
	got.Delay = nil
	want := control.Judgement{
		URL: "https://h.test/private?a=<b>", Agent: "GoodBot/1.0", Allowed: true, Reason: "rule",
		Group: "GoodBot", Rule: "Allow: /", Line: 5, Token: "goodbot", Role: "seen", Robots: robots, By: "file", State: "available", Profile: "standard", Names: []string{"GoodBot"},
	}
	must.Same(t, got, want)
}

// What heed judges in a request, heed check judges in a URL.
func TestCheckTakesTheTargetsOfRealClients(t *testing.T) {
	robots := testkit.Write(t, filepath.Join(t.TempDir(), "robots.txt"), "User-agent: *\nDisallow: /100%-no\nDisallow: /a|b\nDisallow: /caf\u00e9\n")
	for url, verdict := range map[string]string{
		"https://h.test/100%-cotton": "allow ", "https://h.test/100%-no": "refuse", "https://h.test/100%25-no?x=%": "refuse",
		"https://h.test/a|b": "refuse", "https://h.test/a%7Cb": "refuse", "https://h.test/%": "allow ",
		"https://h.test/caf%C3%A9": "refuse", "https://h.test/caf\u00e9": "refuse", "https://h.test/caf\xe9": "refuse", "https://h.test/caf\xea": "allow ", "https://h.test/{\"^": "allow ",
	} {
		s := heed(t, "", "check", "--robots", robots, "--agent", "x", url)
		must.True(t, strings.HasPrefix(s.out, verdict+" https://h.test/") && s.errors == "",
			"%q: %q %q, want %s", url, s.out, s.errors, verdict)
	}
}

func TestCheckOfWhatIsNoURL(t *testing.T) {
	robots := testkit.Write(t, filepath.Join(t.TempDir(), "robots.txt"), someRules)
	for url, says := range map[string]string{
		"example.org/page":         `"example.org/page" is not the URL of a site; write it out, such as "https://example.org/page"`,
		"ftp://example.org/":       `"ftp://example.org/" is not the URL of a site; write it out, such as "https://example.org/page"`,
		"https:///x":               `"https:///x" is not the URL of a site; write it out, such as "https://example.org/page"`,
		"https://h%zz.test/":       `"https://h%zz.test/" is not a URL: invalid URL escape "%zz"`,
		"https://h.test:99999/":    `"https://h.test:99999/" names no site: `,
		"https://0x7f.1/":          `"https://0x7f.1/" names no site: `,
		"https://h.test/a\x1b[31m": `"https://h.test/a\x1b[31m" is not a URL: `,
	} {
		s := heed(t, "", "check", "--robots", robots, "--agent", "x", url, "https://h.test/")
		if s.status != console.ExitUsage || !strings.HasPrefix(s.errors, "heed: "+says) || strings.Count(s.errors, "\n") != 1 {
			t.Errorf("%q: status %d, stderr %q, want %q", url, s.status, s.errors, says)
		}
		must.True(t, strings.HasPrefix(s.out, "allow  https://h.test/ "),
			"%q: the URL after it is answered by %q", url, s.out)
	}
	heed(t, "", "check", "--robots", robots+".none", "--agent", "x", "https://h.test/").is(t, console.ExitUsage, "",
		"heed: the robots.txt cannot be read: open "+robots+".none: no such file or directory\n")
}

func TestCheckFetchesAsTheProxyWould(t *testing.T) {
	t.Setenv("HEED_STATE", filepath.Join(t.TempDir(), "none"))
	var agents []string
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agents = append(agents, r.URL.Path+" "+r.UserAgent())
		fmt.Fprint(w, someRules)
	}))
	defer site.Close()
	s := heed(t, "", "check", "--agent", "x", site.URL+"/private", site.URL+"/")
	s.is(t, console.ExitNo,
		"refuse "+site.URL+"/private  rule: line 2, Disallow: /private, group * (asked just now)\n"+
			"allow  "+site.URL+"/  no-rule: no rule applies, group * (asked just now)\n", "")
	must.True(t, len(agents) == 1 && agents[0] == "/robots.txt heed/1.0", "the site was asked for %q", agents)
	s = heed(t, "", "check", "--agent", "x", "http://"+testkit.FreeAddr(t)+"/")
	if s.status != console.ExitNo || !strings.Contains(s.out, "origin-unreachable: the site was not reached or gave no valid answer (") {
		t.Errorf("%+v", s)
	}
}

// heed check goes where the proxy would go, and says so where it does not.
func TestCheckKeepsToTheSameDestinations(t *testing.T) {
	t.Setenv("HEED_STATE", t.TempDir())
	var asked atomic.Int32
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
	}))
	t.Cleanup(site.Close)
	config := func(text string) string {
		return testkit.Write(t, filepath.Join(t.TempDir(), "proxy.toml"), "[access]\n"+text)
	}
	check := func(text string) said {
		return heed(t, "", "check", "--config", config(text), "--agent", "bot", site.URL+"/page")
	}
	s := check(`private_destinations = "refuse"`)
	if s.status != 1 || !strings.Contains(s.out, "refuse "+site.URL+"/page  destination: ") || !strings.Contains(s.out, "a loopback address") || asked.Load() != 0 {
		t.Errorf("%+v, %d requests", s, asked.Load())
	}
	for _, allowed := range []string{"", "private_destinations = \"refuse\"\nallow_to = [\"127.0.0.0/8\"]"} {
		s := check(allowed)
		must.True(t, s.status == 0, "%q: %+v", allowed, s)
	}
}
