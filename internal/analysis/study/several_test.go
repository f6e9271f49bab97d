package study_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/analysis/study"
	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// lines writes a log, each request of the combined format: host, address, seconds after
// midnight, target, status and User-Agent.
func lines(t *testing.T, requests ...[]any) string {
	t.Helper()
	var b strings.Builder
	for _, r := range requests {
		at := r[2].(int)
		fmt.Fprintf(&b, "%s %s - - [01/Mar/2025:%02d:%02d:%02d +0000] \"GET %s HTTP/1.1\" %d 50 \"-\" %q\n", r[0], r[1], at/3600, at/60%60, at%60, r[3], r[4], r[5])
	}
	return testkit.Write(t, filepath.Join(t.TempDir(), "access.log"), b.String())
}

// A program that visits several sites is one program, in every number of programs; a client without
// a User-Agent is none by name.
func TestHeed_AProgramAtSeveralSitesIsOne(t *testing.T) {
	t.Parallel()
	var requests [][]any
	for i := range 8 {
		host := fmt.Sprintf("site%d.example.org", i)
		for j, agent := range []string{"GPTBot/1.0", "PoliteBot/2.1", "GreedyBot/1"} {
			requests = append(requests, []any{host, "192.0.2.1", 100*i + 10*j, "/robots.txt", 200, agent}, []any{host, "192.0.2.1", 100*i + 10*j + 5, "/a", 200, agent})
		}
	}
	requests = append(requests, []any{"site0.example.org", "192.0.2.1", 900, "/robots.txt", 200, "GPTBot/1.0"}, []any{"site0.example.org", "192.0.2.9", 80000, "/end", 200, "Mozilla/5.0 (X11; rv:128.0) Firefox/128.0"}, []any{"site0.example.org", "192.0.2.8", 80001, "/robots.txt", 200, "-"})
	r := read(t, study.Options{}, lines(t, requests...))
	must.True(t, r.Agents == 3 && len(r.Sites) == 8 && r.Robots == 49,
		"%d programs at %d sites, %d requests", r.Agents, len(r.Sites), r.Robots)
	// 25 asks in all; of gptbot at site0 the first ask is followed, and none of the others.
	got := values(t, r, "reasks", "hours tokens tokens_within asks asks_within")
	must.True(t, strings.HasPrefix(got, "1 | 3 | 0 | 25 | 1\n"), "reasks is\n%s", got)
	var text strings.Builder
	must.OK(t, r.WriteText(&text))
	for _, want := range []string{"\n49 are of 3 programs by name, 1 without a User-Agent", "\n- 3 of 3 programs asked for robots.txt.\n", "; 3 programs in all did."} {
		must.Contain(t, strings.Join(strings.Fields(text.String()), " "), strings.TrimSpace(want), "there is no %q in\n%.2500s", want, text.String())
	}
}

// The User-Agents of phones, of feature phones too, name no robot; robots that imitate a phone do.
func TestHeed_PhonesAreNoRobots(t *testing.T) {
	t.Parallel()
	people := []string{
		"SAMSUNG-GT-E2232/1.0 Openwave/6.2.3 Profile/MIDP-2.0 Configuration/CLDC-1.1 UP.Browser/6.2.3.3.c.1.101 (GUI) MMP/2.0",
		"LAVA.KKT35+.FARSIGHTED60D_CN_11B_HW (MAUI/KKT35_S116_20130820;LCD/240320) WAP Browser/MAUI (HTTPS) Profile/ Q03C1-2.40 en-US",
		"MAXX_MAUI WAP Browser", "QS304 Profile/MIDP-2.0 Configuration/CLDC-1.1", "MobileSafari/9537.53 CFNetwork/672.0.8 Darwin/14.0.0",
		"Nokia6230/2.0 (04.44) Profile/MIDP-2.0", "BlackBerry9700/5.0.0.862 Profile/MIDP-2.1", "SonyEricssonK750i/R1L Browser/SEMC-Browser/4.2",
		"LG-GC900/V10a Obigo/WAP2.0", "DoCoMo/2.0 N905i(c100;TB;W24H16)", "SomeApp/3.1 (Linux; Android 14; Pixel 8)", "NewsApp/12 (iPhone; iOS 17.5)",
		"Dalvik/2.1.0 (Linux; U; Android 14)", "UCWEB/2.0 (Java; U; MIDP-2.0; en-US) U2/1.0.0 UCBrowser/9.4", "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36",
	}
	robots := map[string]string{
		"SAMSUNG-SGH-E250/1.0 Profile/MIDP-2.0 UP.Browser/6.2 (GUI) MMP/2.0 (compatible; Googlebot-Mobile/2.1; +http://www.google.com/bot.html)":              "googlebot-mobile",
		"Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X) AppleWebKit/537.36 Mobile Safari/537.36 (compatible; FreshCrawler/1.0; +https://crawler.example/about)": "freshcrawler",
		"NightBot/1.0 (Android)": "nightbot",
		"okhttp/4.9.2":           "okhttp",
	}
	var requests [][]any
	for i, agent := range people {
		requests = append(requests, []any{"a.example.org", "192.0.2.1", i, "/", 200, agent})
	}
	for agent := range robots {
		requests = append(requests, []any{"a.example.org", "192.0.2.1", 100, "/", 200, agent})
	}
	r := read(t, study.Options{}, lines(t, requests...))
	want := fmt.Sprintf("(no name) | %d\n", len(people))
	got := values(t, r, "agents", "token requests")
	must.True(t, strings.HasPrefix(got, want), "the agents are\n%swant %s", got, want)
	for _, token := range robots {
		must.Contain(t, got, "\n"+token+" | 1\n", "%s is not among", token)
	}
}

