package report_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"heed/internal/analysis/accesslog"
	"heed/internal/analysis/study"
	"heed/internal/audit/report"
	"heed/internal/output/table"
	"heed/internal/tools/testkit/must"
)

// visits is a record of a client's requests for pages of one site, at the given
// seconds, with a Crawl-delay of 10 seconds for it.
func visits(t *testing.T, fill func(r *record, visit func(second float64, target string, waited time.Duration))) *report.Conduct {
	t.Helper()
	r := newRecord(t)
	who := r.asker("192.0.2.7", "newsbot", "NewsBot/2.1")
	p := r.policy("shop.example", 0, "User-agent: other\nDisallow: /\nCrawl-delay: 60\n\nUser-agent: NewsBot\nCrawl-delay: 10\nDisallow: /private\n")
	free, robots := r.ground("path", "allow", "no-rule", "", 0, nil, p), r.ground("path", "allow", "robots-txt", "", 0, nil, nil)
	fill(r, func(second float64, target string, waited time.Duration) {
		ground := free
		if target == "/robots.txt" {
			ground = robots
		}
		r.ended(r.entry(time.Duration(second*float64(time.Second)), who, "shop.example", target, ground, waited), 200, true, 10)
	})
	rep, _ := made(t, report.Query{Conduct: true}, r.file())
	must.Need(t, len(rep.Conduct) == 1, "it has %d agents at sites", len(rep.Conduct))
	return &rep.Conduct[0]
}

// is fails unless a number that there may be none of is what is wanted.
func is[N comparable](t *testing.T, what string, got *N, want N) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is missing, want %v", what, want)
	} else if *got != want {
		t.Errorf("%s is %v, want %v", what, *got, want)
	}
}

func TestHeed_GapsAreHeldAgainstTheDelayThatTheAgentIsAskedToKeep(t *testing.T) {
	c := visits(t, func(_ *record, visit func(float64, string, time.Duration)) {
		visit(0, "/a", 0)
		visit(2, "/b", 8*time.Second) // it waited for its turn: 10 s after the first
		visit(20, "/c", 0)
		visit(25, "/d", 5*time.Second)
		visit(100, "/e", 0)
	})
	is(t, "the delay", c.Asked.Delay, 10e6)
	is(t, "the share kept, as it asked", c.Asked.Kept, 0.5)
	is(t, "the share kept, as it was sent on", c.Sent.Kept, 1)
	is(t, "the median of gaps, as it asked", c.Asked.Median, 11.5e6) // of 2, 5, 18 and 75 s
	is(t, "the median of gaps, as it was sent on", c.Sent.Median, 10e6)
	is(t, "the 5th percentile", c.Asked.P5, 2e6)
	must.True(t, c.Asked.Limited == 4 && c.Asked.KeptCount == 2 && c.Pages == 5 && c.Breaches == 0,
		"the shares are %d of %d and %d of %d", c.Asked.KeptCount, c.Asked.Limited, c.Breaches, c.Pages)
	must.True(t, c.Asked.N == 4 && c.Fastest == 4,
		"there are %d gaps, and %d requests in the fastest minute", c.Asked.N, c.Fastest)
}

// A Request-rate counts like a Crawl-delay, in its hours: the record of the test begins at
// 8:00 UTC.
func TestHeed_GapsAreHeldAgainstTheRequestRateOfTheHour(t *testing.T) {
	for rate, want := range map[string]report.Seconds{"1/20": 20e6, "1/20 0800-0900": 20e6, "1/5": 10e6, "1/20 0100-0200": 10e6} {
		r := newRecord(t)
		who := r.asker("192.0.2.7", "newsbot", "NewsBot/2.1")
		p := r.policy("shop.example", 0, "User-agent: NewsBot\nCrawl-delay: 10\nRequest-rate: "+rate+"\n")
		free := r.ground("path", "allow", "no-rule", "", 0, nil, p)
		for i := range 3 {
			r.ended(r.entry(time.Duration(15*i)*time.Second, who, "shop.example", "/a", free, 0), 200, true, 10)
		}
		rep, _ := made(t, report.Query{Conduct: true}, r.file())
		is(t, rate+": the delay", rep.Conduct[0].Asked.Delay, want)
		is(t, rate+": the share kept", rep.Conduct[0].Asked.Kept, map[report.Seconds]float64{10e6: 1, 20e6: 0}[want])
	}
}

