package command

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/proxy"
	"heed/rules"
)

func summarised(s *audit.Summary) string {
	var out bytes.Buffer
	printSummary(&out, s)
	return out.String()
}

func TestHeed_SummaryTellsEveryKindOfOutcome(t *testing.T) {
	s := &audit.Summary{
		Counts: audit.Counts{Requests: 14, Allowed: 9, Refused: 3, WouldRefuse: 1, NotJudged: 1, ByPath: 12, ByHost: 1},
		Waited: audit.Waits{Requests: 2, Total: 3 * time.Second, Longest: 2 * time.Second},
		Hosts: []audit.HostCount{
			{Host: "a.test", Counts: audit.Counts{Requests: 13, Allowed: 9, Refused: 3}},
			{Host: "b.test", Counts: audit.Counts{Requests: 1}},
		},
		Refusals: []audit.RuleCount{
			{Host: "a.test", Reason: rules.ReasonRule, Group: "*", Rule: "Disallow: /private", Line: 12, Count: 2},
			{Host: "a.test", Reason: rules.ReasonRobotsUnreachable, Count: 1},
			{Host: audit.Other, Count: 7},
		},
		Sites:    []audit.SiteCount{{Host: "a.test", Status: 429, Count: 4}, {Host: audit.Other, Count: 2}},
		Pages:    []audit.PageCount{{Page: "https://a.test/news", Parts: 50, Refused: 7}, {Parts: 1, SiteRefused: 1}},
		Unjudged: []audit.ReasonCount{{Host: "b.test", Reason: rules.ReasonUntrusted, Verdict: "refuse", Count: 1}},
	}
	want := `heed: 14 requests to 2 hosts: 9 allowed, 3 refused, 1 let through that enforcing would refuse, 1 not judged
  a.test: 13 requests, 9 allowed, 3 refused
  b.test: 1 request, 0 allowed, 0 refused
  judged by path 12 (85.7%), by host only 1 (7.1%), not at all 1 (7.1%)
  refused 2 x a.test: robots.txt line 12 Disallow: /private (group *)
  refused 1 x a.test: its robots.txt could not be had, so nothing may be fetched for now [robots-unreachable]
  refused 7 x (others): by various rules
  refused by the site itself: 4 x a.test with status 429
  refused by sites themselves: 2 x (others)
  page https://a.test/news: 7 of 50 parts refused
  page (unnamed): 0 of 1 part refused, 1 by the site itself
  not judged 1 x b.test: the command does not trust heed's CA; see the Clients table of the README for its flag [ca-untrusted]
  waited: 2 requests, 3s in all, 2s at most
`
	if got := summarised(s); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHeed_ARuleCannotCommandTheTerminal(t *testing.T) {
	for _, hostile := range []string{
		"Disallow: /\x1b]0;owned\x07", "Disallow: /\x1b[2J", "Disallow: /\u202egnp", "Disallow: /\u0085x",
		"Disallow: /\xff\xfe", "Disallow: /\nheed: 0 refused", "Disallow: /\r", strings.Repeat("\x1b", 5000),
	} {
		got := summarised(&audit.Summary{
			Hosts:    []audit.HostCount{{Host: "evil\x1b.test"}},
			Refusals: []audit.RuleCount{{Host: "evil\x1b.test", Reason: rules.ReasonRule, Group: hostile, Rule: hostile, Line: 1, Count: 1}},
		})
		if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e) }); i >= 0 {
			t.Errorf("%q gets through in %q", got[i:min(len(got), i+8)], got)
		}
		if n := strings.Count(got, "\n"); n != 3 {
			t.Errorf("%d lines instead of three: %q", n, got)
		}
		if len(got) > 1000 {
			t.Errorf("%d bytes printed for one rule", len(got))
		}
	}
}

func TestHeed_TheSummaryIsShortHoweverMuchHappened(t *testing.T) {
	s := &audit.Summary{}
	for i := range 500 {
		s.Hosts = append(s.Hosts, audit.HostCount{Host: fmt.Sprintf("h%d.test", i)})
		s.Refusals = append(s.Refusals, audit.RuleCount{Host: fmt.Sprintf("h%d.test", i), Reason: rules.ReasonRule, Line: 1})
	}
	got := summarised(s)
	if n := strings.Count(got, "\n"); n > 30 {
		t.Errorf("%d lines", n)
	}
	if strings.Count(got, "... and 488 more; --json prints them all") != 2 {
		t.Errorf("it does not say how many are left out:\n%s", got)
	}
}

func TestHeed_EveryRefusalWithoutARuleIsExplained(t *testing.T) {
	for _, reason := range []rules.Reason{
		rules.ReasonRobotsUnreachable, rules.ReasonOriginUnreachable, rules.ReasonHostMismatch, rules.ReasonMalformed,
		rules.ReasonLoop, rules.ReasonTunnel, rules.ReasonUntrusted, rules.ReasonHandshake, rules.ReasonRecord, rules.ReasonInternal,
		rules.ReasonDestination, rules.ReasonLimit,
		rules.ReasonHostOnly, rules.ReasonAccess, rules.ReasonNotHTTP,
	} {
		if explain(reason) == string(reason) {
			t.Errorf("%s is not put into words", reason)
		}
	}
	if got := explain("new-reason"); got != "new-reason" {
		t.Errorf("an unknown one reads %q", got)
	}
}

