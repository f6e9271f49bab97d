package signal_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"heed/internal/base/safetext"
	"heed/internal/base/structured"
	"heed/internal/judge/signal"
	"heed/internal/judge/signal/page"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// checkVerdict checks what holds for every verdict, whatever a site states.
func checkVerdict(t *testing.T, v *signal.Verdict) {
	t.Helper()
	must.True(t, len(v.Statements) <= 60, "%d statements are kept", len(v.Statements))
	for c, r := range v.Results {
		for _, i := range append(r.By, r.Unmet...) {
			must.Need(t, i >= 0 && i < len(v.Statements), "%s rests on statement %d of %d", c, i, len(v.Statements))
		}
		for _, i := range r.By {
			s := v.Statements[i]
			must.True(t, v.Profile == "rep1994" || s.Says[c] == r.Answer, "%s is %s by %+v", c, r.Answer, s)
		}
	}
	for _, s := range v.Statements {
		must.True(t, len(s.Text) <= safetext.MaxExcerpt+3 && s.URL != "" && s.Source != "" && s.Protocol != "" && s.Name != "",
			"a statement without its place, or too long: %+v", s)
	}
	if _, err := structured.Dictionary([]string{v.Annotation()}); err != nil {
		t.Errorf("%q is no dictionary: %v", v.Annotation(), err)
	}
	text := must.Get(json.Marshal(v))(t)
	var again signal.Verdict
	must.OK(t, json.Unmarshal(text, &again))
	for _, p := range signal.Purposes() {
		one, isOne := v.Refuses(p)
		other, isOther := again.Refuses(p)
		must.True(t, isOne == isOther && one.Reason == other.Reason && one.Detail == other.Detail,
			"as %s: %v %+v, from the record %v %+v", p, isOne, one, isOther, other)
	}
}

// TestPurposes has the table of purposes: which statement refuses which of them.
func TestPurposes_WhatRefusesThem(t *testing.T) {
	t.Parallel()
	line := func(s string) request { return request{robots: "User-agent: *\n" + s + "\nAllow: /\n"} }
	for _, c := range []struct {
		request
		refuses string
	}{
		{line("Content-Signal: search=no"), "search"},
		{line("Content-Signal: ai-input=no"), "agent"},
		{line("Content-Signal: ai-train=no"), "training"},
		{line("Content-Usage: search=n"), "search"},
		{line("Content-Usage: train-ai=n"), "training"},
		{line("Content-Usage: tdm=n"), "search agent training tdm"},
		{line("Content-Usage: all=n"), "search agent training tdm"},
		{licensed(`<license><prohibits>search</prohibits></license>`), "search"},
		{licensed(`<license><prohibits>ai-input</prohibits></license>`), "agent"},
		{licensed(`<license><prohibits>ai-train</prohibits></license>`), "training"},
		{licensed(`<license><prohibits>ai-all</prohibits></license>`), "agent training"},
		{licensed(`<license><prohibits>all</prohibits></license>`), "search agent training"},
		{request{tdmrep: `[{"location":"/","tdm-reservation":1}]`}, "training tdm"},
		{request{header: []string{"tdm-reservation: 1"}}, "training tdm"},
		{request{head: `<meta name="tdm-reservation" content="1">`}, "training tdm"},
		{request{head: `<meta name="Content-Usage" content="train-ai=n">`}, "training"},
		{request{head: `<meta name="robots" content="noindex">`}, "search"},
		{request{head: `<meta name="robots" content="none">`}, "search"},
		{request{head: `<meta name="robots" content="unavailable_after: 2020-01-01">`}, "search"},
		{request{head: `<meta name="robots" content="noarchive">`}, "archive"},
		{request{header: []string{"X-Robots-Tag: nocache"}}, "archive"},
		{request{head: `<meta name="robots" content="nosnippet, max-snippet:0, noimageindex, noai, noimageai, nofollow">`}, ""},
		{request{robots: "User-agent: *\nContent-Usage: train-ai=n\nDisallow: /\n"}, ""}, // refused by the rule already
	} {
		v := c.judge(t)
		must.Equal(t, refused(v), c.refuses, "%s%v%s%s%s refuses", c.robots, c.header, c.head, c.tdmrep, c.licence)
		checkVerdict(t, v)
	}
}

