package run

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/counts"
	"heed/internal/config/clientenv"
	"heed/internal/judge/reason"
	"heed/internal/output/console"
	"heed/internal/sealed"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func summarised(s *counts.Summary) string {
	var out bytes.Buffer
	printSummary(&out, s)
	return out.String()
}

// A run with --sign reports also that nothing was signed.
func TestSummaryPrintsWhatWasSigned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signed, allowed uint64
		wanted          bool
		want            string
	}{
		{0, 0, true, ""},
		{0, 2, false, ""},
		{2, 2, false, "  signed: 2 of 2 allowed requests\n"},
		{1, 1, true, "  signed: 1 of 1 allowed request\n"},
		{0, 2, true, "  signed: 0 of 2 allowed requests; over http only those to a host with sign_http (heed help identity)\n"},
	} {
		var out bytes.Buffer
		printSigned(&out, &counts.Summary{Counts: counts.Counts{Allowed: c.allowed}, Signed: c.signed}, c.wanted)
		must.Equal(t, out.String(), c.want, "%+v", c)
	}
}

func TestSummaryPrintsEveryKindOfOutcome(t *testing.T) {
	s := &counts.Summary{
		Counts: counts.Counts{
			Requests: 14, Allowed: 9, Refused: 3, WouldRefuse: 1, NotJudged: 1, ByPath: 12, ByHost: 1,
			Classes: reason.Counts{reason.Allowed: 9, reason.RefusedByRule: 2, reason.RulesUnavailable: 1, reason.Failed: 1, reason.NotJudged: 1},
			WouldBe: reason.Counts{reason.RefusedByRule: 1},
		},
		Waited: counts.Waits{Requests: 2, Total: 3 * time.Second, Longest: 2 * time.Second},
		Hosts: []counts.HostCount{
			{Host: "a.test", Counts: counts.Counts{Requests: 13, Classes: reason.Counts{reason.Allowed: 9, reason.RefusedByRule: 2, reason.RulesUnavailable: 1, reason.Failed: 1}}},
			{Host: "b.test", Counts: counts.Counts{Requests: 1, Classes: reason.Counts{reason.NotJudged: 1}}},
		},
		Refusals: []counts.RuleCount{
			{Host: "a.test", Reason: rules.ReasonRule, Group: "*", Rule: "Disallow: /private", Line: 12, Count: 2, Class: "refused by rule"},
			{Host: "a.test", Reason: rules.ReasonRule, Group: "*", Rule: "Disallow: /seen", Line: 13, Count: 1, Class: "refused by rule", Observed: true},
			{Host: "a.test", Reason: rules.ReasonRobotsUnreachable, Count: 1, Class: "rules unavailable"},
			{Host: audit.Other, Count: 7},
		},
		Failed:   []counts.SiteCount{{Host: "a.test", Status: 504, Count: 1}},
		Sites:    []counts.SiteCount{{Host: "a.test", Status: 429, Count: 4}, {Host: audit.Other, Count: 2}},
		Pages:    []audit.PageCount{{Page: "https://a.test/news", Parts: 50, Refused: 7}, {Parts: 1, SiteRefused: 1}},
		Unjudged: []counts.ReasonCount{{Host: "b.test", Reason: rules.ReasonUntrusted, Verdict: "refuse", Count: 1, Class: "not judged"}, {Reason: rules.ReasonMalformed, Count: 3, Class: "not judged", Detail: "TLS came in place of HTTP"}},
	}
	want := `heed: 14 requests came through, to 2 hosts: 9 allowed, 2 refused by rule, 1 rules unavailable, 1 failed, 1 not judged
  only observed; in enforce mode they would be: 1 refused by rule
  a.test: 13 requests, 9 allowed, 2 refused by rule, 1 rules unavailable, 1 failed
  b.test: 1 request, 0 allowed, 0 refused by rule, 1 not judged
  judged, of the requests that came through heed: 12 (85.7%) by their path, 1 (7.1%) by their host alone; 1 (7.1%) could not be judged at all
  refused by rule 2 x a.test: robots.txt line 12 Disallow: /private (group *)
  would be refused by rule 1 x a.test: robots.txt line 13 Disallow: /seen (group *)
  rules unavailable 1 x a.test: its robots.txt could not be read [robots-unreachable]
  not allowed 7 x (others): for various reasons
  failed 1 x a.test: allowed, and answered by heed with an error (status 504)
  refused by the site itself: 4 x a.test with status 429
  refused by sites themselves: 2 x (others)
  page https://a.test/news: 7 of 50 parts refused
  page (unnamed): 0 of 1 part refused, 1 by the site itself
  not judged 1 x b.test: the client does not trust heed's CA; see heed doctor [ca-untrusted]
  not judged 3 x (no host): the request or its URL is malformed [malformed]: TLS came in place of HTTP
  waited: 2 requests, 3s in all, 2s at most
`
	must.Equal(t, summarised(s), want)
}

