package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"heed/rules"
)

func TestHeed_CheckExplainsTheRoadFromUserAgentToVerdict(t *testing.T) {
	robots := write(t, filepath.Join(t.TempDir(), "robots.txt"), someRules)
	tells := func(agent, url string, steps ...string) {
		t.Helper()
		s := heed(t, "", "check", "--explain", "--robots", robots, "--agent", agent, url)
		_, told, _ := strings.Cut(s.out, "\n")
		want := "    " + strings.Join(steps, "\n    ") + "\n"
		if told != want || s.errors != "" {
			t.Errorf("%q %s is told\n%swant\n%s%s", agent, url, told, want, s.errors)
		}
	}
	tells("Mozilla/5.0 (compatible; GoodBot/1.0; +https://example.org/)", "https://h.test/private",
		`Who asks goes by the name goodbot (from "GoodBot/1.0").`,
		`The rules are from `+robots+`; the name goodbot leads to its group GoodBot.`,
		`Of the rules that fit the URL, line 5 is the longest, Allow: /: it may be fetched.`)
	tells("GoodBot/1.0; OtherBot/2.0", "https://h.test/private",
		`Who asks goes by the names goodbot (from "GoodBot/1.0"), otherbot (from "OtherBot/2.0"); each that has a group must be allowed.`,
		`The rules are from `+robots+`; the name goodbot leads to its group GoodBot.`,
		`Of the rules that fit the URL, line 5 is the longest, Allow: /: it may be fetched.`)
	tells("Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0", "https://h.test/private",
		`"Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0" names no robot: what is written for all robots (*) counts.`,
		`The rules are from `+robots+`; none of its groups has that name, and the one for all robots (*) governs.`,
		`Of the rules that fit the URL, line 2 is the longest, Disallow: /private: it may not be fetched.`)
	tells("", "https://h.test/x/../private",
		`Nobody says who asks: what is written for all robots (*) counts.`,
		`The rules are from `+robots+`; none of its groups has that name, and the one for all robots (*) governs.`,
		`Of the rules that fit another reading of the URL (v1), which a server may take it for, line 2 is the longest, Disallow: /private: it may not be fetched.`)
	tells("examplebot", "https://h.test/",
		`Who asks goes by the name examplebot.`,
		`The rules are from `+robots+`; none of its groups has that name, and the one for all robots (*) governs.`,
		`No rule fits the URL: it may be fetched.`)
	tells("examplebot", "https://h.test/robots.txt",
		`Who asks goes by the name examplebot.`,
		`This is robots.txt itself, which may always be fetched (RFC 9309 §2.2.2).`)
	tells("examplebot", "https://h.test/%00",
		`Who asks goes by the name examplebot.`,
		`No server can be asked for this URL: the path contains a NUL octet.`)
}

func TestHeed_CheckExplainsMissingRules(t *testing.T) {
	t.Setenv("HEED_STATE", filepath.Join(t.TempDir(), "none"))
	for status, step := range map[int]string{
		http.StatusNotFound:           "The site has none: everything may be fetched (RFC 9309 §2.3.1.3).",
		http.StatusServiceUnavailable: "They cannot be had, and no copy is left: nothing may be fetched until they can (RFC 9309 §2.3.1.4).",
	} {
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) }))
		s := heed(t, "", "check", "--explain", "--agent", "examplebot", site.URL+"/")
		if !strings.HasSuffix(s.out, fmt.Sprintf("    The rules are from %s/robots.txt.\n    %s\n", site.URL, step)) {
			t.Errorf("status %d: %+v", status, s)
		}
		site.Close()
	}
}

// TestHeed_CheckExplainsTooManyWildcards holds that a file which is refused for
// its size in wildcards is not told of as one that could not be had.
func TestHeed_CheckExplainsTooManyWildcards(t *testing.T) {
	line := "Disallow: /" + strings.Repeat("*a", 4096) + "\n"
	body := "User-agent: *\nAllow: /\n" + strings.Repeat(line, rules.MaxWildcards/4096+1)
	file := write(t, filepath.Join(t.TempDir(), "robots.txt"), body)
	s := heed(t, "", "check", "--explain", "--robots", file, "--agent", "examplebot", "https://h.test/")
	for _, want := range []string{
		"robots-unreachable: robots.txt has more than 1,048,576 wildcards, too many to judge by it; all but /robots.txt is refused\n",
		"There are more than 1,048,576 wildcards (*) in them, too many to judge by: everything but /robots.txt is refused until the site has fewer.",
	} {
		if s.status != 1 || !strings.Contains(s.out, want) {
			t.Errorf("exit %d, told\n%s\nwant %q", s.status, s.out, want)
		}
	}
	if s := heed(t, "", "lint", "--json", file); s.status != 1 || !strings.Contains(s.out, `"many-wildcards"`) {
		t.Errorf("lint: exit %d, %.300s", s.status, s.out)
	}
}
