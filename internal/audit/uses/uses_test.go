package uses_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"heed/internal/audit/uses"
	"heed/internal/judge/signal"
	"heed/internal/judge/signal/page"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// robots are what a robots.txt states for all agents.
func robots(t *testing.T, lines string) (*signal.Robots, *rules.Policy) {
	t.Helper()
	p := rules.New(rules.Source{Origin: rules.Origin{Scheme: "https", Host: "site.example", Port: 443}, State: rules.Available}, []byte("User-agent: *\n"+lines+"\n"))
	return signal.ReadRobots(p, rules.Identify("TestBot/1"), "https://site.example/robots.txt"), p
}

// before is what was known before a request was sent; empty lines: nothing was stated.
func before(t *testing.T, lines string) *signal.Verdict {
	t.Helper()
	r, p := robots(t, lines)
	return uses.OfRobots(r, p, rules.Identify("TestBot/1"), "/page")
}

// after is what an answer states: a header, and a page unless html is empty.
func after(t *testing.T, field, value, html string) *signal.Verdict {
	t.Helper()
	h := http.Header{"Content-Type": {"text/html"}}
	if field != "" {
		h.Set(field, value)
	}
	in := signal.Input{URL: "https://site.example/page", Target: rules.NewTarget("/page"), Agent: rules.Identify("TestBot/1"), Crawl: true, Header: h}
	if html != "" {
		s := page.NewScanner(h, signal.PageNames(in.Agent))
		must.Get(s.Write([]byte(html)))(t)
		head := s.Finish(true)
		in.Page = &head
	}
	return signal.Judge(in)
}

func TestRequest_JudgedForAnotherPurpose(t *testing.T) {
	t.Parallel()
	const (
		training = signal.PurposeTraining
		search   = signal.PurposeSearch
		archive  = signal.PurposeArchive
		tdm      = signal.PurposeTDM
	)
	managed := before(t, "Content-Signal: search=yes, ai-train=no")
	licensed := before(t, "License: https://site.example/rsl.xml")
	plain := after(t, "", "", "<head><title>A page</title></head>")
	stated := []signal.Purpose{search}
	for name, c := range map[string]struct {
		request uses.Request
		purpose signal.Purpose
		answer  uses.Answer
		why     string
	}{
		"robots.txt refuses, as recorded":        {uses.Request{Stated: stated, Before: managed, After: plain}, training, uses.Refused, ""},
		"robots.txt refuses, read again":         {uses.Request{Robots: managed}, training, uses.Refused, ""},
		"robots.txt allows, no page was read":    {uses.Request{Robots: managed}, search, uses.Unknown, "the head of the page was not read"},
		"all was read, and allows":               {uses.Request{Stated: stated, Before: managed, After: plain}, archive, uses.Allowed, ""},
		"the purpose that was stated":            {uses.Request{Stated: stated}, search, uses.Silent, ""},
		"another than the stated, no statement":  {uses.Request{Stated: stated}, archive, uses.Silent, ""},
		"all was read, nothing is stated":        {uses.Request{Stated: stated, After: plain}, archive, uses.Silent, ""},
		"silent, but for the TDMRep file":        {uses.Request{Stated: stated}, tdm, uses.Unknown, "the site's TDMRep file was not requested"},
		"robots.txt refused, documents remain":   {uses.Request{Stated: []signal.Purpose{training}, Before: managed, After: plain}, tdm, uses.Unknown, "the site's TDMRep file was not requested"},
		"nothing is recorded, and nothing read":  {uses.Request{}, archive, uses.Unknown, "the head of the page was not read"},
		"nothing is recorded of what is no page": {uses.Request{NoPage: true}, archive, uses.NotRecorded, ""},
		"only the header was read":               {uses.Request{After: after(t, "X-Robots-Tag", "noindex", "")}, archive, uses.Unknown, "the head of the page was not read"},
		"the header refuses":                     {uses.Request{After: after(t, "X-Robots-Tag", "noindex", "")}, search, uses.Refused, ""},
		"the answer was no page":                 {uses.Request{After: after(t, "X-Robots-Tag", "noindex", ""), NoPage: true}, archive, uses.Allowed, ""},
		"the page refuses":                       {uses.Request{After: after(t, "", "", "<head><meta name=robots content=noarchive></head>")}, archive, uses.Refused, ""},
		"a licence was not requested":            {uses.Request{Stated: []signal.Purpose{tdm}, Before: licensed, After: plain}, training, uses.Unknown, "a licence of the site was not requested"},
		"no licence is needed":                   {uses.Request{Stated: stated, Before: licensed, After: plain}, archive, uses.Allowed, ""},
		"the TDMRep file was not requested":      {uses.Request{Stated: stated, Before: managed, After: plain}, tdm, uses.Unknown, "the site's TDMRep file was not requested"},
		"the header counts before that file":     {uses.Request{Stated: stated, After: after(t, "tdm-reservation", "0", "<title>x</title>")}, tdm, uses.Allowed, ""},
	} {
		q := c.request
		q.Sent, q.Ended = true, true
		if got := q.Judge(c.purpose); got.Answer != c.answer || got.Why != c.why {
			t.Errorf("%s: %s is %s %q, want %s %q", name, c.purpose, got.Answer, got.Why, c.answer, c.why)
		}
	}
	refused := uses.Request{Stated: []signal.Purpose{training}, Before: managed}
	if got := refused.Judge(search); got.Answer != uses.Unknown || got.Why != "the page was not requested" {
		t.Errorf("a page that was never requested: %+v", got)
	}
	open := uses.Request{Before: managed, Sent: true}
	if got := open.Judge(search); got.Answer != uses.Unknown || got.Why != "the end of the exchange is not recorded" {
		t.Errorf("an exchange without an end: %+v", got)
	}
	if got := open.Judge(search, training); got.Answer != uses.Refused || got.Refusal.Purpose != training || got.Refusal.Statement.Line != 2 {
		t.Errorf("of two purposes one is refused: %+v", got)
	}
}