func TestARuleCannotCommandTheTerminal(t *testing.T) {
	for _, hostile := range []string{
		"Disallow: /\x1b]0;owned\x07", "Disallow: /\x1b[2J", "Disallow: /\u202egnp", "Disallow: /\u0085x",
		"Disallow: /\xff\xfe", "Disallow: /\nheed: 0 refused", "Disallow: /\r", strings.Repeat("\x1b", 5000),
	} {
		got := summarised(&counts.Summary{
			Hosts:    []counts.HostCount{{Host: "evil\x1b.test"}},
			Refusals: []counts.RuleCount{{Host: "evil\x1b.test", Reason: rules.ReasonRule, Group: hostile, Rule: hostile, Line: 1, Count: 1}},
		})
		if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e) }); i >= 0 {
			t.Errorf("%q gets through in %q", got[i:min(len(got), i+8)], got)
		}
		must.Equal(t, strings.Count(got, "\n"), 3, "lines instead of three: %q", got)
		must.True(t, len(got) <= 1000, "%d bytes printed for one rule", len(got))
	}
}

func TestTheSummaryIsShortHoweverMuchHappened(t *testing.T) {
	s := &counts.Summary{}
	for i := range 500 {
		s.Hosts = append(s.Hosts, counts.HostCount{Host: fmt.Sprintf("h%d.test", i)})
		s.Refusals = append(s.Refusals, counts.RuleCount{Host: fmt.Sprintf("h%d.test", i), Reason: rules.ReasonRule, Line: 1})
	}
	got := summarised(s)
	n := strings.Count(got, "\n")
	must.True(t, n <= 30, "%d lines", n)
	must.Equal(t, strings.Count(got, "... and 488 more; --json prints them all"), 2, "it does not say how many are left out:\n%s", got)
}

// A command of a known kind gets its own setting; for any other, those of the usual kinds
// are listed.
func TestTheHintsAreThoseOfTheCommand(t *testing.T) {
	for command, want := range map[string]string{
		"node": "Node.js: ", "/usr/bin/python3.12": "Python: ", "java": "Java: ", "sudo": "sudo", "docker": "Containers: ", "Firefox": "Browsers: ",
		"links2": "links: links -http-proxy HEED", "svn": "Subversion: http-proxy-host", "hg": "Mercurial: ", "wget2": "wget2: ", "httrack": "HTTrack: httrack -P HEED", "Rscript": "R: ",
	} {
		var out bytes.Buffer
		printHints(&out, nil, &counts.Summary{}, []string{command}, works)
		lines := strings.Split(out.String(), "\n")
		must.True(t, len(lines) == 7 && strings.HasPrefix(lines[3], "  "+want) && strings.HasPrefix(lines[4], "  Others: "),
			"for %s it prints\n%s", command, &out)
	}
	var out bytes.Buffer
	printHints(&out, nil, &counts.Summary{}, []string{"./crawl"}, works)
	for _, p := range clientenv.Programs() {
		must.Equal(t, strings.Contains(out.String(), "  "+p.Kind+": "), p.Usual, "for an unknown command, %s:\n%s", p.Kind, &out)
	}
	// A command that runs another gets its own setting and that of the other, if it is known.
	for command, want := range map[string][]string{
		"env -i /usr/bin/python3 crawl.py": {"sudo", "Python: "}, "sudo -u bot env A=1 curl -s node": {"sudo", "curl: "},
		"env -i ./crawl": {"sudo"}, "docker run crawler:3 Rscript node": {"R: ", "Containers: "},
	} {
		out.Reset()
		printHints(&out, &bypassReport{Watched: true}, &counts.Summary{}, strings.Fields(command), works)
		lines := strings.Split(out.String(), "\n")
		must.Need(t, len(lines) == 6+len(want), "for %s it prints\n%s", command, &out)
		for _, kind := range want {
			must.Equal(t, strings.Contains(out.String(), "\n  "+kind), true, "for %s it prints\n%s", command, &out)
		}
	}
}

