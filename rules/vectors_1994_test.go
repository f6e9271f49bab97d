package rules_test

import (
	"slices"
	"testing"

	"heed/rules"
)

// TestREP1994_Stories is the consensus of 30 June 1994, its examples included:
// what standard and rep1994 tell alike, and what only rep1994 tells.
func TestREP1994_Stories(t *testing.T) { tell(t, rep1994Stories) }

// TestK96_Stories is the Internet-Draft of December 1996, as far as RFC 9309
// and heed follow it.
func TestK96_Stories(t *testing.T) { tell(t, koster1996Stories) }

// alike tells stories under standard and under rep1994.
func alike(stories []story) []story {
	old := slices.Clone(stories)
	for i := range old {
		old[i].as = rules.REP1994
		old[i].says += " (rep1994)"
	}
	return slices.Concat(stories, old)
}

var rep1994Stories = slices.Concat(alike(rep1994Examples), rep1994Alone)

var rep1994Examples = []story{
	{from: "REP1994", says: "no robot should visit these places",
		file: `
# robots.txt for http://www.example.com/

User-agent: *
Disallow: /cyberworld/map/ # This is an infinite virtual URL space
Disallow: /tmp/ # these will soon disappear
Disallow: /foo.html
`, asks: `
cybermapper/1.0
	refuse /cyberworld/map/ 4
	refuse /cyberworld/map/x 4
	allow  /cyberworld/
	refuse /tmp/a 5
	allow  /tmp
	refuse /foo.html 6
	refuse /foo.html?x 6
	allow  /foo.htm
	allow  /`},
	{from: "REP1994", says: "no robot but the one called cybermapper",
		file: `
# robots.txt for http://www.example.com/

User-agent: *
Disallow: /cyberworld/map/ # This is an infinite virtual URL space

# Cybermapper knows where to go.
User-agent: cybermapper
Disallow:
`, asks: `
CyberMapper/2.0
	allow  /cyberworld/map/
	allow  /
other/1.0
	refuse /cyberworld/map/ 4
	allow  /`},
	{from: "REP1994", says: "no robot should visit this site further",
		file: "# go away\nUser-agent: *\nDisallow: /\n", asks: `
cybermapper
	refuse / 3
	refuse /x 3
	allow  /robots.txt`},
	{from: "REP1994", says: "/help is a prefix, /help/ a directory",
		file: "User-agent: a\nDisallow: /help\n\nUser-agent: b\nDisallow: /help/\n", asks: `
a/1.0
	refuse /help.html 2
	refuse /help/index.html 2
b/1.0
	allow  /help.html
	refuse /help/index.html 5`},
	{from: "REP1994", says: "an empty value means that all may be fetched",
		file: "User-agent: *\nDisallow:\n", asks: `
a/1.0
	allow  /
	allow  /x`},
	{from: "REP1994", says: "an empty file means no file",
		file: "", asks: `
a/1.0
	allow  /`},
	{from: "REP1994", says: "one robot is shut out",
		file: "User-agent: BadBot\nDisallow: /\n", asks: `
BadBot/1.0
	refuse / 2
	refuse /x 2
GoodRobot
	allow  /`},
	{from: "REP1994", says: "one robot is let in",
		file: "User-agent: WebCrawler\nDisallow:\n\nUser-agent: *\nDisallow: /\n", asks: `
WebCrawler/3.0
	allow  /
	allow  /x
other
	refuse / 5`},
	{from: "REP1994", says: "all but one directory, page by page",
		file: "User-agent: *\nDisallow: /~joe/junk.html\nDisallow: /~joe/foo.html\nDisallow: /~joe/bar.html\n", asks: `
a
	refuse /~joe/junk.html 2
	refuse /~joe/foo.html 3
	refuse /~joe/bar.html 4
	allow  /~joe/index.html`},
	{from: "REP1994", says: "records share a list of user-agent lines",
		file: "User-agent: a\nUser-agent: b\nDisallow: /x\nDisallow: /y\n\nUser-agent: *\nDisallow: /z\n", asks: `
a/1
	refuse /x 3
	refuse /y 4
	allow  /z
b/1
	refuse /y 4
quux/1
	allow  /x
	refuse /z 7`},
	{from: "REP1994", says: "a line that is only a comment is no blank line",
		file: "User-agent: a\n# who are you\nDisallow: /x\n# and what\nDisallow: /y\n", asks: `
a/1
	refuse /x 3
	refuse /y 5`},
	{from: "REP1994", says: "fields that are unknown are ignored, and have no case",
		file: "USER-AGENT: *\nColour: blue\nDISALLOW: /x\nWeather: /y\n", asks: `
a/1
	refuse /x 3
	allow  /y`},
	{from: "REP1994", says: "lines end with CR, CRLF or LF",
		file: "User-agent: *\rDisallow: /a\r\nDisallow: /b\nDisallow: /c", asks: `
a/1
	refuse /a 2
	refuse /b 3
	refuse /c 4`},
	{from: "REP1994", says: "the version of a robot is no part of its name",
		file: "User-agent: cybermapper\nDisallow: /x\n", asks: `
cybermapper/1.0
	refuse /x 2
cybermapper/2.0b
	refuse /x 2`},
}

