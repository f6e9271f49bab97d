package study_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/analysis/study"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// write writes a file of a test and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	return testkit.Write(t, filepath.Join(t.TempDir(), name), text)
}

// spoofed is a log of GPTBot: 19 requests from two addresses of one autonomous system, of
// which one is for robots.txt, one from another, which asks for what is disallowed, and
// one from an address in no system.
func spoofed(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	line := func(i int, address, target string) {
		at := time.Date(2025, 3, 1, 10, 0, 30*i, 0, time.UTC)
		fmt.Fprintf(&b, "%s - - [%s] \"GET %s HTTP/1.1\" 200 10 \"-\" \"GPTBot/1.2\"\n", address, at.Format("02/Jan/2006:15:04:05 -0700"), target)
	}
	line(0, "192.0.2.1", "/robots.txt")
	for i := range 18 {
		line(i+1, []string{"192.0.2.1", "2001:db8:5::9"}[i%2], fmt.Sprintf("/%d", i))
	}
	line(19, "198.51.100.9", "/private/a")
	line(20, "203.0.113.1", "/private/b")
	return write(t, "access.log", b.String())
}

func TestHeed_AutonomousSystemsAndPublishedRangesShowImpostors(t *testing.T) {
	t.Parallel()
	networks, err := study.LoadNetworks(write(t, "asn.tsv", "198.51.100.0\t198.51.100.255\t64501\tFR\tOther\n192.0.2.0\t192.0.2.255\t64500\tUS\tOperator\n"+
		"203.0.113.0\t203.0.113.255\t0\tNone\tNot routed\n2001:db8:5::\t2001:db8:5:ffff:ffff:ffff:ffff:ffff\tAS64500\n"))
	must.OK(t, err)
	ranges, err := study.LoadRanges(write(t, "gptbot.json", `{"creationTime": "2025-01-01", "prefixes": [{"ipv4Prefix": "192.0.2.0/28"}, {"ipv6Prefix": "2001:db8:5::/48"}]}`))
	must.OK(t, err)
	policies, err := study.LoadPolicies(t.Context(), write(t, "robots.txt", "User-agent: *\nDisallow: /private/\nCrawl-delay: 60\n"), "")
	must.OK(t, err)
	rows := filepath.Join(t.TempDir(), "tables")
	out := must.Get(study.NewDirectory(rows))(t)
	o := study.Options{Policies: policies, Networks: networks, Ranges: map[string][]netip.Prefix{"gptbot": ranges}, Rows: out.Row}
	r := read(t, o, spoofed(t))
	must.OK(t, out.Close(r))
	// 17 gaps of 30 s are within the operator's system, where 60 s are asked for.
	want := "gptbot | network | dominant | 1 | 19 | 1 | 18 | 0 | 17 | 0\n" +
		"gptbot | network | rest | 2 | 2 | 0 | 2 | 2 | 0 | 0\n" +
		"gptbot | ranges | inside | - | 19 | 1 | 18 | 0 | - | -\n" +
		"gptbot | ranges | outside | - | 2 | 0 | 2 | 2 | - | -\n"
	got := values(t, r, "impostors", "token by side networks requests robots judged not_allowed limited kept")
	must.True(t, got == want, "the impostors are\n%swant\n%s", got, want)
	must.Equal(t, values(t, r, "agents", "token addresses networks"), "gptbot | 4 | 3\n", "the agents")
	got, want = values(t, r, "substrings", "token requests robots other outside"), "gptbot | 21 | 1 | 18 | 2\n"
	must.True(t, got == want, "the agents by substrings are\n%swant\n%s", got, want)
	requests := must.Get(os.ReadFile(filepath.Join(rows, "requests.csv")))(t)
	for network, n := range map[string]int{",AS64500,": 19, ",AS64501,": 1, ",203.0.113.1,203.0.113.1,": 1} {
		must.Equal(t, strings.Count(string(requests), network), n, "requests are of %s", network)
	}
	// Without systems a client is an IPv4 address or an IPv6 /64, and none dominates.
	r = read(t, study.Options{Policies: policies}, spoofed(t))
	must.Equal(t, values(t, r, "impostors", "token by side"), "", "without --asn the impostors are")
	must.Equal(t, values(t, r, "agents", "token addresses networks"), "gptbot | 4 | 4\n", "the agents without --asn")
}

func TestHeed_FilesOfNetworksAndRangesThatCannotBeReadAreExplained(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"192.0.2.0 192.0.2.255 64500\n":             "line 1: there are not three fields separated by tabs",
		"192.0.2.0\t192.0.2.255\t1\nx\ty\t2\n":      "line 2: ",
		"192.0.2.0\t192.0.2\t1\n":                   "line 1: ",
		"192.0.2.255\t192.0.2.0\t1\n":               "line 1: the last address is before the first",
		"192.0.2.0\t2001:db8::1\t1\n":               "line 1: ",
		"192.0.2.0\t192.0.2.255\tsixty\tOperator\n": `line 1: "sixty" is not the number of an autonomous system`,
		"": "has no autonomous systems",
	} {
		_, err := study.LoadNetworks(write(t, "asn.tsv", text))
		must.True(t, err != nil && strings.Contains(err.Error(), want) && strings.Contains(err.Error(), "asn.tsv"),
			"%q: %v, want %q", text, err, want)
	}
	for text, want := range map[string]string{
		"192.0.2.0/24":       "invalid character",
		`{"prefixes": []}`:   "has no prefixes",
		`{}`:                 "has no prefixes",
		`{"prefixes": [{}]}`: "a prefix",
		`{"prefixes": [{"ipv4Prefix": "192.0.2.0"}]}`: "192.0.2.0",
	} {
		_, err := study.LoadRanges(write(t, "gptbot.json", text))
		must.True(t, err != nil && strings.Contains(err.Error(), want) && strings.Contains(err.Error(), "gptbot.json"),
			"%q: %v, want %q", text, err, want)
	}
	for _, load := range []func(string) error{
		func(path string) error { _, err := study.LoadNetworks(path); return err },
		func(path string) error { _, err := study.LoadRanges(path); return err },
	} {
		must.Fail(t, load("/nonexistent/file"), "/nonexistent/file")
	}
}
