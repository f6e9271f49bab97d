package rules_test

import "testing"

// TestHabitVectors is how the habits of real files are read: each vector is written
// in a habit that was seen at real sites, and closed them or opened them by mistake.
func TestHabitVectors(t *testing.T) { checkVectors(t, habitVectors) }

var habitVectors = []vector{
	{from: "habits", name: "stars around a name are decoration",
		file: "User-agent: *WordPress*\nDisallow: /\n\nUser-agent: *Fetch*\nDisallow: /f\n\nUser-agent: *SomeBot\nDisallow: /s\n\nUser-agent: *\nDisallow: /all\n", want: `
WordPress/6.4; https://blog.test
	refuse /page 2
FetchBot/1.0
	allow  /f
Fetch/1.0
	refuse /f 5
SomeBot/2.0
	refuse /s 8
	allow  /all
Other/1.0
	allow  /page
	refuse /all 11`},
	{from: "habits", name: "stars and points alone are the star",
		file: "User-agent: **\nDisallow: /a\n\nUser-agent: *.*\nDisallow: /b\n\nUser-agent: * all robots\nDisallow: /c\n", want: `
Other/1.0
	refuse /a 2
	refuse /b 5
	refuse /c 8
	allow  /d`},
	{from: "habits", name: "a star before what is no name is the star",
		file: "User-agent: *;\nDisallow: /a\n\nUser-agent: */1.0\nDisallow: /b\n\nUser-agent: *- all\nDisallow: /c\n\nUser-agent: *\u00a0\nDisallow: /d\n\nUser-agent: *(all)\nDisallow: /e\n\nUser-agent: *\"\nDisallow: /f\n", want: `
Other/1.0
	refuse /a 2
	refuse /b 5
	refuse /c 8
	refuse /d 11
	refuse /e 14
	refuse /f 17`},
	{from: "habits", name: "signs and characters that cannot be seen are no name after a star",
		file: "User-agent: *\u200b\nDisallow: /a\n\nUser-agent: *\xa0\nDisallow: /b\n\nUser-agent: *\u2019\nDisallow: /c\n\nUser-agent: **_\ufeff all\nDisallow: /d\n", want: `
Other/1.0
	refuse /a 2
	refuse /b 5
	refuse /c 8
	refuse /d 11`},
	{from: "habits", name: "what a robot is compatible with follows its own name",
		file: "User-agent: (compatible; Foo/1.0)\nDisallow: /a\n\nUser-agent: Mozilla 5.0 compatible; Bar\nDisallow: /b\n\nUser-agent: Incompatible\nDisallow: /c\n\nUser-agent: Baz/1.0\nUser-agent: \xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9 compatible with Qux\nDisallow: /d\n", want: `
Mozilla/5.0 (compatible; Foo/1.0)
	refuse /a 2
Bar/1.0
	refuse /b 5
Incompatible/1.0
	refuse /c 8
Qux/1.0
	allow  /d
Baz/1.0
	refuse /d 12`},
	{from: "habits", name: "an Allow names a URL in the spelling in which it is sent",
		file: "User-agent: *\nDisallow: /\nAllow: /login?return_url=%2F\nAllow: /foo?baz=http://foo.bar?tar\nAllow: /a%2Fb$\n", want: `
	allow  /login?return_url=%2F 3
	allow  /login?return_url=%2Fhome 3
	allow  /login?return_url=/ 3
	allow  /foo?baz=http://foo.bar?tar 4
	allow  /foo?baz=http%3A%2F%2Ffoo.bar%3Ftar 4
	allow  /a%2Fb 5
	refuse /a/b 2
	refuse /a%2Fb/c 2
	refuse /login?return_ur%2F 2`},
	{from: "habits", name: "an Allow of wildcards, or a shorter one, names no spelling",
		file: "User-agent: *\nDisallow: /private/\nAllow: /*%2F\nAllow: /p\n", want: `
	refuse /private%2Fpage 2 v3
	refuse /private/page 2
	allow  /public 4`},
	{from: "habits", name: "a description after a name names no robot",
		file: "User-agent: SentiBot www.sentibot.eu (compatible with Googlebot)\nDisallow: /\n\nUser-agent: *\nDisallow: /all\n", want: `
Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)
	allow  /page
	refuse /all 5
SentiBot/1.0
	refuse /page 2`},
	{from: "habits", name: "names in brackets, or that begin as an address does, are names of a list",
		file: "User-agent: OpenAI (GPTBot)\nDisallow: /\n\nUser-agent: Python httplib\nDisallow: /p\n", want: `
GPTBot/1.0
	refuse /page 2
OpenAI/1.0
	refuse /page 2
httplib/1
	refuse /p 5`},
	{from: "habits", name: "the rules after a joined line are for the robots before it as well",
		file: "User-agent: Foo\nUser-agent: Bar Disallow:\nDisallow: /\n\nUser-agent: *\nUser-agent: GPTBot Disallow: /\nDisallow: /x\n", want: `
Foo/1.0
	refuse /page 3
Bar/1.0
	refuse /page 3
GPTBot/1.0
	refuse /page 6
	refuse /x 7
Other/1.0
	allow  /page
	refuse /x 7`},
	{from: "habits", name: "two rules on the line after a joined one are for the robots before it as well",
		file: "User-agent: *\nUser-agent: GPTBot Disallow: /\nDisallow: /a Disallow: /b\nDisallow: /c\n", want: `
GPTBot/1.0
	refuse /page 2
Other/1.0
	refuse /a 3
	refuse /b 3
	refuse /c 4
	allow  /page`},
	{from: "habits", name: "a rule joined to a user-agent line is for that robot alone",
		file: "User-agent: *\nUser-agent: GPTBot Disallow: /\nUser-agent: Other\nDisallow: /o\n", want: `
GPTBot/1.0
	refuse /page 2
Other/1.0
	allow  /page
	refuse /o 4
Third/1.0
	allow  /page`},
	{from: "habits", name: "a joined line of several robots and a rule is for all of these",
		file: "User-agent: A User-agent: B Disallow: /\nUser-agent: C\nUser-agent: D User-agent: E\nDisallow: /x\n", want: `
A/1.0
	refuse /page 1
B/1.0
	refuse /page 1
C/1.0
	refuse /x 4
D/1.0
	refuse /x 4
E/1.0
	allow  /page
	refuse /x 4`},
	{from: "habits", name: "a robot may be named by a number",
		file: "User-agent: 008\nDisallow: /\n", want: `
008
	refuse /a 2
Mozilla/5.0 (compatible; 008/0.83; http://www.80legs.test/webcrawler.html) Gecko/2008032620
	refuse /page 2
Mozilla/5.0 (compatible; 008/0.83)
	refuse /page 2
Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0
	allow  /page
Other/008
	allow  /page`},
	{from: "habits", name: "a mark of UTF-16 before UTF-8 is no part of the file",
		file: "\xFF\xFEUser-agent: *\nDisallow: /private\n", want: `
	refuse /private 2
	allow  /page`},
}
