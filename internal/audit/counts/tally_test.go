package counts

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/reason"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

var noon = time.Date(2026, 5, 1, 12, 0, 30, 0, time.UTC)

// asked is a request to host that was judged by its path.
func asked(host string, d rules.Decision) *audit.Entry {
	return &audit.Entry{Time: noon, Host: host, Scheme: "https", Target: "/", Judged: audit.ByPath, Decision: d}
}

func allowed() rules.Decision {
	return rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonNoRule}
}

func refusedBy(line int, rule string) rules.Decision {
	return rules.Decision{Reason: rules.ReasonRule, Group: "*", Rule: rule, Line: line}
}

// end ends exchanges.
func end(o interface{ Ended(*audit.Entry) }, entries ...*audit.Entry) {
	for _, e := range entries {
		o.Ended(e)
	}
}

func TestHeed_TallyCountsEveryRequestOnce(t *testing.T) {
	var tally Tally
	blind := asked("b.test", rules.Decision{Reason: rules.ReasonUntrusted})
	blind.Judged = audit.NotJudged
	byHost := asked("b.test", allowed())
	byHost.Judged = audit.ByHost
	would := asked("a.test", refusedBy(3, "Disallow: /x"))
	would.Decision.Verdict = rules.WouldRefuse
	end(&tally, asked("a.test", allowed()), asked("a.test", refusedBy(2, "Disallow: /")), would, blind, byHost)

	s := tally.Summary()
	want := Counts{
		Requests: 5, Allowed: 2, Refused: 1, WouldRefuse: 1, NotJudged: 1, ByPath: 3, ByHost: 1,
		Classes: reason.Counts{reason.Allowed: 3, reason.RefusedByRule: 1, reason.NotJudged: 1}, WouldBe: reason.Counts{reason.RefusedByRule: 1},
	}
	must.Equal(t, s.Counts, want, "counted")
	must.Equal(t, s.Allowed+s.Refused+s.WouldRefuse+s.Counts.NotJudged, s.Requests, "the parts and the whole")
	must.True(t, len(s.Hosts) == 2 && s.Hosts[0].Host == "a.test" && s.Hosts[0].Requests == 3 && s.Hosts[1].Counts.NotJudged == 1,
		"hosts %+v", s.Hosts)
	if len(s.Unjudged) != 1 || s.Unjudged[0] != (ReasonCount{Host: "b.test", Reason: rules.ReasonUntrusted, Verdict: "refuse", Count: 1, Class: "not judged"}) {
		t.Errorf("not judged: %+v", s.Unjudged)
	}
}

// Requests that are malformed for different reasons are counted apart, each with what was
// wrong; other reasons need no detail.
// Of rejected handshakes, those before a request that came through the same host's tunnel are
// known: the client went on.
func TestTally_CountsTheHandshakesBeforeARequest(t *testing.T) {
	var tally Tally
	rejected := func(host string) *audit.Entry {
		return &audit.Entry{Scheme: "https", Host: host, Decision: rules.Decision{Reason: rules.ReasonUntrusted}}
	}
	judged := func(scheme, host string) *audit.Entry {
		return &audit.Entry{Scheme: scheme, Host: host, Judged: audit.ByPath, Decision: rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonNoRule}}
	}
	end(&tally, rejected("a.test"), judged("https", "a.test"), rejected("b.test"), judged("http", "b.test"), judged("https", "c.test"), rejected("c.test"))
	for _, c := range tally.Summary().Unjudged {
		want := map[string]uint64{"a.test": 1}[c.Host]
		must.True(t, c.Count == 1 && c.Before == want, "%+v, want %d before", c, want)
	}
}

func TestTally_MalformedRequestsHaveTheirFault(t *testing.T) {
	var tally Tally
	for reason, details := range map[rules.Reason][]string{
		rules.ReasonMalformed: {"TLS came in place of HTTP", "TLS came in place of HTTP", "the path contains a NUL octet"},
		rules.ReasonUntrusted: {"one alert", "another alert", "an alert; " + audit.WrongClock + "; a hint"},
	} {
		for _, detail := range details {
			e := asked("", rules.Decision{Reason: reason})
			e.Judged, e.Detail = audit.NotJudged, detail
			end(&tally, e)
		}
	}
	var got []string
	for _, c := range tally.Summary().Unjudged {
		got = append(got, fmt.Sprint(c.Count, " ", c.Reason, " ", c.Detail))
	}
	want := []string{"2 ca-untrusted ", "2 malformed TLS came in place of HTTP", "1 ca-untrusted " + audit.WrongClock, "1 malformed the path contains a NUL octet"}
	must.Same(t, got, want, "it has")
}

