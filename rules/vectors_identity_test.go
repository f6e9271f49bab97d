package rules_test

import (
	"strings"
	"testing"

	"heed/rules"
)

// TestHeed_IdentityVectors is how a User-Agent string finds its groups, which
// no standard says of a third party.
func TestHeed_IdentityVectors(t *testing.T) { checkVectors(t, identityVectors) }

// TestHeed_StrictVectors is what sets strict apart.
func TestHeed_StrictVectors(t *testing.T) { checkVectors(t, strictVectors) }

var identityVectors = []vector{
	{from: "heed User-Agent", name: "the robot's own product comes first",
		file: "User-agent: CCBot\nDisallow: /1\nUser-agent: python-requests\nDisallow: /2\nUser-agent: Go-http-client\nDisallow: /3\nUser-agent: facebookexternalhit\nDisallow: /4\nUser-agent: curl\nDisallow: /5\nUser-agent: Wget\nDisallow: /6\nUser-agent: *\nDisallow: /star\n", want: `
CCBot/2.0 (https://commoncrawl.org/faq/)
	refuse /1 2
	allow  /star
python-requests/2.31.0
	refuse /2 4
Go-http-client/1.1
	refuse /3 6
Go-http-client/2.0
	refuse /3 6
facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)
	refuse /4 8
curl/8.5.0
	refuse /5 10
Wget/1.21.4
	refuse /6 12
Java/17.0.2
	refuse /star 14`},
	{from: "heed User-Agent", name: "the robot comes after compatible;",
		file: "User-agent: bingbot\nDisallow: /1\nUser-agent: AhrefsBot\nDisallow: /2\nUser-agent: GPTBot\nDisallow: /3\nUser-agent: ClaudeBot\nDisallow: /4\nUser-agent: OAI-SearchBot\nDisallow: /5\nUser-agent: *\nDisallow: /star\n", want: `
Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)
	refuse /1 2
	allow  /star
Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm) Chrome/116.0.1938.76 Safari/537.36
	refuse /1 2
	allow  /star
Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)
	refuse /2 4
Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.2; +https://openai.com/gptbot
	refuse /3 6
	allow  /star
Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)
	refuse /4 8
	allow  /star
Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; OAI-SearchBot/1.0; +https://openai.com/searchbot
	refuse /5 10
	allow  /3`},
	{from: "heed User-Agent", name: "the robot is anywhere else",
		file: "User-agent: Applebot\nDisallow: /1\nUser-agent: Bytespider\nDisallow: /2\nUser-agent: Storebot-Google\nDisallow: /3\nUser-agent: Amazonbot\nDisallow: /4\nUser-agent: meta-externalagent\nDisallow: /5\nUser-agent: *\nDisallow: /star\n", want: `
Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.1.1 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)
	refuse /1 2
	allow  /star
Mozilla/5.0 (Linux; Android 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36 (compatible; Bytespider; spider-feedback@bytedance.com)
	refuse /2 4
Mozilla/5.0 (Linux; Android 8.0) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36; Bytespider
	refuse /2 4
Mozilla/5.0 (X11; Linux x86_64; Storebot-Google/1.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/79.0.3945.88 Safari/537.36
	refuse /3 6
	allow  /star
Mozilla/5.0 (Macintosh; Intel Mac OS X 10_10_1) AppleWebKit/600.2.5 (KHTML, like Gecko) Version/8.0.2 Safari/600.2.5 (Amazonbot/0.1; +https://developer.amazon.com/support/amazonbot)
	refuse /4 8
meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)
	refuse /5 10`},
	{from: "heed User-Agent", name: "names with digits, points, signs and blanks",
		file: "User-agent: MJ12bot\nDisallow: /1\nUser-agent: archive.org_bot\nDisallow: /2\nUser-agent: Mail.RU_Bot\nDisallow: /3\nUser-agent: sogou web spider\nDisallow: /4\nUser-agent: *\nDisallow: /star\n", want: `
Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)
	refuse /1 2
	allow  /star
Mozilla/5.0 (compatible; archive.org_bot +http://www.archive.org/details/archive.org_bot)
	refuse /2 4
Mozilla/5.0 (compatible; Linux x86_64; Mail.RU_Bot/2.0; +http://go.mail.ru/help/robots)
	refuse /3 6
	allow  /star
Sogou web spider/4.0(+http://www.sogou.com/docs/help/webmasters.htm#07)
	refuse /4 8
	allow  /star`},
	{from: "heed User-Agent", name: "URLs and mail addresses are no names",
		file: "User-agent: bingbot\nDisallow: /1\nUser-agent: msnbot\nDisallow: /2\nUser-agent: commoncrawl\nDisallow: /3\nUser-agent: gptbot\nDisallow: /4\nUser-agent: *\nDisallow: /star\n", want: `
adidxbot/2.0; +http://www.bing.com/bingbot.htm
	allow  /1
	refuse /star 10
librabot/1.0 (+http://search.msn.com/msnbot.htm)
	allow  /2
	refuse /star 10
CCBot/2.0 (http://commoncrawl.org/)
	allow  /3
	refuse /star 10
OtherBot/1.0 (gptbot@site.test)
	allow  /4
	refuse /star 10
OtherBot/1.0 (+mailto:gptbot@site.test)
	allow  /4
	refuse /star 10
OtherBot (https://gptbot)
	allow  /4
	refuse /star 10`},
	{from: "heed User-Agent", name: "compatibility words are no names, neither in the string nor in the file",
		file: "User-agent: mozilla\nDisallow: /1\nUser-agent: Mozilla/5\nDisallow: /2\nUser-agent: Chrome\nDisallow: /3\nUser-agent: Safari\nDisallow: /4\nUser-agent: compatible\nDisallow: /5\nUser-agent: linux\nDisallow: /6\nUser-agent: *\nDisallow: /star\n", want: `
Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36
	allow  /1
	allow  /2
	allow  /3
	allow  /4
	allow  /6
	refuse /star 14
Mozilla/5.0 (compatible; FooBot/1.0)
	allow  /1
	allow  /5
	refuse /star 14`},
	{from: "heed User-Agent", name: "one that looks like a browser's is a robot like others",
		file: "User-agent: *\nDisallow: /star\nUser-agent: FooBot\nDisallow: /foo\n", want: `
Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:121.0) Gecko/20100101 Firefox/121.0
	refuse /star 2
Mozilla/5.0 (iPhone; CPU iPhone OS 17_2 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.2 Mobile/15E148 Safari/604.1
	refuse /star 2
Mozilla/5.0 (Macintosh; U; Intel Mac OS X 10.6; en-US) AppleWebKit/534.16 Chrome/10.0.648.205 Safari/534.16
	refuse /star 2`},
	{from: "heed User-Agent", name: "an empty one, or one of signs only, has no name",
		file: "User-agent: *\nDisallow: /star\nUser-agent: FooBot\nDisallow: /\n", want: `
	refuse /star 2
	allow  /x
declared:
	refuse /star 2
	allow  /x
()
	refuse /star 2
	allow  /x
- / ; ,
	refuse /star 2
	allow  /x
1.0
	refuse /star 2
*
	refuse /star 2
	allow  /x`},
	{from: "heed no match", name: "leaves the star group, or nothing",
		file: "User-agent: FooBot\nDisallow: /\n", want: `
	allow  /
BarBot
	allow  /
FooBot
	refuse / 2`},
	{from: "heed several names", name: "every group must allow",
		file: "User-agent: GPTBot\nDisallow: /ai\nAllow: /\nUser-agent: Googlebot\nDisallow: /g\nUser-agent: *\nDisallow: /star\n", want: `
GPTBot/1.0 Googlebot/2.1
	refuse /ai 2
	refuse /g 5
	allow  /x 3
	allow  /star 3
Googlebot/2.1 (not GPTBot)
	refuse /ai 2
	refuse /g 5
Mozilla/5.0 (compatible; Googlebot/2.1; GPTBot/1.0; +https://site.test/)
	refuse /ai 2
	refuse /g 5
GPTBot/1.0 (BrandNewBot)
	refuse /ai 2
	allow  /star 3`},
	{from: "heed several names", name: "a name that no group has adds the star group to none that has",
		file: "User-agent: FooBot\nDisallow: /foo\nUser-agent: *\nDisallow: /\n", want: `
FooBot/1.0 BarBot/1.0
	allow  /x
	refuse /foo 2
BarBot/1.0 FooBot/1.0
	allow  /x
	refuse /foo 2`},
	{from: "heed several names", name: "do not hide a name of several words",
		file: "User-agent: Sogou web spider\nDisallow: /w\nUser-agent: Sogou\nDisallow: /s\nUser-agent: FooBot\nDisallow: /f\n", want: `
Sogou web spider/4.0
	refuse /w 2
	refuse /s 4
FooBot/1.0 Sogou web spider/4.0
	refuse /w 2
	refuse /s 4
	refuse /f 6
FooBot Sogou web spider/4.0
	refuse /w 2
	refuse /s 4
	refuse /f 6
Sogou/1.0
	allow  /w
	refuse /s 4`},
	{from: "heed several names", name: "the first word of a name counts beside other names",
		file: "User-agent: Sogou web spider\nDisallow: /w\nUser-agent: FooBot\nDisallow: /f\n", want: `
FooBot/1.0 Sogou/1.0
	refuse /w 2
	refuse /f 4
Sogou/1.0 (like FooBot)
	refuse /w 2
	refuse /f 4`},
	{from: "heed several names", name: "in one group are that group once",
		file: "User-agent: FooBot\nUser-agent: BarBot\nDisallow: /x\nAllow: /x/y\n", want: `
FooBot/1.0 BarBot/1.0
	refuse /x 3
	allow  /x/y 4`},
	{from: "heed chains", name: "a crawler's own group comes before the one it falls back to",
		file: "User-agent: Googlebot\nDisallow: /g\nUser-agent: Googlebot-Image\nDisallow: /i\nUser-agent: *\nDisallow: /star\n", want: `
Googlebot-Image/1.0
	refuse /i 4
	allow  /g
	allow  /star
Googlebot-Video/1.0
	refuse /g 2
	allow  /star
Googlebot-News
	refuse /g 2
Mozilla/5.0 (compatible; Google-InspectionTool/1.0;)
	refuse /g 2
	allow  /star
Google-CloudVertexBot
	refuse /g 2
Mozilla/5.0 (compatible; Applebot/0.1)
	refuse /g 2`},
	{from: "heed chains", name: "GoogleOther, Yandex, Baidu, Semrush, Ahrefs and Bing have theirs",
		file: "User-agent: GoogleOther\nDisallow: /1\nUser-agent: Yandex\nDisallow: /2\nUser-agent: Baiduspider\nDisallow: /3\nUser-agent: SemrushBot\nDisallow: /4\nUser-agent: msnbot\nDisallow: /5\nUser-agent: AhrefsBot\nDisallow: /6\nUser-agent: *\nDisallow: /star\n", want: `
GoogleOther-Image/1.0
	refuse /1 2
	allow  /star
GoogleOther-Video/1.0
	refuse /1 2
Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)
	refuse /2 4
	allow  /star
Mozilla/5.0 (compatible; YandexImages/3.0; +http://yandex.com/bots)
	refuse /2 4
Baiduspider-image+(+http://www.baidu.com/search/spider.htm)
	refuse /3 6
Mozilla/5.0 (compatible; SemrushBot-BA; +http://www.semrush.com/bot.html)
	refuse /4 8
Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)
	refuse /5 10
Mozilla/5.0 (compatible; AhrefsSiteAudit/6.1; +http://ahrefs.com/robot/site-audit)
	refuse /6 12`},
	{from: "heed chains", name: "others have none: a name is no kin of a longer one",
		file: "User-agent: AdsBot-Google\nDisallow: /1\nUser-agent: Googlebot\nDisallow: /2\nUser-agent: ChatGPT-User\nDisallow: /3\nUser-agent: GPTBot\nDisallow: /4\nUser-agent: *\nDisallow: /star\n", want: `
AdsBot-Google-Mobile
	allow  /1
	allow  /2
	refuse /star 10
Storebot-Google/1.0
	allow  /2
	refuse /star 10
Mediapartners-Google
	refuse /star 10
Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; OAI-SearchBot/1.0; +https://openai.com/searchbot
	allow  /3
	allow  /4
	refuse /star 10
Claude-User/1.0
	refuse /star 10`},
	{from: "heed exemptions", name: "that crawlers claim for themselves are none here",
		file: "User-agent: *\nDisallow: /star\nUser-agent: AdsBot-Google\nDisallow: /ads\n", want: `
AdsBot-Google (+http://www.google.com/adsbot.html)
	refuse /ads 4
Mediapartners-Google
	refuse /star 2
Mozilla/5.0 (compatible; ChatGPT-User/1.0; +https://openai.com/bot)
	refuse /star 2
Mozilla/5.0 (compatible; Perplexity-User/1.0; +https://perplexity.ai/perplexity-user)
	refuse /star 2
facebookexternalhit/1.1
	refuse /star 2`},
	{from: "heed control tokens", name: "count only for those who declare them",
		file: "User-agent: Google-Extended\nDisallow: /g\nUser-agent: Applebot-Extended\nDisallow: /a\nUser-agent: Googlebot\nAllow: /\n", want: `
Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)
	allow  /g 6
Mozilla/5.0 (compatible; Applebot/0.1; +http://www.apple.com/go/applebot)
	allow  /a 6
declared: Googlebot Google-Extended
	refuse /g 2
	allow  /a 6
declared: Applebot Applebot-Extended
	refuse /a 4
	allow  /g 6`},
	{from: "heed control tokens", name: "are no robot's fallback",
		file: "User-agent: Google-Extended\nDisallow: /g\nUser-agent: Applebot-Extended\nDisallow: /a\n", want: `
Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)
	allow  /g
	allow  /a
Mozilla/5.0 (compatible; Applebot/0.1; +http://www.apple.com/go/applebot)
	allow  /g
	allow  /a`},
	{from: "heed declared agents", name: "are judged by their tokens, all of which must allow",
		file: "User-agent: FooBot\nDisallow: /foo\nUser-agent: BarBot\nDisallow: /bar\nUser-agent: *\nDisallow: /star\n", want: `
declared: FooBot
	refuse /foo 2
	allow  /bar
	allow  /star
declared: foobot/1.0
	refuse /foo 2
declared: FooBot BarBot
	refuse /foo 2
	refuse /bar 4
	allow  /star
declared: BazBot
	refuse /star 6`},
	{from: "heed 1994 names", name: "a name in the file is no part of the robot's unless rep1994 says so",
		file: "User-agent: spider\nDisallow: /1\nUser-agent: bot\nDisallow: /2\nUser-agent: Yandex\nDisallow: /3\nUser-agent: *\nDisallow: /star\n", want: `
Baiduspider/2.0
	allow  /1
	refuse /star 8
FooBot
	allow  /2
	refuse /star 8
YandexLike/1.0
	allow  /3
	refuse /star 8`},
	{from: "heed User-Agent", name: "padding does not push the name out",
		file: "User-agent: FooBot\nDisallow: /foo\nUser-agent: *\nDisallow: /star\n", want: padded(`
FooBot/1.0
	refuse /foo 2
	allow  /star
`)},
	{from: "heed User-Agent", name: "brackets, commas and quotes separate names",
		file: "User-agent: FooBot\nDisallow: /foo\n", want: `
Mozilla/5.0 [FooBot/1.0]
	refuse /foo 2
Mozilla/5.0 {FooBot}
	refuse /foo 2
a,FooBot,b
	refuse /foo 2
a;FooBot;b
	refuse /foo 2
"FooBot"
	refuse /foo 2
'FooBot/1.0'
	refuse /foo 2
(FooBot)
	refuse /foo 2
+FooBot
	refuse /foo 2
FooBot:1.0
	refuse /foo 2
FooBot.
	refuse /foo 2
FooBot!
	refuse /foo 2`},
}

