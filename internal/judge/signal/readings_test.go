package signal_test

import (
	"testing"

	"heed/internal/judge/signal"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// A statement about a part of a site holds under every spelling that servers read as that
// part, as a Disallow does; for other pages it does not.
func TestHeed_StatementsHoldUnderEverySpelling(t *testing.T) {
	t.Parallel()
	kinds := map[string]request{
		"Content-Usage": {robots: "User-agent: *\nContent-Usage: train-ai=y\nContent-Usage: /private/ train-ai=n\n"},
		"TDMRep":        {tdmrep: `[{"location": "/private/", "tdm-reservation": 1}, {"location": "/", "tdm-reservation": 0}]`},
		"RSL": {robots: "License: https://site.example/license.xml\n", licence: `<rsl><content url="/"><license><permits type="usage">all</permits></license></content>` +
			`<content url="/private/"><license><prohibits type="usage">ai-train</prohibits></license></content></rsl>`},
		"RSL with a price": {robots: "License: https://site.example/license.xml\n", licence: `<rsl><content url="/"><license><permits type="usage">all</permits></license></content>` +
			`<content url="/private/"><license><payment type="use"><amount currency="USD">1</amount></payment></license></content></rsl>`},
	}
	for name, r := range kinds {
		for _, path := range []string{"/private/c.txt", "//private/c.txt", "/./private/c.txt", "/private%2fc.txt", "/pub/../private/c.txt", "/pub/%2e%2e/private/c.txt",
			"/pub%5C..%5Cprivate/c.txt", "/%70rivate//c.txt?q=1", "/x/..%2Fprivate/c.txt", "/x\\..\\private/c.txt"} {
			r.path = path
			refusal, refused := r.judge(t).Refuses(signal.PurposeTraining)
			must.True(t, refused && refusal.Statement != nil, "%s: %s is not refused", name, path)
		}
		for _, path := range []string{"/", "/public/c.txt", "/privat", "/x?y=/../private/", "//public/c.txt", "/private/../c.txt", "/%2570rivate/c.txt"} {
			r.path = path
			refusal, refused := r.judge(t).Refuses(signal.PurposeTraining)
			if want := path == "/private/../c.txt"; refused != want { // as sent it is a page of /private/
				t.Errorf("%s: %s refused %v by %+v", name, path, refused, refusal.Statement)
			}
		}
		r.path, r.profile = "/pub/%252e%252e/private/c.txt", rules.Strict
		_, refused := r.judge(t).Refuses(signal.PurposeTraining)
		must.True(t, refused, "%s: strict lets %s through", name, r.path)
	}
}

// A statement that names a page as it is sent counts for it, as such an Allow does, also
// where other readings of the name are part of something else.
func TestHeed_AStatementThatNamesAPageAsSentCountsForIt(t *testing.T) {
	t.Parallel()
	for _, r := range []request{
		{robots: "User-agent: *\nContent-Usage: /wiki/ train-ai=n\nContent-Usage: /wiki/AC%2FDC train-ai=y\n"},
		{tdmrep: `[{"location": "/wiki/AC%2FDC", "tdm-reservation": 0}, {"location": "/wiki/", "tdm-reservation": 1}]`},
	} {
		r.path = "/wiki/AC%2FDC"
		refusal, refused := r.judge(t).Refuses(signal.PurposeTraining)
		must.True(t, !refused, "refused by %+v", refusal.Statement)
		r.path = "/wiki/AC/DC"
		_, refused = r.judge(t).Refuses(signal.PurposeTraining)
		must.True(t, refused, "another page is allowed")
	}
}
