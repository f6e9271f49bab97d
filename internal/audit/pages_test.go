package audit

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func partEntry(page string, verdict rules.Verdict, status int, fromSite bool) *Entry {
	e := newEntry("/x.png")
	e.Part, e.Page, e.Decision.Verdict = "image", page, verdict
	e.Outcome.Status, e.Outcome.FromSite = status, fromSite
	return e
}

// The outcome of a page's parts is logged in one line once no more of them are requested;
// refusals by the site are counted separately. Complete pages are not logged.
func TestHeed_RefusedPartsAreGroupedByTheirPage(t *testing.T) {
	var out bytes.Buffer
	l, counted := NewLog(slog.NewJSONHandler(&out, nil), nil), Pages{}
	for i := range 50 {
		e := partEntry("https://a.test/news", rules.Allow, 200, true)
		switch {
		case i < 7:
			e = partEntry("https://a.test/news", rules.Refuse, 403, false)
		case i == 7:
			e = partEntry("https://a.test/news", rules.Allow, 403, true)
		}
		must.OK(t, l.Decided(e))
		l.Ended(e)
		counted.Add(e, time.Now())
	}
	whole := partEntry("https://a.test/fine", rules.Allow, 200, true)
	_ = l.Decided(whole)
	l.Ended(whole)
	l.tick(time.Now())
	must.Lack(t, out.String(), `"msg":"page"`, "a page is logged while it loads")
	l.tick(time.Now().Add(3 * time.Second))
	all := lines(t, &out)
	last := all[len(all)-1]
	if len(all) != 52 || last["msg"] != "page" || last["page"] != "https://a.test/news" || last["parts"] != 50.0 || last["refused"] != 7.0 || last["refused_by_site"] != 1.0 {
		t.Errorf("%d lines, the last %v", len(all), last)
	}
	want := PageCount{Page: "https://a.test/news", Parts: 50, Refused: 7, SiteRefused: 1}
	got := counted.Refused()
	must.True(t, len(got) == 1 && got[0] == want, "counted %+v", got)
}

func TestHeed_PagesAreBounded(t *testing.T) {
	var all Pages
	for i := range 3000 {
		all.Add(partEntry(fmt.Sprintf("https://a.test/%d/%s", i, strings.Repeat("x", 1000)), rules.Refuse, 403, false), time.Now())
	}
	pages, sum := all.Refused(), uint64(0)
	for _, p := range pages {
		sum += p.Refused
		must.Need(t, len(p.Page) <= maxPage, "an address of %d bytes is kept", len(p.Page))
	}
	must.True(t, len(pages) <= maxPages+1 && sum == 3000, "%d pages, %d parts", len(pages), sum)
}

// Who refused is a word of its own in the log.
func TestHeed_WhatBecameOfARequestIsOneWord(t *testing.T) {
	for want, e := range map[string]*Entry{
		"refused-by-heed": partEntry("", rules.Refuse, 403, false),
		"refused-by-site": partEntry("", rules.Allow, 403, true),
		"answered":        partEntry("", rules.Allow, 404, true),
		"failed":          partEntry("", rules.Allow, 502, false),
		"tunnelled":       {Method: "CONNECT", Decision: rules.Decision{Verdict: rules.Allow}, Outcome: Outcome{Status: 200}},
	} {
		must.Equal(t, e.Became(), want)
	}
	last := partEntry("", rules.Allow, 200, false)
	last.Method = "TRACE"
	must.Equal(t, last.Became(), "answered", "a TRACE that was not to go further")
}