func TestHeed_TallyNamesTheRuleThatRefused(t *testing.T) {
	var tally Tally
	for range 3 {
		end(&tally, asked("a.test", refusedBy(12, "Disallow: /private")))
	}
	end(&tally, asked("a.test", refusedBy(4, "Disallow: /x")),
		asked("a.test", rules.Decision{Reason: rules.ReasonRobotsUnreachable}))

	got := tally.Summary().Refusals
	must.Need(t, len(got) == 3, "refusals %+v, want three kinds", got)
	want := RuleCount{Host: "a.test", Reason: rules.ReasonRule, Group: "*", Rule: "Disallow: /private", Line: 12, Count: 3, Class: "refused by rule"}
	must.Equal(t, got[0], want, "the most frequent first")
}

func TestHeed_TallyCountsRefusalsByTheSiteApart(t *testing.T) {
	var tally Tally
	ended := func(status int, fromSite bool) {
		e := asked("a.test", allowed())
		e.Outcome = audit.Outcome{Status: status, FromSite: fromSite}
		tally.Ended(e)
	}
	ended(403, true)
	ended(429, true)
	ended(429, true)
	ended(403, false) // heed's own
	ended(404, true)  // an answer like any other
	ended(500, true)  // a failure
	got := tally.Summary().Sites
	want := []SiteCount{{Host: "a.test", Status: 429, Count: 2}, {Host: "a.test", Status: 403, Count: 1}}
	must.Equal(t, fmt.Sprint(got), fmt.Sprint(want))
}

func TestHeed_TallyAddsUpWaitsThatAreFelt(t *testing.T) {
	var tally Tally
	for _, wait := range []time.Duration{time.Millisecond, time.Second, 3 * time.Second} {
		e := asked("a.test", allowed())
		e.Outcome.Waited = wait
		tally.Ended(e)
	}
	must.Equal(t, tally.Summary().Waited, (Waits{Requests: 2, Total: 4 * time.Second, Longest: 3 * time.Second}))
}

func TestHeed_TallyIsBoundedAndItsSumsStayTrue(t *testing.T) {
	var tally Tally
	long := strings.Repeat("x", 10_000)
	for i := range 5000 {
		e := asked(fmt.Sprintf("h%d.test", i), refusedBy(1, "Disallow: /"+long))
		e.Outcome = audit.Outcome{Status: 403, FromSite: true}
		tally.Ended(e)
	}
	s := tally.Summary()
	var hosts, refusals, sites uint64
	for _, h := range s.Hosts {
		hosts += h.Requests
	}
	for _, r := range s.Refusals {
		refusals += r.Count
		must.Need(t, len(r.Rule) <= 200, "a rule of %d bytes is kept", len(r.Rule))
	}
	for _, c := range s.Sites {
		sites += c.Count
	}
	must.True(t, hosts == 5000 && refusals == 5000 && sites == 5000,
		"sums %d, %d, %d; want 5000 each", hosts, refusals, sites)
	must.True(t, len(s.Hosts) <= 1001 && len(s.Refusals) <= 1001 && len(s.Sites) <= 1001,
		"kept %d hosts, %d refusals, %d sites", len(s.Hosts), len(s.Refusals), len(s.Sites))
	must.True(t, s.Hosts[0].Host == audit.Other && s.Hosts[0].Requests == 4000,
		"the largest is %+v, want those beyond the bound", s.Hosts[0])
}

func TestCounter_KnowsTheLastHour(t *testing.T) {
	tally := New(nil)
	at := func(ago time.Duration) {
		e := asked("a.test", allowed())
		e.Time = noon.Add(-ago)
		tally.Ended(e)
	}
	at(2 * time.Hour)
	at(61 * time.Minute)
	at(59 * time.Minute)
	at(59 * time.Minute)
	at(0)
	got := tally.Hour(noon)
	must.True(t, got.Requests == 3 && got.Allowed == 3, "the hour up to noon has %+v, want 3 requests", got)
	if got := tally.Hour(noon.Add(30 * time.Minute)).Requests; got != 1 {
		t.Errorf("half an hour later: %d, want 1", got)
	}
	if got := tally.Hour(noon.Add(25 * time.Hour)).Requests; got != 0 {
		t.Errorf("a day later: %d, want none", got)
	}
	long := asked("a.test", allowed())
	long.Time, long.Outcome.Duration = noon.Add(-3*time.Hour), 3*time.Hour
	if tally.Ended(long); tally.Hour(noon).Requests != 4 || tally.Minute(noon).Requests != 2 {
		t.Error("a request does not count in the time in which it ended")
	}
}

