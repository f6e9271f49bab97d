package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/audit/report"
	"heed/internal/audit/store"
	"heed/internal/output/table"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// What sites state, as a record has it.
const (
	refusesTraining = `{"profile":"standard","crawl":true,"results":{"search":{"answer":"allow","by":[0],"precedence":"agreed"},"train-ai":{"answer":"disallow","by":[0],"precedence":"agreed"}},` +
		`"statements":[{"source":"robots","protocol":"content-signal","url":"https://shop.example/robots.txt","line":2,"name":"Content-Signal","text":"Content-Signal: search=yes, ai-train=no","says":{"search":"allow","train-ai":"disallow"}}]}`
	refusesSearch = `{"profile":"standard","crawl":true,"page":"whole","results":{"search":{"answer":"disallow","by":[0],"precedence":"agreed"}},` +
		`"statements":[{"source":"meta","protocol":"robots-terms","url":"https://open.example/draft","line":4,"name":"meta robots","text":"<meta name=robots content=noindex>","says":{"search":"disallow"},"terms":["noindex"]}]}`
)

// purposeful adds a client with purposes.
func (r *record) purposeful(client, token string, purposes ...string) int64 {
	list, err := json.Marshal(purposes)
	must.OK(r.t, err)
	return r.once("asker", client, nil, nil, "enforce", token, fmt.Sprintf("[%q]", token), 0, nil, nil, string(list))
}

// stated adds a verdict with what the site states; signals is NULL for nil.
func (r *record) stated(verdict, reason string, rule any, line any, policy int64, signals any) int64 {
	return r.once("ground", "path", verdict, reason, nil, "*", rule, line, nil, 0, nil, nil, policy, 1, 2, signals)
}

// finished is ended with what the site answered and states.
func (r *record) finished(entry int64, status int, fromSite bool, late, siteStatus, answer, signals any) {
	r.insert("outcome", entry, 1, status, fromSite, 0, 100, 120_000, 0, nil, late, siteStatus, answer, signals)
}

// purposes is a record of three crawlers: one for training, of which one site refuses pages,
// one for search, from which a page is withheld, and one without a purpose. A site asks for
// money.
func purposes(t *testing.T) string {
	r := newRecord(t)
	trainer, finder, other := r.purposeful("192.0.2.7", "trainer", "training"), r.purposeful("192.0.2.8", "finder", "search", "agent"), r.asker("192.0.2.9", "other", "Other/1")
	shop, open := r.policy("shop.example", 0, "User-agent: *\nContent-Signal: search=yes, ai-train=no\n"), r.policy("open.example", 0, "User-agent: *\nDisallow: /private\n")
	refused := r.stated("refuse", "signal", "Content-Signal: search=yes, ai-train=no", 2, shop, refusesTraining)
	allowed, free := r.stated("allow", "no-rule", nil, nil, shop, refusesTraining), r.stated("allow", "no-rule", nil, nil, open, nil)
	withheld := r.stated("refuse", "signal", "<meta name=robots content=noindex>", 4, open, nil)
	at := func(n int) time.Duration { return time.Duration(n) * time.Second }
	r.finished(r.entry(at(0), trainer, "shop.example", "/a", refused, 0), 403, false, nil, nil, nil, nil)
	r.finished(r.entry(at(1), trainer, "shop.example", "/b", refused, 0), 403, false, nil, nil, nil, nil)
	r.finished(r.entry(at(2), trainer, "open.example", "/x", free, 0), 200, true, nil, nil, nil, `{"profile":"standard","crawl":true,"page":"whole"}`)
	r.finished(r.entry(at(3), trainer, "open.example", "/private/x", r.ground("path", "refuse", "rule", "Disallow: /private", 2, nil, open), 0), 403, false, nil, nil, nil, nil)
	r.finished(r.entry(at(4), finder, "shop.example", "/a", allowed, 0), 200, true, nil, nil, nil, nil)
	r.finished(r.entry(at(5), finder, "open.example", "/draft", free, 0), 403, false, withheld, 200, nil, refusesSearch)
	r.finished(r.entry(at(6), finder, "open.example", "/paid", free, 0), 402, true, nil, nil, "priced", nil)
	r.finished(r.entry(at(7), other, "open.example", "/paid", free, 0), 402, true, nil, nil, "priced", nil)
	r.finished(r.entry(at(8), other, "open.example", "/x", free, 0), 429, true, nil, nil, "rate", nil)
	r.finished(r.entry(at(9), other, "open.example", "/draft", free, 0), 200, true, nil, nil, nil, strings.ReplaceAll(refusesSearch, `"page":"whole",`, ""))
	return r.file()
}

