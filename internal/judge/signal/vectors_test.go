package signal_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"heed/internal/judge/signal"
	"heed/internal/judge/signal/licence"
	"heed/internal/judge/signal/page"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// request is what a page of site.example is judged by, written as a user would.
type request struct {
	robots   string
	agent    string // a User-Agent; empty: ExampleBot
	path     string // empty: /
	profile  rules.Profile
	tdmrep   string
	licence  string // the document at https://site.example/license.xml
	header   []string
	head     string
	contract string
}

func origin(t testing.TB) rules.Origin {
	t.Helper()
	return must.Get(rules.ParseOrigin("https", "site.example"))(t)
}

// input reads the sources of a request.
func (r request) input(t testing.TB) signal.Input {
	t.Helper()
	if r.agent == "" {
		r.agent = "ExampleBot/1.0"
	}
	if r.path == "" {
		r.path = "/"
	}
	o := origin(t)
	p := rules.NewAs(r.profile, rules.Source{Origin: o, State: rules.Available, Status: 200}, []byte(r.robots))
	in := signal.Input{
		URL: o.String() + r.path, Origin: o, Target: rules.NewTarget(r.path), Agent: rules.Identify(r.agent), Profile: r.profile, Now: now,
		Reference: r.contract,
	}
	in.Crawl = p.Decide(in.Agent, rules.NewTarget(r.path)).Verdict == rules.Allow
	in.Robots = signal.ReadRobots(p, in.Agent, o.RobotsURL())
	if r.tdmrep != "" {
		in.TDMRep = signal.ReadTDMRep(o.String()+signal.TDMRepPath, []byte(r.tdmrep))
	}
	if r.licence != "" {
		d, err := licence.Parse([]byte(r.licence))
		in.Licences = map[string]signal.Licence{"https://site.example/license.xml": {Document: d, Err: err}}
	}
	if r.header != nil || r.head != "" {
		in.Header = http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	}
	for _, line := range r.header {
		name, value, _ := strings.Cut(line, ":")
		in.Header.Add(name, strings.TrimLeft(value, " "))
	}
	if r.head != "" {
		s := page.NewScanner(in.Header, signal.PageNames(in.Agent))
		_, _ = s.Write([]byte(r.head))
		h := s.Finish(true)
		in.Page = &h
	}
	return in
}

func (r request) judge(t testing.TB) *signal.Verdict {
	t.Helper()
	return signal.Judge(r.input(t))
}

// TestAIPREF_Dictionaries has what a Content-Usage says, read by the rules of RFC 9651. Slips
// are in TestHeed_Slips.
func TestAIPREF_Dictionaries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ value, train, search string }{
		{"train-ai=n, search=y", "disallow", "allow"},
		{`train-ai=y, train-ai, search=n, search=1`, "unknown", "unknown"},
		{"train-ai;allow=n, train-ai=y", "allow", "unknown"},
		{`train-ai;has;parameters="?";`, "unknown", "unknown"},
		{"/x train-ai=n", "unknown", "unknown"},
		{"", "unknown", "unknown"},
		{"train-ai=n\t,\tsearch=y", "disallow", "allow"},
		{"train-ai=n, foo=(a b);q=1, search=y", "disallow", "allow"},
	} {
		v := request{header: []string{"Content-Usage: " + c.value}}.judge(t)
		if train, search := v.Of(signal.TrainAI), v.Of(signal.Search); string(train) != c.train || string(search) != c.search {
			t.Errorf("%q: train-ai %s, search %s; want %s, %s", c.value, train, search, c.train, c.search)
		}
		must.Equal(t, len(v.Statements), 1, "%q is not recorded: %+v", c.value, v.Statements)
	}
}