// Without a page that was read, nothing is ever allowed for a purpose that was not stated.
func TestRequest_AnIncompletePageIsUnknown(t *testing.T) {
	t.Parallel()
	for _, why := range []page.Why{
		page.Untyped, page.Partial, page.Unmodified, page.Coding, page.TooLong, page.Unwanted, page.Unfinished, page.NoMarkup, page.Entities, page.Fault,
	} {
		v := &signal.Verdict{Crawl: true, Page: string(why)}
		q := uses.Request{Stated: []signal.Purpose{signal.PurposeSearch}, After: v, Sent: true, Ended: true}
		for _, p := range signal.Purposes() {
			got := q.Judge(p)
			must.True(t, got.Answer == uses.Unknown && strings.Contains(got.Why, string(why)), "%s for %s: %+v", why, p, got)
		}
	}
}

func TestPurposes_OfARecord(t *testing.T) {
	t.Parallel()
	var names []string
	for _, p := range signal.Purposes() {
		names = append(names, string(p))
	}
	all, err := uses.Purposes(names)
	must.True(t, err == nil && len(all) == len(names), "%v, %v", all, err)
	must.Fail(t, must.Err(uses.Purposes([]string{"search", "resale"})), `"resale"`, "an unknown purpose")
}

// FuzzReader finds a recorded text that makes the package fail, or that is a permission
// although nothing is known.
func FuzzReader(f *testing.F) {
	text := must.Get(json.Marshal(&signal.Verdict{Crawl: true, Page: "whole", Results: map[signal.Category]signal.Result{signal.Search: {Answer: signal.Disallow, By: []int{7}}}}))(f)
	f.Add(string(text), `{"crawl":true}`)
	f.Add("", "{")
	f.Add(`{"crawl":true,"results":{"search":{"answer":"disallow","by":[-1]}}}`, `{"crawl":true,"statements":[{}]}`)
	f.Fuzz(func(t *testing.T, request, answer string) {
		var r uses.Reader
		before, err := r.Read(request)
		if err != nil {
			return
		}
		after, err := r.Read(answer)
		if err != nil {
			return
		}
		q := uses.Request{Before: before, After: after, Sent: true, Ended: true}
		for _, p := range signal.Purposes() {
			got := q.Judge(p)
			if got.Answer == uses.Allowed && (after == nil || after.Page == "") && (before == nil || before.Page == "") {
				t.Errorf("%s is allowed, and no page was read: %q, %q", p, request, answer)
			}
		}
	})
}