// recordAt makes a record of heed with the answer of a.test to a request for its robots.txt at a
// time: a file, or as the status 403 one to a client in heed's place.
func recordAt(t *testing.T, at string, status int, robots string) string {
	t.Helper()
	fetched := must.Get(time.Parse(time.RFC3339, at))(t)
	answer := &rules.Snapshot{Origin: rules.Origin{Scheme: "http", Host: "a.test", Port: 80}, Status: status, FetchedAt: fetched}
	answer.Pack([]byte(robots))
	source := rules.Source{Origin: answer.Origin, State: rules.Available, Status: status, FetchedAt: fetched, Snapshot: answer}
	if status == 403 {
		source.State, answer.AskedAs = rules.Unavailable, "XBot/1.0"
	}
	policy := rules.New(source, []byte(robots))
	agent := rules.Identify("XBot/1.0")
	return audittest.Record(t, store.Options{Heed: "test"}, &audit.Entry{
		ID: audit.NewID(), Time: fetched, Client: "192.0.2.7:4711", Agent: agent, UserAgent: "XBot/1.0", Method: "GET", Scheme: "http", Host: "a.test", Target: "/",
		Judged: audit.ByPath, Policy: policy, Decision: policy.Decide(agent, rules.NewTarget("/")), Outcome: audit.Outcome{Status: 200, FromSite: true},
	})
}

// In a log of whole seconds, a request in the second in which a file came into force counts
// as after that, and in one of milliseconds one in that millisecond.
func TestHeed_TimesAreComparedAtTheResolutionOfTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	record := recordAt(t, "2025-03-01T10:00:00.7005Z", 200, "User-agent: *\nDisallow: /private\n")
	policies := must.Get(study.LoadPolicies(context.Background(), record, ""))(t)
	whole := lines(t, []any{"a.test", "192.0.2.1", 36000, "/private/x", 200, "XBot/1.0"}, []any{"a.test", "192.0.2.1", 35999, "/private/x", 200, "XBot/1.0"})
	must.Equal(t, values(t, read(t, study.Options{Policies: policies}, whole), "obedience", "not_allowed unknown"), "1 | 1\n", "of whole seconds")
	fine := testkit.Write(t, filepath.Join(dir, "fine.log"), `{"time":"2025-03-01T10:00:00.699Z","client":"192.0.2.1","host":"a.test","request":"GET /private/x HTTP/1.1","status":200,"user_agent":"XBot/1.0"}
{"time":"2025-03-01T10:00:00.700Z","client":"192.0.2.1","host":"a.test","request":"GET /private/x HTTP/1.1","status":200,"user_agent":"XBot/1.0"}
`)
	must.Equal(t, values(t, read(t, study.Options{Policies: policies}, fine), "obedience", "not_allowed unknown"), "1 | 1\n", "of milliseconds")
}

// A site whose robots.txt is 403 for heed and for one client has none for any client.
func TestHeed_ASiteThatDeniesItsRulesHasNone(t *testing.T) {
	t.Parallel()
	record := recordAt(t, "2025-03-01T10:00:00Z", 403, "")
	policies := must.Get(study.LoadPolicies(context.Background(), record, ""))(t)
	log := lines(t, []any{"a.test", "192.0.2.1", 36001, "/x", 200, "XBot/1.0"}, []any{"a.test", "192.0.2.2", 36002, "/x", 200, "YBot/1.0"})
	must.Equal(t, values(t, read(t, study.Options{Policies: policies}, log), "obedience", "token no_file unknown"), "xbot | 1 | 0\nybot | 1 | 0\n", "the classes are")
}