func TestHeed_TheCureForTheCommandAtHandComesFirst(t *testing.T) {
	for command, kind := range map[string]string{
		"node": "Node.js", "/usr/bin/python3.12": "Python", "java": "Java", "sudo": "sudo", "docker": "Containers", "Firefox": "Browsers",
	} {
		var out bytes.Buffer
		printCures(&out, command)
		lines := strings.Split(out.String(), "\n")
		if !strings.HasPrefix(lines[2], "  "+kind) {
			t.Errorf("for %s the first cure is %q", command, lines[2])
		}
		if len(lines) != len(cures)+3 {
			t.Errorf("for %s %d lines are printed", command, len(lines))
		}
	}
}

func TestHeed_StatusIsWellUnlessSomethingIsNot(t *testing.T) {
	well := Status{CA: CAStatus{DaysLeft: 31}}
	cases := []struct {
		name   string
		change func(*Status)
		want   string
	}{
		{"nothing", func(*Status) {}, ""},
		{"its CA", func(s *Status) { s.CA.DaysLeft = 30 }, "30 days left"},
		{"its CA at the end", func(s *Status) { s.CA.DaysLeft = 1 }, "1 day left"},
		{"a policy", func(s *Status) { s.Troubles = []audit.Trouble{{}} }, "robots.txt of 1 site"},
		{"its end", func(s *Status) { s.Ending = true }, "about to end"},
	}
	for _, c := range cases {
		s := well
		c.change(&s)
		got := strings.Join(s.ills(), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestHeed_StatusReadsWell(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	s := &Status{
		heedInfo:  heedInfo{Version: "v1", PID: 42, ConfigHash: "0123456789abcdef"},
		Since:     now.Add(-90 * time.Second),
		Listeners: []string{"127.0.0.1:3128"}, Runs: []string{"127.0.0.1:4000"},
		Mode: "enforce, https intercepted", Profile: "strict", CA: CAStatus{Path: "/s/ca.pem", DaysLeft: 99},
		Load: proxy.LoadStatus{
			Connections: 3, Clients: 1, Tunnels: 2, Requests: 1, Reached: map[string]uint64{"uri_bytes": 7, "connections_per_client": 1},
		},
		Hour:     audit.Counts{Requests: 4, Allowed: 2, Refused: 1, NotJudged: 1, ByPath: 3},
		Troubles: []audit.Trouble{{Origin: "https://ill.test", State: "unreachable", Err: "status 500\x1b"}},
	}
	var out bytes.Buffer
	s.print(&out, now)
	want := `heed           v1, pid 42, started by hand, up 1m30s
configuration  built-in settings (0123456789ab)
listens on     127.0.0.1:3128
runs           1: 127.0.0.1:4000
mode           enforce, https intercepted
profile        strict
CA             /s/ca.pem, 99 days left
open now       3 connections of 1 client, 2 tunnels, 1 request under way
limits reached connections_per_client once, uri_bytes 7 times
last hour      4 requests: 2 (50.0%) allowed, 1 (25.0%) refused, 1 (25.0%) not judged; judged by path 3 (75.0%), by host only 0 (0.0%), not at all 1 (25.0%)
in trouble     https://ill.test: robots.txt unreachable: status 500\x1b
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHeed_StatusOfNobodyIsOne(t *testing.T) {
	t.Setenv("HEED_STATE", t.TempDir())
	for _, c := range []StatusCmd{{}, {Quiet: true}, {JSON: true}} {
		var out, errs bytes.Buffer
		app := &App{Stdout: &out, Stderr: &errs, Now: time.Now}
		if status := app.fail(c.Run(app)); status != 1 {
			t.Errorf("%+v: status %d", c, status)
		}
		said := out.String() + errs.String()
		if c.Quiet != (said == "") || c.JSON != strings.HasPrefix(said, `{"well":false`) {
			t.Errorf("%+v: it says %q", c, said)
		}
	}
}

func TestHeed_StatusOfARunningHeedIsZero(t *testing.T) {
	startDaemon(t, nil)
	for _, c := range []StatusCmd{{}, {Quiet: true}, {JSON: true}} {
		var out, errs bytes.Buffer
		app := &App{Stdout: &out, Stderr: &errs, Now: time.Now}
		if status := app.fail(c.Run(app)); status != 0 {
			t.Errorf("%+v: status %d: %s", c, status, errs.String())
		}
		if said := out.String(); c.Quiet != (said == "") || c.JSON != strings.HasPrefix(said, `{"well":true,"why_not":[],"version"`) {
			t.Errorf("%+v: it says %q", c, said)
		}
	}
}
