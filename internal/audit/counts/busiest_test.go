package counts

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/reason"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// from is a request from an address to a host at a time, refused for a reason or, with
// an empty one, allowed.
func from(at time.Time, client, host string, why rules.Reason) *audit.Entry {
	d := rules.Decision{Reason: why}
	if why == "" {
		d = rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonNoRule}
	}
	return &audit.Entry{Time: at, Client: client + ":40000", Host: host, Decision: d}
}

func TestTheBusiestClientsAndSitesAreListedWithTheirClassesAndWaits(t *testing.T) {
	c := New(nil)
	for range 5 {
		c.Ended(from(noon, "192.0.2.7", "a.test", ""))
	}
	c.Ended(from(noon, "192.0.2.7", "a.test", rules.ReasonRule))
	slow := from(noon, "192.0.2.8", "a.test", "")
	slow.Outcome.Waited = 3 * time.Second
	c.Ended(slow)
	dead := from(noon.Add(20*time.Minute), "192.0.2.8", "b.test", "")
	dead.Outcome.Status = 502
	c.Ended(dead)
	site502 := from(noon.Add(20*time.Minute), "192.0.2.8", "b.test", "")
	site502.Outcome.Status, site502.Outcome.FromSite = 502, true
	c.Ended(site502)

	got := c.Busiest(noon.Add(21*time.Minute), 10)
	must.Need(t, len(got.Clients) == 2 && len(got.Sites) == 2, "%+v", got)
	first, second := got.Clients[0], got.Clients[1]
	if first.Name != "192.0.2.7" || first.Requests != 6 || first.Classes["allowed"] != 5 || first.Classes["refused by rule"] != 1 || len(first.Classes) != 2 {
		t.Errorf("the busiest client: %+v", first)
	}
	if second.Name != "192.0.2.8" || second.Requests != 3 || second.Waits != 1 || second.Waited != 3*time.Second || second.Classes["failed"] != 1 || second.Classes["allowed"] != 2 {
		t.Errorf("the other client: %+v", second)
	}
	if s := got.Sites[1]; s.Name != "b.test" || s.Classes["failed"] != 1 || s.Classes["allowed"] != 1 {
		t.Errorf("a site that was not reached once, and answered 502 once: %+v", s)
	}
	only := c.Busiest(noon.Add(21*time.Minute), 1)
	must.True(t, len(only.Clients) == 1 && len(only.Sites) == 1, "more than one is listed: %+v", only)
}

// Octets count in the period in which their exchange ended, a success as well; what the
// site refused, what failed and what heed answered itself is none.
func TestOctetsAndTheLastSuccessAreThoseOfTheClientAndTheSite(t *testing.T) {
	c := New(nil)
	end := func(client, host string, verdict rules.Verdict, o audit.Outcome, method string) {
		e := from(noon, client, host, rules.ReasonNoRule)
		e.Decision.Verdict, e.Outcome, e.Method = verdict, o, method
		c.Ended(e)
	}
	end("192.0.2.7", "a.test", rules.Allow, audit.Outcome{Status: 200, FromSite: true, BytesIn: 10, BytesOut: 4000, Duration: time.Second}, "POST")
	end("192.0.2.7", "a.test", rules.Allow, audit.Outcome{Status: 404, FromSite: true, BytesOut: 40, Duration: 7 * time.Minute}, "GET")
	end("192.0.2.8", "b.test", rules.Allow, audit.Outcome{Status: 503, FromSite: true, BytesOut: 5}, "GET")
	end("192.0.2.8", "b.test", rules.Allow, audit.Outcome{Status: 500, FromSite: true, BytesOut: 6}, "GET")
	end("192.0.2.8", "b.test", rules.Allow, audit.Outcome{Status: 502, BytesOut: 7}, "GET")
	end("192.0.2.8", "b.test", rules.Refuse, audit.Outcome{Status: 403, BytesOut: 8}, "GET")
	end("192.0.2.9", "c.test", rules.Allow, audit.Outcome{Status: 200, BytesIn: 1, BytesOut: 2, Duration: time.Minute}, "CONNECT")

	got := c.Busiest(noon.Add(8*time.Minute), 10)
	want := map[string]Traffic{
		"192.0.2.7": {10, 4040, noon.Add(7 * time.Minute)}, "192.0.2.8": {0, 26, time.Time{}}, "192.0.2.9": {1, 2, noon.Add(time.Minute)},
	}
	for i, n := range got.Clients {
		must.True(t, n.Traffic == want[n.Name] && got.Sites[i].Traffic == n.Traffic,
			"%s: %+v, and its site %+v", n.Name, n.Traffic, got.Sites[i].Traffic)
	}
	must.Equal(t, got.Traffic, (Traffic{11, 4068, noon.Add(7 * time.Minute)}), "in all")
	later := c.Busiest(noon.Add(63*time.Minute), 10) // the last request ended 56 minutes ago
	if n := later.Clients[0]; len(later.Clients) != 1 || n.Requests != 1 || n.BytesOut != 40 || later.BytesOut != 40 {
		t.Errorf("an hour later: %+v", later)
	}
	last := c.Busiest(noon.Add(9*time.Hour), 10)
	must.True(t, last.BytesOut == 0 && last.Success.Equal(noon.Add(7*time.Minute)), "nine hours later: %+v", last)
}

