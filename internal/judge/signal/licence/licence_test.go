package licence_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"heed/internal/base/safetext"
	"heed/internal/judge/signal/licence"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// document returns a document of one content with that inner text.
func document(content, inner string) []byte {
	return []byte(`<?xml version="1.0"?>
<rsl xmlns="https://rslstandard.org/rsl">
  <content ` + content + `>
    ` + inner + `
  </content>
</rsl>`)
}

func site(t *testing.T) rules.Origin {
	t.Helper()
	return must.Get(rules.ParseOrigin("https", "site.example"))(t)
}

// terms returns the terms of a document for a page whose target has one reading.
func terms(d *licence.Document, o rules.Origin, target string, usage licence.Usage) (terms licence.Terms) {
	page := rules.NewTarget(target)
	for _, part := range d.Parts(o, page, rules.Standard) {
		terms = part.Terms(page, usage)
	}
	return terms
}

// answer puts the terms of a document for a page into words.
func answer(t *testing.T, body []byte, target string, usage licence.Usage) string {
	t.Helper()
	d, err := licence.Parse(body)
	if err != nil {
		return "unreadable"
	}
	got := terms(d, site(t), target, usage)
	text := [...]string{"unknown", "allow", "disallow"}[got.Verdict]
	if got.Unmet != "" {
		text += " after " + got.Unmet
	}
	return text
}

func TestRSL_TermsOfOneLicence(t *testing.T) {
	t.Parallel()
	const price = `<amount currency="USD">0.015</amount>`
	for _, c := range []struct{ inner, input, search string }{
		{`<license><permits type="usage">search</permits></license>`, "disallow", "allow"},
		{`<license><prohibits type="usage">ai-train</prohibits></license>`, "unknown", "unknown"},
		{`<license><permits type="usage">ai-input</permits><prohibits type="usage">all</prohibits></license>`, "allow", "disallow"},
		{`<license><permits type="usage">ai-input</permits><prohibits type="usage">ai-all</prohibits></license>`, "disallow", "disallow"},
		{`<license><permits type="usage">ai-input</permits><payment type="use">` + price + `</payment></license>`,
			`allow after payment type="use", 0.015 USD`, "disallow"},
		{`<license><permits type="usage">ai-input</permits><payment type="use">` + price + `</payment></license>
		  <license><permits type="usage">ai-input</permits><payment type="free"/></license>`, "allow", "disallow"},
		{`<license><permits type="usage">ai-input</permits><payment type="free"/></license>
		  <license><permits type="usage">ai-input</permits><payment type="use">` + price + `</payment></license>`, "allow", "disallow"},
		{`<license><payment type="Use">` + price + `</payment></license>`,
			`unknown after payment type="Use", 0.015 USD`, `unknown after payment type="Use", 0.015 USD`},
		{`<license><permits type="usage">all</permits><payment/></license>`, "allow", "allow"},
		{`<license><permits type="usage">search</permits><payment type="attribution"/></license>`, "disallow", "allow"},
		{`<license><permits type="usage">all</permits><payment type="contribution"/></license>`,
			`allow after payment type="contribution"`, `allow after payment type="contribution"`},
		{`<license><permits type="usage">all</permits><payment>` + price + `</payment></license>`,
			`allow after payment type="free", 0.015 USD`, `allow after payment type="free", 0.015 USD`},
		{`<license><permits type="usage">search, ai-input</permits></license>`, "allow", "allow"},
		{`<license><permits type="usage">ai-all</permits></license>`, "allow", "disallow"},
		{`<license><permits type="usage">SEARCH</permits></license>`, "disallow", "disallow"},
		{`<license><permits type="user">non-commercial</permits></license>`, "unknown after only certain users", "unknown after only certain users"},
		{`<license><permits type="usage">all</permits><reporting type="telemetry" profile="https://p.example/1" endpoint="https://r.example/"/></license>`,
			"allow after reporting telemetry", "allow after reporting telemetry"},
		{`<license><permits>search</permits><legal type="warranty">ownership</legal></license>`, "disallow", "allow"},
		{``, "unknown", "unknown"},
	} {
		body := document(`url="/"`, c.inner)
		must.Equal(t, answer(t, body, "/page", licence.AIInput), c.input, "%s\nfor ai-input", c.inner)
		must.Equal(t, answer(t, body, "/page", licence.Search), c.search, "%s\nfor search", c.inner)
	}
}

