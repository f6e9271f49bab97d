package cache

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// stage is one way for an origin to misbehave: what it does with a connection
// once the header of a request has come. The connection is closed after it.
type stage func(c net.Conn, request *http.Request)

// bad starts an origin that serves every connection, for any number of
// requests, as s does.
func bad(t *testing.T, s stage) rules.Origin {
	t.Helper()
	l := listen(t)
	go testkit.Accept(l, func(c net.Conn) {
		defer c.Close()
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			s(c, r)
		}
	})
	return originOf(t, "http://"+l.Addr().String())
}

// says answers with text, unchanged.
func says(text string) stage {
	return func(c net.Conn, _ *http.Request) { _, _ = io.WriteString(c, text) }
}

// hangs answers with text, and then says nothing until the other side leaves.
func hangs(text string) stage {
	return func(c net.Conn, _ *http.Request) {
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c)
	}
}

// endless answers with text, and then with more of piece for as long as the
// other side reads.
func endless(text, piece string) stage {
	return func(c net.Conn, _ *http.Request) {
		_, err := io.WriteString(c, text)
		for err == nil {
			_, err = io.WriteString(c, piece)
		}
	}
}

// drips is endless, an octet at a time.
func drips(text string) stage {
	return func(c net.Conn, _ *http.Request) {
		_, err := io.WriteString(c, text)
		for err == nil {
			_, err = io.WriteString(c, "a")
			testkit.Delay(time.Millisecond)
		}
	}
}

const ok = "HTTP/1.1 200 OK\r\n"

