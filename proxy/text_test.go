package proxy

import (
	"encoding/json"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/refusal"
	"heed/rules"
)

// The answer is what the client can show: HTML for a browser, plain text for
// who asks for it, problem+json for everybody else.
func TestHeed_RefusalComesInTheFormatAsked(t *testing.T) {
	r := newRig(t, hello)
	for accept, want := range map[string]string{
		"":                 "application/problem+json",
		"*/*":              "application/problem+json",
		"application/json": "application/problem+json",
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": "text/html; charset=utf-8",
		"text/*":                          "text/html; charset=utf-8",
		"text/plain":                      "text/plain; charset=utf-8",
		"text/html;q=0.1, text/plain":     "text/plain; charset=utf-8",
		"text/html;q=0":                   "application/problem+json",
		"text/html;q=0, */*;q=0.1":        "application/problem+json",
		"image/png":                       "application/problem+json",
		"TEXT/HTML":                       "text/html; charset=utf-8",
		"text/html;q=garbage":             "text/html; charset=utf-8",
		";;;,,,/;q=":                      "application/problem+json",
		"application/problem+json;q=0.01": "application/problem+json",
	} {
		var header []string
		if accept != "" {
			header = []string{"Accept: " + accept}
		}
		a := r.ask(plain, question{path: "/private", header: header})
		got := a.Header.Get("Content-Type")
		must.True(t, got == want && a.StatusCode == 403, "Accept %q: %s %q, want %q", accept, a.Status, got, want)
		must.Contain(t, a.body, "Refused by heed: robots.txt line 3 Disallow: /private", "Accept %q", accept)
	}
}

// Markup in a rule that really decides stays text.
func TestHeed_MarkupInARuleStaysText(t *testing.T) {
	s := newSite(t, hello)
	s.robots = "User-agent: *\nDisallow: /x<script>alert(1)</script>\x1b[31m\n"
	r := newRigBefore(t, s)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		for _, accept := range []string{"text/html", "text/plain", "application/json"} {
			a := r.in(t).ask(m, question{path: "/x%3Cscript%3Ealert(1)%3C/script%3E%1B[31m", header: []string{"Accept: " + accept}})
			if a.StatusCode != 403 || accept == "text/html" && strings.Contains(a.body, "<script>") {
				t.Errorf("%s %s", a.Status, a.body)
			}
			harmless(t, a)
		}
	})
}

// The longest rule a site may write goes over every wire, bounded.
func TestHeed_LongRuleIsBoundedOnTheWire(t *testing.T) {
	s := newSite(t, hello)
	s.robots = "User-agent: *\nDisallow: /long" + strings.Repeat("g", 10_000) + "\n"
	r := newRigBefore(t, s)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		a := r.in(t).ask(m, question{path: "/long" + strings.Repeat("g", 10_000)})
		must.True(t, a.StatusCode == 403, "%s", a.Status)
		harmless(t, a)
	})
}

// harmless checks what holds for every answer of heed's own.
func harmless(t *testing.T, a *reply) {
	t.Helper()
	must.True(t, len(a.body) <= 8<<10, "a refusal of %d octets", len(a.body))
	must.True(t, len(a.Status) <= 204, "a reason phrase of %d octets", len(a.Status)-4)
	for _, s := range []string{a.Status, a.Header.Get("Proxy-Status")} {
		must.True(t, !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' }), "not printable ASCII: %q", s)
	}
	if i := strings.IndexFunc(a.body, func(c rune) bool {
		return c < ' ' && c != '\n' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u202e' || c == '\u200b'
	}); i >= 0 {
		t.Errorf("a deceiving character at %d of the body: %q", i, a.body)
	}
	proxyStatusOf(t, a.Header)
}

// The same holds for what a client writes: its text comes back bounded.
func TestHeed_TextOfTheClientComesBackBounded(t *testing.T) {
	r := newRig(t, hello)
	long := strings.Repeat("a", 60_000)
	for name, q := range map[string]string{
		"target":     get("http://site.test", "/private/"+long),
		"host":       requestTo("site.test", "GET", "http://"+long+".test", "/"),
		"scheme":     requestTo("site.test", "GET", long+"://site.test", "/"),
		"user agent": get("http://site.test", "/private", "User-Agent: BadBot/"+long),
		"connect":    "CONNECT " + long + " HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		c := testkit.Dial(t, r.addr)
		c.Send(q)
		a := c.Answer("GET")
		must.True(t, a.StatusCode >= 400, "%s: %s", name, a.Status)
		t.Run(name, func(t *testing.T) { harmless(t, &reply{Response: a.Response, body: string(a.Body)}) })
	}
}

// The body of a refusal contains everything a reviewer needs: the sentence first, the facts in
// separate members, and the text of the site in one that is named so.
func TestRFC9457_ProblemNamesPieceAndQuotesTheSite(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		path := "/public/" + string(m)
		a := r.in(t).ask(m, question{path: path, header: []string{"User-Agent: Mozilla/5.0 (compatible; BadBot/1.0)"}})
		var p refusal.Problem
		if err := json.Unmarshal([]byte(a.body), &p); err != nil {
			t.Fatalf("%v in %s", err, a.body)
		}
		e := r.records.target(t, path)
		if p.Line != 7 || p.Quoted == nil || p.Quoted.Rule != "Disallow: /" || p.Quoted.Group != "BadBot" ||
			p.Token != "badbot" || p.Piece == "" || p.URL != m.scheme()+"://site.test"+path || p.Type != "urn:heed:rule" || p.Retry != "no" || p.Status != 403 ||
			p.RobotsURL != m.scheme()+"://site.test/robots.txt" || p.PolicyAge == nil || p.DecisionID != e.ID.String() ||
			!strings.HasPrefix(a.body, "{\n  \"title\": \"Refused by heed: robots.txt line 7 Disallow: /\"") ||
			a.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s", a.body)
		}
		must.True(t, e.Decision.Verdict == rules.Refuse && e.Outcome.Status == 403 && !e.Outcome.FromSite && int(e.Outcome.BytesOut) == len(a.body),
			"record: %+v", e)
		for _, advice := range []string{"curl", "Mozilla/", "another", "instead"} {
			must.Lack(t, p.Detail, advice, "the detail suggests another name")
		}
	})
}