// Where the rows of a program at many sites are cut, people see its sums.
func TestHeed_TheSumsOfAProgramOverItsSites(t *testing.T) {
	t.Parallel()
	var requests [][]any
	for i := range 30 {
		for n, path := range []string{"/private/x", "/a", "/b"} {
			requests = append(requests, []any{fmt.Sprintf("s%d.test", i), "192.0.2.1", i*10 + n, path, 200, "LabBot/1.0"})
		}
	}
	policies := must.Get(study.LoadPolicies(context.Background(), testkit.Write(t, filepath.Join(t.TempDir(), "robots.txt"), "User-agent: *\nDisallow: /private\n"), ""))(t)
	var text strings.Builder
	must.OK(t, read(t, study.Options{Policies: policies}, lines(t, requests...)).WriteText(&text))
	want := "all 30 sites labbot 90 0 60 30 90 33.3 % ("
	must.True(t, strings.Contains(strings.Join(strings.Fields(text.String()), " "), want), "%q is not in\n%s", want, &text)
}

// The robots.txt files of a record, and what it knows of sites without one, are used without
// being named.
func TestHeed_ARecordIsJudgedByItsOwnFiles(t *testing.T) {
	t.Parallel()
	log := testkit.Copy(t, "../../audit/store/testdata/layout2.db")
	policies := &study.Policies{}
	must.OK(t, policies.AddLogs(context.Background(), []string{log, "-", filepath.Join(t.TempDir(), "missing.log")}))
	r := read(t, study.Options{Policies: policies}, log)
	got := values(t, r, "versions", "site state status")
	must.True(t, r.WithRules && strings.Contains(got, " | file | 200\n") && !strings.Contains(got, " | 0\n"),
		"the versions are\n%s", got)
	if sum := values(t, r, "obedience", "token unknown"); strings.Contains(strings.ReplaceAll(sum, " | 0\n", ""), " | ") {
		t.Errorf("requests without known rules:\n%s\n%s", sum, got)
	}
}

// Tables without rows are one sentence, cumulative shares rise from row to row however the
// rows are chosen, and a page begins with what was found.
func TestHeed_WhatPeopleReadFirst(t *testing.T) {
	t.Parallel()
	var requests [][]any
	for i := range 60 {
		requests = append(requests, []any{"a.example.org", "192.0.2.1", i, "/private/" + fmt.Sprint(i), 200, fmt.Sprintf("Unknown%dBot/1.0", i%30)})
	}
	requests = append(requests, []any{"a.example.org", "192.0.2.1", 100, "/", 200, "GPTBot/1.0"})
	policies := must.Get(study.LoadPolicies(context.Background(), testkit.Write(t, filepath.Join(t.TempDir(), "robots.txt"), "User-agent: *\nDisallow: /private\n"), ""))(t)
	r := read(t, study.Options{Policies: policies}, lines(t, requests...))
	var text, page strings.Builder
	must.OK(t, r.WriteText(&text))
	must.OK(t, r.WriteHTML(&page))
	for _, want := range []string{"- robots.txt does not allow 60 of 61 requests judged (98.4 %, 95 % interval 91.3-99.7)", "Nothing to show in 5. How soon", "100 % (34.2-100.0)", "\n17. Methods\n"} {
		must.Contain(t, strings.Join(strings.Fields(text.String()), " "), strings.TrimSpace(want), "there is no %q in\n%s", want, text.String())
	}
	must.Lack(t, text.String(), "nothing to show\n", "an empty table has its own place")
	last, rows := 0.0, 0
	for _, line := range strings.Split(text.String(), "\n") {
		var share, sum float64
		f := strings.Fields(line)
		if len(f) > 8 && strings.HasSuffix(f[0], "bot") && f[len(f)-1] == "B" && f[len(f)-6] == "%" {
			if n, _ := fmt.Sscan(f[len(f)-9]+" "+f[len(f)-7], &share, &sum); n == 2 {
				rows++
				must.True(t, sum >= last, "the cumulative share falls from %v to %v at %q", last, sum, line)
				last = sum
			}
		}
	}
	must.True(t, rows >= 20, "%d rows of agents were found", rows)
	if first, table := strings.Index(page.String(), `class="findings"`), strings.Index(page.String(), "<table"); first < 0 || first > strings.Index(page.String(), "<figure") || first > table {
		t.Errorf("the findings are at %d of the page", first)
	}
}
