package dashboard_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"heed/internal/daemon/admin/dashboard"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// axe returns the source of axe-core, which finds faults of accessibility.
func axe(t testing.TB) string {
	t.Helper()
	path := filepath.Join(testkit.Root(t), ".build/axe/node_modules/axe-core/axe.min.js")
	text, err := os.ReadFile(path)
	must.Need(t, err == nil,
		"this test needs the npm package axe-core (%v)\nsh internal/tools/testkit/all.sh installs it", err)
	return string(text)
}

// violation is what axe-core reports.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
	}
}

// watched records what pages of a browser request and complain about.
type watched struct {
	mu       sync.Mutex
	requests []string
	console  []string
}

func watch(tab *tab) *watched {
	w := &watched{}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.event = func(method string, params json.RawMessage) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch method {
		case "Network.requestWillBeSent":
			var sent struct{ Request struct{ URL string } }
			_ = json.Unmarshal(params, &sent) // an empty URL is no page's
			w.requests = append(w.requests, sent.Request.URL)
		case "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown":
			w.console = append(w.console, string(params))
		}
	}
	return w
}

// An operator looks at every page, in light and dark, on a telephone and on a desk. A real
// browser requests nothing from elsewhere and has nothing to complain about; axe-core finds
// no serious fault, and no page is wider than the window.
func TestDashboard_IsFitForEveryReader(t *testing.T) {
	h, path, entries := visited(t)
	address, _ := serve(t, dashboard.Options{Heed: h.heed(), Record: path, MayAct: mayAct})
	tab := browser(t)
	seen, script := watch(tab), axe(t)
	for n, page := range everyPage(entries[1].ID.String()) {
		for i, scheme := range []string{"light", "dark"} {
			width := []int64{390, 1400}[i]
			tab.media(scheme)
			tab.size(width)
			tab.open(address + page)
			got := eval[int64](tab, "document.documentElement.scrollWidth")
			must.True(t, got <= width, "%s is %d pixels wide in a window of %d", page, got, width)
			lang := eval[string](tab, "document.documentElement.lang + ' ' + document.querySelectorAll('h1').length")
			must.True(t, lang == "en 1", "%s has the language and the number of titles %q", page, lang)
			if !testkit.Full && n%2 != i {
				continue // by default each page is examined in one of them
			}
			for _, v := range audited(t, tab, script) {
				if v.Impact == "serious" || v.Impact == "critical" {
					t.Errorf("%s, %s: %s (%s)\n%s\n%s", page, scheme, v.Help, v.ID, v.Nodes[0].HTML, v.Nodes[0].FailureSummary)
				}
			}
		}
		title := eval[string](tab, "document.title")
		must.True(t, strings.HasSuffix(title, " - heed"), "%s: a script of a client has set the title %q", page, title)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for _, r := range seen.requests {
		must.True(t, strings.HasPrefix(r, address+"/"), "a page requests %s", r)
	}
	complaints := slices.DeleteFunc(seen.console, func(m string) bool { return strings.Contains(m, "a status of 404") }) // of the page that does not exist
	must.True(t, len(seen.requests) >= 20 && len(complaints) == 0,
		"%d requests; the console has %q", len(seen.requests), complaints)
}

// audited returns what axe-core finds on the page.
func audited(t testing.TB, tab *tab, script string) (found []violation) {
	t.Helper()
	eval[bool](tab, script+"; true")
	text := eval[string](tab, "axe.run().then(r => JSON.stringify(r.passes.length > 10 ? r.violations : 'axe-core has not looked'))")
	must.OK(t, json.Unmarshal([]byte(text), &found))
	return found
}

// The first page follows the running heed without being loaded again, and a reader can
// pause that.
func TestDashboard_IsKeptUpToDate(t *testing.T) {
	h, path, _ := visited(t)
	w := h.writer
	address, _ := serve(t, dashboard.Options{Heed: h.heed(), Record: path})
	tab := browser(t)
	tab.open(address)
	ask := func(target string) {
		t.Helper()
		e := h.request("NewsBot/2.1", target)
		must.OK(t, w.Decided(e))
		w.Ended(e)
		h.counts.Ended(e)
		must.OK(t, w.Complete())
	}
	has := func(text string) string {
		return fmt.Sprintf("document.getElementById('live').textContent.includes(%q)", text)
	}
	tab.until("document.querySelector('[data-live-state]').textContent == 'live'")
	eval[bool](tab, "window.loaded = true")
	ask("/fresh/<i>one</i>")
	tab.until(has("/fresh/<i>one</i>"))
	must.True(t, eval[bool](tab, "window.loaded === true && document.querySelector('#live i') === null"),
		"the page was loaded again, or markup was inserted")
	tab.click("[data-live-control] button")
	ask("/fresh/two")
	tab.until("document.querySelector('[data-live-state]').textContent == 'paused'")
	must.True(t, !eval[bool](tab, has("/fresh/two")), "a page that was paused has changed")
	tab.click("[data-live-control] button")
	tab.until(has("/fresh/two"))
}

// Without JavaScript, an operator searches, opens a decision and tries a URL out, by
// keyboard alone.
func TestDashboard_WorksByKeyboardWithoutJavaScript(t *testing.T) {
	h, path, entries := visited(t)
	address, _ := serve(t, dashboard.Options{Heed: h.heed(), Record: path})
	tab := browser(t)
	tab.call("Emulation.setScriptExecutionDisabled", params{"value": true}, nil)
	tab.open(address + "/decisions")
	tab.press("#q", "very-long\r")
	tab.find(`a[href="/decisions/` + entries[1].ID.String() + `"]`)
	tab.press("td.when a", "\r")
	must.Equal(t, tab.text("#decided"), "Disallow: /private", "the line that decided is shown as")
	tab.open(address + "/try")
	tab.press("#url", "https://shop.test/private/press")
	tab.press("#agent", "NewsBot/2.1\r")
	tab.find("dl")
	must.Equal(t, tab.text("h2"), "Allowed", "what was tried is shown as")
}

// A page reads a limited number of rows of a large record, and says how far it looked.
// HEED_TEST_FULL=1 makes it a million decisions.
func TestDashboard_ReadsALimitedPartOfALargeRecord(t *testing.T) {
	entries, perSecond := 20_000, 1
	if testkit.Full {
		entries, perSecond = 1_000_000, 14
	}
	path := crawled(t, entries, perSecond)
	recording(t, path)
	address, _ := serve(t, dashboard.Options{Heed: newRunning(t).heed(), Record: path})
	number := func(path, pattern string) int {
		t.Helper()
		_, text := get(t, address, path)
		found := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if found == nil {
			return 0
		}
		n, _ := strconv.Atoi(strings.ReplaceAll(found[1], ",", ""))
		return n
	}
	n := number("/clients", `The last ([0-9,]+) requests in the record, since`)
	must.True(t, testkit.Full == (n > 0), "a part of the record is counted, %d requests", n)
	n = number("/", `([0-9,]+)</strong><span>requests in the last 24 hours`)
	must.True(t, n >= entries*9/10 && n <= entries, "%d requests were made before the start", n) // some decisions replace others
	for path, most := range map[string]int{
		"/decisions?q=nothing-has-this": 100_000, "/decisions?host=none.test&class=failed&within=24h": 100_000,
		"/decisions?q=nothing-has-this&within=all": 1_000_000, "/decisions?class=failed&within=all&q=nothing-has-this": 1_000_000,
	} {
		n := number(path, "Compared ([0-9,]+) decisions")
		must.True(t, n >= min(entries, most)*9/10 && n <= most, "%s compared %d decisions", path, n)
	}
	status, _ := get(t, address, "/decisions/"+lastID(t, address))
	must.True(t, status == 200, "the page of a decision: %d", status)
}

// lastID returns the id of the last decision.
func lastID(t testing.TB, address string) string {
	t.Helper()
	_, text := get(t, address, "/decisions?within=all")
	_, after, ok := strings.Cut(text, `<a href="/decisions/`)
	must.Need(t, ok, "no decision is listed")
	id, _, _ := strings.Cut(after, `"`)
	must.Get(url.Parse(id))(t)
	return id
}