// TestAIPREF_OlderLabels has labels of drafts 01 to 04; a specific one counts before a
// collective one.
func TestAIPREF_OlderLabels(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"tdm=n":              "crawl=allow, search=disallow;src=header, ai-input=disallow;src=header, train-ai=disallow;src=header, tdm=disallow;src=header",
		"all=n, search=y":    "crawl=allow, search=allow;src=header, ai-input=disallow;src=header, train-ai=disallow;src=header, tdm=disallow;src=header",
		"bots=y, train-ai=n": "crawl=allow, search=allow;src=header, ai-input=allow;src=header, train-ai=disallow;src=header, tdm=allow;src=header",
		"genai=n":            "crawl=allow, train-ai=disallow;src=header",
		"train-genai=n":      "crawl=allow, train-ai=disallow;src=header",
		"ai=n":               "crawl=allow, train-ai=disallow;src=header",
		"ai-use=n":           "crawl=allow, ai-input=disallow;src=header",
		"ai-output=y":        "crawl=allow, ai-input=allow;src=header",
		"inference=n":        "crawl=allow, ai-input=disallow;src=header",
		"train-ai=y, ai=n":   "crawl=allow, train-ai=disallow;src=header",
		"elephants=n":        "crawl=allow",
	} {
		must.Equal(t, (request{header: []string{"Content-Usage: " + value}}).judge(t).Annotation(), want, value)
	}
}

// TestAIPREF_LinesOfRobotsTxt has the draft's figure and rules for lines with and without
// a path.
func TestAIPREF_LinesOfRobotsTxt(t *testing.T) {
	t.Parallel()
	const figure = "User-agent: *\nAllow: /\nDisallow: /never/\nContent-Usage: train-ai=n\nContent-Usage: /ai-ok/ train-ai=y\n"
	star := func(lines ...string) string { return "User-agent: *\n" + strings.Join(lines, "\n") + "\nAllow: /\n" }
	for _, c := range []struct {
		request
		crawl bool
		train signal.Answer
	}{
		{request{robots: figure, path: "/test"}, true, signal.Disallow},
		{request{robots: figure, path: "/never/test"}, false, signal.Unknown},
		{request{robots: figure, path: "/ai-ok/test"}, true, signal.Allow},
		{request{robots: figure + "\nUser-agent: ExampleBot\nContent-Usage: train-ai=y\n", path: "/test"}, true, signal.Allow},
		{request{robots: star("Content-Usage: /a train-ai=y", "Content-Usage: /a train-ai=n"), path: "/a1"}, true, signal.Disallow},
		{request{robots: star("Content-Usage: /a%20b train-ai=n"), path: "/a%20b"}, true, signal.Disallow},
		{request{robots: star("Content-Usage: /a b train-ai=n"), path: "/a"}, true, signal.Unknown},
		{request{robots: star("Content-Usage: *.pdf train-ai=n"), path: "/x.pdf"}, true, signal.Unknown},
		{request{robots: star("Content-Usage: /*.pdf train-ai=n"), path: "/x.pdf"}, true, signal.Disallow},
		{request{robots: star("Content-Usage: train-ai=n # comment")}, true, signal.Disallow},
		{request{robots: star("Content-Usage: train-ai=n"), header: []string{"Content-Usage: train-ai=y"}}, true, signal.Disallow},
		{request{robots: star("Content-Usage: /x\ttrain-ai=n"), path: "/x"}, true, signal.Disallow},
		{request{robots: star("Content-Usage: train-ai=n", "Content-Usage: /x"), path: "/x"}, true, signal.Unknown},
		{request{robots: star("content-usage : train-ai=n")}, true, signal.Disallow},
		{request{robots: "Content-Usage: train-ai=n\nUser-agent: *\nAllow: /\n"}, true, signal.Disallow},
	} {
		v := c.judge(t)
		must.True(t, v.Crawl == c.crawl && v.Of(signal.TrainAI) == c.train,
			"%s\n%s: crawl %v, train-ai %s; want %v, %s", c.robots, c.path, v.Crawl, v.Of(signal.TrainAI), c.crawl, c.train)
		must.True(t, c.crawl || len(v.Statements)+len(v.Results) == 0,
			"%s has a usage verdict although it may not be crawled", c.path)
	}
}