// Where nothing came through, the programs that were seen to bypass heed get their settings,
// and no others.
func TestTheHintsAreThoseOfTheProgramsThatBypassed(t *testing.T) {
	var out strings.Builder
	bypass := &bypassReport{
		Watched: true, Connections: 2, To: []bypassed{{"beam.smp", "192.0.2.1:443", "tcp", 1}, {"tclsh8.6", "192.0.2.1:80", "tcp", 1}},
		Ignoring: []ignoring{{"/usr/bin/tclsh8.6", ""}, {"/usr/bin/node", "20.20.2"}},
	}
	printHints(&out, bypass, &counts.Summary{}, []string{"sh"}, works)
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 7 || !strings.HasPrefix(lines[2], "  beam.smp bypassed heed: httpc:set_options(") || !strings.HasPrefix(lines[3], "  node: before 22.21, and 23, it ignores ") || !strings.HasPrefix(lines[4], "  tclsh8.6 bypassed heed: the package autoproxy") {
		t.Errorf("it prints\n%s", &out)
	}
}

// Programs that bypassed heed, and a command that rejected its CA, get their settings
// although other requests came through.
func TestHintsAreGivenWhenSomeRequestsCameThrough(t *testing.T) {
	var out strings.Builder
	bypass := &bypassReport{Watched: true, Connections: 3, To: []bypassed{{"curl", "192.0.2.1:443", "tcp", 2}, {"crawl", "192.0.2.1:80", "tcp", 1}}}
	s := &counts.Summary{Unjudged: []counts.ReasonCount{{Host: "site.test", Reason: rules.ReasonUntrusted, Count: 1}}}
	printMixedHints(&out, s, bypass, "aria2c")
	for _, want := range []string{
		"  aria2c, or a program that it started, does not trust heed's CA: aria2c --ca-certificate=BUNDLE\n", "  curl bypassed heed: --noproxy", "  crawl bypassed heed: a proxy set", "BUNDLE the file in SSL_CERT_FILE",
	} {
		must.Contain(t, out.String(), want)
	}
	out.Reset()
	s.Unjudged[0].Before = 1 // the client went on, and was judged
	if printMixedHints(&out, s, &bypassReport{}, "curl"); out.Len() > 0 {
		t.Errorf("the client trusts heed, and it prints %q", out.String())
	}
	if printMixedHints(&out, &counts.Summary{}, &bypassReport{}, "curl"); out.Len() > 0 {
		t.Errorf("nothing is wrong, and it prints %q", out.String())
	}
}

// works is a probe of a machine that can seal runs.
func works() error { return nil }