// sized is an answer with a true Content-Length.
func sized(status, fields, body string) stage {
	return says(fmt.Sprintf("HTTP/1.1 %s\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, fields, len(body), body))
}

// origins misbehave, each in its way; of each it is known what heed makes of it.
func origins(t *testing.T) []struct {
	name  string
	stage stage
	want  rules.State
	why   string // in Source.Err, or in Note
} {
	self := func(c net.Conn, r *http.Request) {
		fmt.Fprintf(c, "HTTP/1.1 302 Found\r\nLocation: http://%s/robots.txt\r\nContent-Length: 0\r\n\r\n", r.Host)
	}
	pair := func(c net.Conn, r *http.Request) {
		to := map[string]string{"/robots.txt": "/a", "/a": "/b", "/b": "/a"}[r.URL.Path]
		fmt.Fprintf(c, "HTTP/1.1 301 Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", to)
	}
	deeper := func(c net.Conn, r *http.Request) {
		fmt.Fprintf(c, "HTTP/1.1 307 There\r\nLocation: %s/x\r\nContent-Length: 0\r\n\r\n", r.URL.Path)
	}
	away := "Location: http://" + testkit.FreeAddr(t) + "/\r\n"
	forms := encoded(strings.Repeat(file, 100))
	var member bytes.Buffer // 32 octets, so that the limit falls between two
	gz := gzip.NewWriter(&member)
	gz.Name = strings.Repeat("x", 31-len(zipped("")))
	gz.Close()
	utf16 := "\xff\xfe" + strings.Join(strings.Split(file, ""), "\x00") + "\x00"
	return []struct {
		name  string
		stage stage
		want  rules.State
		why   string
	}{
		// Statuses.
		{"no content", says("HTTP/1.1 204 No Content\r\n\r\n"), rules.Available, ""},
		{"accepted, as bot walls do", sized("202 Accepted", "", file), rules.Unreachable, "202"},
		{"partial, unasked", sized("206 Partial Content", "Content-Range: bytes 0-9/99\r\n", file), rules.Unreachable, "206"},
		{"not modified, without a copy", says("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n"), rules.Unreachable, "304"},
		{"multiple choices", sized("300 Multiple Choices", "", ""), rules.Unreachable, "300"},
		{"not found, with rules in it", sized("404 Not Found", "", file), rules.Unavailable, ""},
		{"gone", sized("410 Gone", "", ""), rules.Unavailable, ""},
		{"too many requests", sized("429 Too Many Requests", "Retry-After: 30\r\n", ""), rules.Unreachable, "429"},
		{"a proxy's word", sized("407 Proxy Authentication Required", "", ""), rules.Unreachable, "407"},
		{"unavailable", sized("503 Service Unavailable", "Retry-After: Tue, 99 Foo\r\n", ""), rules.Unreachable, "503"},
		{"an unknown status", sized("999 No", "", ""), rules.Unreachable, "999"},
		{"a status that is no number", says("HTTP/1.1 abc OK\r\n\r\n"), rules.Unreachable, "malformed HTTP"},
		{"switching protocols, unasked", says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), rules.Unreachable, "101"},
		{"interim answers without end", endless("", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), rules.Unreachable, ""},
		// Hangs and ends, at each stage.
		{"closes at once", says(""), rules.Unreachable, "the site closed the connection"},
		{"no answer", hangs(""), rules.Unreachable, "no answer within"},
		{"half a status line", hangs("HTTP/1.1 20"), rules.Unreachable, "no answer within"},
		{"half a header", hangs(ok + "Content-Type: text/pl"), rules.Unreachable, "no answer within"},
		{"half a header, then closes", says(ok + "Content-Type: text/pl"), rules.Unreachable, "unexpected EOF"},
		{"no body", hangs(ok + "Content-Length: 9\r\n\r\n"), rules.Unreachable, "no answer within"},
		{"half a body", hangs(ok + "Content-Length: 999\r\n\r\n" + file), rules.Unreachable, "no answer within"},
		{"a header octet by octet", drips(ok + "X: "), rules.Unreachable, "no answer within"},
		{"a body octet by octet", drips(ok + "\r\n"), rules.Unreachable, "no answer within"},
		{"hangs where it redirects to", func(c net.Conn, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				says("HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n")(c, r)
				return
			}
			hangs(ok)(c, r)
		}, rules.Unreachable, "no answer within"},
		// Lies about length.
		{"shorter than announced", says(ok + "Content-Length: 99\r\n\r\n" + file), rules.Unreachable, "unexpected EOF"},
		{"chunks without the last", says(ok + "Transfer-Encoding: chunked\r\n\r\n4\r\nUser\r\n"), rules.Unreachable, "unexpected EOF"},
		{"a chunk of a size that is none", says(ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"), rules.Unreachable, "invalid byte in chunk"},
		{"two lengths", says(ok + "Content-Length: 4\r\nContent-Length: 40\r\n\r\n" + file), rules.Unreachable, "Content-Length"},
		{"a length below nothing", says(ok + "Content-Length: -1\r\n\r\n" + file), rules.Unreachable, "Content-Length"},
		{"an enormous length", says(ok + "Content-Length: 9223372036854775807\r\n\r\n" + file), rules.Unreachable, "unexpected EOF"},
		{"longer than announced", says(ok + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(file)) + file + "garbage"), rules.Available, ""},
		// Too much.
		{"a body without end", endless(ok+"\r\n", strings.Repeat("Disallow: /x\n", 100)), rules.Available, "longer than 4 MiB"},
		{"one line without end", endless(ok+"\r\n", strings.Repeat("x", 1600)), rules.Available, "longer than 4 MiB"},
		{"chunks of one octet without end", endless(ok+"Transfer-Encoding: chunked\r\n\r\n", strings.Repeat("1\r\n#\r\n", 1000)), rules.Available, "longer than 4 MiB"},
		{"a header without end", endless(ok, strings.Repeat("X-Y: zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\r\n", 100)), rules.Unreachable, "headers exceeded"},
		{"a long header", says(ok + "X: " + strings.Repeat("z", maxHeader) + "\r\n\r\n" + file), rules.Unreachable, "a header longer than"},
		// Codings.
		{"half a gzip", sized("200 OK", "Content-Encoding: gzip\r\n", string(forms["gzip"][:40])), rules.Unreachable, "unexpected EOF"},
		{"plain text called gzip", sized("200 OK", "Content-Encoding: gzip\r\n", file), rules.Unreachable, "invalid header"},
		{"plain text called zstd", sized("200 OK", "Content-Encoding: zstd\r\n", file), rules.Unreachable, "magic number"},
		{"a gzip of a gzip", sized("200 OK", "Content-Encoding: gzip, gzip\r\n", string(forms["gzip"])), rules.Unreachable, "content coding"},
		{"a coding that was not offered", sized("200 OK", "Content-Encoding: compress\r\n", "x"), rules.Unreachable, `content coding that was not offered ("compress")`},
		{"a gzip of nothing without end", endless(ok+"Content-Encoding: gzip\r\n\r\n", string(zipped(""))), rules.Unreachable, "longer gzip form than"},
		{"one that can end at the limit", endless(ok+"Content-Encoding: gzip\r\n\r\n", strings.Repeat(member.String(), 1000)), rules.Unreachable, "longer gzip form than"},
		// What is no robots.txt.
		{"a page", sized("200 OK", "Content-Type: text/html\r\n", "<!DOCTYPE html><html><h1>Hello</h1></html>"), rules.Unavailable, "HTML"},
		{"a challenge page", sized("200 OK", "Content-Type: text/html\r\n", "<html><script>window._cf_chl_opt={}</script></html>"), rules.Unreachable, "challenge page"},
		{"a challenge page of a refusal", sized("403 Forbidden", "Content-Type: text/html\r\nContent-Encoding: gzip\r\n", string(zipped("<html><script>window._cf_chl_opt={}</script></html>"))), rules.Unreachable, "challenge page"},
		{"a challenge in a field", sized("404 Not Found", "Cf-Mitigated: challenge\r\n", "x"), rules.Unreachable, "challenge page"},
		{"half a page of a refusal", hangs("HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 999\r\n\r\n<html>"), rules.Unavailable, ""},
		{"a page of a refusal without end", endless("HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n", "<p>no</p>"), rules.Unavailable, ""},
		{"a refusal that is not decodable", sized("404 Not Found", "Content-Type: text/html\r\nContent-Encoding: br\r\n", "<html>"), rules.Unavailable, ""},
		{"another protocol", says("SSH-2.0-OpenSSH_9.2\r\n"), rules.Unreachable, "malformed HTTP"},
		{"TLS on the port of http", says("\x15\x03\x01\x00\x02\x02\x46"), rules.Unreachable, "malformed HTTP"},
		{"octets of no charset", sized("200 OK", "Content-Type: text/plain; charset=klingon\r\n", "\xff\x80\n"+file), rules.Available, ""},
		{"Latin-1", sized("200 OK", "Content-Type: text/plain; charset=iso-8859-1\r\n", "# \xe9t\xe9\n"+file), rules.Available, ""},
		{"UTF-16", sized("200 OK", "Content-Type: text/plain; charset=utf-16\r\n", utf16), rules.Available, ""},
		{"octets of zero", sized("200 OK", "", strings.Repeat("\x00", 5000)+"\n"+file), rules.Available, ""},
		// Redirects.
		{"to itself", self, rules.Unreachable, "circle"},
		{"in a circle of two", pair, rules.Unreachable, "circle"},
		{"deeper and deeper", deeper, rules.Unreachable, "more than 10 times"},
		{"nowhere", sized("302 Found", "", ""), rules.Unreachable, "without a Location"},
		{"to itself, with a fragment", sized("302 Found", "Location: /robots.txt#x\r\n", ""), rules.Unreachable, "circle"},
		{"to a file", sized("302 Found", "Location: file:///etc/passwd\r\n", ""), rules.Unreachable, "neither http nor https"},
		{"to another scheme", sized("302 Found", "Location: ftp://127.0.0.1/robots.txt\r\n", ""), rules.Unreachable, "neither http nor https"},
		{"to an odd address", sized("302 Found", "Location: http://2130706433/\r\n", ""), rules.Unreachable, "invalid host"},
		{"to no host", sized("302 Found", "Location: http:///robots.txt\r\n", ""), rules.Unreachable, "invalid host"},
		{"to rubbish", sized("302 Found", "Location: http://[::1\r\n", ""), rules.Unreachable, "no valid URL"},
		{"to a very long address", sized("302 Found", "Location: /"+strings.Repeat("x", 9000)+"\r\n", ""), rules.Unreachable, "longer than 8192"},
		{"to who is not there", sized("302 Found", away, ""), rules.Unreachable, "connection refused"},
		{"with a body without end", endless("HTTP/1.1 302 Found\r\n"+away+"\r\n", "xxxxxxxx"), rules.Unreachable, "connection refused"},
		// Times.
		{"a Date of long ago, a life of an hour", sized("200 OK", "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nExpires: Thu, 01 Jan 1970 01:00:00 GMT\r\n", file), rules.Available, ""},
		{"a Date of the far future", sized("200 OK", "Date: Fri, 31 Dec 9999 23:59:59 GMT\r\nExpires: Fri, 31 Dec 9999 23:59:59 GMT\r\n", file), rules.Available, ""},
		{"dates that are none", sized("200 OK", "Date: yesterday\r\nExpires: -1\r\nAge: -7\r\nLast-Modified: \r\n", file), rules.Available, ""},
	}
}

// Whatever an origin does, its clients have a policy in time, what could not be
// read refuses, and nothing of the bounds is lost.
func TestHeed_OriginsThatMisbehave(t *testing.T) {
	t.Parallel()
	all := origins(t)
	must.Need(t, len(all) >= 30, "%d ways to misbehave", len(all))
	lanes := &FetchLimits{}
	t.Run("all", func(t *testing.T) {
		for _, b := range all {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				limit := time.Minute
				if strings.Contains(b.why, "no answer within") {
					limit = 5 * time.Second // for its connection, on a busy machine
				}
				c, clock := newCache(t, Config{Timeout: limit, Limits: lanes})
				p := c.Policy(t.Context(), bad(t, b.stage), "")
				src := p.Source()
				said := src.Note
				if src.Err != nil {
					said = src.Err.Error()
				}
				must.True(t, src.State == b.want && strings.Contains(said, b.why),
					"%v %q; want %v %q", src.State, said, b.want, b.why)
				verdict := p.Decide(nil, rules.NewTarget("/private")).Verdict
				must.True(t, src.State != rules.Unreachable || verdict == rules.Refuse, "verdict %v", verdict)
				must.True(t, !src.NoConnection, "it was reached, and is said not to have been")
				until := src.RetryAt
				if src.State != rules.Unreachable {
					until = src.FreshUntil
				}
				in := until.Sub(clock.Now())
				must.True(t, in >= minRetryAfter && in <= maxLifetime, "asked again in %s", in)
			})
		}
	})
	lanes.empty(t)
}

