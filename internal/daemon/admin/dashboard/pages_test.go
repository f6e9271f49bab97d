package dashboard_test

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/check/why"
	"heed/internal/daemon/admin/dashboard"
	"heed/internal/judge/reason"
	"heed/internal/output/manual"
	"heed/internal/tools/testkit/must"
)

// get returns the page at path and its status.
func get(t testing.TB, address, path string) (status int, text string) {
	t.Helper()
	r := must.Get(http.Get(address + path))(t)
	defer r.Body.Close()
	body := must.Get(io.ReadAll(r.Body))(t)
	return r.StatusCode, string(body)
}

// visited makes a heed with a record in which the hostile requests are the last ones, and
// returns their entries.
func visited(t testing.TB) (h *running, path string, entries []*audit.Entry) {
	t.Helper()
	h, path = newRunning(t), crawled(t, 500, 50)
	w := recording(t, path)
	h.writer = w
	for _, x := range hostile {
		e := h.request(x.agent, x.target)
		must.OK(t, w.Decided(e))
		w.Ended(e)
		h.counts.Ended(e)
		entries = append(entries, e)
	}
	must.OK(t, w.Complete())
	return h, path, entries
}

// everyPage are the paths of all pages, with those of one decision.
func everyPage(id string) []string {
	return []string{"/", "/decisions", "/decisions?within=all&q=very-long", "/decisions/" + id, "/sites", "/sites/one?of=" + url.QueryEscape(shop.String()),
		"/clients", "/try?url=" + url.QueryEscape("https://shop.test/private/<b>") + "&agent=" + url.QueryEscape(hostile[0].agent), "/settings", "/manual", "/manual/operating", "/no/such/page"}
}

// Markup of clients and sites is text on every page, and nothing is loaded from elsewhere.
func TestPages_MarkupOfClientsAndSitesIsInert(t *testing.T) {
	t.Parallel()
	h, path, entries := visited(t)
	address, _ := serve(t, dashboard.Options{Heed: h.heed(), Record: path})
	pages := everyPage(entries[1].ID.String())
	for _, e := range entries {
		pages = append(pages, "/decisions/"+e.ID.String())
	}
	for _, page := range pages {
		status, text := get(t, address, page)
		want := map[bool]int{true: 404, false: 200}[page == "/no/such/page"]
		must.True(t, status == want, "%s: status %d\n%s", page, status, text)
		for _, bad := range []string{"<script>", "<img", "<b>", "<svg onload", "\u202e", "//other.test></script", "href=\"javascript:", "style=\"", "secret-of-upstream"} {
			must.Lack(t, text, bad, "%s contains %q", page, bad)
		}
		must.Lack(t, text, "%253A", "%s has a link that is escaped twice", page)
		must.True(t, strings.Count(text, "<script") == 1,
			"%s has %d scripts, not its own alone", page, strings.Count(text, "<script"))
	}
}

// Each page sends the fields that keep a browser from doing more than showing it.
func TestPages_HaveAStrictPolicy(t *testing.T) {
	t.Parallel()
	address, _ := serve(t, dashboard.Options{Heed: newRunning(t).heed()})
	for _, path := range []string{"/", "/decisions", "/assets/style.css", "/no/such/page"} {
		r := must.Get(http.Get(address + path))(t)
		r.Body.Close()
		policy := r.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") || r.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, r.Header)
		}
	}
}

// The page of a decision has each step that heed why prints, the marked piece of the
// User-Agent and the line that decided.
func TestDecision_IsExplainedAsHeedWhyDoes(t *testing.T) {
	t.Parallel()
	h, path, entries := visited(t)
	address, _ := serve(t, dashboard.Options{Heed: h.heed(), Record: path})
	e := entries[1]
	status, text := get(t, address, "/decisions/"+e.ID.String())
	must.Need(t, status == 200, "status %d\n%s", status, text)
	record := must.Get(store.OpenRecord(path))(t)
	x := explained(t, record, e.ID.String())
	for _, step := range why.Recorded(x, nil, why.Words) {
		for _, line := range append([]string{step.Label}, step.Lines...) {
			must.Contain(t, text, ">"+escaped(line)+"<", "it lacks %q", line)
		}
	}
	for _, want := range []string{"<mark>NewsBot/1.0</mark>" + escaped(" (+https://bot.example/about)"), `class="decided" id="decided"><strong>Disallow: /private</strong>`, escaped(`# <script>document.title = "robots"</script>`)} {
		must.Contain(t, text, want, "it lacks %s", want)
	}
	status, file := get(t, address, "/decisions/"+e.ID.String()+"/robots.txt")
	must.True(t, status == 200 && file == robots, "its robots.txt is not what the site sent: %d %q", status, file)
	for path, want := range map[string]int{"/decisions/01a2": 404, "/decisions/00000000-0000-7000-8000-000000000000": 404, "/decisions/00000000-0000-7000-8000-000000000000/robots.txt": 404} {
		status, _ := get(t, address, path)
		must.True(t, status == want, "%s: status %d", path, status)
	}
}