// The words of the first version of RSL mean those of today, in both lists. What is clearly a
// prohibition is read; another word or element that may be one is a fault, and what may be a
// permission has no effect.
func TestRSL_WordsThatAreNotThoseOfToday(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ inner, input, train string }{
		{`<prohibits type="usage">train-ai</prohibits>`, "unknown", "disallow"},
		{`<prohibits type="usage">train-genai</prohibits>`, "unknown", "disallow"},
		{`<prohibits type="usage">ai-use, train-ai</prohibits>`, "disallow", "disallow"},
		{`<prohibits>ai-summarize</prohibits>`, "disallow", "unknown"},
		{`<permits type="usage">train-ai</permits>`, "disallow", "allow"},
		{`<permits type="usage">ai-use ai-summarize</permits>`, "allow", "disallow"},
		{`<permits type="usage">train-ai</permits><prohibits type="usage">ai-train</prohibits>`, "disallow", "disallow"},
		{`<prohibits type="usage">machine-learning</prohibits>`, "unknown?", "unknown?"},
		{`<prohibits type="usage">ai-train, everything</prohibits>`, "unknown?", "disallow"},
		{`<permits type="usage">ai-input</permits><prohibits type="usage">scraping</prohibits>`, "allow?", "disallow"},
		{`<permits type="usage">reading</permits>`, "disallow", "disallow"},
		{`<prohibits type="usage">AI-Train</prohibits>`, "unknown", "disallow"},
		{`<permits type="usage">AI-Train</permits>`, "disallow", "disallow"},
		{`<prohibits type="usage"></prohibits>`, "unknown?", "unknown?"},
		{`<prohibits usage="ai-train"/>`, "unknown?", "unknown?"},
		{`<prohibit type="usage">ai-train</prohibit>`, "unknown", "disallow"},
		{`<Prohibits type="usage">ai-all</Prohibits>`, "disallow", "disallow"},
		{`<prohibts type="usage">ai-train</prohibts>`, "unknown?", "unknown?"},
		{`<permit type="usage">ai-train</permit>`, "unknown?", "unknown?"},
		{`<legal type="x">no</legal><standard>https://site.example/</standard>`, "unknown", "unknown"},
	} {
		d := must.Get(licence.Parse(document(`url="/"`, "<license>"+c.inner+"</license>")))(t)
		for usage, want := range map[licence.Usage]string{licence.AIInput: c.input, licence.AITrain: c.train} {
			got := terms(d, site(t), "/", usage)
			text := [...]string{"unknown", "allow", "disallow"}[got.Verdict]
			if got.Fault {
				text += "?"
			}
			must.Equal(t, text, want, "%s for %s", c.inner, usage)
		}
	}
	two := document(`url="/"`, `<license><prohibits>x</prohibits></license><license><permits>ai-train</permits></license>`)
	must.Equal(t, answer(t, two, "/", licence.AITrain), "allow", "beside an offer that is understood")
}

// A licence server must be asked first, whatever is paid (RSL §3.3).
func TestRSL_ALicenceServerComesFirst(t *testing.T) {
	t.Parallel()
	server := `url="/" server="https://licensing.example/"`
	for _, inner := range []string{`<license><payment type="free"/></license>`, ``} {
		want := "unknown after a licence from https://licensing.example/"
		must.Equal(t, answer(t, document(server, inner), "/", licence.Search), want, inner)
	}
	must.Equal(t, answer(t, document(server, `<license><prohibits type="usage">all</prohibits></license>`), "/", licence.Search), "disallow", "prohibited")
}

// The content of the most specific pattern governs (RSL §4.9).
func TestRSL_TheMostSpecificContentGoverns(t *testing.T) {
	t.Parallel()
	body := []byte(`<rsl xmlns="https://rslstandard.org/rsl">
<content url="/"><license><prohibits type="usage">all</prohibits></license></content>
<content url="/blog/*.html$"><license><permits type="usage">search</permits></license></content>
<content url="https://site.example/press/"><license><permits type="usage">all</permits></license></content>
<content url="https://other.example/press/release/"><license><prohibits type="usage">all</prohibits></license></content>
</rsl>`)
	for target, want := range map[string]string{
		"/":                 "disallow",
		"/blog/a.html":      "allow",
		"/blog/a.html?x":    "disallow",
		"/press/release/1":  "allow",
		"/blog/a/b/c.html":  "allow",
		"/%70ress/":         "allow",
		"/elsewhere/press/": "disallow",
	} {
		must.Equal(t, answer(t, body, target, licence.Search), want, target)
	}
	must.Equal(t, answer(t, document(`url="/only/"`, `<license><permits>all</permits></license>`), "/else", licence.Search), "unknown", "a page that no content is for")
}

func TestRSL_TermsQuoteTheLicence(t *testing.T) {
	t.Parallel()
	d := must.Get(licence.Parse(document(`url="/"`, "<license>\n  <permits type=\"usage\">search</permits>\n</license>")))(t)
	got := terms(d, site(t), "/", licence.Search)
	must.True(t, got.Line == 4 && got.Text == `<license> <permits type="usage">search</permits> </license>`,
		"line %d: %s", got.Line, got.Text)
}

