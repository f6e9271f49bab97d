package rules_test

import (
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// edgeVectors hold the engine where two ways to read a file are nearly the same.
var edgeVectors = []vector{
	{from: "RFC9309 §2.2.2", name: "a wildcard runs into the query, and a slash after it is met there bare or escaped",
		file: "User-agent: *\nDisallow: /*/print\nAllow: /ok\n", want: `
  refuse /a?u=/b/print 2
  refuse /a?u=%2Fb%2Fprint 2
  refuse /ok?u=/b/print 2
  allow /ok?u=print 3
  allow /a?u=print`},
	{from: "RFC9309 §2.2.2", name: "a question mark after a wildcard is met inside a query too",
		file: "User-agent: *\nDisallow: /*?sort=\n", want: `
  refuse /a?sort=1 2
  refuse /a?u=/b?sort=1 2
  refuse /a?u=/b%3Fsort=1 2
  allow /a%3Fsort=1`},
	{from: "RFC9309 §2.2.2", name: "the most octets are those of the canonical form, operators included",
		file: "User-agent: *\nDisallow: /é\nAllow: /*****\n", want: `
  refuse /%C3%A9 2
  allow /e 3`},
	{from: "heed spellings", name: "slash runs merge after dot segments are gone, too",
		file: "User-agent: *\nDisallow: /a/b\n", want: `
  refuse /a//..//b 2 v2`},
	{from: "heed User-Agent", name: "the scheme of a URL is no name, not even when it sticks to a name",
		file: "User-agent: http\nDisallow: /http\n\nUser-agent: q42bot\nDisallow: /q\n", want: `
Foo/1.0 (+http://q42bot.test/)
  allow /http
  allow /q
Q42bot+http://site.test/
  refuse /q 5
  allow /http`},
	{from: "heed User-Agent", name: "brackets begin a piece with a name of its own",
		file: "User-agent: Sogou web spider\nDisallow: /web\n\nUser-agent: Sogou inst spider\nDisallow: /inst\n", want: `
Mozilla/5.0 (X11) Sogou web spider/4.0
  refuse /web 2
  allow /inst
Mozilla/5.0 [X11] {Sogou inst spider}
  refuse /inst 5
  allow /web`},
}

// TestHeed_EdgeVectors checks them.
func TestHeed_EdgeVectors(t *testing.T) { checkVectors(t, edgeVectors) }

// TestHeed_ALineThatTheLimitCutsIsDropped lets the limit fall into an Allow
// line, the rest of which would open the whole site.
func TestHeed_ALineThatTheLimitCutsIsDropped(t *testing.T) {
	t.Parallel()
	head := "User-agent: *\nDisallow: /\n"
	comment := strings.Repeat("#", rules.MaxLine-1) + "\n"
	for len(head)+len(comment)+100 < rules.MaxBytes {
		head += comment
	}
	head += strings.Repeat("#", rules.MaxBytes-len(head)-len("\nAllow: /")) + "\n"
	p := standard(head + "Allow: /public\nDisallow: /rest\n")
	d := p.Decide(nil, rules.NewTarget("/x"))
	must.True(t, d.Verdict == rules.Refuse, "half an Allow line opens the site: %+v", d)
	must.True(t, p.Source().Note != "", "there is no note that the file was cut")
	p = standard(head + "Allow: /")
	d = p.Decide(nil, rules.NewTarget("/x"))
	must.True(t, d.Verdict == rules.Allow && p.Source().Note == "", "a file of exactly the limit: %+v, %q", d, p.Source().Note)
}

// TestHeed_HTMLWithoutARuleIsNoFile holds pages against files that look a
// little like one.
func TestHeed_HTMLWithoutARuleIsNoFile(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]rules.Reason{
		"<!doctype html><title>Not here</title>":          rules.ReasonRobotsUnavailable,
		"\xEF\xBB\xBF \r\n<html>\nUser-agent: *\n</html>": rules.ReasonRobotsUnavailable,
		"<html>\nUser-agent: *\nDisallow: /x\n</html>":    rules.ReasonNoRule,
		"User-agent: *\n": rules.ReasonNoRule,
		"":                rules.ReasonNoRule,
		"Not found":       rules.ReasonNoRule,
	} {
		p := standard(body)
		d := p.Decide(nil, rules.NewTarget("/"))
		must.True(t, d.Verdict == rules.Allow && d.Reason == want, "%q: %+v, want %s", body, d, want)
		flagged := p.Source().Note != ""
		must.Equal(t, flagged, want == rules.ReasonRobotsUnavailable, "%q: note %q", body, p.Source().Note)
		must.Equal(t, p.With(rules.Source{State: rules.Available}).Source().State, p.Source().State, "%q: a confirmed copy is in state", body)
	}
}
