package command

import (
	"strings"
	"testing"
	"time"

	"heed/internal/pace"
	"heed/internal/tools/testkit/must"
)

func TestHeed_WaitingRequestsAreListedWithTheirClients(t *testing.T) {
	since := time.Date(2026, 5, 1, 12, 0, 30, 0, time.Local)
	waiter := pace.Waiter{Who: pace.Who{Address: "127.0.0.1", Name: "newsbot", Listener: "127.0.0.1:4000"}, Request: "GET /\x1b[31mred", Since: since, Waited: 4 * time.Second, Next: 16 * time.Second}
	ofRun := waiter
	ofRun.Run, ofRun.Request = true, "GET /next"
	sites := []pace.SiteStatus{
		{Origin: "http://slow.test", Waiting: 5, Waiters: []pace.Waiter{waiter, ofRun}},
		{Origin: "http://busy.test", Waiting: 0, Waiters: []pace.Waiter{}},
	}
	var out strings.Builder
	must.OK(t, printWaiters(&out, sites))
	want := `
SITE              CLIENT                                              REQUEST           WAITS SINCE    STARTS
http://slow.test  127.0.0.1 (newsbot)                                 GET /\x1b[31mred  12:00:30 (4s)  in 16s
http://slow.test  127.0.0.1 (newsbot) of the run at 127.0.0.1:4000  GET /next         12:00:30 (4s)  in 16s
and 3 further requests
`
	if got := out.String(); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	out.Reset()
	err := printWaiters(&out, sites[1:])
	must.True(t, err == nil && out.Len() <= 0, "nothing waits, and it prints %q, %v", &out, err)
	sites[0].Waiters, sites[0].Waiting = nil, 0
	for range 3 * maxWaiters {
		sites[0].Waiters = append(sites[0].Waiters, waiter)
		sites[0].Waiting++
	}
	out.Reset()
	if err := printWaiters(&out, sites); err != nil || strings.Count(out.String(), "\n") > maxWaiters+3 || !strings.Contains(out.String(), "and 200 further requests") {
		t.Errorf("%d lines, %v", strings.Count(out.String(), "\n"), err)
	}
}

func TestStatusNamesOnePausedSite(t *testing.T) {
	t.Parallel()
	got, want := turnsWords(&pace.Counts{Left: 1, Holds: 1}), "0 given, 0 waited 0s in all, 0 refused with a Retry-After, 1 left before theirs came, 0 waiting now; 1 answer paused a site"
	must.True(t, got == want, "%q, want %q", got, want)
}
