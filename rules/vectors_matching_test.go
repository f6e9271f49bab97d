package rules_test

import (
	"strings"
	"testing"
)

// TestHeed_MatchingVectors is how targets are held against rules where RFC 9309
// leaves it open, and how ambiguous spellings of a target are judged.
func TestHeed_MatchingVectors(t *testing.T) { checkVectors(t, matchingVectors) }

var matchingVectors = []vector{
	{from: "heed canonical form", name: "reserved octets are the same escaped and bare",
		file: "User-agent: *\nDisallow: /a:b\nDisallow: /c%3Bd\nDisallow: /e%40f\nDisallow: /g!h\nDisallow: /i[j]\nDisallow: /k+l\nDisallow: /m,n'o\n", want: `
	refuse /a:b 2
	refuse /a%3Ab 2
	refuse /a%3ab 2
	refuse /c;d 3
	refuse /c%3bd 3
	refuse /e@f 4
	refuse /g%21h 5
	refuse /i%5Bj%5D 6
	refuse /k%2Bl 7
	allow  /k%20l
	refuse /m%2Cn%27o 8`},
	{from: "heed canonical form", name: "octets outside URI syntax are the same escaped and bare",
		file: "User-agent: *\nDisallow: /a|b\nDisallow: /c{d}\nDisallow: /e\"f\nDisallow: /g^h`i\nDisallow: /<j>\n", want: `
	refuse /a%7Cb 2
	refuse /a|b 2
	refuse /c%7Bd%7D 3
	refuse /e%22f 4
	refuse /g%5Eh%60i 5
	refuse /%3Cj%3E 6`},
	{from: "heed canonical form", name: "an escaped / is not the / of the path",
		file: "User-agent: *\nDisallow: /a%2Fb\n", want: `
	refuse /a%2Fb 2
	refuse /a%2fb 2
	allow  /a/b`},
	{from: "heed canonical form", name: "an escaped ? begins no query",
		file: "User-agent: *\nDisallow: /a?b\nDisallow: /c%3Fd\n", want: `
	refuse /a?b 2
	allow  /a%3Fb
	refuse /c%3fd 3
	allow  /c?d`},
	{from: "heed canonical form", name: "a second ? is data, escaped or not",
		file: "User-agent: *\nDisallow: /a?b?c\nDisallow: /d?e%3Ff\n", want: `
	refuse /a?b?c 2
	refuse /a?b%3Fc 2
	refuse /d?e?f 3
	refuse /d?e%3ff 3`},
	{from: "heed canonical form", name: "& and = are not their escapes",
		file: "User-agent: *\nDisallow: /a?b&c=d\nDisallow: /e?f%26g%3Dh\n", want: `
	refuse /a?b&c=d 2
	allow  /a?b%26c=d
	allow  /a?b&c%3Dd
	refuse /e?f%26g%3dh 3
	allow  /e?f&g=h`},
	{from: "heed canonical form", name: "unreserved octets are decoded on both sides, once",
		file: "User-agent: *\nDisallow: /%7Ejoe\nDisallow: /%2D%2E%5F\nDisallow: /a%2541\n", want: `
	refuse /~joe/x 2
	refuse /%7ejoe 2
	refuse /-._ 3
	refuse /a%2541 4
	allow  /aA
	allow  /a%41`},
	{from: "heed canonical form", name: "a literal star or dollar of a target meets no operator",
		file: "User-agent: *\nDisallow: /a*c$\nDisallow: /d%2A$\nDisallow: /e%24$\n", want: `
	refuse /a*c 2
	refuse /abc 2
	allow  /abc$
	refuse /d* 3
	refuse /d%2A 3
	allow  /dx
	refuse /e$ 4
	allow  /e`},
	{from: "heed operators", name: "a $ that is not the last octet is a dollar",
		file: "User-agent: *\nDisallow: /a$b\nDisallow: /c$*\nDisallow: /d$$\n", want: `
	refuse /a$b 2
	refuse /a%24bc 2
	allow  /a
	refuse /c$ 3
	refuse /c$x 3
	allow  /c
	refuse /d$ 4
	allow  /d
	allow  /d$$`},
	{from: "heed operators", name: "a rule may begin with a star",
		file: "User-agent: *\nDisallow: *.gif$\nDisallow: *secret\nAllow: *\n", want: `
	refuse /a.gif 2
	refuse /a/b.gif 2
	allow  /a.gif?x 4
	refuse /secret 3
	refuse /a/secrets 3
	allow  /b 4`},
	{from: "heed operators", name: "stars in a row are one star to the match",
		file: "User-agent: *\nDisallow: /a**b\nDisallow: /c***$\n", want: `
	refuse /ab 2
	refuse /axb 2
	refuse /c 3
	refuse /cxyz 3
	allow  /a`},
	{from: "heed operators", name: "a star alone, and a dollar after it",
		file: "User-agent: a\nDisallow: *\nUser-agent: b\nDisallow: /*$\nUser-agent: c\nDisallow: /$\nUser-agent: d\nDisallow: $\n", want: `
declared: a
	refuse / 2
	refuse /x?y 2
declared: b
	refuse / 4
	refuse /x 4
declared: c
	refuse / 6
	allow  /x
	allow  /?
declared: d
	refuse / 8
	allow  /x`},
	{from: "heed operators", name: "pieces are found from left to right without overlap",
		file: "User-agent: *\nDisallow: /*aba*aba$\nDisallow: /x*yy*y\n", want: `
	refuse /abaaba 2
	refuse /abaxaba 2
	refuse /abaabaaba 2
	allow  /ababa
	allow  /aba
	refuse /xyyy 3
	allow  /xyy
	refuse /x/yy/y/ 3`},
	{from: "heed operators", name: "a star runs over slashes, queries and escapes",
		file: "User-agent: *\nDisallow: /a*=1\nDisallow: /*/admin/\nDisallow: /*?*sort=\nDisallow: /*%2Fup\n", want: `
	refuse /a/b?c=1 2
	refuse /a%2Fb?x=12 2
	refuse /x/admin/ 3
	refuse /x/y/admin/z 3
	allow  /admin/
	refuse /list?sort=up 4
	refuse /list?a=b&sort=up 4
	allow  /list/sort=
	refuse /x%2fup 5`},
	{from: "heed length of a match", name: "operators count",
		file: "User-agent: *\nAllow: /fish\nDisallow: /fish*\nDisallow: /page\nAllow: /page$\n", want: `
	refuse /fish 3
	refuse /fishheads 3
	allow  /page 5
	refuse /page2 4`},
	{from: "heed length of a match", name: "is that of the canonical form, in octets",
		file: "User-agent: *\nDisallow: /ä/\nAllow: /%C3%A4\nAllow: /%62%62\nDisallow: /bbb\nAllow: /c:\nDisallow: /cx*\nDisallow: /*%3A\n", want: `
	refuse /%C3%A4/ 2
	allow  /%C3%A4x 3
	refuse /bbb 5
	allow  /bb 4
	allow  /c: 6`},
	{from: "heed length of a match", name: "patterns of one length that differ: Allow decides",
		file: "User-agent: *\nDisallow: /*b\nAllow: /ab\nDisallow: /c*\nAllow: /cd\n", want: `
	allow  /ab 3
	refuse /xb 2
	allow  /cd 5
	refuse /ce 4`},
	{from: "heed length of a match", name: "the first of equal lines is the one that is reported",
		file: "User-agent: *\nDisallow: /a\nDisallow: /a\nDisallow: /%61\n", want: `
	refuse /a 2`},
	{from: "heed case", name: "of a path matters, that of escapes does not",
		file: "User-agent: *\nDisallow: /A%2fB\n", want: `
	refuse /A%2FB 2
	allow  /a%2Fb`},
	{from: "heed spellings", name: "dot segments",
		file: "User-agent: *\nDisallow: /private/\n", want: `
	refuse /private/ 2
	refuse /x/../private/ 2 v1
	refuse /./private/ 2 v1
	refuse /x/./../private/a 2 v1
	refuse /../private/ 2 v1
	refuse /../../private/ 2 v1
	refuse /x/y/../../private/ 2 v1
	refuse /x/%2e%2e/private/ 2 v1
	refuse /x/.%2E/private/ 2 v1
	refuse /%2e/private/ 2 v1
	refuse /private/x/.. 2
	allow  /private
	allow  /x/../
	allow  /...private/
	allow  /x/..private/`},
	{from: "heed spellings", name: "a target that leaves a refused path by dots is refused as written",
		file: "User-agent: *\nDisallow: /private/\n", want: `
	refuse /private/../public 2
	refuse /private/. 2
	refuse /private/.. 2`},
	{from: "heed spellings", name: "runs of slashes",
		file: "User-agent: *\nDisallow: /private/\nDisallow: /a/b\n", want: `
	refuse //private/ 2 v2
	refuse ///private/ 2 v2
	refuse /private// 2
	refuse /a//b 3 v2
	refuse /a///b/c 3 v2
	allow  /private`},
	{from: "heed spellings", name: "runs of slashes and dot segments, in either order",
		file: "User-agent: *\nDisallow: /private/\n", want: `
	refuse /x//../private/ 2 v2
	refuse /x/..//private/ 2 v2
	refuse //x/../private/ 2 v2
	refuse /.//private/ 2 v2
	refuse //./private/ 2 v2`},
	{from: "heed spellings", name: "escaped slashes and backslashes",
		file: "User-agent: *\nDisallow: /private/\n", want: `
	refuse /%2fprivate/ 2 v3
	refuse /private%2f 2 v3
	refuse /private%2Fx 2 v3
	refuse /x/..%2fprivate/ 2 v3
	refuse /x%2F..%2Fprivate%2F 2 v3
	refuse /private%5C 2 v3
	refuse /private\x 2 v3
	refuse /\private\ 2 v3
	refuse /%5cprivate%5c 2 v3
	refuse /x%5C..%5Cprivate%5C 2 v3
	refuse /x/%2e%2e%2fprivate%2f 2 v3
	refuse /%2f%2fprivate/ 2 v3`},
	{from: "heed spellings", name: "a server that takes one for a separator may have the other in its names",
		file: "User-agent: *\nDisallow: /private/\nDisallow: /a%5Cb/\n", want: `
	refuse /x%5Cy/..%2Fprivate/ 2 v3
	refuse /x\y/..%2fprivate/ 2 v3
	refuse /x%2Fy/..%5Cprivate/ 2 v3
	refuse /x%2F../a%5Cb/ 3 v3
	allow  /x/y/../private/`},
	{from: "heed spellings", name: "a slash that only the reading put at the end may be dropped",
		file: "User-agent: *\nDisallow: /page.html$\nDisallow: /*.pdf$\n", want: `
	refuse /page.html/. 2 v1
	refuse /page.html/x/.. 2 v1
	refuse /page.html%2F 2 v3
	refuse /page.html%2F%2f 2 v3
	refuse /a/b.pdf/. 3 v1
	allow  /page.html/
	allow  /page.html//
	allow  /page.html/x`},
	{from: "heed spellings", name: "escaped or not, & and = in a path are one name",
		file: "User-agent: *\nDisallow: /a&b=c/\nDisallow: /d%26e%3Df/\nDisallow: /g?h&i\n", want: `
	refuse /a%26b%3Dc/ 2 v3
	refuse /a&b%3dc/ 2 v3
	refuse /x/../a%26b=c/ 2 v3
	refuse /d&e=f/ 3 v3
	refuse /d%26e=f/ 3 v3
	allow  /g?h%26i`},
	{from: "heed spellings", name: "are not guessed beyond that",
		file: "User-agent: *\nDisallow: /private/\nDisallow: /item$\n", want: `
	allow  /private;x/
	allow  /%2570rivate/
	allow  /PRIVATE/
	allow  /item;id=5
	allow  /private%252f`},
	{from: "heed spellings", name: "a segment that is empty or dots without its parameters is also read so",
		file: "User-agent: *\nDisallow: /private/\nDisallow: /a&b/\nDisallow: /app/$\n", want: `
	refuse /;/private/ 2 v4
	refuse /;x/private/c.txt 2 v4
	refuse /pub/..;/private/c.txt 2 v4
	refuse /pub/..;a=b;c/private/c.txt 2 v4
	refuse /.;x/private/c.txt 2 v4
	refuse /pub/%2e%2e%3bx/private/ 2 v4
	refuse /pub/%2E.;/private/ 2 v4
	refuse /x/..;a%2f%5cb/private/c.txt 2 v4
	refuse /x/..;a\b/private/c.txt 2 v4
	refuse /x%2f..;y/private/c.txt 2 v4
	refuse /x/y%2f..;a/..;b%2fc/private/ 2 v4
	refuse /x/..;/a%26b/ 3 v4
	refuse /app/;jsessionid=1 4 v4
	allow  /a;jsessionid=1
	allow  /app/x;jsessionid=1
	allow  /pub/...;/private/
	allow  /pub/a..;/private/
	allow  /private;x/
	allow  /x?y=/..;/private/`},
	{from: "heed spellings", name: "concern the path, not the query",
		file: "User-agent: *\nDisallow: /private/\nDisallow: /a?b=/c\n", want: `
	allow  /x?y=/../private/
	allow  /x?//private/
	allow  /x?y=%2Fprivate/
	allow  /?/../private/
	refuse /z/../private/?q 2 v1
	refuse /./a?b=/c 3 v1
	refuse /./a?b=%2Fc 3 v1`},
	{from: "heed spellings", name: "every reading must be allowed, and any may be what is allowed",
		file: "User-agent: *\nDisallow: /\nAllow: /public/\nDisallow: /public/not/\n", want: `
	allow  /public/a 3
	refuse /public/../a 2 v1
	refuse /x/../public/ 2
	allow  /public/./a 3
	allow  /public//a 3
	refuse /public//not/ 4 v2
	refuse /public/not%2f 4 v3
	refuse /public%2fa 2`},
	{from: "heed spellings", name: "a rule with dots or doubled slashes of its own still counts as it is written",
		file: "User-agent: *\nDisallow: /a//b\nDisallow: /c/../d\nDisallow: /e%2Ff\nDisallow: //x\n", want: `
	refuse /a//b 2
	allow  /a/b
	refuse /c/../d 3
	allow  /d
	refuse /e%2ff 4
	allow  /e/f
	refuse //x 5
	allow  /x`},
	{from: "heed spellings", name: "another spelling of /robots.txt is judged like any page",
		file: "User-agent: *\nDisallow: /\n", want: `
	allow  /robots.txt
	refuse /./robots.txt 2
	refuse //robots.txt 2
	refuse /x/../robots.txt 2
	refuse /%72obots.txt 2
	refuse /robots%2Etxt 2`},
	{from: "heed robots.txt", name: "is allowed by its exact path only",
		file: "User-agent: *\nDisallow: /robots\nDisallow: /*.txt$\n", want: `
	allow  /robots.txt
	refuse /robots.txt? 2
	refuse /robots.txt?a=b 2
	refuse /robots.txt.gz 2
	refuse /a/robots.txt 3`},
	{from: "heed targets", name: "without a path have the path /",
		file: "User-agent: *\nDisallow: /$\nDisallow: /?q\n", want: `
	refuse / 2
	refuse ?q=1 3
	allow  /x`},
	{from: "heed index.html", name: "is a page like others",
		file: "User-agent: *\nDisallow: /\nAllow: /a/index.html\nAllow: /index.htm\n", want: `
	allow  /a/index.html 3
	refuse /a/ 2
	allow  /index.html 4
	refuse / 2`},
	{from: "heed operators", name: "many stars are matched in linear time",
		file: "User-agent: *\nDisallow: /" + strings.Repeat("*a", 500) + "b\n", want: "\n\tallow /" + strings.Repeat("a", 8192) + "\n\trefuse /" + strings.Repeat("a", 8192) + "b 2\n\trefuse /" + strings.Repeat("a", 8192) + "bc 2\n"},
}