// What the header of a redirect or an error states is recorded and refuses nothing: the page
// does not come with it.
func TestVerdict_AnAnswerWithoutThePageStatesNothingOfIt(t *testing.T) {
	t.Parallel()
	q := request{
		licence: `<rsl><content url="/"><license><prohibits>all</prohibits></license></content></rsl>`,
		header: []string{"X-Robots-Tag: noindex, noarchive", "tdm-reservation: 1", "Content-Usage: all=n", "X-Robots-Tag: unavailable_after: soon",
			`Link: </license.xml>; rel="license"; type="application/rsl+xml"`},
	}
	for status, want := range map[int]bool{0: true, 200: true, 203: true, 206: true, 304: true, 301: false, 307: false, 404: false, 410: false, 500: false} {
		for _, profile := range []rules.Profile{rules.Standard, rules.REP1994, rules.Strict} {
			q.profile = profile
			in := q.input(t)
			in.Status = status
			v := signal.Judge(in)
			for _, p := range signal.Purposes() {
				_, refused := v.Refuses(p)
				must.True(t, refused == want, "%d under %s: %s is refused: %v", status, profile, p, refused)
			}
			if len(v.Statements) < 5 || !want && (len(signal.Declared(in)) > 0 || v.LacksLicence() || !strings.Contains(v.Statements[0].Note, strconv.Itoa(status))) {
				t.Errorf("%d: recorded are %+v", status, v.Statements)
			}
			checkVerdict(t, v)
		}
	}
}

// Across protocols any disallow wins, and the record shows which statement that was.
func TestVerdict_DisallowWinsAcrossProtocols(t *testing.T) {
	t.Parallel()
	v := request{robots: "User-agent: *\nContent-Signal: ai-train=yes\nAllow: /\n", header: []string{"Content-Usage: train-ai=n", "X-Robots-Tag: all"}}.judge(t)
	r := v.Results[signal.TrainAI]
	if r.Answer != signal.Disallow || r.Precedence != signal.DisallowWins || len(r.By) != 1 || v.Statements[r.By[0]].Name != "Content-Usage" {
		t.Errorf("%+v of %+v", r, v.Statements)
	}
	refusal, _ := v.Refuses(signal.PurposeSearch, signal.PurposeTraining)
	if refusal.Purpose != signal.PurposeTraining || refusal.Statement.Text != "Content-Usage: train-ai=n" || refusal.Statement.URL != "https://site.example/" {
		t.Errorf("%+v", refusal)
	}
	must.Equal(t, v.Annotation(), "crawl=allow, search=allow;src=header, train-ai=disallow;src=header")
}

// A client of several purposes is refused when one of them is.
func TestVerdict_AllPurposesMustBeAllowed(t *testing.T) {
	t.Parallel()
	v := request{robots: "User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n"}.judge(t)
	for list, want := range map[string]bool{"search": false, "training": true, "search,training": true, "agent, archive": false} {
		purposes := must.Get(signal.ParsePurposes(list))(t)
		_, refused := v.Refuses(purposes...)
		must.True(t, refused == want, "%s: refused %v", list, refused)
	}
	_, refused := v.Refuses()
	must.True(t, !refused, "a client without a purpose is refused")
	none, err := signal.ParsePurposes("")
	must.True(t, none == nil && err == nil, "an empty list is %v, %v", none, err)
	for _, bad := range []string{",", "Search", "search,", "train"} {
		must.Fail(t, must.Err(signal.ParsePurposes(bad)), "training", "%q", bad)
	}
}

// The verdict about the request and the one about its answer are recorded apart; together
// they are that of all statements.
func TestVerdict_RequestAndAnswerCombine(t *testing.T) {
	t.Parallel()
	all := request{
		robots: "User-agent: *\nContent-Signal: search=yes\nAllow: /\n", tdmrep: `[{"location":"/","tdm-reservation":1}]`,
		head: `<meta name="robots" content="noindex"><meta name="tdm-reservation" content="0">`,
	}
	whole := all.judge(t)
	before, after := all.input(t), all.input(t)
	before.Header, before.Page = nil, nil
	after.Robots, after.TDMRep = nil, nil
	first, second := signal.Judge(before), signal.Judge(after)
	got := refused(first)
	must.True(t, got == "training tdm" && first.Page == "", "the request: %q", got)
	if got := signal.Combine(first, second); !reflect.DeepEqual(got, whole) || refused(got) != "search" {
		t.Errorf("got  %+v\nwant %+v", got, whole)
	}
	must.True(t, signal.Combine(nil, second) == second && signal.Combine(first, nil) == first, "one alone is not itself")
	var none *signal.Verdict
	_, refused := none.Refuses(signal.PurposeSearch)
	must.True(t, !refused && none.Of(signal.Search) == signal.Unknown && none.Annotation() == "", "no verdict refuses")
}

