package report_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/audit/report"
	"heed/internal/audit/store"
	"heed/internal/tools/testkit/must"
)

// read opens records as `heed audit report` does.
func read(t testing.TB, paths ...string) (all []*store.Record) {
	t.Helper()
	for _, path := range paths {
		r := must.Get(store.OpenRecord(path))(t)
		r.Path = "audit.db"
		all = append(all, r)
	}
	return all
}

// made returns the report about the records, and as text.
func made(t testing.TB, q report.Query, paths ...string) (*report.Report, string) {
	t.Helper()
	r := must.Get(report.New(read(t, paths...), q, begun.AddDate(0, 1, 0)))(t)
	var text bytes.Buffer
	must.OK(t, r.WriteText(&text))
	return r, text.String()
}

// contains fails unless the text contains everything wanted, ignoring blanks.
func contains(t *testing.T, text string, wanted ...string) {
	t.Helper()
	flat := strings.Join(strings.Fields(text), " ")
	for _, w := range wanted {
		must.Contain(t, flat, w, "the report does not tell %q:\n%s", w, text)
	}
}

// aDay is a record of what a robot and another did at two sites: all kinds of
// decisions, a change of rules, and a site that was away.
func aDay(t testing.TB) string {
	r := newRecord(t)
	news, other := r.asker("192.0.2.7", "newsbot", "NewsBot/2.1"), r.asker("192.0.2.9", "other", "Other/1")
	first := r.policy("shop.example", 0, "User-agent: *\nDisallow: /private\n")
	second := r.policy("shop.example", 2*time.Hour, "User-agent: *\nDisallow: /private\nDisallow: /cart\n")
	rule := func(verdict, rule string, line int, p int64) int64 {
		return r.ground("path", verdict, "rule", rule, line, nil, p)
	}
	free := r.ground("path", "allow", "no-rule", "", 0, nil, first)
	r.ended(r.entry(0, news, "shop.example", "/robots.txt", r.ground("path", "allow", "robots-txt", "", 0, nil, nil), 0), 200, true, 64)
	r.ended(r.entry(time.Second, news, "shop.example", "/a", free, 0), 200, true, 1000)
	r.ended(r.entry(3*time.Second, news, "shop.example", "/a", free, 2*time.Second), 429, true, 1000)
	r.ended(r.entry(4*time.Second, news, "shop.example", "/private/x", rule("refuse", "Disallow: /private", 2, first), 0), 403, false, 700)
	r.ended(r.entry(3*time.Hour, other, "shop.example", "/cart", rule("would-refuse", "Disallow: /cart", 3, second), 0), 200, true, 500)
	r.ended(r.entry(4*time.Hour, other, "away.example", "/", r.ground("path", "refuse", "robots-unreachable", "", 0, nil, r.lost("away.example", "the site answered 503")), 0), 503, false, 700)
	r.ended(r.entry(5*time.Hour, other, "shop.example", "/private/y", r.ground("path", "allow", "override", "Allow: /private/", 0, "mail of 3 May", second), 0), 200, true, 100)
	r.ended(r.entry(6*time.Hour, other, "away.example", "", r.ground("no", "allow", "tunnel", "", 0, nil, nil), 0), 200, false, 0)
	r.entry(7*time.Hour, news, "shop.example", "/b", free, 0) // heed was killed before it ended
	return r.file()
}

func TestHeed_AReportListsClientsRequestsAndOutcomes(t *testing.T) {
	_, text := made(t, report.Query{}, aDay(t))
	contains(t, text,
		"requests 9: 6 allowed, 1 refused by rule, 1 rules unavailable, 1 not judged",
		"only observed 1 request, which would be: 1 refused by rule",
		"coverage 88.9 % judged by their path; 11.1 % could not be judged at all",
		"waited 1 request, 2s in all, at most 2s",
		"refused by sites 1",
		"end not recorded 1 (still open, or heed was killed)",
		"newsbot 192.0.2.7 5 4 1 0 0 0 2s",
		"other 192.0.2.9 4 2 0 1 1 1 -",
		"https://shop.example 7 6 1 0 0 1 2s",
		"3 33.3 % allowed allow path 1 1 no rule applies",
		"1 11.1 % not judged allow not judged 1 1 the settings let its tunnels pass unjudged",
		"1 x refused by rule https://shop.example newsbot robots.txt line 2 Disallow: /private (group *)",
		"1 x would be refused by rule https://shop.example other robots.txt line 3 Disallow: /cart (group *)",
		"1 x not judged https://away.example other the settings let its tunnels pass unjudged",
		"1 x allowed https://shop.example other an exception of the operator: Allow: /private/, because: mail of 3 May",
		"https://away.example unreachable 1 asked: 1 rules unavailable",
		"the site answered 503",
		"https://shop.example 2026-03-02T10:00:00Z file",
		"+Disallow: /cart",
	)
}