// The first advice where nothing came through is the sealed run, whatever else is known. A
// command that opened no connection gets one line more, and one that may have left them to
// another program what holds that.
func TestWhereNothingCameThroughTheSealedRunIsTheFirstAdvice(t *testing.T) {
	some := []bypassed{{"curl", "192.0.2.1:80", "tcp", 1}}
	for _, bypass := range []*bypassReport{nil, {}, {Watched: true}, {Watched: true, Connections: 1, To: some}, {Watched: true, Ignoring: []ignoring{{"/usr/bin/node", "20.20.2"}}}} {
		for _, command := range []string{"true", "python3", "docker", "sudo", "./crawl"} {
			var out strings.Builder
			printHints(&out, bypass, &counts.Summary{}, []string{command}, works)
			lines := strings.Split(out.String(), "\n")
			if !strings.HasPrefix(lines[0], "heed: no request came through") || lines[1] != "  `heed run --sealed -- CMD` holds every program; works on this machine" || strings.Count(out.String(), "--sealed -- CMD") != 1 {
				t.Errorf("%+v, %s: %q", bypass, command, out.String())
			}
			quiet := bypass != nil && bypass.Watched && !bypass.suspects() && command != "docker" && command != "sudo"
			must.Equal(t, quiet, strings.Contains(out.String(), "  heed saw no connection of it, but can miss one of less than 0.2 s"), "%+v, %s: %q", bypass, command, out.String())
			must.Equal(t, quiet, (len(lines) == 4), "%+v, %s: %d lines: %q", bypass, command, len(lines), out.String())
		}
	}
}

// What bypassed heed, and what does not trust its CA, is held by a sealed run. A run that
// could have been sealed says so once, also when nothing is known to have bypassed it.
func TestTheSealedRunIsTheAnswer(t *testing.T) {
	some := &bypassReport{Watched: true, Connections: 1, To: []bypassed{{"crawl", "192.0.2.1:80", "tcp", 1}}}
	ran := &bypassReport{Watched: true, Ignoring: []ignoring{{"/usr/bin/node", "20.20.2"}}}
	rejected := &counts.Summary{Counts: counts.Counts{Requests: 1}, Unjudged: []counts.ReasonCount{{Host: "site.test", Reason: rules.ReasonUntrusted, Count: 1}}}
	through := &counts.Summary{Counts: counts.Counts{Requests: 1}}
	clock := &counts.Summary{Unjudged: []counts.ReasonCount{{Host: "site.test", Reason: rules.ReasonUntrusted, Count: 1, Detail: audit.WrongClock}}}
	cannot := errors.New("this machine cannot seal a run: namespaces\nSet it")
	const open = "  `heed run --sealed -- CMD` leaves no other way out: this run was not sealed, and what bypasses the proxy variables is not judged; works on this machine\n"
	for _, c := range []struct {
		bypass  *bypassReport
		summary *counts.Summary
		probe   error
		want    string
	}{
		{some, through, nil, "  `heed run --sealed -- CMD` holds it; works on this machine\n"},
		{ran, through, nil, "  `heed run --sealed -- CMD` holds it; works on this machine\n"},
		{nil, rejected, nil, "  `heed run --sealed -- CMD` makes the libraries of the system trust it; works on this machine\n"},
		{some, rejected, nil, "  `heed run --sealed -- CMD` holds it, and makes the libraries of the system trust heed's CA; works on this machine\n"},
		{nil, clock, nil, "  set the client's clock: by it a certificate of heed is not valid now, and its requests are not judged\n"},
		{some, through, cannot, "  `heed run --sealed -- CMD` holds it; this machine cannot seal a run: namespaces (heed doctor)\n"},
		{some, through, sealed.ErrUnsupported, ""},
		{nil, &counts.Summary{}, sealed.ErrUnsupported, "  a container or virtual machine whose only exit is heed holds every program (heed help containers)\n"},
		{&bypassReport{Watched: true}, through, nil, open},
		{&bypassReport{Watched: true}, through, cannot, ""},
	} {
		var out strings.Builder
		if printSealHint(&out, c.bypass, c.summary, func() error { return c.probe }); out.String() != c.want {
			t.Errorf("got %q, want %q", out.String(), c.want)
		}
	}
}

