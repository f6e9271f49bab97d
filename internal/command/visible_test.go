package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"heed/internal/audit"
	"heed/rules"
)

// hostile is what a terminal would obey or be deceived by: ESC and other C0,
// DEL, C1 as a character and as an octet, marks of direction, octets that are
// no UTF-8, a line separator.
const hostile = "\x1b[2J\a\x7f\u009b31m\x9b32m\u202e\u2066\u2069\xff\u2028\U000e0041"

// harmless reports what of hostile text says; newlines, and blanks, are fine.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		if r != '\n' && (!unicode.IsPrint(r) || r == utf8.RuneError && size == 1) {
			t.Errorf("%s has %q at %d: %q", what, r, i, text)
			return
		}
	}
}

func TestHeed_NothingThatATerminalObeysIsPrinted(t *testing.T) {
	body := "User-agent: " + hostile + "bot\nUser-agent: *\nDisallow: /p" + hostile + "*\nDisallow: /p\nNonsense" + hostile + "\n"
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, body)
		}
	}))
	defer site.Close()
	file := write(t, filepath.Join(t.TempDir(), "robots.txt"), body)
	agent := "Evil" + strings.ReplaceAll(hostile, "\n", "") + "/1 (" + hostile + ")"
	target := "/p%1B%5B2J%07%7F%C2%9B31m%9B32m%E2%80%AE%E2%81%A6%E2%81%A9%FF%E2%80%A8%F3%A0%81%81/x"
	for _, args := range [][]string{
		{"check", "--robots", file, "--agent", agent, "https://h.test" + target, "https://h.test/" + hostile},
		{"check", "--explain", "--robots", file, "--agent", agent, "https://h.test" + target},
		{"check", "--json", "--robots", file, "--agent", agent, "https://h.test" + target},
		{"check", "--robots", file + hostile, "--agent", agent, "https://h.test/"},
		{"lint", file}, {"lint", "--json", file}, {"lint", site.URL}, {"lint", file + hostile},
		{"chec" + hostile}, {"check", "--" + hostile},
	} {
		s := heed(t, "", args...)
		harmless(t, fmt.Sprintf("%q", args), s.out+s.errors)
		if s.out+s.errors == "" {
			t.Errorf("%q says nothing", args)
		}
	}
	line, _ := json.Marshal(map[string]string{"robots": body, "agent": agent, "url": "https://h.test" + target, "x" + hostile: hostile})
	s := heed(t, string(line), "check", "--batch")
	harmless(t, "batch", s.out)
	if s.status != 0 || !json.Valid([]byte(s.out)) || !strings.Contains(s.out, `"allowed":false`) {
		t.Errorf("batch: %+v", s)
	}
}

// What a program reads of a line of JSON is what was written into it.
func TestHeed_EscapesInJSONChangeNothingForPrograms(t *testing.T) {
	valid := strings.ToValidUTF8(hostile, "\uFFFD") + "é漢字😀"
	var out bytes.Buffer
	if err := newJSON(&out).Encode(valid); err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != valid {
		t.Errorf("%q, %v; want %q", back, err, valid)
	}
	harmless(t, "JSON", out.String())
	if !strings.Contains(out.String(), "é漢字😀") {
		t.Errorf("what can be seen is escaped: %s", out.String())
	}
}

func TestHeed_LogLinesHoldNothingThatATerminalObeys(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		record := audit.NewLog(logHandler(LogConfig{Format: format}, slog.LevelInfo, &out, false), nil)
		e := &audit.Entry{
			Method: "GET" + hostile, Host: "h.test", Scheme: "http", Target: "/" + hostile, Raw: hostile, UserAgent: hostile, Detail: hostile,
			Agent: rules.Identify(hostile), Decision: rules.Decision{Reason: rules.ReasonRule, Group: hostile, Rule: hostile, Line: 1, Token: hostile},
		}
		e.Outcome.Err = hostile
		if err := record.Decided(e); err != nil {
			t.Fatal(err)
		}
		record.Ended(e)
		slog.New(logHandler(LogConfig{Format: format}, slog.LevelInfo, &out, false)).Warn("w", "error", hostile, "plain", "a\x7fb")
		harmless(t, format, out.String())
		if strings.Count(out.String(), "\n") != 2 {
			t.Errorf("%s: %q", format, out.String())
		}
	}
}

func TestHeed_StatusAndCacheShowNothingThatATerminalObeys(t *testing.T) {
	body := "User-agent: *\nDisallow: /" + hostile + "\n"
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, body) }))
	defer site.Close()
	startDaemon(t, func(d *daemon) { d.background, d.listens = false, []string{"127.0.0.1:3128"} })
	if s := heed(t, "", "check", "--agent", "x", site.URL+"/"); s.status != 0 {
		t.Fatalf("%+v", s)
	}
	host := strings.TrimPrefix(site.URL, "http://")
	for _, args := range [][]string{{"cache", "show", host}, {"cache", "show", "--json", host}, {"cache", "list"}, {"cache", "show", hostile}, {"cache", "purge", hostile}, {"status"}, {"status", "--json"}} {
		s := heed(t, "", args...)
		harmless(t, fmt.Sprintf("%q", args), s.out+s.errors)
		if s.out+s.errors == "" {
			t.Errorf("%q says nothing", args)
		}
	}
}