func TestReport_ByPurpose(t *testing.T) {
	t.Parallel()
	rep, text := made(t, report.Query{}, purposes(t))
	contains(t, text,
		"Use of pages, by purpose: what sites state, of requests that robots.txt allows purpose requests refused category allowed refused unknown",
		"agent 3 0 search 1 1 1 ai-input 0 0 3",
		"search 3 1 search 1 1 1 train-ai 0 1 2",
		"training 3 2 search 2 0 1 train-ai 0 2 1",
		"(not stated) 1 0 search 0 1 0",
		"Refused by what sites state 2 x refuse https://shop.example training",
		"train-ai is disallowed; robots.txt line 2: Content-Signal: search=yes, ai-train=no",
		"1 x refuse https://open.example search",
		"search is disallowed; head of the page: <meta name=robots content=noindex>",
		"Refused or priced by sites 2 x https://open.example priced the site asks for money",
		"1 x https://open.example rate the site asks for fewer requests",
	)
	var page, table, object bytes.Buffer
	must.OK(t, rep.WriteHTML(&page))
	for _, want := range []string{"Use of pages, by purpose", "train-ai", "Content-Signal: search=yes, ai-train=no", "&lt;meta name=robots content=noindex&gt;", "the site asks for money"} {
		must.Contain(t, page.String(), want, "the page does not contain %q", want)
	}
	rep.Query.Use = true
	must.OK(t, rep.WriteCSV(&table))
	for _, want := range []string{
		"kind,purpose,site,category,answer,source,text,line,requests\n",
		"use,training,https://shop.example,train-ai,refused,robots,\"Content-Signal: search=yes, ai-train=no\",2,2\n",
		"use,training,https://open.example,train-ai,unknown,,,,1\n",
		"use,search,https://open.example,search,refused,meta,<meta name=robots content=noindex>,,1\n",
		"site-answer,,https://open.example,,priced,,,,2\n",
	} {
		must.Contain(t, table.String(), want, "the table does not have %q:\n%s", want, &table)
	}
	must.OK(t, rep.WriteJSON(&object))
	var read struct {
		Use report.Use `json:"use"`
	}
	if err := json.Unmarshal(object.Bytes(), &read); err != nil || len(read.Use.Purposes) != 4 || len(read.Use.Refusals) != 2 || len(read.Use.Answers) != 2 {
		t.Errorf("%v, %+v", err, read.Use)
	}
	for _, p := range read.Use.Purposes {
		for _, c := range p.Categories {
			must.Equal(t, c.Allowed+c.Refused+c.Unknown, p.Requests, "%s, %s: requests", p.Purpose, c.Category)
		}
	}
}

// A page that is refused for a purpose is no page against the rules, which allow it.
func TestConduct_StatementsOnUseAreNoRules(t *testing.T) {
	t.Parallel()
	rep, _ := made(t, report.Query{Conduct: true}, purposes(t))
	for _, c := range rep.Conduct {
		want := 0.0
		if c.Agent == "trainer" && c.Site == "https://open.example" {
			want = 0.5 // /private/x of two pages
		}
		must.True(t, c.BreachShare != nil && *c.BreachShare == want,
			"%s at %s: %v, want %v", c.Agent, c.Site, c.BreachShare, want)
	}
}

func TestReport_WithoutPurposesHasNoChapterOfThem(t *testing.T) {
	t.Parallel()
	rep, text := made(t, report.Query{}, aDay(t))
	must.True(t, rep.Use == nil && !strings.Contains(text, "purpose") && !strings.Contains(text, "by sites\n"),
		"%+v\n%s", rep.Use, text)
	var page bytes.Buffer
	err := rep.WriteHTML(&page)
	must.True(t, err == nil && !strings.Contains(page.String(), "purpose"), "%v, the page has the chapter", err)
	dir := papered(t, report.Paper{}, aDay(t))
	must.Lack(t, string(fileText(t, dir, "methods.txt")), "Content-Signal", "the methods are about signals")
}

func TestPaper_SaysHowStatementsWereRead(t *testing.T) {
	t.Parallel()
	dir := papered(t, report.Paper{}, purposes(t))
	contains(t, string(fileText(t, dir, "methods.txt")), "does not allow; refused by statement those whose purpose the site does not allow; rules unavailable", "Clients stated that they crawl for agent, search, training.", "it refused 3 requests (30.0 %)")
}