// escaped is text as html/template writes it.
func escaped(text string) string {
	return strings.NewReplacer("+", "&#43;").Replace(html.EscapeString(text))
}

func TestDecisions_AreFilteredAndSearched(t *testing.T) {
	t.Parallel()
	h, path, entries := visited(t)
	address, _ := serve(t, dashboard.Options{Heed: h.heed(), Record: path})
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = e.ID.String()
	}
	for query, want := range map[string][]string{
		"host=shop.test":                            {all[3], all[2], all[1], all[0]},
		"host=shop.test&class=allowed":              {all[3]},
		"host=shop.test&class=refused_by_rule":      {all[2], all[1], all[0]},
		"host=*.test&reason=rule&client=192.0.2.9":  {all[2], all[1], all[0]},
		"q=very-long-very":                          {all[1]},
		"q=JAVASCRIPT:alert":                        {all[3]}, // a User-Agent
		"q=https://shop.test/ok":                    {all[3]},
		"q=shop.te&client=newsbot&within=all":       {all[1], all[0]},
		"q=nothing-has-this&within=7d":              nil,
		"host=shop.test&within=&to=2020-01-01":      nil,
		"host=shop.test&from=2020-01-01T00:00&q=ok": {all[3]},
	} {
		status, text := get(t, address, "/decisions?"+query)
		var got []string
		for part := range strings.SplitSeq(text, `<a href="/decisions/`) {
			if len(part) > 36 && strings.Count(part[:36], "-") == 4 {
				got = append(got, part[:36])
			}
		}
		must.True(t, status == 200 && slices.Equal(got, want), "%s: %d %v, want %v", query, status, got, want)
	}
	for query, want := range map[string]int{"class=good": 400, "from=yesterday": 400} {
		status, text := get(t, address, "/decisions?"+query)
		must.True(t, status == want && strings.Contains(text, `class="warn"`), "%s: %d", query, status)
	}
	r := must.Get(http.Get(address + "/decisions?q=" + strings.ReplaceAll(all[2], "-", "")))(t)
	r.Body.Close()
	must.Equal(t, r.Request.URL.Path, "/decisions/"+all[2], "an id leads to %s", r.Request.URL)
}

// The numbers of the first page are those of the record and of the running heed.
func TestOverview_CountsTheRecordAndWhatFollows(t *testing.T) {
	t.Parallel()
	h, path := newRunning(t), crawled(t, 600, 50)
	w := recording(t, path)
	h.start = h.start.Add(time.Second)
	h.status.Since = h.start
	e := h.request("NewsBot/2.1", "/private/1")
	e.Time = h.start.Add(time.Millisecond)
	must.OK(t, w.Decided(e))
	h.counts.Ended(e)
	must.OK(t, w.Complete())
	address, _ := serve(t, dashboard.Options{Heed: h.heed(), Record: path})
	_, text := get(t, address, "/")
	must.True(t, strings.Contains(text, "<strong>601</strong>"), "the first page does not count 601 requests")
}

func TestTry_JudgesAtMostOneURLASecond(t *testing.T) {
	t.Parallel()
	h, now := newRunning(t), time.Now()
	address, _ := serve(t, dashboard.Options{Heed: h.heed(), Now: func() time.Time { return now }})
	post := func(form url.Values) (*http.Response, string) {
		t.Helper()
		r := must.Get(http.PostForm(address+"/try", form))(t)
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		return r, string(text)
	}
	form := url.Values{"url": {"https://shop.test/private/x"}, "agent": {"NewsBot/2.1"}}
	r, text := post(form)
	must.True(t, r.StatusCode == 200 && strings.Contains(text, "<h2>Refused</h2>"), "status %d\n%s", r.StatusCode, text)
	j := must.Get(h.Check(t.Context(), checkOf(form)))(t)
	for _, step := range why.Judgement(j[0], nil) {
		for _, line := range step.Lines {
			must.True(t, strings.Contains(text, ">"+escaped(line)+"<") || strings.Contains(line, "old"),
				"the page lacks %q", line) // its age
		}
	}
	before := h.checked
	for range 20 {
		if r, _ := post(form); r.StatusCode != http.StatusTooManyRequests || r.Header.Get("Retry-After") != "1" {
			t.Errorf("within the same second: %d, %v", r.StatusCode, r.Header)
		}
	}
	must.Equal(t, h.checked, before, "%d more were judged", h.checked-before)
	now = now.Add(time.Second)
	for _, bad := range []url.Values{{"agent": {"x"}}, {"url": {"https://shop.test/"}}, {"url": {strings.Repeat("x", 9000)}, "agent": {"x"}}} {
		if r, text := post(bad); r.StatusCode != http.StatusBadRequest || !strings.Contains(text, `role="alert"`) {
			t.Errorf("%.40v: status %d", bad, r.StatusCode)
		}
	}
	if r, text := post(url.Values{"url": {"ftp://shop.test/"}, "agent": {"x"}}); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, `role="alert"`) {
		t.Errorf("another scheme: %d", r.StatusCode)
	}
}