func TestAClientHasTheNameThatTheOperatorKnows(t *testing.T) {
	e := from(noon, "192.0.2.7", "a.test", "")
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, "192.0.2.7"},
		{func() { e.Client = "[2001:db8::1]:3" }, "2001:db8::1"},
		{func() { e.User = "alice" }, "alice"},
		{func() { e.ClientName = "newsbot" }, "newsbot"},
		{func() { e.ClientName, e.Agent = "run", rules.Declare("AlphaBot") }, "alphabot"},
	} {
		step.change()
		must.Equal(t, clientOf(e), step.want, "the client")
	}
	e.Decision.Reason = rules.ReasonExempt
	q, _ := requestOf(e)
	must.Equal(t, siteOf(&q), audit.People, "the site of an exempt client")
}

func TestWhatIsOlderThanAnHourIsNotListed(t *testing.T) {
	c := New(nil)
	c.Ended(from(noon, "192.0.2.7", "a.test", ""))
	late := from(noon.Add(-time.Minute), "192.0.2.9", "c.test", "")
	late.Outcome.Waited = time.Hour
	got := c.Busiest(noon.Add(59*time.Minute), 9)
	must.True(t, len(got.Clients) == 1, "after 59 minutes: %+v", got)
	got = c.Busiest(noon.Add(66*time.Minute), 9)
	must.True(t, len(got.Clients) == 0 && got.Clients != nil, "after 66 minutes: %+v", got)
	c.Ended(from(noon.Add(time.Hour), "192.0.2.8", "b.test", "")) // in the same slot
	c.Ended(late)                                                 // and the end of an older one is not counted there
	if got := c.Busiest(noon.Add(time.Hour), 9); len(got.Clients) != 1 || got.Clients[0].Name != "192.0.2.8" || got.Clients[0].Waits != 0 {
		t.Errorf("an hour later: %+v", got)
	}
}

// A flood of names neither fills the memory nor hides the client that asks most, even if
// the names before it came several times and it comes last.
func TestAFloodOfNamesHidesNoBusyClient(t *testing.T) {
	c := New(nil)
	for i := range 3 * maxNames {
		c.Ended(from(noon, fmt.Sprint("early", i%maxNames), fmt.Sprint("early", i%maxNames, ".test"), ""))
	}
	for i := range 200_000 {
		c.Ended(from(noon, fmt.Sprint("flood", i), fmt.Sprint("host", i, ".test"), rules.ReasonRule))
		if i%100 == 0 {
			c.Ended(from(noon, "192.0.2.7", "a.test", ""))
		}
	}
	s := c.busiest.periods.at(noon)
	for _, table := range []*table{&s.clients, &s.sites} {
		must.True(t, len(table.names) == maxNames && len(table.index) == maxNames,
			"%d names, %d in the index, want %d", len(table.names), len(table.index), maxNames)
		for i := range table.names {
			at, known := table.index[table.names[i].text]
			must.Need(t, known && at == i, "the index and the names differ at %d", i)
		}
	}
	got := c.Busiest(noon, 1)
	must.True(t, got.Clients[0].Name == "192.0.2.7" && got.Sites[0].Name == "a.test" && got.Clients[0].Requests >= 1000,
		"the busiest: %+v", got)
}

func TestAKnownNameCostsNoMemory(t *testing.T) {
	c := New(nil)
	e := from(noon, "192.0.2.7", "a.test", "")
	e.Outcome.Waited = time.Second
	c.Ended(e)
	n := testing.AllocsPerRun(100, func() { c.Ended(e) })
	must.True(t, n == 0, "%v allocations", n)
}

func TestConcurrentRequestsAreAllCounted(t *testing.T) {
	c := New(nil)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 500 {
				e := from(noon, fmt.Sprint("192.0.2.", worker), fmt.Sprint(i%50, ".test"), "")
				e.Outcome.Status = 504
				c.Ended(e)
			}
		})
	}
	all.Wait()
	sum := uint64(0)
	for _, s := range c.Busiest(noon, 100).Sites {
		sum += s.Classes[reason.Failed.String()]
	}
	must.True(t, sum == 4000, "counted %d of 4000 failed requests", sum)
}
