package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

const explainedRules = `User-agent: *
Disallow: /private
Allow: /tie
Disallow: /tie

User-agent: GoodBot
User-agent: Other Good Bot
Disallow: /a
Allow: /a/b
Disallow: /a/b*

User-agent: Googlebot
Disallow: /g

User-agent: goodbot
Allow: /private
`

func TestCheckExplainsTheRoadFromUserAgentToVerdict(t *testing.T) {
	robots := testkit.Write(t, filepath.Join(t.TempDir(), "robots.txt"), explainedRules)
	explains := func(agent, url, want string, flags ...string) {
		t.Helper()
		s := heed(t, "", append([]string{"check", "--explain", "--robots", robots, "--agent", agent, url}, flags...)...)
		_, told, _ := strings.Cut(s.out, "\n")
		told = strings.ReplaceAll(told, robots, "FILE")
		must.True(t, told == want[1:] && s.errors == "", "%q %s: printed\n%swant%s%s", agent, url, told, want, s.errors)
	}
	explains("Mozilla/5.0 (compatible; GoodBot/1.0; NewBot; +https://example.org/bingbot.htm) Chrome/130.0 Safari/537.36", "https://h.test/a/b", `
  Agent    Mozilla/5.0 (compatible; GoodBot/1.0; NewBot;
             +https://example.org/bingbot.htm) Chrome/130.0 Safari/537.36
           goodbot (from "GoodBot/1.0"): group GoodBot
           newbot: no group has this name
           ignored: Mozilla/5.0, compatible, Chrome/130.0, Safari/537.36 (a
             platform or a compatible browser)
           ignored: https://example.org/bingbot.htm (an address, which may
             contain names of other robots)
  Rules    FILE
  Group    GoodBot (lines 6, 15, 4 rules), for goodbot
  Judged   /a/b
             line 10: Disallow: /a/b* (5 octets) <- the longest counts
             line 9: Allow: /a/b (4 octets)
             line 8: Disallow: /a (2 octets)
  Verdict  refuse: line 10, Disallow: /a/b*, keeps goodbot from it
  Delay    none is asked for

`)
	explains("Applebot/0.1 GoodBot/1", "https://h.test/g", `
  Agent    Applebot/0.1 GoodBot/1
           applebot (from "Applebot/0.1 GoodBot/1"): group Googlebot, which its
             operator documents as the fallback when no group has this name
           goodbot (from "GoodBot/1"): group GoodBot
  Rules    FILE
  Group    Googlebot (line 12, 1 rule), for applebot
           GoodBot (lines 6, 15, 4 rules), for goodbot
           each of them must allow
  Judged   /g
             of group Googlebot these fit:
             line 13: Disallow: /g (2 octets) <- the only one that fits
  Verdict  refuse: line 13, Disallow: /g, keeps applebot from it
  Delay    none is asked for

`)
	explains("Good", "https://h.test/b", `
  Agent    Good
           good: group Other Good Bot, one of several names on that line: it may
             only add refusals
  Rules    FILE
  Group    * (line 1, 3 rules), since no group is for a name of the agent
           Other Good Bot (line 7, 3 rules), for good
           each of them must allow
  Judged   /b
             no rule of group * fits
             no rule of group Other Good Bot fits
  Verdict  allow: no rule applies
  Delay    none is asked for

`)
	explains("", "https://h.test/x/..%2Fprivate/page", `
  Agent    no User-Agent: the rules for all robots (*) apply
  Rules    FILE
  Group    * (line 1, 3 rules), since no group is for a name of the agent
  Judged   /x/..%2Fprivate/page
             no rule fits
           in 1 other spelling: allowed, too
           but a server may take it for /private/page (v3: escaped slashes and \
             are slashes):
             line 2: Disallow: /private (8 octets) <- the only one that fits
  Verdict  refuse: line 2, Disallow: /private, keeps all robots (*) from it
  Delay    none is asked for

`)
	const firefox = `
  Agent    Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0
           contains no name of a robot: the rules for all robots (*) apply
           ignored: Mozilla/5.0, X11, Linux, x86_64, Firefox/130.0 (a platform
             or a compatible browser)
  Rules    FILE
%s  Group    * (line 1, %s), since no group is for a name of the agent
  Judged   /tie
%s
  Delay    none is asked for

`
	explains("Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0", "https://h.test/tie", fmt.Sprintf(firefox, "", "3 rules", `
             line 3: Allow: /tie (4 octets) <- as long as line 4, and Allow
             counts then
             line 4: Disallow: /tie (4 octets)
  Verdict  allow: line 3, Allow: /tie, lets all robots (*) fetch it`[1:]))
	explains("Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0", "https://h.test/tie", fmt.Sprintf(firefox, "           read by the profile strict\n", "3 rules", `
             line 4: Disallow: /tie (4 octets) <- as long as line 3, and
             Disallow counts then
             line 3: Allow: /tie (4 octets)
  Verdict  refuse: line 4, Disallow: /tie, keeps all robots (*) from it`[1:]), "--profile", "strict")
	explains("examplebot", "https://h.test/robots.txt", `
  Agent    examplebot
           examplebot
  Verdict  allow: robots.txt itself may always be fetched

`)
	explains("examplebot", "https://h.test/%00", `
  Agent    examplebot
           examplebot
  Verdict  refuse: the request or its URL is malformed: the path contains a NUL
             octet

`)
}

