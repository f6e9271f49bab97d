package dashboard

import (
	"strings"
	"testing"
	"time"

	"heed/internal/audit/counts"
	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/control"
	"heed/internal/judge/reason"
	"heed/internal/tools/testkit/must"
)

// A site that fails has one row, which says how it failed: one that answered was reached.
func TestTroubles_AreInTheRightWordsAndOnce(t *testing.T) {
	t.Parallel()
	s := &control.Status{
		Troubles: []counts.Trouble{
			{Origin: "http://ill.test", State: "unreachable", Err: "http://ill.test/robots.txt answered 503 Service Unavailable"},
			{Origin: "http://old.test", State: "stale", Err: "robots.txt was answered with status 429"},
		},
		Reach: counts.Reach{Sites: []counts.FailingSite{
			{Origin: "http://ill.test", Err: "http://ill.test/robots.txt answered 503 Service Unavailable"},
			{Origin: "http://dead.test", Err: "site: dial tcp 192.0.2.1:80: connect: connection refused"},
			{Origin: "http://slow.test", Err: "site: dial tcp 192.0.2.1:80: i/o timeout"},
			{Origin: "http://none.test", Err: "site: lookup none.test: no such host"},
			{Origin: "https://self.test", Err: "site: tls: failed to verify certificate: x509: certificate has expired"},
			{Origin: "http://odd.test", Err: "site: unexpected EOF"},
		}},
	}
	want := map[string]string{
		"http://ill.test": "answered 503: nothing is allowed until its robots.txt can be read", "http://old.test": "answered 429: judged by an old copy of its robots.txt",
		"http://dead.test": "refused the connection", "http://slow.test": "gave no answer in time", "http://none.test": "its name is not known",
		"https://self.test": "no TLS connection could be made", "http://odd.test": "gave no complete answer",
	}
	all := troubles(s)
	for _, x := range all {
		must.Equal(t, x.State, want[x.Name], x.Name)
	}
	must.Equal(t, len(all), len(want), "rows of %d sites", len(want))
}

// Each reason that heed status prints is a banner.
func TestAlerts_HaveAllThatIsNotWell(t *testing.T) {
	t.Parallel()
	s := &control.Status{Ending: true, Log: "full", Record: "no space", CA: control.CAStatus{DaysLeft: 3}, Reach: counts.Reach{Asked: 9, Failed: 8, Proxies: []counts.FailingProxy{{Name: "p.test:1", Err: "refused"}}}}
	all := strings.Join(alerts(s, true), "\n")
	for _, why := range append(s.NotReady(), s.Unwell()...) {
		must.True(t, strings.Count(all, why) == 1, "%q is %d times in\n%s", why, strings.Count(all, why), all)
	}
	n := len(s.NotReady()) + len(s.Unwell())
	must.True(t, n >= 5 && len(alerts(s, true)) == n, "%d reasons, and the banners\n%s", n, all)
}

// The chart of a young heed begins at its start, that of one with an earlier record does not.
func TestSinceStart_BeginsAtTheStart(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	day := func() (columns []column) {
		for i := range 96 {
			columns = append(columns, column{from: noon.Add(time.Duration(i-95) * counts.PeriodLength)})
		}
		return columns
	}
	for age, want := range map[time.Duration]int{time.Minute: leastColumns, 3 * time.Hour: 13, 100 * time.Hour: 96} {
		start := noon.Add(-age)
		got := sinceStart(day(), start)
		first := start.Truncate(counts.PeriodLength)
		if want == 96 {
			first = noon.Add(-95 * counts.PeriodLength)
		}
		must.True(t, len(got) == want && got[0].from.Equal(first),
			"after %v: %d columns from %v, want %d", age, len(got), got[0].from, want)
	}
	before := day()
	before[2].classes[reason.Allowed] = 1
	must.Equal(t, len(sinceStart(before, noon)), 94, "columns with an earlier record")
}

// What differs from the defaults is marked in its own table only.
func TestSettingLines_MarkWhatWasChanged(t *testing.T) {
	t.Parallel()
	lines := settingLines("drain = '20s'\n\n[limits]\nrequests = 7\n\n[pacing]\nrequests = 7\n", "[limits]\nrequests = 7\n")
	marked := ""
	for i, l := range lines {
		if l.Changed {
			marked += string(rune('0'+i)) + l.Text
		}
	}
	must.True(t, marked == "3requests = 7" && len(lines) == 7, "%q of %d lines", marked, len(lines))
}

// A list shows the wait for a turn, and no codes beside words.
func TestRowOf_HasTheWaitAndNoCodes(t *testing.T) {
	t.Parallel()
	r := rowOf(&replay.Decision{Verdict: store.Verdict{Verdict: "allow", Reason: "no-rule"}, Waited: 1.234})
	must.True(t, r.Waited == "1.23s" && !strings.ContainsAny(r.Why, "[]") && r.Why != "", "%q, %q", r.Waited, r.Why)
}