var rep1994Alone = []story{
	{from: "REP1994", says: "a blank line ends a record", as: rules.REP1994,
		file: "User-agent: *\nDisallow: /a\n\nDisallow: /b\n \t\nUser-agent: xeno\n\nDisallow: /c\n", asks: `
a/1
	refuse /a 2
	allow  /b
xeno/1
	allow  /a
	allow  /c`},
	{from: "REP1994", says: "a line of white space is blank, one with a comment is not", as: rules.REP1994,
		file: "User-agent: *\n \t # not blank\nDisallow: /a\n\t\nDisallow: /b\n", asks: `
a/1
	refuse /a 3
	allow  /b`},
	{from: "REP1994", says: "Allow is unknown, any Disallow that matches refuses", as: rules.REP1994,
		file: "User-agent: *\nAllow: /a/b\nDisallow: /a\nAllow: /\n", asks: `
a/1
	refuse /a 3
	refuse /a/b 3
	allow  /c`},
	{from: "REP1994", says: "Allow, being unknown, does not end the user-agent lines", as: rules.REP1994,
		file: "User-agent: aaaa\nAllow: /\nUser-agent: bbbb\nDisallow: /x\n", asks: `
aaaa
	refuse /x 4
bbbb
	refuse /x 4`},
	{from: "REP1994", says: "there are no wildcards", as: rules.REP1994,
		file: "User-agent: *\nDisallow: /a*b\nDisallow: /c$\n", asks: `
a/1
	refuse /a*b 2
	refuse /a*bc 2
	allow  /axb
	refuse /c$ 3
	refuse /c$d 3
	allow  /c`},
	{from: "REP1994", says: "a name in the file is part of the robot's name", as: rules.REP1994,
		file: "User-agent: bot\nDisallow: /a\n\nUser-agent: Mapper\nDisallow: /b\n\nUser-agent: *\nDisallow: /c\n", asks: `
FooBot/1.0
	refuse /a 2
	allow  /b
	allow  /c
cybermapper/1.0
	allow  /a
	refuse /b 5
mapbot
	refuse /a 2
	allow  /b
map
	allow  /a
	allow  /b
	refuse /c 8`},
	{from: "REP1994", says: "the star record is for whom no name was part", as: rules.REP1994,
		file: "User-agent: *\nDisallow: /a\n\nUser-agent: bot\nDisallow: /b\n", asks: `
robot
	allow  /a
	refuse /b 5
crawler
	refuse /a 2
	allow  /b`},
	{from: "REP1994", says: "an extended record of 1997 lists names", as: rules.REP1994,
		file: "User-Agent: Copernicus Fred\nDisallow: /a /b\n\nUser-agent: *\nDisallow: /c\n", asks: `
Copernicus/1.0
	refuse /a 2
	refuse /b 2
	allow  /c
Fred/2.0
	refuse /a 2
	refuse /b/x 2
	allow  /c
Gina
	allow  /a
	refuse /c 5`},
}

var koster1996Stories = []story{
	{from: "K96 §3.2.2", says: "the table of prefixes",
		file: "User-agent: a\nDisallow: /tmp\nUser-agent: b\nDisallow: /tmp/\n", asks: `
a
	refuse /tmp 2
	refuse /tmp.html 2
	refuse /tmp/a.html 2
b
	allow  /tmp
	refuse /tmp/ 4
	refuse /tmp/a.html 4
	allow  /tmp.html`},
	{from: "K96 §3.2.2", says: "the table of escapes",
		file: `
User-agent: a
Disallow: /a%3cd.html
User-agent: b
Disallow: /a%3Cd.html
User-agent: c
Disallow: /a%2fb.html
User-agent: d
Disallow: /%7ejoe/index.html
User-agent: e
Disallow: /~joe/index.html
`, asks: `
a
	refuse /a%3cd.html 2
	refuse /a%3Cd.html 2
b
	refuse /a%3cd.html 4
	refuse /a%3Cd.html 4
c
	refuse /a%2fb.html 6
	refuse /a%2Fb.html 6
	allow  /a/b.html
d
	refuse /~joe/index.html 8
	refuse /%7Ejoe/index.html 8
e
	refuse /%7Ejoe/index.html 10
	refuse /~joe/index.html 10`},
	{from: "K96 §3.2.2", says: "the table's /a/b.html does not match /a%2fb.html, but some servers read it so",
		file: "User-agent: *\nDisallow: /a/b.html\n", asks: `
a
	refuse /a/b.html 2
	refuse /a%2fb.html 2 v3`},
	{from: "K96 §4", says: "the example",
		file: `
User-agent: unhipbot
Disallow: /

User-agent: webcrawler
User-agent: excite
Disallow:

User-agent: *
Disallow: /org/plans.html
Allow: /org/
Allow: /serv
Allow: /~mak
Disallow: /
`, asks: `
unhipbot/0.1
	refuse / 2
	refuse /index.html 2
	allow  /robots.txt
	refuse /server.html 2
	refuse /services/fast.html 2
	refuse /services/slow.html 2
	refuse /orgo.gif 2
	refuse /org/about.html 2
	refuse /org/plans.html 2
	refuse /%7Ejim/jim.html 2
	refuse /%7Emak/mak.html 2
webcrawler/3.0
	allow  /
	allow  /index.html
	allow  /robots.txt
	allow  /server.html
	allow  /org/plans.html
	allow  /%7Ejim/jim.html
excite/1.0
	allow  /
	allow  /org/plans.html
	allow  /%7Emak/mak.html
other/1.0
	refuse / 13
	refuse /index.html 13
	allow  /robots.txt
	allow  /server.html 11
	allow  /services/fast.html 11
	allow  /services/slow.html 11
	refuse /orgo.gif 13
	allow  /org/about.html 10
	refuse /org/plans.html 9
	refuse /%7Ejim/jim.html 13
	allow  /%7Emak/mak.html 12`},
	{from: "K96 §3.3", says: "fields that are unknown are allowed",
		file: "User-agent: *\nX-Comment: what is this\nDisallow: /a\n", asks: `
	refuse /a 3`},
}