// After the wall clock was set back by two hours, what is requested counts from the first
// request on, as it did before; what was counted in the two hours is gone, and does not come
// back when the clock has come there.
func TestCounter_TheClockIsSetBack(t *testing.T) {
	t.Parallel()
	c, now := New(nil), time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	c.now = func() time.Time { return now }
	ask := func(n int) {
		for range n {
			c.Ended(from(now, "bot", "site.test", rules.ReasonRule))
			now = now.Add(time.Second)
		}
	}
	ask(90)
	now = now.Add(-2 * time.Hour)
	ask(90)
	for name, got := range map[string]uint64{"minute": c.Minute(now).Requests, "five minutes": c.FiveMinutes(now).Requests, "hour": c.Hour(now).Requests, "busiest": c.Busiest(now, 1).Clients[0].Requests} {
		least := map[bool]uint64{true: 55, false: 90}[name == "minute"]
		must.True(t, got >= least && got <= 90, "%s: %d requests", name, got)
	}
	now = now.Add(2 * time.Hour)
	must.Equal(t, c.Hour(now).Requests, 0, "requests two hours later")
	now = now.Add(-30 * time.Second) // the clock is adjusted, and what is there stays
	ask(1)
	must.Equal(t, c.Day(now)[95].Requests+c.Day(now)[94].Requests, 1, "requests")
}

func TestCounter_RemembersPoliciesInTrouble(t *testing.T) {
	tally := New(nil)
	meet := func(host string, s rules.Source) {
		s.Origin = rules.Origin{Scheme: "https", Host: host, Port: 443}
		e := asked(host, rules.Decision{})
		e.Policy = rules.New(s, nil)
		tally.Ended(e)
	}
	meet("down.test", rules.Source{State: rules.Unreachable, NoConnection: true}) // the site's own affair
	meet("ill.test", rules.Source{State: rules.Unreachable, Err: errors.New("status 500")})
	meet("old.test", rules.Source{State: rules.Available, Stale: true, Err: errors.New("timeout")})
	meet("well.test", rules.Source{State: rules.Available})

	got := tally.Troubles(noon)
	if len(got) != 2 || got[0].Origin != "https://ill.test" || got[0].State != "unreachable" || got[0].Err != "status 500" ||
		got[1].Origin != "https://old.test" || got[1].State != "stale" {
		t.Fatalf("in trouble: %+v", got)
	}
	meet("ill.test", rules.Source{State: rules.Available})
	got = tally.Troubles(noon)
	must.True(t, len(got) == 1 && got[0].Origin == "https://old.test", "after one has recovered: %+v", got)
	must.Same(t, tally.Troubles(noon.Add(61*time.Minute)), nil, "an hour after the last request")
	for i := range 300 {
		meet(fmt.Sprintf("h%d.test", i), rules.Source{State: rules.Unreachable})
	}
	must.Equal(t, len(tally.Troubles(noon)), 100, "origins are remembered")
}

func TestCounter_ForgetsOldTroubleToMakeRoom(t *testing.T) {
	tally := New(nil)
	meet := func(i int, when time.Time) {
		e := asked("h", rules.Decision{})
		e.Time = when
		e.Policy = rules.New(rules.Source{Origin: rules.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", i), Port: 80}}, nil)
		tally.Ended(e)
	}
	for i := range 100 {
		meet(i, noon.Add(-2*time.Hour))
	}
	meet(1000, noon)
	got := tally.Troubles(noon)
	must.True(t, len(got) == 1 && got[0].Origin == "http://h1000.test", "in trouble: %+v, want the new one alone", got)
}

func TestHeed_SummaryIsJSONWithoutNulls(t *testing.T) {
	text := must.Get(json.Marshal(new(Tally).Summary()))(t)
	must.Lack(t, string(text), "null", "a null in")
	var back Summary
	must.OK(t, json.Unmarshal(text, &back))
}

func TestHeed_TallyAllocatesNothingForWhatItKnows(t *testing.T) {
	var tally Tally
	refused := asked("a.test", refusedBy(12, "Disallow: /private"))
	blind := asked("b.test", rules.Decision{Reason: rules.ReasonTunnel})
	blind.Judged = audit.NotJudged
	fine := asked("a.test", allowed())
	fine.Policy = rules.New(rules.Source{State: rules.Available}, nil)
	fine.Outcome = audit.Outcome{Status: 403, FromSite: true, Waited: time.Second}
	once := func() {
		for _, e := range []*audit.Entry{refused, blind, fine} {
			tally.Ended(e)
		}
	}
	once()
	must.Equal(t, testing.AllocsPerRun(100, once), 0, "allocations for three known requests")
}

func TestHeed_TallyIsSafeForConcurrentUse(t *testing.T) {
	var tally Tally
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 200 {
				e := asked(fmt.Sprintf("h%d.test", (i+j)%20), allowed())
				tally.Ended(e)
				if j%50 == 0 {
					tally.Summary()
				}
			}
		})
	}
	all.Wait()
	must.Equal(t, tally.Summary().Requests, 1600, "requests counted")
}