func TestRSL_ACopyLastsForMaxAge(t *testing.T) {
	t.Parallel()
	for attribute, want := range map[string]time.Duration{
		``: 24 * time.Hour, `max-age="7"`: 7 * 24 * time.Hour, `max-age="9999999999"`: licence.MaxAge,
		`max-age="400"`: licence.MaxAge, `max-age="0"`: 24 * time.Hour, `max-age="-1"`: 24 * time.Hour, `max-age="soon"`: 24 * time.Hour,
	} {
		d, err := licence.Parse([]byte(`<rsl ` + attribute + `><content url="/"/></rsl>`))
		must.True(t, err == nil && d.Age() == want, "%s: %v", attribute, err)
	}
}

func TestRSL_DocumentsThatAreNotRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		want error // nil: any
	}{
		"nothing":         {"", licence.ErrNoRSL},
		"no XML":          {"{\"a\": 1}", licence.ErrNoRSL},
		"an HTML page":    {"<html><body>404</body></html>", licence.ErrNoRSL},
		"no content":      {"<rsl></rsl>", licence.ErrNothing},
		"cut off":         {string(document(`url="/"`, ""))[:90], nil},
		"a document type": {`<!DOCTYPE rsl [<!ENTITY a "aaaa">]><rsl><content url="/">&a;</content></rsl>`, licence.ErrDoctype},
		"an entity bomb": {`<?xml version="1.0"?><!DOCTYPE rsl [<!ENTITY a "x"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><rsl><content url="/"/></rsl>`,
			licence.ErrDoctype},
		"an unknown entity":    {`<rsl><content url="/">&lol;</content></rsl>`, nil},
		"an external entity":   {`<!DOCTYPE rsl SYSTEM "file:///etc/passwd"><rsl><content url="/"/></rsl>`, licence.ErrDoctype},
		"five MB":              {"<rsl>" + strings.Repeat(" ", 5<<20) + `<content url="/"/></rsl>`, licence.ErrTooLong},
		"nested elements":      {strings.Repeat("<rsl>", 10_000), licence.ErrNesting},
		"an unknown encoding":  {`<?xml version="1.0" encoding="klingon"?><rsl><content url="/"/></rsl>`, nil},
		"octets of no UTF-8":   {"<rsl><content url=\"/\xff\xfe\"/></rsl>", nil},
		"two encodings at odd": {"<?xml version=\"1.0\" encoding=\"UTF-16\"?><rsl><content url=\"/\"/></rsl>", nil},
	} {
		d, err := licence.Parse([]byte(c.body))
		must.True(t, err != nil && d == nil && (c.want == nil || errors.Is(err, c.want)), "%s: %v", name, err)
	}
}

func TestRSL_DocumentsInOtherEncodings(t *testing.T) {
	t.Parallel()
	body := "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<!-- caf\xe9 --><rsl><content url=\"/\"><license><permits>all</permits><legal>\xa9 caf\xe9</legal></license></content></rsl>"
	d := must.Get(licence.Parse([]byte(body)))(t)
	got := terms(d, site(t), "/", licence.Search)
	must.True(t, got.Verdict == licence.Allow && strings.Contains(got.Text, "© café"), "%+v", got)
	_, err := licence.Parse([]byte("\xEF\xBB\xBF<rsl><content url=\"/\"/></rsl>"))
	must.True(t, err == nil, "with a byte order mark: %v", err)
}

func FuzzParse(f *testing.F) {
	f.Add(document(`url="/a*$" server="https://s.example/"`, `<license><permits type="usage">search</permits><payment type="use"><amount currency="USD">1</amount></payment></license>`))
	f.Add([]byte("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><rsl max-age=\"2\"><content url=\"https://site.example/\"><license/></content></rsl>"))
	f.Add([]byte("<rsl><license><payment><amount>1</license></rsl>"))
	o, _ := rules.ParseOrigin("https", "site.example")
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := licence.Parse(body)
		must.Need(t, (d == nil) != (err == nil), "%v and %v", d, err)
		if err != nil {
			return
		}
		for _, usage := range []licence.Usage{licence.Search, licence.AIInput, licence.AITrain, licence.AIIndex} {
			got := terms(d, o, "/a?b", usage)
			must.True(t, (got.Verdict != licence.Disallow || got.Unmet == "") && len(got.Text) <= safetext.MaxExcerpt,
				"%s: %+v", usage, got)
		}
		must.True(t, d.Age() >= 24*time.Hour && d.Age() <= licence.MaxAge, "%v", d.Age())
	})
}

func ExampleDocument_Parts() {
	d, err := licence.Parse([]byte(`<rsl xmlns="https://rslstandard.org/rsl"><content url="/">
<license><permits type="usage">ai-input</permits><payment type="use"><amount currency="USD">0.015</amount></payment></license>
</content></rsl>`))
	if err != nil {
		fmt.Println(err)
		return
	}
	page := rules.NewTarget("/page")
	for _, part := range d.Parts(rules.Origin{}, page, rules.Standard) {
		terms := part.Terms(page, licence.AIInput)
		fmt.Println(terms.Verdict == licence.Allow, terms.Unmet)
	}
	// Output: true payment type="use", 0.015 USD
}