// TestContentSignal has the forms that are seen in the open. managed is the block that a
// network puts before a site's own file.
func TestContentSignal(t *testing.T) {
	t.Parallel()
	const managed = `# As a condition of accessing this website, you agree to the content signals.

# BEGIN Managed content

User-Agent: *
Content-signal: search=yes,ai-train=no
Allow: /

User-agent: OtherBot
Disallow: /

# END Managed Content
User-agent: *
Disallow: /lp
`
	star := func(lines ...string) string { return "User-agent: *\n" + strings.Join(lines, "\n") + "\nAllow: /\n" }
	for _, c := range []struct {
		request
		want string
	}{
		{request{robots: managed, path: "/x"}, "crawl=allow, search=allow;src=robots, train-ai=disallow;src=robots"},
		{request{robots: managed, path: "/lp"}, "crawl=disallow"},
		{request{robots: star("Content-Signal: search=yes,ai-train=no")}, "crawl=allow, search=allow;src=robots, train-ai=disallow;src=robots"},
		{request{robots: star("Content-Signal: AI-Train = No")}, "crawl=allow, train-ai=disallow;src=robots"},
		{request{robots: star("Content-Signal: ai-input=no", "Content-Signal: ai-input=yes")}, "crawl=allow, ai-input=disallow;src=robots"},
		{request{robots: star("Content-Signal: use=reference")}, "crawl=allow"},
		{request{robots: star("Content-Signal: /a search=no")}, "crawl=allow"},
		{request{robots: "Content-Signal: ai-train=no\nUser-agent: *\nAllow: /\n"}, "crawl=allow, train-ai=disallow;src=robots"},
		{request{robots: "# only a comment: ai-train=no\nUser-agent: *\nAllow: /\n"}, "crawl=allow"},
		// A group that names the agent inherits nothing, but lines of the whole file count.
		{request{robots: star("Content-Signal: ai-train=no") + "User-agent: ExampleBot\nAllow: /\n"}, "crawl=allow"},
		{request{robots: star() + "\nContent-Signal: ai-train=no\nUser-agent: ExampleBot\nAllow: /\n"}, "crawl=allow, train-ai=disallow;src=robots"},
		{request{robots: star() + "Sitemap: https://site.example/s.xml\nContent-Signal: ai-train=no\nUser-agent: ExampleBot\nAllow: /\n"},
			"crawl=allow, train-ai=disallow;src=robots"},
		{request{robots: star() + "\nContent-Signal: ai-train=no\nUser-agent: ExampleBot\nContent-Signal: ai-train=yes\nAllow: /\n"},
			"crawl=allow, train-ai=allow;src=robots"},
		// As a field and as META, where it is not defined and is deployed.
		{request{header: []string{"Content-Signal: ai-train=no, search=yes"}}, "crawl=allow, search=allow;src=header, train-ai=disallow;src=header"},
		{request{header: []string{"Content-Type: application/pdf", "Content-Signal: ai-input=no"}}, "crawl=allow, ai-input=disallow;src=header"},
		{request{header: []string{"Content-Signal: search=yes", "Content-Signal: search=no"}}, "crawl=allow, search=disallow;src=header"},
		{request{robots: star("Content-Signal: ai-train=no"), header: []string{"Content-Signal: ai-train=yes"}}, "crawl=allow, train-ai=disallow;src=robots"},
		{request{robots: star("Content-Signal: ai-train=yes"), header: []string{"Content-Signal: ai-train=no"}}, "crawl=allow, train-ai=disallow;src=header"},
		{request{head: `<head><meta name="content-signal" content="search=yes, ai-train=no"></head>`}, "crawl=allow, search=allow;src=meta, train-ai=disallow;src=meta"},
		{request{head: `<head><META HTTP-EQUIV="Content-Signal" CONTENT="ai-input=no"></head>`}, "crawl=allow, ai-input=disallow;src=meta"},
	} {
		must.Equal(t, c.judge(t).Annotation(), c.want, "%s\n%s%v", c.robots, c.path, c.header)
	}
}

