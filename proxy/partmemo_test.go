package proxy

import (
	"testing"

	"heed/internal/terms"
	"heed/rules"
)

// A declared browser loads the parts of a page that it may read, and of no
// other; each is recorded.
func TestHeed_ADeclaredBrowserLoadsThePartsOfAnAllowedPage(t *testing.T) {
	r := newRig(t, hello, func(c *Config) {
		settle(c, &terms.Book{Clients: []terms.Client{{Name: "shots", UserAgent: terms.NewGlob("ShotBot/*"), AllowParts: true}}})
	})
	load := func(agent, path, part, page string) int {
		header := []string{"User-Agent: " + agent}
		if part != "" {
			header = append(header, "Sec-Fetch-Dest: "+part, "Referer: "+page)
		}
		return r.ask(plain, question{path: path, header: header}).StatusCode
	}
	if got := load("ShotBot/1", "/private/early.css", "style", "http://site.test/page"); got != 403 {
		t.Errorf("before its page: %d", got)
	}
	if got := load("ShotBot/1", "/page", "", ""); got != 200 {
		t.Errorf("the page: %d", got)
	}
	for _, c := range []struct {
		name, agent, path, part, page string
		status                        int
	}{
		{"a part", "ShotBot/1", "/private/a.css", "style", "http://site.test/page", 200},
		{"a part of that", "ShotBot/1", "/private/a.woff", "font", "http://site.test/private/a.css", 200},
		{"of another page", "ShotBot/1", "/private/b.css", "style", "http://site.test/private", 403},
		{"of a page that was not read", "ShotBot/1", "/private/c.css", "style", "http://site.test/other", 403},
		{"named by its own site's root alone", "ShotBot/1", "/private/d.css", "style", "http://site.test/", 403},
		{"a frame", "ShotBot/1", "/private/e", "iframe", "http://site.test/page", 403},
		{"another client", "curl/8", "/private/f.css", "style", "http://site.test/page", 403},
	} {
		if got := load(c.agent, c.path, c.part, c.page); got != c.status {
			t.Errorf("%s: %d", c.name, got)
		}
	}
	e := r.records.target(t, "/private/a.css")
	if e.Decision.Verdict != rules.Allow || e.Decision.Reason != rules.ReasonPart || e.Decision.Line != 3 || e.Settled == "" {
		t.Errorf("%+v, %q", e.Decision, e.Settled)
	}
}
