package transparent

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
)

// bodies are kinds of framing and content.
var bodies = []*shape{
	{name: "length", answer: hello},
	{name: "length 0", answer: reply("200 OK", "")},
	{name: "large length", answer: reply("200 OK", strings.Repeat("0123456789abcdef", 1<<16))},
	{name: "chunks", answer: inPieces("one ", "two ", "three") + "0\r\n\r\n"},
	{name: "no chunks", answer: inPieces() + "0\r\n\r\n"},
	{name: "one octet each", answer: inPieces(strings.Split(strings.Repeat("ab", 200), "")...) + "0\r\n\r\n"},
	{name: "large chunks", answer: inPieces(strings.Repeat("x", 100000), strings.Repeat("y", 200000)) + "0\r\n\r\n"},
	{name: "chunk extensions", answer: chunkedHead + "5;a=b\r\nhello\r\n0;last\r\n\r\n"},
	{name: "chunks and a length", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		changed: func(_ way, a *answer, _ *arrival) { delete(a.header, "content-length") }}, // RFC 9112 §6.3
	{name: "no length, closed", hangup: true, answer: "HTTP/1.1 200 OK\r\n\r\nuntil the end"},
	{name: "no length, announced close", hangup: true, answer: "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + strings.Repeat("until the end ", 10000)},
	{name: "no length, empty", hangup: true, answer: "HTTP/1.1 200 OK\r\n\r\n"},
	{name: "short of its length", hangup: true, answer: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbroken"},
	{name: "chunks that break off", hangup: true, answer: inPieces("broken")},
	{name: "gzip", fields: []string{"Accept-Encoding: gzip"}, answer: reply("200 OK", gzipped, "Content-Encoding: gzip", "Content-Type: text/plain", "Vary: Accept-Encoding", "ETag: \"z\"")},
	{name: "gzip that was not asked for", answer: reply("200 OK", gzipped, "Content-Encoding: gzip")},
	{name: "gzip in chunks", fields: []string{"Accept-Encoding: gzip"}, answer: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" +
		fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(gzipped), gzipped)},
	{name: "br and zstd by name", fields: []string{"Accept-Encoding: br, zstd"}, answer: reply("200 OK", "\x8b\x02\x80hello\x03", "Content-Encoding: br, zstd")},
	{name: "head of gzip", method: "HEAD", fields: []string{"Accept-Encoding: gzip"}, answer: fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", len(gzipped))},
	{name: "trailers", fields: []string{"TE: trailers"}, answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, X-Other\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n"},
	{name: "trailers not announced", answer: inPieces("hello") + "0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n"},
	{name: "trailers announced and others", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n"},
	{name: "trailers announced and not sent", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
	{name: "a trailer named like a field", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nX-Sum: early\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: late\r\n\r\n"},
	{name: "trailers after nothing", answer: inPieces() + "0\r\nX-Sum: 1\r\n\r\n"},
	{name: "trailers of one hop", answer: inPieces("hello") + "0\r\nX-Sum: 1\r\nProxy-Authenticate: Basic realm=phish\r\nConnection: close\r\nKeep-Alive: 1\r\n\r\n"},
	{name: "upload of a megabyte", method: "PUT", body: strings.Repeat("0123456789abcdef", 1<<16), answer: hello},
	{name: "upload of a megabyte in chunks", method: "PUT", body: strings.Repeat("0123456789abcdef", 1<<16), chunked: true, answer: hello},
	{name: "upload refused unread", method: "POST", body: strings.Repeat("0123456789abcdef", 1<<8), deaf: true, ways: byBytes,
		answer: reply("413 Content Too Large", "too large", "Connection: close")},
	{name: "download for an upload", method: "POST", body: strings.Repeat("u", 1<<18), answer: reply("200 OK", strings.Repeat("d", 1<<18))},
	{name: "nul and every octet", answer: reply("200 OK", everyOctet, "Content-Type: application/octet-stream")},
	{name: "events", answer: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"},
	{name: "body that looks like an answer", answer: reply("200 OK", "HTTP/1.1 500 No\r\nConnection: close, X-End\r\nContent-Length: 0\r\n\r\n", "X-End: 1")},
}

const chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

// inPieces is an answer in chunks, without its end.
func inPieces(pieces ...string) string {
	var b strings.Builder
	b.WriteString(chunkedHead)
	for _, p := range pieces {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(p), p)
	}
	return b.String()
}

var gzipped = func() string {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	io.WriteString(z, strings.Repeat("a page of text ", 500))
	z.Close()
	return b.String()
}()

var everyOctet = func() string {
	var b strings.Builder
	for i := range 256 * 20 {
		b.WriteByte(byte(i))
	}
	return b.String()
}()