// empty fails the test unless every fetch has given back what it held.
func (l *FetchLimits) empty(t *testing.T) {
	t.Helper()
	for name, lane := range map[string]*fetchLimiter{"turns": &l.fetches, "long": &l.longBodies} {
		lane.mu.Lock()
		must.True(t, lane.running == 0 && len(lane.sites) == 0 && len(lane.waiting) == 0,
			"%s: %d running, %d waiting, sites %v", name, lane.running, len(lane.waiting), lane.sites)
		lane.mu.Unlock()
	}
}

func TestHeed_OriginsThatMisbehaveInTLS(t *testing.T) {
	refuses := func(name, why string, s *httptest.Server, tr *http.Transport) {
		t.Helper()
		s.Config.ErrorLog = quiet()
		s.StartTLS()
		t.Cleanup(s.Close)
		c, _ := newCache(t, Config{Transport: tr})
		src := c.Policy(t.Context(), originOf(t, s.URL), "").Source()
		must.True(t, src.State == rules.Unreachable && src.NoConnection && src.Err != nil && strings.Contains(src.Err.Error(), why),
			"%s: %+v", name, src)
	}
	refuses("a certificate that no authority signed", "certificate", httptest.NewUnstartedServer(http.NotFoundHandler()), &http.Transport{})
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	refuses("a version of long ago", "protocol version", old, &http.Transport{})
	alert := httptest.NewUnstartedServer(http.NotFoundHandler())
	alert.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, io.EOF }}
	refuses("an alert", "internal error", alert, &http.Transport{})

	speaksPlain := bad(t, says("HTTP/1.1 400 Bad Request\r\n\r\n"))
	speaksPlain.Scheme = "https"
	silent := originOf(t, "https://"+listen(t).Addr().String())
	for name, o := range map[string]rules.Origin{"http on the port of https": speaksPlain, "no handshake": silent} {
		c, _ := newCache(t, Config{Timeout: time.Second})
		// The request and the fetch have the same time: the request's can end first.
		testkit.Until(t, name+" is no connection", func() bool {
			src := c.Policy(t.Context(), o, "").Source()
			return src.State == rules.Unreachable && src.NoConnection
		})
	}
}

