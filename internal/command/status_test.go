package command

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/audit/counts"
	"heed/internal/control"
	"heed/internal/judge/reason"
	"heed/internal/pace/fleet"
	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
)

func TestStatusIsWellUnlessSomethingIsNot(t *testing.T) {
	well := control.Status{CA: control.CAStatus{DaysLeft: 31}}
	cases := []struct {
		name   string
		change func(*control.Status)
		want   string
	}{
		{"nothing", func(*control.Status) {}, ""},
		{"its CA", func(s *control.Status) { s.CA.DaysLeft = 30 }, "30 days left"},
		{"its CA at the end", func(s *control.Status) { s.CA.DaysLeft = 1 }, "1 day left"},
		{"nothing, with a site that fails", func(s *control.Status) { s.Troubles, s.Reach = []counts.Trouble{{}}, counts.Reach{Asked: 1, Failed: 1} }, ""},
		{"most sites", func(s *control.Status) { s.Reach = counts.Reach{Asked: 5, Failed: 3} }, "3 of the 5 sites asked in the last 10 minutes failed"},
		{"nothing, with half of the sites", func(s *control.Status) { s.Reach = counts.Reach{Asked: 6, Failed: 3} }, ""},
		{"its upstream proxy", func(s *control.Status) {
			s.Reach.Proxies = []counts.FailingProxy{{Name: "p.test:3128", Err: "connection refused"}}
		}, "the upstream proxy p.test:3128 cannot be used: connection refused"},
		{"its log", func(s *control.Status) { s.Log = "no space" }, "the log cannot be written: no space"},
		{"its log, which is the record", func(s *control.Status) { s.Log, s.LogIsRecord = "no space", true }, "so requests are refused: no space"},
		{"a node of its store", func(s *control.Status) {
			s.Fleet = &fleet.Health{Away: true, Nodes: []string{"a.test:1"}, Why: "refused"}
		}, "store is away at a.test:1: refused"},
		{"a CA of tomorrow", func(s *control.Status) { s.CA.NotBefore = time.Now().Add(24 * time.Hour) }, "is not valid before"},
		{"its store from the start", func(s *control.Status) { s.Fleet = &fleet.Health{Hosts: "a.test:1", Unreached: true} }, "a.test:1 was never reached"},
		{"its end", func(s *control.Status) { s.Ending = true }, "about to end"},
	}
	for _, c := range cases {
		s := well
		c.change(&s)
		got := strings.Join(slices.Concat(s.NotReady(), s.Unwell()), "; ")
		must.True(t, (c.want != "" || got == "") && strings.Contains(got, c.want), "%s: %q, want %q", c.name, got, c.want)
	}
}

func TestFleetWordsNameWhatIsAway(t *testing.T) {
	now := time.Now()
	for want, h := range map[string]fleet.Health{
		"a.test:1, shared; turns at sites are taken together by 3 heeds": {Heeds: 3},
		"a.test:1, not reached yet":                                      {Heeds: 1, Unreached: true},
		"a.test:1, away for 5s: refused; no turns are given at sites until it was reached once; found away 1 time, 2 questions not answered":                            {Heeds: 1, Unreached: true, Away: true, Outages: 1, Missed: 2},
		"a.test:1, shared, but its node b.test:1 is away for 5s: refused; every delay of a site whose keys are there is kept once for each of 3 heeds until it is back": {Heeds: 3, Away: true, Nodes: []string{"b.test:1"}},
		"a.test:1, shared, but its nodes b.test:1, c.test:1 are away for 5s: refused; no turns are given at sites whose keys are there until it was reached once":       {Heeds: 1, Unreached: true, Away: true, Nodes: []string{"b.test:1", "c.test:1"}},
	} {
		h.Hosts, h.Since, h.Why = "a.test:1", now.Add(-5*time.Second), "refused"
		must.Equal(t, fleetWords(&h, now), want)
	}
}

func TestStatusReadsWell(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	s := &control.Status{
		Info:      control.Info{Version: "v1", PID: 42, ConfigHash: "0123456789abcdef"},
		Since:     now.Add(-90 * time.Second),
		Listeners: []string{"127.0.0.1:3128"}, Runs: []string{"127.0.0.1:4000"},
		Mode: "enforce, https intercepted", Profile: "strict", CA: control.CAStatus{Path: "/s/ca.pem", DaysLeft: 99},
		Load: limit.Status{
			Connections: 3, Clients: 1, Tunnels: 2, Requests: 1, Reached: map[string]uint64{"uri_bytes": 7, "connections_per_client": 1},
		},
		Hour: counts.Counts{Requests: 4, NotJudged: 1, ByPath: 3, Classes: reason.Counts{reason.Allowed: 2, reason.RefusedByRule: 1, reason.NotJudged: 1}},
		Five: counts.Counts{Requests: 1, NotJudged: 1, Classes: reason.Counts{reason.NotJudged: 1}},
		Busiest: counts.Busiest{
			Traffic: counts.Traffic{BytesIn: 2048, BytesOut: 5 << 20, Success: now.Add(-70 * time.Second)},
			Clients: []counts.NameCount{{Name: "newsbot", Requests: 3, Classes: map[string]uint64{"allowed": 2, "refused by rule": 1}, Traffic: counts.Traffic{BytesOut: 5 << 20, Success: now.Add(-70 * time.Second)}}},
			Sites:   []counts.NameCount{{Name: "a.test", Requests: 1, Classes: map[string]uint64{"failed": 1}, Traffic: counts.Traffic{BytesIn: 2048, BytesOut: 310}}},
		},
		Troubles: []counts.Trouble{{Origin: "https://ill.test", State: "unreachable", Err: "status 500\x1b"}},
	}
	var out bytes.Buffer
	printStatus(&out, s, now)
	want := `heed           v1, pid 42, started by hand, up 1m30s
configuration  built-in settings (0123456789ab)
listens on     127.0.0.1:3128
runs           1: 127.0.0.1:4000
mode           enforce, https intercepted
profile        strict
CA             /s/ca.pem, 99 days left
open now       3 connections of 1 client, 2 tunnels, 1 request under way
limits reached connections_per_client once, uri_bytes 7 times
last hour      4 requests: 2 (50.0%) allowed, 1 (25.0%) refused by rule, 1 (25.0%) not judged; judged 3 (75.0%) by their path; 1 (25.0%) could not be judged at all
last 5 minutes 1 request: 0 (0.0%) allowed, 0 (0.0%) refused by rule, 1 (100.0%) not judged; judged none; 1 (100.0%) could not be judged at all
traffic        5.0 MiB answered, 2.0 KiB uploaded in the last hour
last success   2026-05-01T11:58:50Z, 1m10s ago
busy client    newsbot: 3 requests, 1 refused by rule; 5.0 MiB answered; last success 1m10s ago
busy site      a.test: 1 request, 1 failed; 310 B answered, 2.0 KiB uploaded; no success in the hour
in trouble     https://ill.test: robots.txt unreachable: status 500\x1b
`
	must.Equal(t, out.String(), want)
}
