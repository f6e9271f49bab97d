package transparent

import "strings"

// answers are kinds of status and fields.
var answers = []*shape{
	{name: "201", method: "POST", body: "x", answer: reply("201 Created", "made", "Location: /made", "ETag: \"1\"")},
	{name: "202", answer: reply("202 Accepted", "later")},
	{name: "203", answer: reply("203 Non-Authoritative Information", "hm")},
	{name: "204", answer: "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n"},
	{name: "205", answer: reply("205 Reset Content", "")},
	{name: "206", fields: []string{"Range: bytes=1-2"}, answer: reply("206 Partial Content", "el", "Content-Range: bytes 1-2/5")},
	{name: "301", answer: reply("301 Moved Permanently", "", "Location: http://other.test/%zz?a b")},
	{name: "302 relative", answer: reply("302 Found", "moved", "Location: ../next#frag", "Set-Cookie: a=b")},
	{name: "304", fields: []string{"If-None-Match: \"x\""}, answer: "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nCache-Control: max-age=5\r\n\r\n"},
	{name: "304 with representation fields", fields: []string{"If-None-Match: \"x\""},
		answer: "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Type: text/html\r\nContent-Length: 1234\r\nLast-Modified: Tue, 15 Nov 1994 08:12:31 GMT\r\n\r\n",
		changed: func(m way, a *answer, _ *arrival) {
			if m == h2 { // net/http's own client takes a length for a promise of content
				delete(a.header, "content-length")
			}
		}},
	{name: "307", method: "POST", body: "again", answer: reply("307 Temporary Redirect", "", "Location: /again")},
	{name: "308", answer: reply("308 Permanent Redirect", "", "Location: //else.test/")},
	{name: "400", answer: reply("400 Bad Request", "bad")},
	{name: "401", answer: reply("401 Unauthorized", "who", "WWW-Authenticate: Basic realm=\"a\"", "WWW-Authenticate: Negotiate")},
	{name: "403", answer: reply("403 Forbidden", "the site's own")},
	{name: "404", answer: reply("404 Not Found", "none")},
	{name: "410", answer: reply("410 Gone", "gone")},
	{name: "416", fields: []string{"Range: bytes=9-"}, answer: reply("416 Range Not Satisfiable", "", "Content-Range: bytes */5")},
	{name: "418", answer: reply("418 I'm a teapot", "short and stout")},
	{name: "429", answer: reply("429 Too Many Requests", "", "Retry-After: 1")},
	{name: "451", answer: reply("451 Unavailable For Legal Reasons", "", "Link: <https://law.example/>; rel=\"blocked-by\"")},
	{name: "500", answer: reply("500 Internal Server Error", "oh")},
	{name: "502", answer: reply("502 Bad Gateway", "the site's own", "Proxy-Status: its-cdn; error=connection_refused")},
	{name: "503", answer: reply("503 Service Unavailable", "", "Retry-After: Tue, 15 Nov 2044 08:12:31 GMT")},
	{name: "599", answer: reply("599 Who Knows", "x")},
	{name: "999", answer: reply("999 Request denied", "x")},
	{name: "another reason", answer: reply("200 Fine With Me (really), caf\xe9", "x"), ways: byBytes},
	{name: "no reason", answer: reply("404 ", "x")},
	{name: "no reason and no blank", answer: reply("404", "x"), changed: func(_ way, a *answer, _ *arrival) { a.phrase = "" }},
	{name: "no date", answer: reply("200 OK", "x")},
	{name: "no type", answer: reply("200 OK", "<html><body>looks like a page")},
	{name: "empty type", answer: reply("200 OK", "<html>", "Content-Type:")},
	{name: "cookies", answer: reply("200 OK", "x", "Set-Cookie: a=1; Path=/", "Set-Cookie: b=2; HttpOnly", "X-Between: 1", "Set-Cookie: a=3; Expires=Tue, 15 Nov 1994 08:12:31 GMT")},
	{name: "answer fields in order", answer: reply("200 OK", "x", "Link: <a>", "Vary: A", "link: <b>", "LINK: <c>, <d>", "Vary: B")},
	{name: "answer of odd octets", answer: reply("200 OK", "x", "X-Latin: caf\xe9", "X-Utf8: \u20ac", "X-Tab: a\tb", "X-Empty:", "X-Blank:   ", "x!#$%&'*+-.^_`|~: 1")},
	{name: "answer of many fields", answer: reply("200 OK", "x", manyFields("X-Field", 500, 30)...)},
	{name: "answer of one large field", answer: reply("200 OK", "x", "X-Large: "+strings.Repeat("l", 100000))},
	{name: "alt-svc", answer: reply("200 OK", "x", "Alt-Svc: h3=\":443\"; ma=86400, h2=\":8443\"", "Strict-Transport-Security: max-age=1")},
	{name: "site's own via and server", answer: reply("200 OK", "x", "Via: 1.0 inner, 1.1 cdn (box)", "Server: thing/1 (os)", "X-Cache: HIT", "Age: 7", "X-Powered-By: y")},
	{name: "signals", answer: reply("200 OK", "x", "X-Robots-Tag: noindex", "X-Robots-Tag: bot: nofollow", "Content-Signal: ai-train=no", "tdm-reservation: 1")},
	{name: "transfer fields of content", answer: reply("200 OK", "x", "Content-Encoding: identity", "Content-MD5: AAAA", "Content-Language: en", "Content-Location: /x", "Content-Disposition: attachment; filename=\"\xe9\"", "Accept-Ranges: bytes", "ETag: W/\"\xe9\"")},
	{name: "a field that goes over two lines", answer: reply("200 OK", "x", "X-Folded: one", "X-Folded: a\r\n  b"),
		changed: func(_ way, a *answer, _ *arrival) { a.header["x-folded"] = []string{"one", "a b"} }}, // RFC 9112 §5.2
	{name: "pragma of an old site", answer: reply("200 OK", "x", "Pragma: no-cache")},
	{name: "proxy-status in heed's name", answer: reply("200 OK", "x", "Proxy-Status: cdn; error=dns_error, "+name+"; error=http_request_denied"),
		changed: func(_ way, a *answer, _ *arrival) { a.header["proxy-status"] = []string{"cdn;error=dns_error"} }}, // RFC 9209 §2
	{name: "proxy-status of others", answer: reply("200 OK", "x", "Proxy-Status: cdn ; error=dns_error", "Proxy-Status: broken=")},
	{name: "upgrade offered", answer: reply("200 OK", "x", "Upgrade: h2c", "Connection: Upgrade")},
	{name: "426", answer: reply("426 Upgrade Required", "come back", "Upgrade: TLS/1.3", "Connection: Upgrade")},
	{name: "http 1.0 site", hangup: true, answer: "HTTP/1.0 200 OK\r\nContent-Length: 3\r\nX-Old: 1\r\n\r\nold"},
	{name: "http 1.0 site without length", hangup: true, answer: "HTTP/1.0 200 OK\r\nX-Old: 1\r\n\r\nold"},
	{name: "http 1.0 site that keeps alive", answer: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nold"},
	{name: "http 1.0 both", version: "HTTP/1.0", ways: byBytes, hangup: true, answer: "HTTP/1.0 200 OK\r\n\r\nold"},
	{name: "early hints", answer: "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nLink: </b.css>\r\n\r\n" + hello},
	{name: "several interim answers", answer: "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" +
		"HTTP/1.1 103 Early Hints\r\nLink: </b>\r\nX-B: 1\r\n\r\nHTTP/1.1 199 Odd\r\n\r\n" + hello},
	{name: "a 100 that was not asked for", answer: "HTTP/1.1 100 Continue\r\n\r\n" + hello},
	{name: "interim answers and http 1.0", version: "HTTP/1.0", ways: byBytes, answer: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + hello,
		changed: func(_ way, a *answer, _ *arrival) { a.interim = nil }}, // RFC 9110 §15.2
}

// hops are messages that tell the next hop something. mustChange says what of
// them is left.
var hops = []*shape{
	{name: "connection of the client", fields: []string{"Connection: X-Hop , keep-alive, x-other", "X-Hop: 1", "X-Other: 2", "Keep-Alive: timeout=5", "X-End: stays"}, ways: byBytes, answer: hello},
	{name: "connection close of the client", fields: []string{"Connection: close, X-Hop", "X-Hop: 1"}, ways: byBytes, answer: hello},
	{name: "connection that names the user agent", fields: []string{"Connection: User-Agent", "User-Agent: curl/8"}, ways: byBytes, answer: hello,
		changed: func(_ way, _ *answer, seen *arrival) { seen.header["user-agent"] = []string{"curl/8"} }}, // it is what was judged
	{name: "proxy fields of the client", fields: []string{"Proxy-Connection: keep-alive", "Proxy-Authorization: Basic eDp5"}, ways: byBytes, answer: hello},
	{name: "te trailers", fields: []string{"TE: trailers", "Connection: TE"}, ways: byBytes, answer: hello},
	{name: "te gzip", fields: []string{"TE: gzip", "Connection: TE"}, ways: byBytes, answer: hello},
	{name: "upgrade to h2c", fields: []string{"Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABk"}, ways: byBytes, answer: hello},
	{name: "upgrade to another protocol", fields: []string{"Upgrade: irc/6.9", "Connection: upgrade"}, ways: byBytes, answer: hello},
	{name: "connection of the site", answer: reply("200 OK", "x", "Connection: X-Hop, x-other", "X-Hop: 1", "X-Other: 2", "Keep-Alive: timeout=9", "X-End: stays")},
	{name: "connection close of the site", hangup: true, answer: reply("200 OK", "x", "Connection: close, X-Hop", "X-Hop: 1", "X-End: stays")},
	{name: "connection close of the site on two lines", answer: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" +
		reply("200 OK", "x", "X-Hop: 1", "X-Long: "+strings.Repeat("l", 9000), "cOnnection: close", "X-Other: 2", "Connection:x-hop,x-Other", "X-End: stays"), hangup: true},
	{name: "connection close of the site in chunks", hangup: true, answer: "HTTP/1.1 200 OK\r\nX-Hop: 1\r\nTransfer-Encoding: chunked\r\nConnection: X-Hop, close\r\n\r\n1\r\nx\r\n0\r\n\r\n"},
	{name: "proxy fields of the site", answer: reply("200 OK", "x", "Proxy-Authenticate: Basic realm=phish", "Proxy-Connection: close", "Proxy-Authentication-Info: x", "TE: y")},
	{name: "hop in an interim answer", answer: "HTTP/1.1 103 Early Hints\r\nConnection: X-Hop\r\nX-Hop: 1\r\nLink: </a>\r\n\r\n" + hello},
	{name: "max-forwards of another method", fields: []string{"Max-Forwards: 0"}, answer: hello},
	{name: "max-forwards left", method: "OPTIONS", fields: []string{"Max-Forwards: 2"}, answer: hello,
		changed: func(_ way, _ *answer, seen *arrival) { seen.header["max-forwards"] = []string{"1"} }}, // RFC 9110 §7.6.2
	{name: "max-forwards of a trace", method: "TRACE", fields: []string{"Max-Forwards: 10"}, answer: hello,
		changed: func(_ way, _ *answer, seen *arrival) { seen.header["max-forwards"] = []string{"9"} }},
}