// Both readings of a line after a blank line are recorded.
func TestContentSignal_TheScopeIsRecorded(t *testing.T) {
	t.Parallel()
	v := request{robots: "User-agent: *\nAllow: /\n\nContent-Signal: ai-train=no\n"}.judge(t)
	if len(v.Statements) != 1 || v.Statements[0].Line != 4 || !strings.Contains(v.Statements[0].Note, "whole file") ||
		v.Statements[0].Text != "Content-Signal: ai-train=no" || v.Statements[0].URL != "https://site.example/robots.txt" {
		t.Errorf("%+v", v.Statements)
	}
}

// TestTDMRep has the precedence of the file, the header and the page: each overrides the
// one before, also permissively.
func TestTDMRep(t *testing.T) {
	t.Parallel()
	const reserved, open = `[{"location": "/", "tdm-reservation": 1, "tdm-policy": "https://site.example/p.json"}]`, `[{"location": "/", "tdm-reservation": 0}]`
	meta := func(value string) string { return `<head><meta name="tdm-reservation" content="` + value + `"></head>` }
	for _, c := range []struct {
		request
		want       signal.Answer
		precedence signal.Precedence
	}{
		{request{tdmrep: reserved}, signal.Disallow, signal.Agreed},
		{request{tdmrep: open}, signal.Allow, signal.Agreed},
		{request{tdmrep: `[{"location": "/a", "tdm-reservation": 0}, {"location": "/", "tdm-reservation": 1}]`, path: "/a"}, signal.Allow, signal.Agreed},
		{request{tdmrep: `[{"location": "/", "tdm-reservation": 1}, {"location": "/a", "tdm-reservation": 0}]`, path: "/a"}, signal.Disallow, signal.Agreed},
		{request{tdmrep: `[{"location": "*.pdf$", "tdm-reservation": 1}]`, path: "/x.pdf"}, signal.Disallow, signal.Agreed},
		{request{tdmrep: `[{"location": "*.pdf$", "tdm-reservation": 1}]`, path: "/x.pdf?y"}, signal.Unknown, ""},
		{request{tdmrep: reserved, header: []string{"tdm-reservation: 0"}}, signal.Allow, signal.LaterSource},
		{request{tdmrep: open, header: []string{"tdm-reservation: 1"}}, signal.Disallow, signal.LaterSource},
		{request{header: []string{"TDM-Reservation: 1"}, head: meta("0")}, signal.Allow, signal.LaterSource},
		{request{tdmrep: open, header: []string{"tdm-reservation: 0"}, head: meta("1")}, signal.Disallow, signal.LaterSource},
		{request{tdmrep: reserved, header: []string{"tdm-reservation: yes"}}, signal.Disallow, signal.Agreed},
		{request{header: []string{"tdm-reservation: 0", "tdm-reservation: 1"}}, signal.Disallow, signal.Agreed},
	} {
		v := c.judge(t)
		if v.Of(signal.TDM) != c.want || v.Of(signal.TrainAI) != c.want || v.Results[signal.TDM].Precedence != c.precedence {
			t.Errorf("%s %v %s: tdm %s, train-ai %s (%s), want %s (%s)", c.tdmrep, c.header, c.head,
				v.Of(signal.TDM), v.Of(signal.TrainAI), v.Results[signal.TDM].Precedence, c.want, c.precedence)
		}
	}
}

