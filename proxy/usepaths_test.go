package proxy

import (
	"net/http"
	"strings"
	"testing"

	"heed/internal/judge/signal"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// A site with a statement about a part of it, in each of the forms that have paths, gets no
// request for that part in any spelling, and all others.
func TestUse_AStatementAboutAPathHoldsInEverySpelling(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"Content-Usage": {"/robots.txt": "User-agent: *\nAllow: /\nContent-Usage: /private/ train-ai=n\n"},
		"TDMRep":        {"/robots.txt": "User-agent: *\nAllow: /\n", signal.TDMRepPath: `[{"location": "/private/", "tdm-reservation": 1}]`},
		"RSL": {"/robots.txt": "User-agent: *\nAllow: /\n\nLicense: http://site.test/license.xml\n",
			"/license.xml": `<rsl><content url="/private/"><license><prohibits type="usage">ai-train</prohibits></license></content></rsl>`},
	} {
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			if body, ok := files[r.URL.Path]; ok {
				_, _ = w.Write([]byte(body))
			}
		})
		s.robots = files["/robots.txt"]
		r := newRigBefore(t, s, purposeOf(signal.PurposeTraining))
		for _, path := range []string{"/private/c.txt", "//private/c.txt", "/./private/c.txt", "/private%2fc.txt", "/pub/../private/c.txt"} {
			got := r.ask(plain, question{path: path})
			e := r.records.target(t, path)
			if late := e.Outcome.Late; late != nil { // the page might have overridden the file
				e.Decision = *late
			}
			if p := problemOf(t, got); got.StatusCode != http.StatusForbidden || p.Reason != "signal" || (e.Decision.Variant == "") != (path == "/private/c.txt") {
				t.Errorf("%s: %s: %d, recorded %+v", name, path, got.StatusCode, e.Decision)
			}
		}
		got := r.ask(plain, question{path: "//public/c.txt"})
		must.True(t, got.StatusCode == http.StatusOK, "%s: another page: %d %s", name, got.StatusCode, got.body)
	}
}

// What a site states is refused as too complex when it has too many parts, to clients with a
// purpose; all others are served, and annotated answers say nothing else.
func TestUse_TooManyStatementsRefuseAPurpose(t *testing.T) {
	t.Parallel()
	robots := "User-agent: *\nAllow: /\n" + strings.Repeat("Content-Usage: /x train-ai=y\n", signal.MaxLines+1)
	for _, purposes := range [][]signal.Purpose{{signal.PurposeSearch}, nil} {
		r := newRigBefore(t, usageSite(t, robots, "<p>hello"), purposeOf(purposes...), func(c *Config) { c.Signals.Annotate = true })
		got := r.ask(plain, question{path: "/page"})
		e := r.records.target(t, "/page")
		if refused := got.StatusCode == http.StatusForbidden; refused != (purposes != nil) || refused != (e.Decision.Reason == rules.ReasonTooComplex) {
			t.Errorf("%v: %d, recorded %+v", purposes, got.StatusCode, e.Decision)
		}
		must.Contain(t, e.Signals, `"too_complex":true`, "%v: recorded", purposes)
	}
}
