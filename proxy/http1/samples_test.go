package http1

import "strings"

// requestSamples are streams that begin with a request, or with something like one.
var requestSamples = []string{
	"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"\r\nGET http://a.test/x?y HTTP/1.1\r\nHost: a.test\r\nUser-Agent: x/1\r\nAccept: */*\r\n\r\nGET /b HTTP/1.1\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n",
	"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhel",
	"PUT / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nTrailer: Sum, X\r\n\r\n5;a=b\r\nhello\r\n00A \r\n0123456789\r\n0\r\nSum: 1\r\nX: y\r\n\r\nrest",
	"PUT / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
	"PUT / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\nGET / HTTP/1.1\r\n\r\n",
	"PUT / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\rX\r\n\r\n",
	"PUT / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n8000000000000000\r\nx",
	"PUT / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 4090) + "\r\nx\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
	"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: +3\r\n\r\nabc",
	"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
	"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length : 3\r\n\r\nabc",
	"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
	"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	"GET /a HTTP/1.1\nHost: a.test\nX: y\n z\n\n",
	"GET /a HTTP/1.1\r\n X: y\r\nHost: a.test\r\n\r\n",
	"GET /a b HTTP/1.1\r\nHost: a.test\r\n\r\n", "GET  / HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET / http/1.1\r\n\r\n", "GET / HTTP/3.0\r\nHost: a\r\n\r\n", "GET / HTTP/1.7\r\nHost: a\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n\x16\x03\x01",
	"OPTIONS * HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\nConnection: close, X\r\nX: y\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 9000) + "\r\n\r\nrest",
	"GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("A: 1\r\nB: 2\r\n", 40) + "\r\nrest",
	"GARBAGE\r\n\r\n", " / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x00\x05hello", "SSH-2.0-x\r\n", "", "\r\n\r\n\r\n",
}

// answerSamples are streams that begin with an answer, or with something like one.
var answerSamples = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhelloHTTP/1.1 200 OK\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nSum: 1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\n\r\nuntil close", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nokHTTP",
	"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 5\r\n\r\n",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81",
	"HTTP/1.1 200 OK\r\nLocation : /x\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\tc\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nPower by: x\r\nP(3): y\r\nZ\u2013z: 1\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nX: a\x01b\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent\x01-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding\x0b: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\n: x\r\n\r\n",
	"HTTP/1.1 200\nServer: x\n\nbody", "HTTP/1.1  200  Fine\x01 \r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 +12 OK\r\n\r\n", "HTTP/2 200\r\n\r\n", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/0.9 200 OK\r\n\r\nx",
	"HTTP/1.1 200 OK\r\n folded\r\n\r\n", "HTTP/1.1 999 " + strings.Repeat("x", 3000) + "\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nTrailer: Content-Length\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nPragma: no-cache\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nContent-Length: 0\r\n\r\n",
	"<html>old</html>", "ICY 200 OK\r\n\r\n", "HTTP", "",
}
