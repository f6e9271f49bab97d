package rules_test

import "testing"

// TestHeed_NameVectors is how user-agent lines are read where RFC 9309 leaves it
// open.
func TestHeed_NameVectors(t *testing.T) { checkVectors(t, nameVectors) }

var nameVectors = []vector{
	{from: "heed names", name: "keep digits, points, signs and spaces",
		file: `
User-agent: MJ12bot
Disallow: /1
User-agent: 360Spider
Disallow: /2
User-agent: archive.org_bot
Disallow: /3
User-agent: Yahoo! Slurp
Disallow: /4
User-agent: AB42bot
Disallow: /5
User-agent: Sogou web spider
Disallow: /6
`, want: `
Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)
	refuse /1 2
	allow  /2
MJ
	allow  /1
360Spider(compatible; HaosouSpider; http://www.haosou.com/help/help_3_2.html)
	refuse /2 4
Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/archive.org_bot)
	refuse /3 6
Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)
	refuse /4 8
AB42bot/1.0
	refuse /5 10
ABbot/1.0
	allow  /5
AB
	allow  /5
Sogou web spider/4.0(+http://www.sogou.com/docs/help/webmasters.htm#07)
	refuse /6 12
Sogou/1.0
	refuse /6 12`},
	{from: "heed names", name: "are not cut at digits, points and signs",
		file: "User-agent: archive.org_bot\nDisallow: /1\nUser-agent: e!bot\nDisallow: /2\nUser-agent: l'bot\nDisallow: /3\nUser-agent: one-two_three\nDisallow: /4\nUser-agent: FooBot/BarBot\nDisallow: /5\n", want: `
archive/1.0
	allow  /1
org_bot
	allow  /1
e/1.0
	allow  /2
bot/1.0
	allow  /2
	allow  /3
l
	allow  /3
one/1.0
	allow  /4
three
	allow  /4
FooBot/2.0
	refuse /5 10
BarBot
	allow  /5`},
	{from: "heed names", name: "are compared whole before their first word counts",
		file: "User-agent: Sogou web spider\nDisallow: /web\nUser-agent: Sogou\nDisallow: /any\nUser-agent: Sogou pic spider\nDisallow: /pic\n", want: `
Sogou web spider/4.0
	refuse /web 2
	allow  /pic
Sogou/1.0
	refuse /any 4
	allow  /web`},
	{from: "heed names", name: "of several words are taken whole, where two begin alike",
		file: "User-agent: Sogou web spider\nAllow: /\nUser-agent: Sogou inst spider\nDisallow: /\n", want: `
Sogou web spider/4.0
	allow  /x 2
Sogou inst spider/4.0
	refuse /x 4
Sogou News/1
	refuse /x 4
Spider/1
	allow  /x`},
	{from: "heed versions", name: "in a user-agent line are ignored, and make no other name",
		file: "User-agent: wget\nDisallow: /1\nUser-agent: Wget/1.6\nDisallow: /2\nUser-agent: WGET*\nDisallow: /3\nUser-agent: Twitterbot/1.0\nDisallow: /b\n", want: `
Wget/1.21.3
	refuse /1 2
	refuse /2 4
	refuse /3 6
wget
	refuse /2 4
Twitterbot/2.0
	refuse /b 8`},
	{from: "heed stars", name: "after a name are ignored, and text after a star is",
		file: "User-agent: Mediapartners-Google*\nDisallow: /a\nUser-agent: googlebot *\nDisallow: /b\nUser-agent: * and everybody\nDisallow: /c\n", want: `
Mediapartners-Google
	refuse /a 2
Mediapartners-GoogleX
	allow  /a
	refuse /c 6
Googlebot/2.1
	refuse /b 4
Other
	refuse /c 6`},
	{from: "heed name lists", name: "of names are split at commas",
		file: "User-agent: ABot, BBot/1.0,CBot*, ,\nDisallow: /a\nUser-agent: x,*\nDisallow: /b\n", want: `
ABot
	refuse /a 2
BBot/2.0
	refuse /a 2
CBot
	refuse /a 2
DBot
	allow  /a
	refuse /b 4`},
	{from: "heed name lists", name: "of names with blanks: the first is the group's, others may add refusals",
		file: "User-Agent: Copernicus Fred\nDisallow: /a\nAllow: /b\nUser-agent: *\nDisallow: /b\n", want: `
Copernicus/1.0
	refuse /a 2
	allow  /b 3
Fred/1.0
	refuse /a 2
	refuse /b 5
Gina/1.0
	allow  /a
	refuse /b 5`},
	{from: "heed name lists", name: "of names with blanks take nothing from a group of one's own",
		file: "User-agent: Copernicus Fred\nAllow: /\nUser-agent: Fred\nDisallow: /f\n", want: `
Fred
	refuse /f 4
	allow  /g`},
	{from: "heed whole strings", name: "as a group's name stand for the robots they name",
		file: `
User-agent: Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)
Disallow: /g
User-agent: Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm) Chrome/100.0.0.0 Safari/537.36
Disallow: /b
User-agent: mozilla/5
Disallow: /m
User-agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36
Disallow: /c
`, want: `
Googlebot/2.1
	refuse /g 2
	allow  /b
	allow  /m
bingbot/2.0
	refuse /b 4
	allow  /g
Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0
	allow  /m
	allow  /c
	allow  /g
Mozilla/5.0 (compatible; OtherBot/1.0)
	allow  /m
	allow  /c`},
	{from: "heed empty values", name: "of a user-agent line name no robot",
		file: "User-agent:\nDisallow: /a\nUser-agent: *\nDisallow: /b\n", want: `
	allow  /a
	refuse /b 4`},
}