// padded puts 30 KB of other names before the User-Agent of want.
func padded(want string) string {
	const other = "Padding-Name-Of-No-Group/1.0 (comment; more) "
	return "\n" + strings.Repeat(other, 30<<10/len(other)) + want[1:]
}

var strictVectors = []vector{
	{from: "heed strict", name: "Disallow wins a tie", as: rules.Strict,
		file: "User-agent: *\nAllow: /a\nDisallow: /a\nDisallow: /b\nAllow: /b/c\n", want: `
	refuse /a 3
	refuse /b 4
	allow  /b/c 5`},
	{from: "heed strict", name: "parameters of segments are cut, and escapes decoded once more", as: rules.Strict,
		file: "User-agent: *\nDisallow: /private/\nDisallow: /item$\n", want: `
	refuse /private;x/ 2 v4
	refuse /x/..;/private/ 2 v4
	refuse /private;a=b/c 2 v4
	refuse /x/..;a%2f%5cb/private/c.txt 2 v4
	refuse /x/..%253bx/private/ 2 v5
	refuse /%2570rivate/ 2 v5
	refuse /private%252f 2 v5
	refuse /x/%252e%252e/private/ 2 v5
	refuse /item;id=5 3 v4
	allow  /other;id=5
	refuse /x/../private/ 2 v1
	refuse //private/ 2 v2
	refuse /private%2f 2 v3
	allow  /robots.txt`},
	{from: "heed strict", name: "reads files as standard does", as: rules.Strict,
		file: "User-agent: FooBot, BarBot\n\nDissallow: private /a\nDisallow: /b /c\n", want: `
FooBot/1.0
	refuse /b 4
	refuse /c 4
	refuse /private%20/a 3
BazBot
	allow  /b`},
}