func TestReport_CountsByAddressAndByUser(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	free := r.ground("path", "allow", "no-rule", "", 0, nil, nil)
	asker := func(address string, user any, token string) int64 {
		return r.once("asker", address, user, nil, "enforce", token, fmt.Sprintf("[%q]", token), 0, nil, nil)
	}
	r.entry(0, asker("192.0.2.7", "ann", "curl"), "shop.example", "/a", free, 0)
	r.entry(1, asker("192.0.2.7", nil, "wget"), "shop.example", "/b", free, 0)
	r.entry(2, asker("192.0.2.9", "ann", "wget"), "shop.example", "/c", free, 0)
	path := r.file()
	for by, want := range map[string][]string{
		"":               {"Agents", "wget 192.0.2.7, 192.0.2.9 2", "curl 192.0.2.7 1"},
		report.ByAddress: {"Addresses", "192.0.2.7 192.0.2.7 2", "192.0.2.9 192.0.2.9 1"},
		report.ByUser:    {"Users", "ann 192.0.2.7, 192.0.2.9 2", "(no user) 192.0.2.7 1"},
	} {
		rep, text := made(t, report.Query{By: by, Conduct: true}, path)
		contains(t, text, want...)
		var table bytes.Buffer
		if err := rep.WriteCSV(&table); err != nil || !strings.HasPrefix(table.String(), cmp.Or(by, "agent")+",site,") || len(rep.Conduct) != 2 {
			t.Errorf("by %q: %v, %d lines of conduct:\n%s", by, err, len(rep.Conduct), &table)
		}
	}
}

func TestHeed_AReportIsAboutWhatWasAskedFor(t *testing.T) {
	day := aDay(t)
	for _, c := range []struct {
		name  string
		query report.Query
		want  int64
	}{
		{"all", report.Query{}, 9},
		{"from a time on", report.Query{Filter: store.Filter{From: begun.Add(3 * time.Hour)}}, 5},
		{"before a time", report.Query{Filter: store.Filter{To: begun.Add(3 * time.Hour)}}, 4},
		{"a host", report.Query{Filter: store.Filter{Host: "away.example"}}, 2},
		{"hosts below", report.Query{Filter: store.Filter{Host: "*.example"}}, 9},
		{"another host", report.Query{Filter: store.Filter{Host: "other.test"}}, 0},
		{"an address", report.Query{Filter: store.Filter{Client: "192.0.2.7"}}, 5},
		{"a product token", report.Query{Filter: store.Filter{Client: "OTHER"}}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := made(t, c.query, day)
			must.True(t, r.Total.Requests == c.want, "it counts %d requests, not %d", r.Total.Requests, c.want)
		})
	}
}

func TestHeed_AVerdictThatCameLateAndOneThatWasTakenBackCountOnce(t *testing.T) {
	r := newRecord(t)
	who := r.asker("192.0.2.7", "newsbot", "NewsBot/2.1")
	late := r.ground("path", "would-refuse", "rule", "Disallow: /x", 2, nil, nil)
	r.insert("outcome", r.entry(0, who, "shop.example", "/x", r.ground("no", "allow", "late", "", 0, nil, nil), 0), 1, 200, 1, 0, 10, 5, 0, nil, late)
	tunnel := r.entry(time.Second, who, "shop.example", "", r.ground("host", "allow", "host-only", "", 0, nil, nil), 0)
	again := r.entry(2*time.Second, who, "shop.example", "", r.ground("host", "refuse", "not-http", "", 0, nil, nil), 0)
	var id []byte
	must.OK(r.t, r.tx.QueryRow("SELECT id FROM entry WHERE seq = ?", tunnel).Scan(&id))
	r.set(again, "revises", id)
	_, text := made(t, report.Query{}, r.file())
	contains(t, text, "requests 2: 1 allowed, 0 refused by rule, 1 not judged", "which would be: 1 refused by rule", "50.0 % judged by their path, 50.0 % by their host alone")
}