// What is no TDMRep file is none; what may be one and cannot be read is a fault with the words
// as they were received.
func TestTDMRep_FilesThatAreNotRead(t *testing.T) {
	t.Parallel()
	const address = "https://site.example" + signal.TDMRepPath
	for _, body := range []string{
		"", "{}", "null", "[1]", "[]", "<html><meta name='tdm-reservation' content='1'>", `{"error": "GET /.well-known/tdmrep.json"}`, "Not found", strings.Repeat("[", 100_000),
	} {
		r := signal.ReadTDMRep(address, []byte(body))
		must.True(t, r == nil, "%.40q is a file", body)
	}
	for _, body := range []string{
		`[{"location": "/", "tdm-reservation": 1}`, `[{'tdm-reservation': 1}]`, `tdm-reservation: 1`, `["tdm-reservation", 1]`, `[` + strings.Repeat(`{"tdm-reservation":1},`, signal.MaxTDMRep/20) + `]`,
		"[\x00{\x00\"\x00t\x00d\x00m\x00", `[` + strings.Repeat(`{"tdm":`, 20_000),
	} {
		in := request{path: "/a"}.input(t)
		in.TDMRep = signal.ReadTDMRep(address, []byte(body))
		v := signal.Judge(in)
		must.True(t, in.TDMRep != nil && v.Of(signal.TDM) == signal.Unknown && v.Unclear(signal.PurposeTDM), "%.40q: %+v", body, v)
	}
	in := request{path: "/a"}.input(t)
	in.TDMRep = signal.ReadTDMRep("u", []byte("\xEF\xBB\xBF[\n{},\n{\"location\": \"/a\", \"tdm-reservation\": 1}]"))
	s := signal.Judge(in).Statements
	must.True(t, len(s) == 1 && s[0].Line == 3 && s[0].URL == "u", "%+v", s)
}

// licensed returns a robots.txt that declares a licence, and the document.
func licensed(inner string) request {
	return request{robots: "User-agent: *\nAllow: /\n\nLicense: https://site.example/license.xml\n",
		licence: `<rsl xmlns="https://rslstandard.org/rsl"><content url="/">` + inner + `</content></rsl>`}
}

// A licence that prohibits is a signal; one that asks for money is a matter of the licence,
// unless the operator has a contract.
func TestRSL_WhatALicenceRefuses(t *testing.T) {
	t.Parallel()
	const priced = `<license><permits type="usage">ai-input</permits><payment type="use"><amount currency="USD">0.015</amount></payment></license>`
	strict := func(r request) request { r.profile = rules.Strict; return r }
	contract := func(r request) request { r.contract = "ref 4711"; return r }
	unreadable := request{robots: "User-agent: *\nLicense: https://site.example/license.xml\n", licence: "<html>"}
	for name, c := range map[string]struct {
		request
		purpose signal.Purpose
		want    rules.Reason
	}{
		"prohibited":                      {licensed(`<license><prohibits>ai-train</prohibits></license>`), signal.PurposeTraining, rules.ReasonSignal},
		"prohibited by all":               {licensed(`<license><prohibits>all</prohibits></license>`), signal.PurposeTraining, rules.ReasonSignal},
		"prohibited, with a contract":     {contract(licensed(`<license><prohibits>all</prohibits></license>`)), signal.PurposeTraining, rules.ReasonSignal},
		"not in the list":                 {licensed(`<license><permits>search</permits></license>`), signal.PurposeAgent, rules.ReasonSignal},
		"in the list":                     {licensed(`<license><permits>search</permits></license>`), signal.PurposeSearch, ""},
		"priced":                          {licensed(priced), signal.PurposeAgent, rules.ReasonLicence},
		"priced, with a contract":         {contract(licensed(priced)), signal.PurposeAgent, ""},
		"priced, for an archive":          {licensed(priced), signal.PurposeArchive, ""},
		"unreadable":                      {unreadable, signal.PurposeAgent, ""},
		"unreadable, strict":              {strict(unreadable), signal.PurposeAgent, rules.ReasonLicence},
		"unreadable, strict, archive":     {strict(unreadable), signal.PurposeArchive, ""},
		"unreadable, strict, by contract": {contract(strict(unreadable)), signal.PurposeAgent, ""},
		"no URL":                          {strict(request{robots: "User-agent: *\nLicense: /license.xml\n"}), signal.PurposeAgent, rules.ReasonLicence},
	} {
		r, refused := c.judge(t).Refuses(c.purpose)
		must.True(t, refused == (c.want != "") && r.Reason == c.want, "%s: %v, want %q", name, r, c.want)
		must.True(t, !refused || r.Statement != nil, "%s: the statement is missing", name)
	}
	r, _ := licensed(priced).judge(t).Refuses(signal.PurposeAgent)
	if r.Detail != `the licence asks for payment type="use", 0.015 USD` || !strings.Contains(r.Statement.Text, "0.015") ||
		r.Statement.URL != "https://site.example/license.xml" {
		t.Errorf("the terms are not quoted: %+v", r)
	}
}

