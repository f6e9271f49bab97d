package audit

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

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
	l, tally := NewLog(slog.NewJSONHandler(&out, nil), nil), &Tally{}
	for i := range 50 {
		e := partEntry("https://a.test/news", rules.Allow, 200, true)
		switch {
		case i < 7:
			e = partEntry("https://a.test/news", rules.Refuse, 403, false)
		case i == 7:
			e = partEntry("https://a.test/news", rules.Allow, 403, true)
		}
		for _, r := range []interface {
			Decided(*Entry) error
			Ended(*Entry)
		}{l, tally} {
			if err := r.Decided(e); err != nil {
				t.Fatal(err)
			}
			r.Ended(e)
		}
	}
	whole := partEntry("https://a.test/fine", rules.Allow, 200, true)
	_ = l.Decided(whole)
	l.Ended(whole)
	l.tick(time.Now())
	if strings.Contains(out.String(), `"msg":"page"`) {
		t.Error("a page is logged while it loads")
	}
	l.tick(time.Now().Add(3 * time.Second))
	all := lines(t, &out)
	last := all[len(all)-1]
	if len(all) != 52 || last["msg"] != "page" || last["page"] != "https://a.test/news" || last["parts"] != 50.0 || last["refused"] != 7.0 || last["refused_by_site"] != 1.0 {
		t.Errorf("%d lines, the last %v", len(all), last)
	}
	want := PageCount{"https://a.test/news", 50, 7, 1}
	if got := tally.Summary(); len(got.Pages) != 1 || got.Pages[0] != want || got.SiteRefused != 1 || got.Refused != 7 {
		t.Errorf("counted %+v", got)
	}
	if got := tally.Hour(time.Now()); got.SiteRefused != 1 {
		t.Errorf("in the last hour %+v", got)
	}
}

func TestHeed_PagesAreBounded(t *testing.T) {
	tally := &Tally{}
	for i := range 3000 {
		_ = tally.Decided(partEntry(fmt.Sprintf("https://a.test/%d/%s", i, strings.Repeat("x", 1000)), rules.Refuse, 403, false))
	}
	s, sum := tally.Summary(), uint64(0)
	for _, p := range s.Pages {
		sum += p.Refused
		if len(p.Page) > maxText {
			t.Fatalf("an address of %d bytes is kept", len(p.Page))
		}
	}
	if len(s.Pages) > maxPages+1 || sum != 3000 {
		t.Errorf("%d pages, %d parts", len(s.Pages), sum)
	}
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
		if got := e.Became(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	last := partEntry("", rules.Allow, 200, false)
	last.Method = "TRACE"
	if got := last.Became(); got != "answered" {
		t.Errorf("a TRACE that was not to go further: got %s", got)
	}
}
