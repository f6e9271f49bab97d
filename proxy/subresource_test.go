package proxy

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"heed/internal/judge/acl"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// A declared browser loads the parts of a page that it may read, and of no
// other; each is recorded.
func TestHeed_ADeclaredBrowserLoadsThePartsOfAnAllowedPage(t *testing.T) {
	r := newRig(t, hello, func(c *Config) {
		settle(c, &acl.Rules{Clients: []acl.Client{{Name: "shots", UserAgent: acl.NewGlob("ShotBot/*"), AllowSubresources: true}}})
	})
	load := func(agent, path, part, page string) int {
		header := []string{"User-Agent: " + agent}
		if part != "" {
			header = append(header, "Sec-Fetch-Dest: "+part, "Referer: "+page)
		}
		return r.ask(plain, question{path: path, header: header}).StatusCode
	}
	must.Equal(t, load("ShotBot/1", "/private/early.css", "style", "http://site.test/page"), 403, "before its page")
	must.Equal(t, load("ShotBot/1", "/page", "", ""), 200, "the page")
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
		must.Equal(t, load(c.agent, c.path, c.part, c.page), c.status, c.name)
	}
	e := r.records.target(t, "/private/a.css")
	if e.Decision.Verdict != rules.Allow || e.Decision.Reason != rules.ReasonSubresource || e.Decision.Line != 3 || e.Settled == "" {
		t.Errorf("%+v, %q", e.Decision, e.Settled)
	}
}

// What a browser asks for to show a page is recorded as part of that page;
// documents, frames and what scripts ask for by themselves are not.
func TestHeed_PartsOfPagesAreRecordedAsSuch(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, []mode{plain, mitmH1, mitmH2}, func(t *testing.T, m mode) {
		path := "/private?" + string(m)
		r.in(t).ask(m, question{path: path, header: []string{"Sec-Fetch-Dest: image", "Referer: https://u:p@site.test/page?a=1#top"}})
		e := r.records.target(t, path)
		must.True(t, e.Part == "image" && e.Page == "https://site.test/page?a=1" && e.Became() == "refused-by-heed",
			"recorded as %q of %q, %s", e.Part, e.Page, e.Became())
	})
	for _, dest := range []string{"", "document", "iframe", "frame", "empty", "x\x1b", "IMAGE"} {
		h := http.Header{"Referer": {"https://site.test/"}}
		if dest != "" {
			h["Sec-Fetch-Dest"] = []string{dest}
		}
		part, page := partOf(h)
		must.True(t, part == "" && page == "", "%q: %q of %q", dest, part, page)
	}
	part, page := partOf(http.Header{"Sec-Fetch-Dest": {"style"}, "Referer": {"javascript:x"}})
	must.True(t, part == "style" && page == "", "%q of %q", part, page)
}

// However many pages have been read, the last one and its origin are remembered.
func TestPageVisits_TheLastPageIsAlwaysRemembered(t *testing.T) {
	t.Parallel()
	var pages pageVisits
	now := time.Now()
	for n := range 2 * maxPages {
		host := fmt.Sprintf("site%d.test", n/3) // three pages each: an odd number of entries
		page := fmt.Sprintf("https://%s/%d", host, n)
		pages.saw("shots", page, now)
		must.Need(t, pages.read("shots", page, host, now) && pages.read("shots", "https://"+host+"/", "other.test", now),
			"%s is forgotten", page)
	}
}