// A lab compares its own crawler with the robots of its access logs: heed study over the
// record counts the same gaps and delays as heed audit report --conduct.
func TestHeed_AStudyOfTheRecordCountsTheSameGaps(t *testing.T) {
	r := newRecord(t)
	who := r.asker("192.0.2.7", "newsbot", "NewsBot/2.1")
	p := r.policy("shop.example", -time.Hour, "User-agent: NewsBot\nCrawl-delay: 10\nRequest-rate: 1/20 0800-0801\n")
	free, robots := r.ground("path", "allow", "no-rule", "", 0, nil, p), r.ground("path", "allow", "robots-txt", "", 0, nil, nil)
	for _, v := range []struct {
		second, waited time.Duration
		target         string
	}{{0, 0, "/a"}, {2, 8, "/b"}, {30, 0, "/c"}, {31, 0, "/robots.txt"}, {45, 4, "/d"}, {58, 4, "/e"}, {71, 9, "/f"}, {300, 0, "/g"}} {
		ground := free
		if v.target == "/robots.txt" {
			ground = robots
		}
		r.ended(r.entry(v.second*time.Second, who, "shop.example", v.target, ground, v.waited*time.Second), 200, true, 10)
	}
	file := r.file()
	rep, _ := made(t, report.Query{Conduct: true}, file)
	sent := rep.Conduct[0].Sent
	// After 08:01 the rate of the file no longer counts: gaps of 10, 20, 19, 13, 18 and 220 s
	// are under 20, 20, 20, 10, 10 and 10 s. It is the time of sending that counts.
	is(t, "the delay", sent.Delay, 20e6)
	is(t, "the share kept", sent.Kept, 4.0/6)

	policies := must.Get(study.LoadPolicies(t.Context(), file, ""))(t)
	logs := must.Get(accesslog.Open(accesslog.Options{Files: []string{file}}))(t)
	defer logs.Close()
	s := study.New(study.Options{Policies: policies})
	q, err := logs.Next()
	for ; err == nil; q, err = logs.Next() {
		must.OK(t, s.Add(&q))
	}
	must.Need(t, err == io.EOF, "%v", err)
	delays := s.Finish(logs.Counts(), false, begun).Table("delays")
	got := map[string]any{}
	for i, c := range delays.Columns {
		if got[c.Name] = delays.Rows[0][i]; c.Kind == table.Interval {
			got[c.Name] = delays.Rows[0][i].(table.Ratio).Cells()[0]
		}
	}
	want := map[string]any{"gaps": sent.N, "median_s": float64(*sent.Median) / 1e6, "p5_s": float64(*sent.P5) / 1e6, "asked_s": float64(*sent.Delay) / 1e6, "share": *sent.Kept, "fastest_minute": rep.Conduct[0].Fastest}
	for column, value := range want {
		x := got[column]
		must.True(t, fmt.Sprint(x) == fmt.Sprint(value), "%s is %v in the study, %v in the report", column, x, value)
	}
}

func TestHeed_ADelayThatTheRecordNotesCountsBeforeTheFiles(t *testing.T) {
	c := visits(t, func(r *record, visit func(float64, string, time.Duration)) {
		visit(0, "/a", 0)
		visit(12, "/b", 0)
		r.set(r.last["entry"], "asked", 15*time.Second.Microseconds())
	})
	is(t, "the delay", c.Asked.Delay, 15e6)
	is(t, "the share kept", c.Asked.Kept, 0)
}

func TestHeed_ConductRecordsWhetherRobotsTxtWasAskedForBeforePages(t *testing.T) {
	for _, c := range []struct {
		name   string
		visits []string
		asked  int64
		before bool
	}{
		{"never", []string{"/a", "/b"}, 0, false},
		{"first", []string{"/robots.txt", "/a", "/robots.txt"}, 2, true},
		{"too late", []string{"/a", "/robots.txt", "/b"}, 1, false},
		{"nothing else", []string{"/robots.txt"}, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := visits(t, func(_ *record, visit func(float64, string, time.Duration)) {
				for i, target := range c.visits {
					visit(float64(i), target, 0)
				}
			})
			if got.RobotsAsked != c.asked || got.RobotsBeforePages != c.before || (got.RobotsFirst != nil) != (c.asked > 0) {
				t.Errorf("reported: asked %d times, before pages %v, at %v", got.RobotsAsked, got.RobotsBeforePages, got.RobotsFirst)
			}
		})
	}
}

func TestHeed_TheLineOverTimeHasEveryRequestInAFewPeriods(t *testing.T) {
	for _, length := range []time.Duration{time.Second, time.Minute, 7 * time.Hour, 90 * 24 * time.Hour, 40 * 365 * 24 * time.Hour} {
		r := newRecord(t)
		who, free := r.asker("192.0.2.7", "newsbot", "x"), r.ground("path", "allow", "no-rule", "", 0, nil, nil)
		for i := range 200 {
			r.entry(length*time.Duration(i)/200, who, "shop.example", "/", free, 0)
		}
		rep, _ := made(t, report.Query{}, r.file())
		all := int64(0)
		for i := range rep.Periods {
			all += rep.Periods[i].Classes.Sum()
		}
		must.True(t, all == 200 && len(rep.Periods) <= 97,
			"over %v there are %d requests in %d periods", length, all, len(rep.Periods))
	}
}

// Of a tunnel heed sees no path: that its client never asked for robots.txt is not known.
func TestConduct_WhatWasAskedInATunnelIsNotSeen(t *testing.T) {
	r := newRecord(t)
	who := r.asker("192.0.2.7", "newsbot", "NewsBot/2.1")
	for i, method := range []string{"CONNECT", "TLS"} {
		e := r.entry(time.Duration(i)*time.Second, who, "shop.example", "", r.ground("no", "allow", "host-only", "", 0, nil, nil), 0)
		r.set(e, "method", method)
		r.ended(e, 200, false, 10)
	}
	rep, text := made(t, report.Query{Conduct: true}, r.file())
	if c := rep.Conduct[0]; c.Tunnels != 2 || c.Robots() != "not seen" || strings.Contains(text, "never asked") {
		t.Errorf("of tunnels: %+v\n%s", c, text)
	}
}