// A form changes something only where that is allowed, and never for another site's page.
func TestActions_NeedThePermissionOfTheRequest(t *testing.T) {
	t.Parallel()
	h := newRunning(t)
	may, _ := serve(t, dashboard.Options{Heed: h.heed(), MayAct: func(context.Context) bool { return true }})
	mayNot, _ := serve(t, dashboard.Options{Heed: h.heed(), MayAct: func(context.Context) bool { return false }})
	post := func(address, action, of, origin string) int {
		t.Helper()
		r := must.Get(http.NewRequest("POST", address+"/actions/"+action, strings.NewReader(url.Values{"of": {of}}.Encode())))(t)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		answer := must.Get(http.DefaultTransport.RoundTrip(r))(t)
		answer.Body.Close()
		return answer.StatusCode
	}
	actions := map[string]string{"end-exception": "7", "end-observing": "", "end-pause": shop.String(), "forget": shop.String(), "fetch": shop.String()}
	for action, of := range actions {
		must.Equal(t, post(mayNot, action, of, ""), 403, "%s without permission", action)
		must.Equal(t, post(may, action, of, "http://other.test"), 403, "%s from a page of another site", action)
	}
	must.True(t, len(h.acts) == 0, "done: %v", h.acts)
	var want []string
	for action, of := range actions {
		must.Equal(t, post(may, action, of, may), 303, action)
		want = append(want, strings.TrimSpace(action+" "+of))
	}
	must.Equal(t, fmt.Sprint(h.acts), fmt.Sprint(want), "done")
	must.Equal(t, post(may, "no-such-action", "", may), 404, "an unknown action")
	_, text := get(t, mayNot, "/settings")
	must.True(t, !strings.Contains(text, "/actions/"), "a button is shown that may not be used")
}

func TestSettings_HaveExceptionsWithTheirEnd(t *testing.T) {
	t.Parallel()
	address, _ := serve(t, dashboard.Options{Heed: newRunning(t).heed()})
	_, text := get(t, address, "/settings")
	for _, want := range []string{"archive.test", "allow /old/", "written permission 2026-14", "2027-02-01 00:00:00", "*.partner.test", "refuse /", "contract ended", "asked on the telephone", "...@proxy.example:3128"} {
		must.Contain(t, text, want, "it lacks %s", want)
	}
}

func TestManual_HasEveryTopic(t *testing.T) {
	t.Parallel()
	address, _ := serve(t, dashboard.Options{Heed: newRunning(t).heed(), BuiltIn: []byte("# Where clients connect.\nlisten = \"127.0.0.1:3128\"\n")})
	_, list := get(t, address, "/manual")
	for _, path := range []string{"/manual/settings", "/manual/perl", "/manual/GO"} { // earlier names of languages
		_, text := get(t, address, path)
		if path == "/manual/settings" != strings.Contains(text, "<code># Where clients connect.\nlisten = ") || !strings.Contains(text, "<h1>") {
			t.Errorf("%s: proxy.toml is the end of settings alone\n%s", path, text)
		}
	}
	for _, topic := range manual.Topics() {
		status, text := get(t, address, "/manual/"+topic.Name)
		if status != 200 || !strings.Contains(text, "<h1>"+escaped(topic.Title)+"</h1>") || !strings.Contains(list, `href="/manual/`+topic.Name+`"`) {
			t.Errorf("%s: status %d, or it lacks its title or its place in the list", topic.Name, status)
		}
	}
	for _, bad := range []string{"/manual/no", "/manual/..%2f..%2fproxy.toml", "/assets/..%2fpages%2flayout.html", "/assets/%2e%2e/dashboard.go"} {
		status, _ := get(t, address, bad)
		must.True(t, status == 404, "%s: status %d", bad, status)
	}
}

// Every class has a name for its colour and pattern in the style sheet.
func TestPages_EveryClassHasAColourAndAPattern(t *testing.T) {
	t.Parallel()
	address, _ := serve(t, dashboard.Options{Heed: newRunning(t).heed()})
	_, style := get(t, address, "/assets/style.css")
	_, page := get(t, address, "/")
	for _, class := range reason.Classes() {
		name := styleOf(class)
		if !strings.Contains(style, "svg ."+name+" { fill:") || class != reason.Allowed && !strings.Contains(page, `<pattern id="`+name+`"`) {
			t.Errorf("the class %q has no style", class)
		}
	}
}