// Whatever a client or a site writes, an explanation stays within a page.
func TestAnExplanationStaysWithinAPage(t *testing.T) {
	agent, robots := "", "User-agent: *\n"
	for i := range 100 {
		agent += fmt.Sprintf("bot%cx%c/1 Mozilla/%d ", 'a'+i%26, 'a'+i/26, i)
		robots += fmt.Sprintf("User-agent: bot%cx%c\nDisallow: /%s\n", 'a'+i%26, 'a'+i/26, strings.Repeat("*a", i))
	}
	file := testkit.Write(t, filepath.Join(t.TempDir(), "robots.txt"), robots)
	s := heed(t, "", "check", "--explain", "--robots", file, "--agent", agent, "https://h.test/"+strings.Repeat("a", 5000))
	lines := strings.Count(s.out, "\n")
	must.True(t, lines <= 100 && len(s.out) <= 16<<10, "%d lines, %d bytes", lines, len(s.out))
}

func TestCheckExplainsMissingRules(t *testing.T) {
	t.Setenv("HEED_STATE", filepath.Join(t.TempDir(), "none"))
	for status, verdict := range map[int]string{
		http.StatusNotFound: "  Verdict  allow: the site has no robots.txt\n",
		http.StatusServiceUnavailable: `  Verdict  refuse: its robots.txt could not be read: SITE/robots.txt answered
             503 Service Unavailable
`,
	} {
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) }))
		s := heed(t, "", "check", "--explain", "--agent", "examplebot", site.URL+"/")
		told := regexp.MustCompile(`\s+`).ReplaceAllString(strings.ReplaceAll(s.out, site.URL, "SITE"), " ")
		want := strings.Join(strings.Fields("Rules SITE/robots.txt asked just now "+verdict), " ")
		must.True(t, strings.Contains(told, want), "status %d: %s\nwant %s", status, s.out, want)
		site.Close()
	}
}

// TestCheckExplainsTooManyWildcards holds that a file which is refused for
// its size in wildcards is not told of as one that could not be had.
func TestCheckExplainsTooManyWildcards(t *testing.T) {
	line := "Disallow: /" + strings.Repeat("*a", 4096) + "\n"
	body := "User-agent: *\nAllow: /\n" + strings.Repeat(line, rules.MaxWildcards/4096+1)
	file := testkit.Write(t, filepath.Join(t.TempDir(), "robots.txt"), body)
	s := heed(t, "", "check", "--explain", "--robots", file, "--agent", "examplebot", "https://h.test/")
	told := strings.Join(strings.Fields(s.out), " ")
	for _, want := range []string{
		"robots-unreachable: robots.txt has more than 1,048,576 wildcards and is not used; all but /robots.txt is refused",
		"Verdict refuse: robots.txt has more than 1,048,576 wildcards and is not used: everything but /robots.txt is refused until the site has fewer",
	} {
		must.True(t, s.status == 1 && strings.Contains(told, want), "exit %d, told\n%s\nwant %q", s.status, s.out, want)
	}
	s = heed(t, "", "lint", "--json", file)
	must.True(t, s.status == 1 && strings.Contains(s.out, `"many-wildcards"`), "lint: exit %d, %.300s", s.status, s.out)
}
