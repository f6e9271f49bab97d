package rules_test

import (
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// TestHeed_GoogleVectors is what sets google apart, each habit under its name.
func TestHeed_GoogleVectors(t *testing.T) { checkVectors(t, googleHabits) }

// TestHeed_GoogleAlikeVectors is what Google's published parser and standard do
// alike, and what keeps a proxy under google from being walked round.
func TestHeed_GoogleAlikeVectors(t *testing.T) { checkVectors(t, googleAlike) }

// TestHeed_GoogleHabitsAreItsOwn reads the habits' files under standard, which
// gives another answer to each, and the others', which get the same.
func TestHeed_GoogleHabitsAreItsOwn(t *testing.T) {
	t.Parallel()
	same := func(s vector) bool {
		file := strings.TrimPrefix(s.file, "\n")
		p := policyAs(rules.Standard, file)
		for _, q := range s.questions(t) {
			if d := p.Decide(agentOf(q.agent), rules.NewTarget(q.target)); d.Verdict != q.verdict || d.Line != q.line {
				return false
			}
		}
		return true
	}
	for _, s := range googleHabits {
		must.True(t, !same(s), "%s: standard decides alike", s.name)
	}
	for _, s := range googleAlike {
		must.True(t, same(s), "%s: standard decides otherwise", s.name)
	}
}

// TestHeed_UnderGoogleAnotherSpellingLoosensNothing asks for what google refuses in
// other spellings, escapes of its letters among them.
func TestHeed_UnderGoogleAnotherSpellingLoosensNothing(t *testing.T) {
	t.Parallel()
	m := propertyMaker(t, 15)
	for range times(20_000) {
		file := m.file()
		p := policyAs(rules.Google, file)
		header, _ := m.agent()
		for range 8 {
			target := strings.NewReplacer("%61", "a", "%41", "A", "%7E", "~", "%zz", "").Replace(m.path(false))
			if plainPath(target) && target != "/robots.txt" {
				checkRespelling(t, p, file, header, target, m.respell(target))
			}
		}
	}
}

var googleHabits = []vector{
	{from: "heed google", name: "cutNames: a name ends at a digit, a point, a comma, a slash and a blank", as: rules.Google,
		file: `
User-agent: Q42bot
Disallow: /cut
User-agent: Foo, Bar
Disallow: /list
User-agent: archive.org_bot
Disallow: /archive
User-agent: 360Spider
Disallow: /360
User-agent: Wget/1.6
Disallow: /wget
User-agent: Mediapartners-Google*
Disallow: /media
User-agent: *
Disallow: /star
User-agent: * and all
Disallow: /text
`, want: `
Q42bot/1.0
	allow  /cut
	refuse /star 14
Q/1.0
	refuse /cut 2
Foo/1.0
	refuse /list 4
Bar/1.0
	allow  /list
	refuse /text 16
archive/1.0
	refuse /archive 6
archive.org_bot
	allow  /archive
360Spider
	allow  /360
Wget/1.21
	refuse /wget 10
Mediapartners-Google
	refuse /media 12`},
	{from: "heed google", name: "asSent: escapes in a rule are not decoded", as: rules.Google,
		file: "User-agent: *\nDisallow: /foo/bar/%62%61%7A\nDisallow: /%7Ejoe\nDisallow: /file-%2A.html\nDisallow: /foo-%24\nDisallow: /a%3Ab\n", want: `
	allow  /foo/bar/baz
	refuse /foo/bar/%62%61%7A 2
	refuse /foo/bar/%62%61%7a 2
	allow  /~joe
	refuse /%7ejoe 3
	refuse /x/../%7Ejoe 3 v1
	refuse /x/%2e%2E/%7Ejoe 3 v1
	refuse /x%2f.%2e%2F%7Ejoe 3 v3
	allow  /file-*.html
	refuse /file-%2a.html 4
	allow  /foo-$
	refuse /foo-%24 5
	allow  /a:b
	refuse /a%3ab 6`},
	{from: "heed google", name: "asSent: an escape that a rule of Allow does not have is not allowed by it", as: rules.Google,
		file: "User-agent: *\nDisallow: /\nAllow: /~joe\nAllow: /a:b\nAllow: /q?u=/x\n", want: `
	allow  /~joe 3
	refuse /%7Ejoe 2
	allow  /a:b 4
	refuse /a%3Ab 2
	allow  /q?u=/x 5
	refuse /q?u=%2Fx 2`},
	{from: "heed google", name: "asSent: a reserved octet counts as one octet", as: rules.Google,
		file: "User-agent: *\nDisallow: /a:\nAllow: /a*c\n", want: `
	allow  /a:c 3
	refuse /a:b 2`},
	{from: "heed google", name: "indexHTML: Allow for an index.html or index.htm is Allow for its directory", as: rules.Google,
		file: "User-agent: *\nDisallow: /\nAllow: /a/index.html\nAllow: /b/index.htm\nAllow: /index.html\n", want: `
	allow  /a/index.html 3
	allow  /a/ 3
	refuse /a/x 2
	refuse /a/index.php 2
	allow  /b/ 4
	allow  / 5
	refuse /c/ 2`},
}

// googleAlike is judged alike under standard, but for the name of the reading.
var googleAlike = []vector{
	{from: "heed google", name: "no spelling of a target walks round a rule", as: rules.Google,
		file: "User-agent: *\nDisallow: /private/\nDisallow: /a:b\nDisallow: /q?u=/x\nDisallow: /ツ\nDisallow: /page.html$\nDisallow: /c&d\n", want: `
	refuse /private/ 2
	refuse /%70rivate/ 2 v0
	refuse /%70%72ivate%2f 2 v3
	refuse /x/../private/ 2 v1
	refuse /x/%2e%2E/private/ 2 v1
	refuse /x/.%2e/%70rivate/ 2 v1
	refuse //private/ 2 v2
	refuse /x/..//%70rivate/ 2 v2
	refuse /x//../private/ 2 v2
	refuse /%2fprivate/ 2 v3
	refuse /x/..%2fprivate/ 2 v3
	refuse /%5cprivate\ 2 v3
	refuse /a%3ab 3 v0
	refuse /./a%3Ab 3 v1
	refuse /q?u=%2fx 4 v0
	refuse /.//q?u=%2Fx 4 v2
	refuse /%e3%83%84 5
	refuse /ツ 5 v0
	refuse /page.html%2F 6 v3
	refuse /x%5Cy/..%2Fprivate/ 2 v3
	refuse /x%2Fy/..%5Cprivate/ 2 v3
	refuse /c%26d 7 v0
	refuse /;x/private/ 2 v4
	refuse /%3bx/private/ 2 v4
	refuse /x/..;y/private/ 2 v4
	refuse /x/%2e.%3By/%70rivate/ 2 v4
	refuse /x/..;a%2f%5cb/private/ 2 v4
	refuse /x%2f..;y/private/ 2 v4
	allow  /private;x/
	allow  /x/...;y/private/
	allow  /y?c%26d
	allow  /x?y=/../private/
	allow  /...private/
	allow  /%252570rivate/
	allow  /x/../`},
	{from: "heed google", name: "robots.txt stays allowed", as: rules.Google,
		file: "User-agent: *\nDisallow: /\n", want: `
	allow  /robots.txt
	refuse /robots.txt? 2
	refuse / 2`},
	{from: "heed google", name: "marks, misspellings, missing colons, beginnings of fields, NULs and long lines", as: rules.Google,
		file: "\xEF\xBBuser agent: *\nDissallow: /a\nDisallow /b\nDisallow: /c\x00d\nDisallowed: /e\nDisallow: /" + longPath +
			"\nuseragent: f\nDissalow: /1\nDisalow: /2\nDiasllow: /3\nDisallaw: /4\nDisallow /5 6\n",
		want: `
	refuse /a 2
	refuse /b 3
	refuse /c 4
	refuse /e 5
	allow  /` + longPath[:16_662-len("Disallow: /")] + `
	refuse /` + longPath[:16_663-len("Disallow: /")] + ` 6
f
	allow  /a
	refuse /1 8
	refuse /2 9
	refuse /3 10
	refuse /4 11
	allow  /5`},
	{from: "heed google", name: "a whole mark is left out, too", as: rules.Google,
		file: "\xEF\xBB\xBFUser-agent: *\nDisallow: /a\n", want: "\n\trefuse /a 2\n"},
	{from: "heed google", name: "what is plainly meant is repaired", as: rules.Google,
		file: "User-agent: * Disallow: /j\nDisallow: noslash\nDisallow: /one /two\nDisallow: /my folder/\nDisallow: https://site.test/own\nDisallow: https://other.test/foreign\n", want: `
	refuse /j 1
	refuse /noslash 2
	refuse /one 3
	refuse /two 3
	refuse /my%20folder/ 4
	refuse /own 5
	allow  /foreign`},
	{from: "heed google", name: "blank lines and other fields end no group, groups of one name are one", as: rules.Google,
		file: "User-agent: a\n\nCrawl-delay: 1\nUser-agent: b\n\nDisallow: /x\n\nDisallow: /y\nUser-agent: A\nDisallow: /z\n", want: `
a
	refuse /x 6
	refuse /y 8
	refuse /z 10
b
	refuse /y 8
	allow  /z`},
	{from: "heed google", name: "Allow wins a tie, the longest match decides", as: rules.Google,
		file: "User-agent: *\nDisallow: /a\nAllow: /a\nAllow: /b\nDisallow: /b/c\nDisallow: /d*.gif$\n", want: `
	allow  /a 3
	allow  /b/x 4
	refuse /b/c 5
	refuse /d/e.gif 6`},
}

var longPath = strings.Repeat("x", 17_000)