func TestHeed_OddRecordsGiveSensibleReports(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(r *record)
		want string
	}{
		{"nothing was asked", func(*record) {}, "requests none"},
		{"one decision without an end", func(r *record) {
			r.entry(0, r.asker("192.0.2.7", "newsbot", "x"), "shop.example", "/", r.ground("path", "allow", "no-rule", "", 0, nil, nil), 0)
		}, "requests 1: 1 allowed, 0 refused by rule"},
		{"only exempt people", func(r *record) { r.add("exempt", r.micros(0), 1234, nil) }, "exempt 1,234 requests of people: only counted"},
		{"what could not be recorded", func(r *record) { r.add("exempt", r.micros(0), 2, "disk full") }, "UNRECORDED 2 requests"},
		{"pruned", func(r *record) {
			r.last["entry"] = 500
			r.entry(0, r.asker("192.0.2.7", "newsbot", "x"), "shop.example", "/", r.ground("path", "allow", "no-rule", "", 0, nil, nil), 0)
		}, "500 decisions before that are no longer kept"},
		{"a clock that was set back", func(r *record) {
			who, free := r.asker("192.0.2.7", "newsbot", "x"), r.ground("path", "allow", "no-rule", "", 0, nil, nil)
			r.entry(time.Hour, who, "shop.example", "/", free, 0)
			r.entry(-1000*24*time.Hour, who, "shop.example", "/", free, 0)
			r.entry(time.Hour, who, "shop.example", "/", free, 0)
		}, "clock went back 1 time"},
		{"no host was learnt", func(r *record) {
			r.set(r.entry(0, r.asker("192.0.2.7", "newsbot", "x"), "shop.example", "/", r.ground("no", "refuse", "malformed", "", 0, nil, nil), 0), "site", nil)
		}, "(no site) 1 0 0 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecord(t)
			c.make(r)
			rep, text := made(t, report.Query{Conduct: true}, r.file())
			contains(t, text, c.want)
			for _, write := range []func() error{
				func() error { return rep.WriteJSON(&bytes.Buffer{}) },
				func() error { return rep.WriteCSV(&bytes.Buffer{}) },
			} {
				must.OK(t, write())
			}
		})
	}
}

func TestHeed_WhatClientsAndSitesWroteObeysNoTerminal(t *testing.T) {
	const hostile = "\x1b[2J\u202e=HYPERLINK(\"x\")<script>alert(1)</script>\x00"
	r := newRecord(t)
	who := r.once("asker", "192.0.2.7", hostile, hostile, "enforce", hostile, "[\"=1+1\"]", 0, nil, nil)
	r.entry(0, who, "shop.example", "/", r.ground("path", "refuse", "rule", "Disallow: "+hostile, 2, hostile, r.lost("shop.example", hostile)), 0)
	r.policy("shop.example", 0, "User-agent: *\n")
	r.policy("shop.example", time.Hour, hostile)
	rep, text := made(t, report.Query{Conduct: true}, r.file())
	var table bytes.Buffer
	must.OK(t, rep.WriteCSV(&table))
	for _, out := range []string{text, table.String()} {
		if i := strings.IndexAny(out, "\x1b\x00\u202e"); i >= 0 {
			t.Errorf("octets that a terminal obeys are in it: %q", out[max(0, i-40):min(len(out), i+40)])
		}
	}
}

func TestHeed_WhoWaitsForATurnSetsNoClockBack(t *testing.T) {
	r := newRecord(t)
	who, free := r.asker("192.0.2.7", "newsbot", "x"), r.ground("path", "allow", "no-rule", "", 0, nil, nil)
	r.entry(20*time.Second, who, "shop.example", "/came-later", free, 0)
	r.set(r.entry(0, who, "shop.example", "/waited", free, 0), "waited", 21*time.Second/time.Microsecond)
	rep, _ := made(t, report.Query{}, r.file())
	must.True(t, rep.ClockBack == 0, "the clock is said to have gone back %d times; a request only waited", rep.ClockBack)
}

// Uploads are counted by client and site like downloads, and shown where there are any.
func TestHeed_UploadsAreReported(t *testing.T) {
	if _, text := made(t, report.Query{}, aDay(t)); strings.Contains(text, "uploaded") {
		t.Errorf("uploads where there are none:\n%s", text)
	}
	r := newRecord(t)
	free := r.ground("path", "allow", "no-rule", "", 0, nil, r.policy("shop.example", 0, ""))
	for i, n := range []int{3 << 20, 5 << 20} {
		e := r.entry(time.Duration(i)*time.Second, r.asker("192.0.2.7", "newsbot", "NewsBot/2.1"), "shop.example", "/form", free, 0)
		r.insert("outcome", e, 1, 200, true, n, 1<<20, 120_000, 0, nil, nil)
	}
	rep, text := made(t, report.Query{}, r.file())
	contains(t, text, "uploaded 8.0 MiB of bodies, as clients sent them", "waited bytes uploaded newsbot 192.0.2.7 2 2 0 - 2.0 MiB 8.0 MiB")
	var page, table bytes.Buffer
	must.OK(t, errors.Join(rep.WriteHTML(&page), rep.WriteCSV(&table)))
	row := tableOf(t, table.Bytes())[1]
	must.True(t, rep.Sites[0].BytesIn == 8<<20 && slices.Contains(row, "8388608"), "uploads of %d, %q", rep.Sites[0].BytesIn, row)
	if !strings.Contains(page.String(), "data-l=\"uploaded\">8.0 MiB") || !strings.Contains(page.String(), "those of the requests 8.0 MiB") {
		t.Error("the page has no uploads")
	}
}