// A licence with a prohibition that is not understood refuses under strict alone, in words
// that say so.
func TestRSL_AProhibitionThatIsNotUnderstood(t *testing.T) {
	t.Parallel()
	r := licensed(`<license><permits type="usage">ai-train</permits><prohibits type="usage">scraping</prohibits></license>`)
	if got, refused := r.judge(t).Refuses(signal.PurposeTraining); refused {
		t.Errorf("under standard: %+v", got)
	}
	r.profile = rules.Strict
	got, refused := r.judge(t).Refuses(signal.PurposeTraining)
	must.True(t, refused && got.Reason == rules.ReasonLicence && got.Sentence() == "what the site's licence states on training cannot be read",
		"under strict: %v, %s: %s", refused, got.Reason, got.Sentence())
	r.contract = "contract 4711"
	got, refused = r.judge(t).Refuses(signal.PurposeTraining)
	must.True(t, !refused, "with a contract: %+v", got)
}

// A licence is declared in a group, for the whole file, in the header or in the page; each
// that is declared binds.
func TestRSL_WhereLicencesAreDeclared(t *testing.T) {
	t.Parallel()
	const prohibits = `<rsl><content url="/"><license><prohibits>all</prohibits></license></content></rsl>`
	const line = "License: https://site.example/license.xml\n"
	for name, c := range map[string]struct {
		request
		want signal.Answer
	}{
		"before any group":        {request{robots: line + "User-agent: ExampleBot\nAllow: /\n"}, signal.Disallow},
		"in the agent's group":    {request{robots: "User-agent: ExampleBot\nAllow: /\n" + line}, signal.Disallow},
		"in another group":        {request{robots: "User-agent: ExampleBot\nAllow: /\nUser-agent: *\nAllow: /\n" + line}, signal.Unknown},
		"apart from any group":    {request{robots: "User-agent: ExampleBot\nAllow: /\n\nUser-agent: *\nAllow: /\n\n" + line}, signal.Disallow},
		"the group's own instead": {request{robots: line + "User-agent: *\nLicense: https://site.example/other.xml\n"}, signal.Unknown},
		"in the header":           {request{header: []string{`Link: <https://site.example/x>; rel=next, </license.xml>; rel="license"; type="application/rsl+xml"`}}, signal.Disallow},
		"another licence":         {request{header: []string{`Link: </license.xml>; rel="license"; type="text/html"`}}, signal.Unknown},
		"a link of another kind":  {request{header: []string{`Link: </license.xml>; rel="prev"; title="a,b;rel=license"; type="application/rsl+xml"`}}, signal.Unknown},
		"in the page":             {request{head: `<link rel="license" type="application/rsl+xml" href="license.xml">`}, signal.Disallow},
		"embedded in the page":    {request{head: `<script type="application/rsl+xml">` + prohibits + `</script>`}, signal.Disallow},
	} {
		c.licence = prohibits
		must.Equal(t, c.judge(t).Of(signal.AIInput), c.want, name)
	}
	in := request{robots: line + line + "License: https://other.example/l.xml\nLicense: no\n"}.input(t)
	must.Same(t, signal.Declared(in), []string{"https://site.example/license.xml", "https://other.example/l.xml"}, "to be fetched")
}
