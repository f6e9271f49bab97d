package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func TestNothingThatATerminalObeysIsPrinted(t *testing.T) {
	body := "User-agent: " + testkit.Hostile + "bot\nUser-agent: *\nDisallow: /p" + testkit.Hostile + "*\nDisallow: /p\nNonsense" + testkit.Hostile + "\n"
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, body)
		}
	}))
	defer site.Close()
	file := testkit.Write(t, filepath.Join(t.TempDir(), "robots.txt"), body)
	agent := "Evil" + strings.ReplaceAll(testkit.Hostile, "\n", "") + "/1 (" + testkit.Hostile + ")"
	target := "/p%1B%5B2J%07%7F%C2%9B31m%9B32m%E2%80%AE%E2%81%A6%E2%81%A9%FF%E2%80%A8%F3%A0%81%81/x"
	for _, args := range [][]string{
		{"check", "--robots", file, "--agent", agent, "https://h.test" + target, "https://h.test/" + testkit.Hostile},
		{"check", "--explain", "--robots", file, "--agent", agent, "https://h.test" + target},
		{"check", "--json", "--robots", file, "--agent", agent, "https://h.test" + target},
		{"check", "--robots", file + testkit.Hostile, "--agent", agent, "https://h.test/"},
		{"lint", file}, {"lint", "--json", file}, {"lint", site.URL}, {"lint", file + testkit.Hostile},
		{"chec" + testkit.Hostile}, {"check", "--" + testkit.Hostile},
	} {
		s := heed(t, "", args...)
		testkit.Harmless(t, fmt.Sprintf("%q", args), s.out+s.errors)
		must.True(t, s.out+s.errors != "", "%q says nothing", args)
	}
	line, _ := json.Marshal(map[string]string{"robots": body, "agent": agent, "url": "https://h.test" + target, "x" + testkit.Hostile: testkit.Hostile})
	s := heed(t, string(line), "check", "--batch")
	testkit.Harmless(t, "batch", s.out)
	must.True(t, s.status == 0 && json.Valid([]byte(s.out)) && strings.Contains(s.out, `"allowed":false`), "batch: %+v", s)
}

func TestStatusAndCacheShowNothingThatATerminalObeys(t *testing.T) {
	body := "User-agent: *\nDisallow: /" + testkit.Hostile + "\n"
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, body) }))
	defer site.Close()
	testkit.Serve(t, "")
	s := heed(t, "", "check", "--agent", "x", site.URL+"/")
	must.Need(t, s.status == 0, "%+v", s)
	host := strings.TrimPrefix(site.URL, "http://")
	for _, args := range [][]string{{"cache", "show", host}, {"cache", "show", "--json", host}, {"cache", "list"}, {"cache", "show", testkit.Hostile}, {"cache", "purge", testkit.Hostile}, {"status"}, {"status", "--json"}} {
		s := heed(t, "", args...)
		testkit.Harmless(t, fmt.Sprintf("%q", args), s.out+s.errors)
		must.True(t, s.out+s.errors != "", "%q says nothing", args)
	}
}