// With --fail-on bypass, a command that succeeded fails where nothing came through, where a
// connection bypassed heed or a program ran that ignores the variables; a sealed run does not.
func TestFailOnBypass(t *testing.T) {
	through, nothing := &counts.Summary{Counts: counts.Counts{Requests: 1}}, &counts.Summary{}
	for _, c := range []struct {
		what    string
		bypass  *bypassReport
		summary *counts.Summary
		status  int
		want    string
	}{
		{"all came through", &bypassReport{Watched: true}, through, 0, ""},
		{"nothing did", &bypassReport{Watched: true}, nothing, 3, "heed: status 3, since no request came through (--fail-on bypass)\n"},
		{"a connection did not", &bypassReport{Watched: true, Connections: 2}, through, 3, "heed: status 3, since at least 2 connections bypassed heed (--fail-on bypass)\n"},
		{"Node 20 ran", &bypassReport{Watched: true, Ignoring: []ignoring{{"/usr/bin/node", "20.20.2"}}}, through, 3, "heed: status 3, since node 20.20.2 ran, which ignores the proxy variables (--fail-on bypass)\n"},
		{"connections are not listed", &bypassReport{}, through, 3, "heed: status 3, since this system does not list the connections of the run's processes (--fail-on bypass)\n"},
		{"sealed", nil, nothing, 0, ""},
		{"the command failed", &bypassReport{Watched: true}, nothing, 7, ""},
		{"no summary", &bypassReport{Watched: true}, nil, 2, ""},
	} {
		var errs strings.Builder
		r := &run{app: &console.App{Stderr: &errs}, cmd: &RunCmd{FailOn: []string{failObserved, failBypass}}, bypass: c.bypass}
		begin := map[bool]int{true: 7}[c.status == 7]
		got := r.failOn(begin, c.summary)
		must.True(t, got == c.status && errs.String() == c.want, "%s: status %d, %q", c.what, got, errs.String())
	}
}

// The advice for a program that rejects heed's CA is not a variable that heed run has set.
func TestNoHintIsAVariableThatIsSetAlready(t *testing.T) {
	for _, command := range []string{"./crawl", "node", "python3", "links", "lynx", "curl", "php", "httrack"} {
		var out strings.Builder
		printMixedHints(&out, &counts.Summary{Unjudged: []counts.ReasonCount{{Host: "site.test", Reason: rules.ReasonUntrusted, Count: 1}}}, nil, command)
		if strings.Contains(out.String(), "_FILE=BUNDLE") || strings.Contains(out.String(), "CERTS=BUNDLE") || strings.Contains(out.String(), "CA_BUNDLE=") || !strings.Contains(out.String(), "CA: ") || strings.Contains(out.String(), "CA: \n") {
			t.Errorf("%s: %q", command, out.String())
		}
	}
}

// A summary contains the time spent on turns, and for a client that left too early the
// setting of it to raise.
func TestTheSummaryNamesTheTimeoutToRaise(t *testing.T) {
	s := &counts.Summary{Paced: []counts.PaceCount{
		{Host: "slow.test", Waits: counts.Waits{Requests: 3, Total: 12 * time.Second, Longest: 6 * time.Second}, Refused: 1, Left: 2, Owed: 8 * time.Second},
	}}
	got, want := pacedWords(s.Paced[0]), "  turns at slow.test: 3 requests waited for 12s in all, 6s at most; refused with a Retry-After: 1; left before their turn: 2, up to 8s too early"
	must.True(t, got == want, "got  %s\nwant %s", got, want)
	for command, want := range map[string]string{
		"/usr/bin/curl": "--max-time", "wget": "--timeout", "scrapy": "DOWNLOAD_TIMEOUT", "./crawl.sh": "DOWNLOAD_TIMEOUT",
	} {
		var out strings.Builder
		printTimeoutHints(&out, s, command)
		if !strings.HasPrefix(out.String(), "  2 requests left before their turn came: have the client wait at least 9s longer (") || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %q", command, out.String())
		}
	}
	var out strings.Builder
	if printTimeoutHints(&out, &counts.Summary{}, "curl"); out.Len() > 0 {
		t.Errorf("no client left, and it prints %q", out.String())
	}
}