// A slow site costs its own clients only: however many wait for it, and however
// many such sites there are, others are answered meanwhile.
func TestHeed_ASlowSiteCostsItsOwnClientsOnly(t *testing.T) {
	release := make(chan struct{})
	arrived := make(chan struct{}, 1000)
	lanes := &FetchLimits{}
	c, _ := newCache(t, Config{Limits: lanes, Transport: transport(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Hostname(), ".slow.test") {
			arrived <- struct{}{}
			<-release
		}
		return &http.Response{StatusCode: 404, Header: http.Header{}, Body: http.NoBody}, nil
	})})
	waited := make(chan *rules.Policy)
	const hosts = 5 * maxSiteFetches
	for n := range hosts {
		go func() {
			waited <- c.Policy(t.Context(), rules.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.slow.test", n), Port: 80}, "")
		}()
	}
	for range maxSiteFetches {
		<-arrived
	}
	for n := range 100 {
		o := rules.Origin{Scheme: "http", Host: fmt.Sprintf("quick%d.test", n), Port: 80}
		must.Is(t, c.Policy(t.Context(), o, "").Source().State, rules.Unavailable, o.Host)
	}
	must.Equal(t, len(arrived), 0, "more than its share of the slow site's fetches ran")
	close(release)
	for range hosts {
		inState(t, (<-waited).Source(), rules.Unavailable)
	}
	lanes.empty(t)
}
