package dashboard_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// An operator watches a real heed: a bot requests pages through it, and the pages show what
// became of that. What is tried out is fetched under the same guard as requests are.
func TestDashboard_OfARunningHeed(t *testing.T) {
	site := testkit.NewOrigin(t, testkit.Site{
		Name: "news.test", Robots: "User-agent: NewsBot\nDisallow: /private\n", Files: map[string]string{"/open.html": "<p>open</p>"},
	})
	admin, hidden := testkit.FreeAddr(t), testkit.NewOrigin(t, testkit.Site{Name: "inside.test", Robots: "User-agent: *\nDisallow: /\n"})
	resolve := ""
	for _, all := range []map[string]string{site.Resolve(), hidden.Resolve()} {
		for name, address := range all {
			resolve += fmt.Sprintf("%q = %q\n", name, address)
		}
	}
	h := testkit.Start(t, testkit.Options{Config: testkit.AnyPort + fmt.Sprintf(`
[admin]
listen = %q
token = "file:%s"
actions = true
[access]
refuse_to = ["inside.test"]
[upstream.resolve]
%s`, admin, testkit.Write(t, t.TempDir()+"/token", strings.Repeat("t", 32)+"\n"), resolve)})
	proxied := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: h.Addr})}}
	for _, path := range []string{"/open.html", "/private/a", "/private/b"} {
		r := must.Get(http.NewRequest("GET", "http://news.test"+path, nil))(t)
		r.Header.Set("User-Agent", "NewsBot/2.1 (+https://bot.example/about)")
		answer := must.Get(proxied.Do(r))(t)
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}

	tab, address := browser(t), "http://"+admin
	tab.open("http://operator:" + strings.Repeat("t", 32) + "@" + admin + "/decisions") // the browser remembers the token
	tab.until(`document.querySelector('[data-live-state]').textContent == 'live'`)
	tab.until(`document.getElementById('live').textContent.includes('/private/b')`)
	tab.open(address + "/decisions?class=refused_by_rule&host=news.test")
	tab.find("td.when a")
	must.Equal(t, eval[int](tab, "document.querySelectorAll('td.when a').length"), 2, "refused decisions are listed")
	tab.click("td.when a")
	must.Equal(t, tab.text("mark")+": "+tab.text("#decided"), "NewsBot/2.1: Disallow: /private", "the decision is explained by")
	tab.open(address + "/sites")
	text := tab.text("main")
	must.True(t, strings.Contains(text, "news.test") && strings.Contains(text, "available"), "the sites are\n%s", text)
	tab.open(address + "/clients")
	text = tab.text("main")
	must.True(t, strings.Contains(text, "127.0.0.1") && strings.Contains(text, "newsbot"), "the clients are\n%s", text)

	tryOut := func(of string) (text string) {
		tab.open(address + "/try")
		eval[bool](tab, fmt.Sprintf("document.getElementById('url').value = %q, document.getElementById('agent').value = 'NewsBot', true", of))
		testkit.Until(t, "the URL is judged", func() bool {
			// At most one a second: the form is sent until it is its turn.
			text = eval[string](tab, "fetch('/try', {method: 'POST', body: new URLSearchParams(new FormData(document.querySelector('form.search')))}).then(r => r.text()).then(t => new DOMParser().parseFromString(t, 'text/html').querySelector('main').textContent)")
			return !strings.Contains(text, "One URL a second")
		})
		return text
	}
	if text := tryOut("http://news.test/private/c"); !strings.Contains(text, "Refused") || !strings.Contains(text, "line 2, Disallow: /private") {
		t.Errorf("a page that is disallowed:\n%s", text)
	}
	if text := tryOut("http://inside.test/"); !strings.Contains(text, "Refused") || len(hidden.Hits()) > 0 {
		t.Errorf("a destination that the settings forbid was asked %d times:\n%s", len(hidden.Hits()), text)
	}

	tab.open(address + "/sites")
	tab.click(`td.name a[href*="news.test"]`)
	tab.find(".robots")
	tab.click(`form[action="/actions/forget"] button`)
	tab.find(`form[action="/sites"]`)
	must.Contain(t, tab.text("main"), "0 policies in memory", "the policy was not forgotten")
}
