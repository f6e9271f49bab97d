package transparent

import (
	"fmt"
	"strings"
)

// reply is an answer of the scripted site in bytes.
func reply(status, body string, fields ...string) string {
	fields = append(fields, fmt.Sprintf("Content-Length: %d", len(body)))
	return "HTTP/1.1 " + status + "\r\n" + strings.Join(fields, "\r\n") + "\r\n\r\n" + body
}

var hello = reply("200 OK", "hello", "Content-Type: text/plain", "Date: Tue, 15 Nov 1994 08:12:31 GMT")

// requests are kinds of requests; what matters is what the site sees of them.
var requests = []*shape{
	{name: "get", answer: hello},
	{name: "get query", target: "/page?a=1&b=%20x&&c=", answer: hello},
	{name: "get empty query", target: "/page?", answer: hello},
	{name: "get escapes", target: "/a%2Fb/%C3%A9;v=1/'()*!$@,+", answer: hello},
	{name: "get double slashes and dots", target: "//a//b/./c", answer: hello},
	{name: "head", method: "HEAD", answer: "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nContent-Type: text/plain\r\n\r\n"},
	{name: "head without length", method: "HEAD", answer: "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: \"x\"\r\n\r\n"},
	{name: "head of chunks", method: "HEAD", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
	{name: "post", method: "POST", body: "a=1&b=2", fields: []string{"Content-Type: application/x-www-form-urlencoded"}, answer: hello},
	{name: "post empty", method: "POST", fields: []string{"Content-Length: 0"}, answer: hello},
	{name: "post chunks", method: "POST", body: strings.Repeat("chunky ", 1000), chunked: true, answer: hello},
	{name: "post no chunks", method: "POST", chunked: true, answer: hello},
	{name: "post trailers", method: "POST", body: "sum me", chunked: true, trailers: []string{"X-Sum: 1", "X-Other: 2"}, answer: hello},
	{name: "post trailers not announced", method: "POST", body: "sum me", chunked: true, trailers: []string{"X-Sum: 1"},
		fields: []string{"X-Unannounced: yes"}, ways: byBytes, answer: hello},
	{name: "put", method: "PUT", body: "\x00\x01\xff binary", fields: []string{"If-Match: \"x\"", "Content-Type: application/octet-stream"}, answer: reply("201 Created", "", "Location: /page")},
	{name: "patch", method: "PATCH", body: "[]", fields: []string{"Content-Type: application/json-patch+json"}, answer: "HTTP/1.1 204 No Content\r\nETag: \"y\"\r\n\r\n"},
	{name: "delete", method: "DELETE", answer: "HTTP/1.1 204 No Content\r\n\r\n"},
	{name: "delete with a body", method: "DELETE", body: "why", answer: hello},
	{name: "delete of length 0", method: "DELETE", fields: []string{"Content-Length: 0"}, ways: byBytes, answer: hello},
	{name: "get with a body", method: "GET", body: "{\"query\":1}", fields: []string{"Content-Type: application/json"}, answer: hello},
	{name: "get with chunks", method: "GET", body: "{\"query\":1}", chunked: true, answer: hello},
	{name: "options", method: "OPTIONS", answer: reply("200 OK", "", "Allow: GET, OPTIONS")},
	{name: "options of everything", method: "OPTIONS", target: "*", answer: reply("200 OK", "", "Allow: GET, OPTIONS")},
	{name: "trace", method: "TRACE", answer: reply("200 OK", "TRACE /page HTTP/1.1\r\n\r\n", "Content-Type: message/http")},
	{name: "propfind", method: "PROPFIND", body: "<propfind/>", fields: []string{"Depth: 1"}, answer: reply("207 Multi-Status", "<multistatus/>")},
	{name: "an unknown method", method: "FROBNICATE", answer: hello},
	{name: "a method in lower case", method: "get", answer: hello},
	{name: "bare", ways: everyWay, answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
	{name: "browser", fields: []string{"User-Agent: Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0", "Accept: text/html,*/*;q=0.8",
		"Accept-Language: en-GB,en;q=0.5", "Accept-Encoding: gzip, deflate, br, zstd", "DNT: 1", "Sec-Fetch-Dest: document", "Priority: u=0, i",
		"Referer: http://script.test/", "Upgrade-Insecure-Requests: 1"}, answer: hello},
	{name: "authorization", fields: []string{"Authorization: Basic dXNlcjpwYXNz", "Cookie: a=1; b=\"2\"; c="}, answer: hello},
	{name: "cookies on two lines", fields: []string{"Cookie: a=1", "Cookie: b=2"}, ways: []way{plain, h1, inTunnel, absolute}, answer: hello},
	{name: "same name in order", fields: []string{"X-A: 1", "X-B: x", "X-A: 2", "X-A: 1"}, answer: hello},
	{name: "empty values", fields: []string{"X-Empty:", "Accept:", "Accept-Encoding:"}, answer: hello},
	{name: "odd octets", fields: []string{"X-Latin: caf\xe9", "X-Utf8: \u20ac", "X-Tab: a\tb", "X-Quoted: \"a, \\\"b\\\"\""}, answer: hello},
	{name: "odd names", fields: []string{"x!#$%&'*+-.^_`|~9: token", "X_Under: 1", "a: b"}, answer: hello},
	{name: "many fields", fields: manyFields("X-Field", 300, 20), answer: hello},
	{name: "one large field", fields: []string{"X-Large: " + strings.Repeat("l", 60000)}, answer: hello},
	{name: "conditions", fields: []string{"If-None-Match: \"a\", W/\"b\"", "If-Modified-Since: Tue, 15 Nov 1994 08:12:31 GMT", "If-Unmodified-Since: x", "If-Range: \"a\"", "Range: bytes=0-1,3-"}, answer: hello},
	{name: "caching", fields: []string{"Cache-Control: no-cache, max-age=0", "Pragma: no-cache"}, answer: hello},
	{name: "signatures", fields: []string{`Signature-Agent: sig="https://bot.example/"`, `Signature-Input: sig=("@authority");tag="web-bot-auth"`, "Signature: sig=:AAAA:", "Content-Digest: sha-256=:AAAA:"}, answer: hello},
	{name: "forwarded by others", fields: []string{"Forwarded: for=192.0.2.1", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https"}, answer: hello},
	{name: "http 1.0", version: "HTTP/1.0", ways: byBytes, answer: hello},
	{name: "http 1.0 upload", method: "POST", body: "old", version: "HTTP/1.0", ways: byBytes, answer: hello},
	{name: "expect", method: "POST", body: "wanted", waits: true, fields: []string{"Expect: 100-continue"}, ways: byBytes, early: "HTTP/1.1 100 Continue\r\n\r\n", answer: hello},
	{name: "expect refused", method: "POST", body: "unwanted", waits: true, deaf: true, fields: []string{"Expect: 100-continue"}, ways: byBytes,
		answer: reply("417 Expectation Failed", "no", "Connection: close")},
}

// manyFields are n fields of different names.
func manyFields(name string, n, size int) (fields []string) {
	for i := range n {
		fields = append(fields, fmt.Sprintf("%s-%d: %s", name, i, strings.Repeat("v", size)))
	}
	return fields
}
