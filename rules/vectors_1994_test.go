package rules_test

import (
	"slices"
	"testing"

	"heed/rules"
)

// TestREP1994_Vectors is the consensus of 30 June 1994, its examples included:
// vectors that standard and rep1994 share, and those of rep1994 only.
func TestREP1994_Vectors(t *testing.T) { checkVectors(t, rep1994Vectors) }

// TestK96_Vectors is the Internet-Draft of December 1996, as far as RFC 9309
// and heed follow it.
func TestK96_Vectors(t *testing.T) { checkVectors(t, koster1996Vectors) }

// alike returns vectors under standard and under rep1994.
func alike(vectors []vector) []vector {
	old := slices.Clone(vectors)
	for i := range old {
		old[i].as = rules.REP1994
		old[i].name += " (rep1994)"
	}
	return slices.Concat(vectors, old)
}

var rep1994Vectors = slices.Concat(alike(rep1994Examples), rep1994Alone)

var rep1994Examples = []vector{
	{from: "REP1994", name: "no robot should visit these places",
		file: `
# robots.txt for http://www.example.com/

User-agent: *
Disallow: /cyberworld/map/ # This is an infinite virtual URL space
Disallow: /tmp/ # these will soon disappear
Disallow: /foo.html
`, want: `
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
	{from: "REP1994", name: "no robot but the one called cybermapper",
		file: `
# robots.txt for http://www.example.com/

User-agent: *
Disallow: /cyberworld/map/ # This is an infinite virtual URL space

# Cybermapper knows where to go.
User-agent: cybermapper
Disallow:
`, want: `
CyberMapper/2.0
	allow  /cyberworld/map/
	allow  /
other/1.0
	refuse /cyberworld/map/ 4
	allow  /`},
	{from: "REP1994", name: "no robot should visit this site further",
		file: "# go away\nUser-agent: *\nDisallow: /\n", want: `
cybermapper
	refuse / 3
	refuse /x 3
	allow  /robots.txt`},
	{from: "REP1994", name: "/help is a prefix, /help/ a directory",
		file: "User-agent: a\nDisallow: /help\n\nUser-agent: b\nDisallow: /help/\n", want: `
a/1.0
	refuse /help.html 2
	refuse /help/index.html 2
b/1.0
	allow  /help.html
	refuse /help/index.html 5`},
	{from: "REP1994", name: "an empty value means that all may be fetched",
		file: "User-agent: *\nDisallow:\n", want: `
a/1.0
	allow  /
	allow  /x`},
	{from: "REP1994", name: "an empty file means no file",
		file: "", want: `
a/1.0
	allow  /`},
	{from: "REP1994", name: "one robot is shut out",
		file: "User-agent: BadBot\nDisallow: /\n", want: `
BadBot/1.0
	refuse / 2
	refuse /x 2
GoodRobot
	allow  /`},
	{from: "REP1994", name: "one robot is let in",
		file: "User-agent: WebCrawler\nDisallow:\n\nUser-agent: *\nDisallow: /\n", want: `
WebCrawler/3.0
	allow  /
	allow  /x
other
	refuse / 5`},
	{from: "REP1994", name: "all but one directory, page by page",
		file: "User-agent: *\nDisallow: /~joe/junk.html\nDisallow: /~joe/foo.html\nDisallow: /~joe/bar.html\n", want: `
a
	refuse /~joe/junk.html 2
	refuse /~joe/foo.html 3
	refuse /~joe/bar.html 4
	allow  /~joe/index.html`},
	{from: "REP1994", name: "records share a list of user-agent lines",
		file: "User-agent: a\nUser-agent: b\nDisallow: /x\nDisallow: /y\n\nUser-agent: *\nDisallow: /z\n", want: `
a/1
	refuse /x 3
	refuse /y 4
	allow  /z
b/1
	refuse /y 4
quux/1
	allow  /x
	refuse /z 7`},
	{from: "REP1994", name: "a line that is only a comment is no blank line",
		file: "User-agent: a\n# who are you\nDisallow: /x\n# and what\nDisallow: /y\n", want: `
a/1
	refuse /x 3
	refuse /y 5`},
	{from: "REP1994", name: "fields that are unknown are ignored, and have no case",
		file: "USER-AGENT: *\nColour: blue\nDISALLOW: /x\nWeather: /y\n", want: `
a/1
	refuse /x 3
	allow  /y`},
	{from: "REP1994", name: "lines end with CR, CRLF or LF",
		file: "User-agent: *\rDisallow: /a\r\nDisallow: /b\nDisallow: /c", want: `
a/1
	refuse /a 2
	refuse /b 3
	refuse /c 4`},
	{from: "REP1994", name: "the version of a robot is no part of its name",
		file: "User-agent: cybermapper\nDisallow: /x\n", want: `
cybermapper/1.0
	refuse /x 2
cybermapper/2.0b
	refuse /x 2`},
}

var rep1994Alone = []vector{
	{from: "REP1994", name: "a blank line ends a record", as: rules.REP1994,
		file: "User-agent: *\nDisallow: /a\n\nDisallow: /b\n \t\nUser-agent: xeno\n\nDisallow: /c\n", want: `
a/1
	refuse /a 2
	allow  /b
xeno/1
	allow  /a
	allow  /c`},
	{from: "REP1994", name: "a line of white space is blank, one with a comment is not", as: rules.REP1994,
		file: "User-agent: *\n \t # not blank\nDisallow: /a\n\t\nDisallow: /b\n", want: `
a/1
	refuse /a 3
	allow  /b`},
	{from: "REP1994", name: "Allow is unknown, any Disallow that matches refuses", as: rules.REP1994,
		file: "User-agent: *\nAllow: /a/b\nDisallow: /a\nAllow: /\n", want: `
a/1
	refuse /a 3
	refuse /a/b 3
	allow  /c`},
	{from: "REP1994", name: "Allow, being unknown, does not end the user-agent lines", as: rules.REP1994,
		file: "User-agent: aaaa\nAllow: /\nUser-agent: bbbb\nDisallow: /x\n", want: `
aaaa
	refuse /x 4
bbbb
	refuse /x 4`},
	{from: "REP1994", name: "there are no wildcards", as: rules.REP1994,
		file: "User-agent: *\nDisallow: /a*b\nDisallow: /c$\n", want: `
a/1
	refuse /a*b 2
	refuse /a*bc 2
	allow  /axb
	refuse /c$ 3
	refuse /c$d 3
	allow  /c`},
	{from: "REP1994", name: "a name in the file is part of the robot's name", as: rules.REP1994,
		file: "User-agent: bot\nDisallow: /a\n\nUser-agent: Mapper\nDisallow: /b\n\nUser-agent: *\nDisallow: /c\n", want: `
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
	{from: "REP1994", name: "the star record is for whom no name was part", as: rules.REP1994,
		file: "User-agent: *\nDisallow: /a\n\nUser-agent: bot\nDisallow: /b\n", want: `
robot
	allow  /a
	refuse /b 5
crawler
	refuse /a 2
	allow  /b`},
	{from: "REP1994", name: "an extended record of 1997 lists names", as: rules.REP1994,
		file: "User-Agent: Copernicus Fred\nDisallow: /a /b\n\nUser-agent: *\nDisallow: /c\n", want: `
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

var koster1996Vectors = []vector{
	{from: "K96 §3.2.2", name: "the table of prefixes",
		file: "User-agent: a\nDisallow: /tmp\nUser-agent: b\nDisallow: /tmp/\n", want: `
a
	refuse /tmp 2
	refuse /tmp.html 2
	refuse /tmp/a.html 2
b
	allow  /tmp
	refuse /tmp/ 4
	refuse /tmp/a.html 4
	allow  /tmp.html`},
	{from: "K96 §3.2.2", name: "the table of escapes",
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
`, want: `
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
	{from: "K96 §3.2.2", name: "the table's /a/b.html does not match /a%2fb.html, but some servers read it so",
		file: "User-agent: *\nDisallow: /a/b.html\n", want: `
a
	refuse /a/b.html 2
	refuse /a%2fb.html 2 v3`},
	{from: "K96 §4", name: "the example",
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
`, want: `
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
	{from: "K96 §3.3", name: "fields that are unknown are allowed",
		file: "User-agent: *\nX-Comment: what is this\nDisallow: /a\n", want: `
	refuse /a 3`},
}