// Of records of which one has purposes, a paper has a table by purpose, which the query
// beside it makes, and which its codebook explains.
func TestPaper_ByPurpose(t *testing.T) {
	t.Parallel()
	path := purposes(t)
	dir := papered(t, report.Paper{}, aDay(t), path)
	table := tableOf(t, fileText(t, dir, "purposes.csv"))
	var rows []string
	for _, row := range table {
		rows = append(rows, strings.Join(row[1:], " "))
	}
	want := []string{
		"purpose site requests allowed signal licence otherwise not_judged",
		"agent https://open.example:443 2 1 1 0 0 0", "agent https://shop.example:443 1 1 0 0 0 0",
		"search https://open.example:443 2 1 1 0 0 0", "search https://shop.example:443 1 1 0 0 0 0",
		"training https://open.example:443 2 1 0 0 1 0", "training https://shop.example:443 2 0 2 0 0 0",
	}
	must.Same(t, rows, want)
	out, err := exec.Command("sqlite3", "-csv", "-header", "-readonly", path, ".read "+filepath.Join(dir, "purposes-2.sql")).CombinedOutput()
	got := tableOf(t, out)
	must.True(t, err == nil && slices.EqualFunc(got, table, slices.Equal[[]string]), "%v: sqlite3 makes %s", err, out)
	codebook := string(fileText(t, dir, "codebook.csv"))
	for _, column := range table[0][1:] {
		must.Contain(t, codebook, "\npurposes,"+column+",", "the codebook has no purposes.%s", column)
	}
}

// An export has what is recorded of the use: statements as objects.
func TestExport_HasWhatSitesState(t *testing.T) {
	t.Parallel()
	rows := exported(t, report.Query{}, purposes(t))
	object := func(row int, name string) map[string]any {
		o, _ := rows[row][name].(map[string]any)
		return o
	}
	must.True(t, rows[0]["purpose"] == "training" && rows[4]["purpose"] == "search agent" && rows[7]["purpose"] == nil,
		"the purposes are %v, %v and %v", rows[0]["purpose"], rows[4]["purpose"], rows[7]["purpose"])
	if object(0, "signals")["crawl"] != true || object(5, "page_signals")["page"] != "whole" || rows[5]["signals"] != nil {
		t.Errorf("%v\n%v", rows[0], rows[5])
	}
	must.True(t, rows[5]["site_status"] == 200.0 && rows[5]["late_reason"] == "signal" && rows[6]["site_answer"] == "priced",
		"%v\n%v", rows[5], rows[6])
}

// The record of an older heed, of layout 2 and engine 2, and one of today are reported together.
func TestReport_RecordsOfTwoLayouts(t *testing.T) {
	t.Parallel()
	old, today := testkit.Copy(t, "../store/testdata/engine2.db"), purposes(t)
	alone, _ := made(t, report.Query{}, today)
	for _, by := range []string{report.ByAgent, report.ByAddress, report.ByUser} {
		both, text := made(t, report.Query{By: by}, old, today)
		contains(t, text, "training 3 2")
		if both.Total.Requests != 15+10 || len(both.Use.Purposes) != len(alone.Use.Purposes) || both.Use.Purposes[0].Requests != alone.Use.Purposes[0].Requests {
			t.Errorf("by %s: %d requests, %+v", by, both.Total.Requests, both.Use)
		}
	}
	columns := map[string]bool{}
	for _, row := range exported(t, report.Query{}, old, today) {
		for name := range row {
			columns[name] = true
		}
	}
	must.True(t, columns["purpose"] && columns["signals"] && len(exported(t, report.Query{}, old)) == 15,
		"the export of both has the columns %v", columns)
	must.Get(store.Records(old, today))(t)
}

// The manual has every field of an export, and no other.
func TestExport_EveryFieldIsInTheManual(t *testing.T) {
	t.Parallel()
	manual := must.Get(os.ReadFile("../../output/manual/record.md"))(t)
	_, list, found := strings.Cut(string(manual), "`heed audit export`:\n\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var out bytes.Buffer
	err := report.Export(t.Context(), read(t, purposes(t)), report.Query{}, table.NewWriter(&out))
	must.Need(t, err == nil && found, "%v %v", err, found)
	head, _, _ := strings.Cut(out.String(), "\n")
	missing := map[string]bool{}
	for name := range strings.SplitSeq(head, ",") {
		missing[name] = true
	}
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "     ") {
			continue // an explanation
		}
		names, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
		for name := range strings.SplitSeq(strings.TrimSuffix(names, ","), ", ") {
			must.True(t, missing[name], "the manual has the field %q, which is none", name)
			delete(missing, name)
		}
	}
	for name := range missing {
		t.Errorf("the manual does not have the field %q", name)
	}
}
