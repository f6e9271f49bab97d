// Package bypass tries to get at what robots.txt disallows, with every spelling
// of a request that it can make up, against real servers behind the real heed.
//
// Each server serves the same files: canaries under disallowed paths, pages
// under allowed ones. The spellings come from a grammar (grammar_test.go) and
// from lists of tricks (testdata), and are sent in raw octets in five ways:
// plain HTTP, HTTPS intercepted with HTTP/1.1 and with HTTP/2, HTTP inside
// CONNECT, and https targets in absolute form. No canary may come back. Each
// server is asked directly as well, which shows how many of the spellings
// would have reached a canary, and what stood at its door is compared with
// heed's log.
//
// Statements of every kind about a path (statements_test.go) are tried in the same way, for a
// client with a purpose, and path parameters against a servlet container.
//
// Bodies that are requests (bodies_test.go) are sent to servers that may take what
// they have not read for the next request.
//
// One tenth of the generated spellings is sent unless HEED_TEST_FULL=1:
//
//	HEED_TEST_FULL=1 go test -count=1 -v -timeout 60m ./internal/tools/testkit/bypass
//	go test -fuzz FuzzBypass -fuzztime 10m ./internal/tools/testkit/bypass
package bypass