// A record is asked for another purpose than that of the crawl.
func TestVerdict_ARecordAnswersForOtherPurposes(t *testing.T) {
	t.Parallel()
	v := request{robots: "User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n"}.judge(t)
	text := must.Get(json.Marshal(v))(t)
	const want = `{"profile":"standard","crawl":true,"results":{"search":{"answer":"allow","by":[0],"precedence":"agreed"},` +
		`"train-ai":{"answer":"disallow","by":[0],"precedence":"agreed"}},"statements":[{"source":"robots","protocol":"content-signal",` +
		`"url":"https://site.example/robots.txt","line":2,"name":"Content-Signal","text":"Content-Signal: search=yes, ai-train=no",` +
		`"says":{"search":"allow","train-ai":"disallow"}}]}`
	must.Equal(t, string(text), want)
	var recorded signal.Verdict
	must.OK(t, json.Unmarshal(text, &recorded))
	must.Equal(t, refused(&recorded), "training", "refused")
	damaged := signal.Verdict{Crawl: true, Results: map[signal.Category]signal.Result{signal.Search: {Answer: signal.Disallow, By: []int{7}, Unmet: []int{-1}}}}
	r, refused := damaged.Refuses(signal.PurposeSearch)
	must.True(t, refused && r.Statement == nil && damaged.Annotation() != "", "a damaged record: %+v", r)
}

// Under the profile strict a page that has a head which could not be read is refused.
func TestVerdict_WhatWasNotReadIsUnknown(t *testing.T) {
	t.Parallel()
	other := []page.Why{page.Whole, page.NoBody, page.NoPage, page.Unmodified, page.Untyped, page.Unwanted}
	for _, why := range append(other, page.Coding, page.Partial, page.TooLong, page.Unfinished, page.NoMarkup, page.Entities, page.Fault) {
		refuses := !slices.Contains(other, why)
		for _, profile := range []rules.Profile{rules.Standard, rules.Strict} {
			in := request{profile: profile, header: []string{"X: y"}}.input(t)
			in.Page = &page.Head{Why: why}
			v := signal.Judge(in)
			r, refused := v.Refuses(signal.PurposeAgent)
			must.True(t, refused == (refuses && profile == rules.Strict) && v.Incomplete() == refuses,
				"%q under %s: %v, %+v", why, profile, v.Incomplete(), r)
			must.Equal(t, v.Of(signal.Search), signal.Unknown, "%q: search", why)
		}
	}
}

// A site with very many statements cannot fill the record; those that decide are kept.
func TestVerdict_IsBounded(t *testing.T) {
	t.Parallel()
	var robots strings.Builder
	robots.WriteString("User-agent: *\nAllow: /\n")
	for i := range signal.MaxLines - 2 {
		fmt.Fprintf(&robots, "Content-Signal: search=yes, k%d=%s\n", i, strings.Repeat("x", 500))
	}
	robots.WriteString("Content-Signal: search=no\nLicense: nothing\n")
	v := request{robots: robots.String(), header: []string{"X-Robots-Tag: nofollow", "X-Robots-Tag: noarchive"}}.judge(t)
	checkVerdict(t, v)
	got := refused(v)
	must.True(t, got == "search archive" && v.Dropped != 0, "%q is refused, %d statements dropped", got, v.Dropped)
	text, _ := json.Marshal(v)
	must.True(t, len(text) <= 64<<10, "%d octets of JSON", len(text))
	v.Profile = rules.Strict.String()
	r, _ := v.Refuses(signal.PurposeAgent)
	must.True(t, r.Reason == rules.ReasonLicence, "the unreadable licence was dropped: %+v", r)
}

// The declaration of a licence that was not requested is kept among very many statements: a
// record without it would seem to be complete.
func TestVerdict_ALicenceThatWasNotRequestedIsKept(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("Content-Signal: search=yes\n", 300) + "License: https://site.example/license.xml\n"
	v := request{robots: "User-agent: *\nAllow: /\n" + lines}.judge(t)
	must.True(t, v.Dropped != 0 && v.LacksLicence(), "%d statements were dropped, and with them the licence", v.Dropped)
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]signal.Needs{
		"search": {Licences: true}, "agent": {Licences: true}, "training": {Licences: true, TDMRep: true},
		"tdm": {TDMRep: true}, "archive": {}, "archive,tdm,agent": {Licences: true, TDMRep: true},
	} {
		purposes, err := signal.ParsePurposes(list)
		got := signal.NeedsOf(purposes...)
		must.True(t, err == nil && got == want, "%s: %+v", list, got)
	}
}

