package rules_test

import (
	"strings"
	"testing"
)

// TestHeed_ParsingVectors is how files are read where RFC 9309 leaves it open.
func TestHeed_ParsingVectors(t *testing.T) { checkVectors(t, parsingVectors) }

var parsingVectors = []vector{
	{from: "heed blank lines", name: "mean nothing anywhere in a group",
		file: "\nUser-agent: ABot\n\n\n \nUser-agent: BBot\n\t\nDisallow: /a\n\n\nDisallow: /b\n", want: `
ABot
	refuse /a 7
	refuse /b 10
BBot
	refuse /a 7
	refuse /b 10`},
	{from: "heed unknown lines", name: "do not end the user-agent lines, whatever they are",
		file: `
User-agent: A1
Crawl-delay: 10
User-agent: A2
Sitemap: https://site.test/s.xml
User-agent: A3
Content-Signal: search=yes, ai-train=no
User-agent: A4
License: https://site.test/license.xml
User-agent: A5
Request-rate: 1/10
User-agent: A6
Host: site.test
User-agent: A7
Clean-param: ref /shop
User-agent: A8
Noindex: /n
User-agent: A9
Something: else
User-agent: A10
Disallow: /x
`, want: `
A1
	refuse /x 20
A2
	refuse /x 20
A3
	refuse /x 20
A4
	refuse /x 20
A5
	refuse /x 20
A6
	refuse /x 20
A7
	refuse /x 20
A8
	refuse /x 20
A9
	refuse /x 20
A10
	refuse /x 20`},
	{from: "heed Content-Usage", name: "does not end the user-agent lines either",
		file: "User-agent: A1\nContent-Usage: train-ai=n\nUser-agent: A2\nDisallow: /x\n", want: `
A1
	refuse /x 4
A2
	refuse /x 4`},
	{from: "heed unknown lines", name: "end no group after its rules either",
		file: "User-agent: A1\nDisallow: /x\nSitemap: https://site.test/s.xml\nCrawl-delay: 1\nDisallow: /y\n", want: `
A1
	refuse /x 2
	refuse /y 5`},
	{from: "heed orphan rules", name: "before the first user-agent line are ignored, not everybody's",
		file: "Disallow: /a\nSitemap: https://site.test/s.xml\nDisallow: /\nUser-agent: ABot\nDisallow: /b\n", want: `
ABot
	allow  /a
	refuse /b 5
BBot
	allow  /a
	allow  /b`},
	{from: "heed merged groups", name: "a star group put before the site's own joins it",
		file: `
# managed by the network
User-agent: *
Content-Signal: search=yes,ai-train=no
Allow: /

User-agent: GPTBot
Disallow: /
# the site's own
User-agent: *
Disallow: /private/
Allow: /private/open
User-agent: GPTBot
Allow: /gpt
`, want: `
Other/1.0
	allow  / 4
	refuse /private/ 10
	allow  /private/open 11
GPTBot/1.2
	refuse / 7
	refuse /private/open 7
	allow  /gpt 13`},
	{from: "heed misspellings", name: "of field names are understood",
		file: `
useragent: *
Dissallow: /1
Dissalow: /2
Disalow: /3
Diasllow: /4
Disallaw: /5
USER AGENT: ABot
disallow: /6
`, want: `
Other
	refuse /1 2
	refuse /2 3
	refuse /3 4
	refuse /4 5
	refuse /5 6
	allow  /6
ABot
	refuse /6 8
	allow  /1`},
	{from: "heed misspellings", name: "fields are known by how they begin",
		file: "User-agents: *\nDisallowed: /1\nAllowed: /1/a\nDisallow-x: /2\nXDisallow: /3\nNoallow: /4\n", want: `
	refuse /1 2
	allow  /1/a 3
	refuse /2 4
	allow  /3
	allow  /4`},
	{from: "heed missing colons", name: "are forgiven on a line of exactly two words",
		file: "User-agent *\nDisallow /1\n  Disallow\t/2  # x\nDisallow /3 /4\nDisallow\nAllow /1/a\n", want: `
	refuse /1 2
	refuse /2 3
	allow  /3
	allow  /4
	allow  /1/a 6`},
	{from: "heed missing colons", name: "are forgiven where the value has a colon",
		file: "User-agent *\nDisallow /a:b\n", want: `
	refuse /a:b 2
	allow  /b`},
	{from: "heed collapsed lines", name: "are read apart",
		file: "User-agent: * Disallow: /a\nUser-agent: ABot Disallow: /b Allow: /b/c\nUser-agent: BBot disallow:\nUser-agent: CBot Disallow: / Disallow: /x\n", want: `
Other
	refuse /a 1
	allow  /b
ABot
	refuse /b 2
	allow  /b/c 2
	allow  /a
BBot
	allow  /a
	allow  /b
CBot
	refuse /y 4
	refuse /x 4`},
	{from: "heed collapsed lines", name: "may leave no blank after the star",
		file: "User-agent: *disallow: /a\nUser-agent: ABot\nDisallow: /b\nUser-agent: *allow: /a/b\n", want: `
Other
	refuse /a 1
	allow  /a/b 4`},
	{from: "heed collapsed lines", name: "may be a whole file",
		file: "User-agent: ABot Disallow: /a Disallow: /b User-agent: * Disallow: /c", want: `
ABot
	refuse /a 1
	refuse /b 1
	allow  /c
Other
	allow  /a
	refuse /c 1`},
	{from: "heed collapsed lines", name: "are not seen in a path that only looks so",
		file: "User-agent: *\nDisallow: /disallow:/x\nDisallow: /y-disallow:z\n", want: `
	refuse /disallow:/x 2
	refuse /disallow:/xy 2
	allow  /x
	refuse /y-disallow:z 3
	allow  /z`},
	{from: "heed path lists", name: "of paths are split where every piece is a path",
		file: "User-agent: *\nDisallow: /a /b\t/*.gif$\nDisallow: /my folder/\nDisallow: /c d /e\n", want: `
	refuse /a/1 2
	refuse /b/1 2
	refuse /x.gif 2
	allow  /x.gifs
	refuse /my%20folder/ 3
	allow  /my
	allow  /folder/
	refuse /c%20d%20/e 4
	allow  /c
	allow  /e`},
	{from: "heed path lists", name: "with a wildcard for the whole site are one path",
		file: "User-agent: *\nDisallow: /buscar/ ***\nDisallow: /* */*$\nDisallow: /x *.gif$\n", want: `
	allow  /
	allow  /page
	allow  /buscar/
	refuse /buscar/%20 2
	allow  /x
	allow  /a.gif
	refuse /a%20/b 3`},
	{from: "heed path lists", name: "of paths are never made of Allow",
		file: "User-agent: *\nAllow: /a /b\nDisallow: /\n", want: `
	refuse /a 3
	refuse /b 3
	allow  /a%20/b 2`},
	{from: "heed missing slashes", name: "are assumed, for Allow and Disallow",
		file: "User-agent: *\nDisallow: private/\nAllow: private/open\nDisallow: ?q=\nDisallow: .git\nDisallow: $\n", want: `
	refuse /private/ 2
	refuse /private/x 2
	allow  /private/open 3
	allow  /x/private/
	refuse /?q=1 4
	refuse /.git/config 5
	refuse / 6
	allow  /x`},
	{from: "heed absolute URLs", name: "count on their own site only",
		file: `
User-agent: *
Disallow: https://site.test/a
Disallow: https://other.test/b
Disallow: http://site.test/c
Disallow: https://site.test:443/d
Disallow: https://site.test:8443/e
Disallow: HTTPS://SITE.test./f
Disallow: ftp://site.test/g
Disallow: https://site.test
Allow: https://site.test/ok
Disallow: https://site.test?x=1
`, want: `
	refuse /a 2
	refuse /b 9
	refuse /c 9
	refuse /d 5
	refuse /e 9
	refuse /f 7
	refuse /g 9
	refuse / 9
	allow  /ok 10
	refuse /?x=1 11`},
	{from: "heed absolute URLs", name: "of other sites leave everything allowed",
		file: "User-agent: *\nDisallow: https://other.test/\nDisallow: //site.test/x\n", want: `
	allow  /
	allow  /x`},
	{from: "heed absolute URLs", name: "within a path are a part of it",
		file: "User-agent: *\nDisallow: go?to=https://other.test/\nDisallow: ://x\nDisallow: */http://\n", want: `
	refuse /go?to=https://other.test/ 2
	refuse /go?to=https%3A%2F%2Fother.test%2Fa 2
	allow  /go?to=http
	refuse /://x 3
	refuse /a/http://b 4`},
	{from: "heed byte order mark", name: "whole",
		file: "\xEF\xBB\xBFUser-agent: *\nDisallow: /a\n", want: "\n\trefuse /a 2\n"},
	{from: "heed byte order mark", name: "two octets of it",
		file: "\xEF\xBBUser-agent: *\nDisallow: /a\n", want: "\n\trefuse /a 2\n"},
	{from: "heed byte order mark", name: "one octet of it",
		file: "\xEFUser-agent: *\nDisallow: /a\n", want: "\n\trefuse /a 2\n"},
	{from: "heed byte order mark", name: "only at the start",
		file: "User-agent: *\nDisallow: /a\n\xBB\xBFDisallow: /b\n", want: "\n\trefuse /a 2\n\tallow /b\n"},
	{from: "heed UTF-16", name: "little-endian",
		file: utf16("User-agent: *\nDisallow: /a\nDisallow: /ü\n", false),
		want: "\n\trefuse /a 2\n\trefuse /%C3%BC 3\n\tallow /b\n"},
	{from: "heed UTF-16", name: "big-endian",
		file: utf16("User-agent: *\r\nDisallow: /a\r\n", true),
		want: "\n\trefuse /a 2\n\tallow /b\n"},
	{from: "heed UTF-16", name: "cut in the middle of a character",
		file: utf16("User-agent: *\nDisallow: /a\nx", false)[:2*len("User-agent: *\nDisallow: /a\n")+3],
		want: "\n\trefuse /a 2\n\tallow /b\n"},
	{from: "heed octets", name: "that are no UTF-8 are kept, escaped",
		file: "User-agent: *\nDisallow: /caf\xE9\nDisallow: /\xFF\xFE\xF5\n", want: `
	refuse /caf%E9 2
	refuse /caf%E9/x 2
	allow  /caf%C3%A9
	refuse /%FF%FE%F5 3
	allow  /%FF%FE`},
	{from: "heed octets", name: "that are controls are kept, escaped",
		file: "User-agent: *\nDisallow: /a\x01b\nDisallow: /c\x7Fd\nDisallow: /e\x1B[2J\n", want: `
	refuse /a%01b 2
	refuse /c%7Fd 3
	refuse /e%1B[2J 4
	allow  /a
	allow  /c`},
	{from: "heed octets", name: "a NUL ends its line",
		file: "User-agent: *\nDisallow: /a\x00/b\nDis\x00allow: /c\nDisallow: /d\n", want: `
	refuse /a 2
	refuse /ax 2
	allow  /c
	refuse /d 4`},
	{from: "heed octets", name: "a % that begins no escape is a % itself",
		file: "User-agent: *\nDisallow: /a%zz\nDisallow: /b%\nDisallow: /c%4\n", want: `
	refuse /a%25zz 2
	refuse /b%25 3
	refuse /b%25x 3
	refuse /c%254 4
	allow  /a`},
	{from: "heed sizes", name: "a line is read up to 16,663 octets",
		file: "User-agent: *\nDisallow: /" + strings.Repeat("a", 20_000) + "\nDisallow: /b\n#" + strings.Repeat("c", 20_000) + "\nDisallow: /d\n", want: "\n\trefuse /" + strings.Repeat("a", 16_663-len("Disallow: /")) + " 2\n\tallow /" + strings.Repeat("a", 16_662-len("Disallow: /")) +
			"\n\trefuse /b 3\n\trefuse /d 5\n"},
	{from: "heed sizes", name: "4 MiB are read, and no half line",
		file: "User-agent: *\nDisallow: /a\n" + strings.Repeat("#"+strings.Repeat("x", 1022)+"\n", 4095) +
			"Disallow: /b\n#" + strings.Repeat("y", 960) + "\nDisallow: /public/data\nDisallow: /c\n",
		want: `
	refuse /a 2
	refuse /b 4098
	allow  /public
	allow  /c`},
	{from: "heed HTML", name: "is read for rules all the same",
		file: "<!DOCTYPE html>\n<html><body><pre>\nUser-agent: *\nDisallow: /a\n</pre></body></html>\n", want: "\n\trefuse /a 4\n\tallow /b\n"},
	{from: "heed other fields", name: "have no effect on access",
		file: "User-agent: *\nNoindex: /a\nNofollow: /b\nHost: other.test\nClean-param: x /c\nCache-delay: 5\nCrawl-delay: 5\nVisit-time: 0600-0845\nDisallow: /d\n", want: `
	allow  /a
	allow  /b
	allow  /c
	refuse /d 9`},
	{from: "heed empty values", name: "of Allow and Disallow are no rules, but end the user-agent lines",
		file: "User-agent: ABot\nDisallow:\nUser-agent: BBot\nAllow:\nUser-agent: CBot\nDisallow: /\n", want: `
ABot
	allow  /
BBot
	allow  /
CBot
	refuse / 6`},
}

// utf16 encodes text, which has characters of one unit only, with its mark.
func utf16(text string, bigEndian bool) string {
	var b strings.Builder
	for _, r := range "\uFEFF" + text {
		if bigEndian {
			b.WriteString(string([]byte{byte(r >> 8), byte(r)}))
		} else {
			b.WriteString(string([]byte{byte(r), byte(r >> 8)}))
		}
	}
	return b.String()
}
