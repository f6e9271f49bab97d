package rules_test

import "testing"

// TestRFC9309_Vectors is what RFC 9309 says, section by section, its examples
// included.
func TestRFC9309_Vectors(t *testing.T) { checkVectors(t, rfc9309Vectors) }

var rfc9309Vectors = []vector{
	{from: "RFC9309 §2.1", name: "a group ends where a user-agent line follows a rule, not at a blank line",
		file: `
User-agent: ABot

Disallow: /a

Disallow: /b

User-agent: BBot
Disallow: /c
`, want: `
ABot/1.0
	refuse /a 3
	refuse /b 5
	allow  /c
BBot/1.0
	allow  /a
	refuse /c 8
CBot/1.0
	allow  /a
	allow  /c`},
	{from: "RFC9309 §2.1", name: "several user-agent lines share the rules after them",
		file: `
user-agent: ABot

user-agent: BBot
disallow: /x
`, want: `
ABot
	refuse /x 4
BBot
	refuse /x 4
CBot
	allow  /x`},
	{from: "RFC9309 §2.1", name: "the last group may have no rules and then allows all",
		file: "User-agent: *\nDisallow: /\n\nUser-agent: quxbot\n", want: `
quxbot/1.0
	allow  /
	allow  /example/page.html
other/1.0
	refuse / 2`},
	{from: "RFC9309 §2.2", name: "field names have no case, and white space is allowed around name, colon and value",
		file: "  uSeR-AgEnT\t:\t *  \n\tDISALLOW :\t/a\t \ndisallow:/b\nDisallow  :  /c\n", want: `
	refuse /a/1 2
	refuse /b/1 3
	refuse /c/1 4
	allow  /d`},
	{from: "RFC9309 §2.2", name: "lines end with CR, LF or CRLF, in one file too",
		file: "User-agent: *\rDisallow: /a\r\nDisallow: /b\nDisallow: /c\r\r\nDisallow: /d", want: `
	refuse /a 2
	refuse /b 3
	refuse /c 4
	refuse /d 6
	allow  /e`},
	{from: "RFC9309 §2.2", name: "a comment ends a line wherever it begins",
		file: `
# User-agent: ABot
User-agent: * # all of them
#Disallow: /a
Disallow: /b#c
Disallow: /d # e
Allow: /d/e # f
`, want: `
	allow  /a
	refuse /b 4
	refuse /bx 4
	refuse /d 5
	allow  /d/e 6`},
	{from: "RFC9309 §2.2.1", name: "the token is matched without regard to case",
		file: "User-agent: ExampleBot\nDisallow: /foo\n", want: `
ExampleBot/1.0
	refuse /foo 2
EXAMPLEBOT
	refuse /foo 2
examplebot/0.1 (+https://site.test/bot)
	refuse /foo 2`},
	{from: "RFC9309 §2.2.1", name: "the token is found in the User-Agent field of the section's example",
		file: "User-agent: ExampleBot\nDisallow: /foo\nDisallow: /bar\n", want: `
Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)
	refuse /foo 2
	refuse /bar 3
	allow  /baz`},
	{from: "RFC9309 §2.2.1", name: "groups of one token are one group",
		file: `
user-agent: ExampleBot
disallow: /foo
disallow: /bar

user-agent: ExampleBot
disallow: /baz
`, want: `
ExampleBot
	refuse /foo 2
	refuse /bar 3
	refuse /baz 6
	allow  /qux`},
	{from: "RFC9309 §2.2.1", name: "groups are one group with others between them, and whatever the case",
		file: `
User-agent: A
Disallow: /1
User-agent: B
Disallow: /2
User-agent: a
User-agent: C
Disallow: /3
Allow: /1/open
`, want: `
A
	refuse /1 2
	allow  /1/open 8
	allow  /2
	refuse /3 7
B
	allow  /1
	refuse /2 4
	allow  /3
C
	allow  /1
	refuse /3 7`},
	{from: "RFC9309 §2.2.1", name: "the star group is for those whom no other names, and is not inherited",
		file: `
User-agent: *
Disallow: /a
User-agent: ABot
Disallow: /b
User-agent: *
Disallow: /c
`, want: `
ABot
	allow  /a
	refuse /b 4
	allow  /c
Other
	refuse /a 2
	allow  /b
	refuse /c 6`},
	{from: "RFC9309 §2.2.1", name: "without a group that fits and without a star group there are no rules",
		file: "User-agent: ABot\nDisallow: /\n", want: `
BBot
	allow  /
	allow  /a?b`},
	{from: "RFC9309 §2.2.1", name: "a token is no part of a longer name",
		file: "User-agent: Bot\nDisallow: /bot\nUser-agent: Foo\nDisallow: /foo\n", want: `
FooBot/1.0
	allow  /bot
	allow  /foo
Foo-Bot/1.0
	allow  /bot
	allow  /foo
Foo/1.0
	refuse /foo 4`},
	{from: "RFC9309 §2.2.2", name: "rules before the first user-agent line are ignored",
		file: "Disallow: /a\nAllow: /b\nUser-agent: *\nDisallow: /b\n", want: `
	allow  /a
	refuse /b 4`},
	{from: "RFC9309 §2.2.2", name: "the match of most octets decides, in whatever order",
		file: `
User-agent: *
Disallow: /a
Allow: /a/b
Disallow: /a/b/c
Allow: /a/b/c/d
`, want: `
	allow  /
	refuse /a 2
	refuse /ab 2
	refuse /a/ 2
	allow  /a/b 3
	allow  /a/b/ 3
	refuse /a/b/c 4
	refuse /a/b/cd 4
	allow  /a/b/c/d 5
	allow  /a/b/c/def 5`},
	{from: "RFC9309 §2.2.2", name: "among equals Allow decides, in whatever order",
		file: "User-agent: *\nAllow: /a\nDisallow: /a\nDisallow: /b\nAllow: /b\n", want: `
	allow  /a 2
	allow  /b/c 5`},
	{from: "RFC9309 §2.2.2", name: "paths have case",
		file: "User-agent: *\nDisallow: /Private\n", want: `
	refuse /Private 2
	allow  /private
	allow  /PRIVATE`},
	{from: "RFC9309 §2.2.2", name: "matching begins at the first octet of the path",
		file: "User-agent: *\nDisallow: /b\n", want: `
	refuse /b 2
	refuse /bc 2
	refuse /b/c 2
	refuse /b?c 2
	allow  /a/b
	allow  /?b`},
	{from: "RFC9309 §2.2.2", name: "the robots.txt file itself is always allowed",
		file: "User-agent: *\nDisallow: /\nDisallow: /robots.txt\n", want: `
	allow  /robots.txt
	refuse /robots.txt/ 3
	refuse /robots.txt?x 3
	refuse /robots.txtx 3
	refuse /Robots.txt 2
	refuse /a/robots.txt 2
AnyBot/1.0
	allow  /robots.txt`},
	{from: "RFC9309 §2.2.2", name: "the table of escapes: a path and query as they are",
		file: "User-agent: *\nDisallow: /foo/bar?baz=quz\n", want: `
	refuse /foo/bar?baz=quz 2
	refuse /foo/bar?baz=quz2 2
	allow  /foo/bar?baz=qux
	allow  /foo/bar
	allow  /foo/bar%3Fbaz=quz`},
	{from: "RFC9309 §2.2.2", name: "the table of escapes: reserved octets in a query value",
		file: "User-agent: *\nDisallow: /foo/bar?baz=https://foo.bar\nDisallow: /qux?baz=https%3A%2F%2Ffoo.bar\n", want: `
	refuse /foo/bar?baz=https%3A%2F%2Ffoo.bar 2
	refuse /foo/bar?baz=https://foo.bar 2
	refuse /foo/bar?baz=https%3a%2f%2ffoo.bar 2
	refuse /qux?baz=https%3A%2F%2Ffoo.bar 3
	refuse /qux?baz=https://foo.bar 3`},
	{from: "RFC9309 §2.2.2", name: "the table of escapes: octets beyond ASCII",
		file: "User-agent: *\nDisallow: /foo/bar/ツ\nDisallow: /qux/%E3%83%84\n", want: `
	refuse /foo/bar/%E3%83%84 2
	refuse /foo/bar/%e3%83%84 2
	refuse /foo/bar/ツ 2
	refuse /foo/bar/%E3%83%84/x 2
	allow  /foo/bar/%E3%83%85
	refuse /qux/ツ 3
	refuse /qux/%e3%83%84 3`},
	{from: "RFC9309 §2.2.2", name: "the table of escapes: unreserved octets",
		file: "User-agent: *\nDisallow: /foo/bar/%62%61%7A\nDisallow: /qux/baz\n", want: `
	refuse /foo/bar/baz 2
	refuse /foo/bar/%62%61%7A 2
	refuse /foo/bar/b%61z 2
	refuse /qux/%62%61%7a 3
	refuse /%71ux/baz/ 3`},
	{from: "RFC9309 §2.2.2", name: "one octet more by an escape is not more specific than the octet",
		file: "User-agent: *\nDisallow: /%61%62\nAllow: /ab\nDisallow: /%63d\nAllow: /cd/\n", want: `
	allow  /ab 3
	refuse /cd 4
	allow  /cd/ 5`},
	{from: "RFC9309 §2.2.3", name: "a final $ is the end of the match",
		file: "User-agent: *\nDisallow: /this/path/exactly$\nDisallow: /q?x$\n", want: `
	refuse /this/path/exactly 2
	allow  /this/path/exactly/
	allow  /this/path/exactly?
	allow  /this/path/exactly?a
	allow  /this/path/exactlyx
	allow  /this/path/exactly$
	refuse /q?x 3
	allow  /q?xy`},
	{from: "RFC9309 §2.2.3", name: "* is any run of octets, none and / included",
		file: "User-agent: *\nDisallow: /this/*/exactly\nDisallow: /a*b\nDisallow: /c*d*e$\n", want: `
	refuse /this/path/exactly 2
	refuse /this//exactly 2
	refuse /this/a/b/c/exactly 2
	refuse /this/a/exactlyx 2
	allow  /this/exactly
	refuse /ab 3
	refuse /axxb 3
	refuse /a/x/bc 3
	refuse /a?b 3
	allow  /axx
	refuse /cde 4
	refuse /c/d/d/e 4
	refuse /cdexdxe 4
	allow  /cdex
	allow  /ced`},
	{from: "RFC9309 §2.2.3", name: "# begins a comment after a value",
		file: "User-agent: * #comment in line\nDisallow: /x # comment at the end\n# comment on its own line\nDisallow: /y\n", want: `
	refuse /x 2
	refuse /y 4`},
	{from: "RFC9309 §2.2.3", name: "%23, %2A and %24 are the characters themselves",
		file: `
User-agent: *
Disallow: /path/file-with-a-%2A.html
Disallow: /path/foo-%24
Disallow: /path/%23
`, want: `
	refuse /path/file-with-a-*.html 2
	refuse /path/file-with-a-%2A.html 2
	refuse /path/file-with-a-%2a.html 2
	allow  /path/file-with-a-.html
	allow  /path/file-with-a-xx.html
	refuse /path/foo-$ 3
	refuse /path/foo-%24 3
	refuse /path/foo-$x 3
	allow  /path/foo-
	refuse /path/%23 4
	refuse /path/%23x 4
	allow  /path/`},
	{from: "RFC9309 §2.2.4", name: "other records interfere with no group",
		file: `
User-agent: ABot
Sitemap: https://site.test/sitemap.xml

User-agent: BBot
Crawl-delay: 5
Disallow: /a
Sitemap: https://site.test/other.xml
Disallow: /b
`, want: `
ABot
	refuse /a 6
	refuse /b 8
BBot
	refuse /a 6
	refuse /b 8
CBot
	allow  /a`},
	{from: "RFC9309 §2.3.1.5", name: "what cannot be parsed is left out, the rest holds",
		file: "<html>\nUser-agent: *\nthis is no rule at all\n: /x\nDisallow: /a\n====\nDisallow\nDisallow /a /b\n\x01\x02\xff: /x\nDisallow: /c\n", want: `
	refuse /a 5
	allow  /b
	refuse /c 10
	allow  /x`},
	{from: "RFC9309 §5.1", name: "the simple example",
		file: `
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
`, want: `
otherbot/1.0
	refuse /a.gif 2
	refuse /x/y.gif 2
	allow  /a.gif?x
	refuse /example/ 3
	refuse /example/page.html 3
	refuse /example/allowed.gif 3
	allow  /publications/ 4
	allow  /publications/a.gif 4
	allow  /
foobot/1.0
	refuse / 7
	refuse /publications/ 7
	refuse /example/other.html 7
	allow  /example/page.html 8
	allow  /example/allowed.gif 9
	refuse /a.gif 7
barbot/1.0
	refuse /example/page.html 13
	allow  /example/
	allow  /a.gif
bazbot/1.0
	refuse /example/page.html 13
	allow  /example/other.html
quxbot/1.0
	allow  /example/page.html
	allow  /a.gif`},
	{from: "RFC9309 §5.2", name: "the longest match",
		file: `
User-Agent: foobot
Allow: /example/page/
Disallow: /example/page/disallowed.gif
`, want: `
foobot/1.0
	refuse /example/page/disallowed.gif 3
	allow  /example/page/ 2
	allow  /example/page/allowed.gif 2
	allow  /example/`},
}