// TestSiteAnswers has the refusals and prices that sites send.
func TestSiteAnswers(t *testing.T) {
	t.Parallel()
	seen := map[signal.SiteAnswer]bool{}
	for _, c := range []struct {
		status int
		header string
		want   signal.SiteAnswer
	}{
		{402, "crawler-price: USD 0.01", signal.Priced},
		{402, "", signal.Priced},
		{402, "PAYMENT-REQUIRED: eyJ4NDAyVmVyc2lvbiI6Mn0=", signal.Priced},
		{403, "crawler-error: CrawlerForbidden", signal.Forbidden},
		{400, "crawler-error: StrongAuthRequired", signal.SignatureWanted},
		{400, "crawler-error: InvalidSignature", signal.SignatureWanted},
		{400, "crawler-error: InvalidCrawlerPriceValue", signal.Priced},
		{402, "crawler-error: MissingCrawlerPrice", signal.Priced},
		{403, "crawler-error: PaymentFailed", signal.Priced},
		{402, "crawler-error: InvalidCrawlerExactPrice", signal.Priced},
		{402, "crawler-error: InvalidCrawlerMaxPrice", signal.Priced},
		{400, "crawler-error: ConflictingPriceHeaders", signal.Priced},
		{502, "crawler-error: InvalidContentPrice", ""},
		{500, "crawler-error: InternalError", ""},
		{401, `WWW-Authenticate: License error="missing"`, signal.LicenceWanted},
		{402, `WWW-Authenticate: Basic realm="a", License`, signal.LicenceWanted},
		{401, `WWW-Authenticate: Basic realm="License x"`, signal.Forbidden},
		{403, "cf-mitigated: challenge", signal.Challenge},
		{200, "cf-mitigated: challenge", signal.Challenge},
		{429, "x-vercel-mitigated: challenge", signal.Challenge},
		{202, "x-amzn-waf-action: challenge", signal.Challenge},
		{405, "x-amzn-waf-action: captcha", signal.Challenge},
		{403, `Accept-Signature: sig1=("@authority");keyid="x"`, signal.SignatureWanted},
		{200, `Accept-Signature: sig1=("@authority")`, ""},
		{403, "", signal.Forbidden},
		{401, "", signal.Forbidden},
		{429, "", signal.Rate},
		{503, "Retry-After: 10", signal.Rate},
		{503, "", ""},
		{451, "", signal.Legal},
		{200, "", ""}, {301, "", ""}, {404, "", ""}, {500, "", ""}, {202, "", ""},
	} {
		h := http.Header{}
		if name, value, has := strings.Cut(c.header, ": "); has {
			h.Set(name, value)
		}
		got := signal.Classify(c.status, h)
		seen[got] = true
		must.Equal(t, got, c.want, "%d %s", c.status, c.header)
	}
	for _, class := range signal.SiteAnswers() {
		must.True(t, seen[class], "no answer is %s", class)
	}
}

func FuzzJudge(f *testing.F) {
	f.Add("User-agent: *\nContent-Signal: search=no\nContent-Usage: /a train-ai=n\nLicense: https://site.example/license.xml\n\nContent-Signal: ai-train=no",
		`<rsl><content url="/"><license><prohibits>all</prohibits></license></content></rsl>`, `<meta name="robots" content="noindex">`, "/a", uint8(0))
	f.Add("Content-Usage: *.pdf train-ai=n,", "", `<script type="application/rsl+xml"><rsl>`, "/", uint8(3))
	f.Fuzz(func(t *testing.T, robots, document, head, path string, profile uint8) {
		r := request{robots: robots, licence: document, head: head, path: "/" + path, profile: rules.Profile(profile % 4)}
		v := r.judge(t)
		checkVerdict(t, v)
		signal.Lint(rules.New(rules.Source{State: rules.Available}, []byte(robots)))
	})
}

func FuzzTDMRep(f *testing.F) {
	f.Add([]byte(`[{"location": "/a*$", "tdm-reservation": 1, "tdm-policy": "https://site.example/p"}]`), "/a")
	f.Add([]byte("[{},\n{\"location\":\"x\",\"tdm-reservation\":\"0\"}"), "/x")
	f.Fuzz(func(t *testing.T, body []byte, path string) {
		in := request{path: "/" + path}.input(t)
		in.TDMRep = signal.ReadTDMRep("https://site.example"+signal.TDMRepPath, body)
		checkVerdict(t, signal.Judge(in))
	})
}
