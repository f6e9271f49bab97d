package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
	"heed/rules"
)

// broken is a request that is none; %P is replaced by the text before a path.
type broken struct {
	name   string
	bytes  string
	status int
}

var malformedRequests = []broken{
	{"no request line", "GARBAGE\r\n\r\n", 400},
	{"two spaces", "GET  %P/ HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"no version", "GET %P/\r\nHost: site.test\r\n\r\n", 400},
	{"lower-case version", "GET %P/ http/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"method with a control", "G\x01T %P/ HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"version 3", "GET %P/ HTTP/3.0\r\nHost: site.test\r\n\r\n", 505},
	{"space in the target", "GET %P/a b HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"control in the target", "GET %P/a\x7fb HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"NUL in the path", "GET %P/a%00b HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"NUL in a field", "GET %P/ HTTP/1.1\r\nHost: site.test\r\nX: a\x00b\r\n\r\n", 400},
	{"two lengths", "POST %P/ HTTP/1.1\r\nHost: site.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 400},
	{"signed length", "POST %P/ HTTP/1.1\r\nHost: site.test\r\nContent-Length: +1\r\n\r\nx", 400},
	{"unknown coding", "POST %P/ HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: xchunked\r\n\r\n", 501},
	{"two codings", "POST %P/ HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
	{"space before colon", "GET %P/ HTTP/1.1\r\nHost: site.test\r\nContent-Length : 1\r\n\r\nx", 400},
	{"folded first", "GET %P/ HTTP/1.1\r\n X: y\r\nHost: site.test\r\n\r\n", 400},
	{"no Host", "GET %P/ HTTP/1.1\r\n\r\n", 400},
	{"two Hosts", "GET %P/ HTTP/1.1\r\nHost: site.test\r\nHost: h1.test\r\n\r\n", 400},
	{"bad Host", "GET %P/ HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
	{"unknown expectation", "POST %P/ HTTP/1.1\r\nHost: site.test\r\nContent-Length: 1\r\nExpect: tea\r\n\r\nx", 417},
	{"large field", "GET %P/ HTTP/1.1\r\nHost: site.test\r\nX: " + strings.Repeat("x", 2*limit.DefaultHeaderBytes) + "\r\n\r\n", 431},
	{"large target", "GET %P/" + strings.Repeat("x", 2*limit.DefaultHeaderBytes) + " HTTP/1.1\r\nHost: site.test\r\n\r\n", 431},
	{"asterisk", "GET * HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"HTTP/2 in clear", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
}

// Requests that only the proxy's own port can get wrong.
var malformedProxyRequests = []broken{
	{"userinfo", "GET http://user:secret@site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"ftp", "GET ftp://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"file", "GET file:///etc/passwd HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"no host", "GET http:///page HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"opaque", "GET http:user:secret@site.test/page HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"userinfo after PRI", "PRI http://bob:secret@site.test/first HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"userinfo in place of a method", "http://bob:secret@site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"userinfo after a tab", "GET\thttp://bob:secret@site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"bad port", "GET http://site.test:99999/ HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"host with a space", "GET http://site%20.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"origin form", "GET /page HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"CONNECT without port", "CONNECT site.test HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"CONNECT with an empty port", "CONNECT site.test: HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"CONNECT with a path", "CONNECT /page HTTP/1.1\r\nHost: site.test:443\r\n\r\n", 400},
	{"CONNECT with host and path", "CONNECT site.test:443/page HTTP/1.1\r\nHost: site.test:443\r\n\r\n", 400},
	{"CONNECT with userinfo", "CONNECT user:secret@site.test:443 HTTP/1.1\r\nHost: site.test:443\r\n\r\n", 400},
	{"CONNECT to a URL", "CONNECT http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n", 400},
	{"TLS", "\x16\x03\x01\x00\x05hello\r\n\r\n", 400},
}

// What is not HTTP gets an answer that says so, with Proxy-Status; the
// connection closes, the record has it, the next client is served.
func TestHeed_MalformedRequestsAreAnsweredRecordedAndClosed(t *testing.T) {
	r := newRig(t, hello)
	test := func(t *testing.T, m mode, b broken) {
		t.Parallel()
		c, prefix := r.in(t).raw(m)
		self, begun := c.LocalAddr().String(), time.Now()
		c.Send(strings.ReplaceAll(b.bytes, "%P", prefix))
		a := c.Answer("GET")
		got := proxyStatusOf(t, a.Header)
		must.True(t, a.StatusCode == b.status && got == "http_request_error", "%s %q, want %d", a.Status, got, b.status)
		must.Contain(t, a.Status, " Refused by heed: ", "the status line says")
		c.Closed()
		e := r.records.await(t, b.name, func(e *audit.Entry) bool { return e.Client == self && e.Time.After(begun) })
		reason := rules.ReasonMalformed
		if b.status == http.StatusRequestHeaderFieldsTooLarge {
			reason = rules.ReasonLimit
		}
		must.True(t, e.Decision.Reason == reason && e.Outcome.Status == b.status && e.Detail != "", "record %+v", e)
		must.True(t, int(e.Outcome.BytesOut) == len(a.Body) && e.Outcome.Duration > 0 && !e.Outcome.Truncated,
			"%d octets were answered, and the record has %+v", len(a.Body), e.Outcome)
		must.True(t, m != mitmH1 && m != inTunnel || e.Host == "site.test",
			"the record does not say where the tunnel led: %+v", e)
		must.Lack(t, e.Method+e.Raw+e.Target+e.Host+e.Detail+string(a.Body), "secret", "credentials are answered or recorded: %+v", e)
	}
	t.Run("all", func(t *testing.T) {
		eachMode(t, rawModes, func(t *testing.T, m mode) {
			for _, b := range malformedRequests {
				t.Run(b.name, func(t *testing.T) { test(t, m, b) })
			}
		})
		for _, m := range tunnels {
			t.Run("CONNECT in "+string(m), func(t *testing.T) {
				test(t, m, broken{"CONNECT inside", "CONNECT site.test:443 HTTP/1.1\r\nHost: site.test\r\n\r\n", 400})
			})
		}
		for _, b := range malformedProxyRequests {
			t.Run(b.name, func(t *testing.T) { test(t, plain, b) })
		}
	})
	must.Same(t, r.site.reached(), nil, "what the site saw")
	eachMode(t, allModes, func(t *testing.T, m mode) {
		a := r.in(t).ask(m, question{path: "/fine"})
		must.True(t, a.StatusCode == 200, "%s", a.Status)
	})
}

// A malformed request after a good one is answered as such as well: the answer before it
// is complete.
func TestHeed_MalformedRequestAfterAGoodOne(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		c.Send(get(prefix, "/page") + "GARBAGE\r\n\r\n" + get(prefix, "/after"))
		must.Status(t, c.Answer("GET").Response, 200, "the good one")
		a := c.Answer("GET")
		must.True(t, a.StatusCode == 400 && proxyStatusOf(t, a.Header) == "http_request_error", "the bad one: %s", a.Status)
		c.Closed()
	})
	must.Lack(t, strings.Join(r.site.reached(), "\n"), "/after", "what followed a malformed request was forwarded")
}

// A page that begins like a status line is not edited, and not recorded as one.
func TestHeed_BodyThatLooksLikeAHeadIsUntouched(t *testing.T) {
	const body = "HTTP/1.1 400 Bad Request\r\nX: y\r\n\r\n"
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush() // the body gets a write of its own
		io.WriteString(w, body)
	})
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		for range 2 {
			c.Send(get(prefix, "/page"))
			must.Equal(t, string(c.Answer("GET").Body), body)
		}
	})
}

// HTTP/2 carries a method that HTTP/1 could not: it is refused before a rule is
// applied to its target, and recorded as it came.
func TestMethodThatIsNotATokenIsMalformed(t *testing.T) {
	r := newRig(t, hello)
	got := r.rawH2().ask(":method", "GET /private", ":scheme", "https", ":authority", "site.test", ":path", "/page")
	must.True(t, got == "400", "status %s, want 400", got)
	e := r.records.await(t, "the malformed request", func(e *audit.Entry) bool { return e.Decision.Reason == rules.ReasonMalformed })
	must.True(t, e.Method == "GET /private" && e.Decision.Verdict == rules.Refuse, "%+v", e)
	must.Same(t, r.site.reached(), nil, "what the site saw")
}

// A CONNECT with a URL is recorded as one to the site in the URL: its scheme is no host.
func TestConnectToAURLIsRecordedWithItsHost(t *testing.T) {
	r := newRig(t, hello)
	for target, want := range map[string]string{
		"http://site.test/x": "http site.test", "https://site.test:8443/": "https site.test:8443", "http://[::1]/": "http [::1]", "http://user:pass@/": " ",
	} {
		c, _ := r.raw(plain)
		agent := strings.Trim(strings.ReplaceAll(want, " ", "-"), "[]") + "-bot"
		c.Send("CONNECT " + target + " HTTP/1.1\r\nHost: site.test\r\nUser-Agent: " + agent + "\r\n\r\n")
		must.Status(t, c.Answer("CONNECT").Response, 400, target)
		e := r.records.await(t, target, func(e *audit.Entry) bool { return e.UserAgent == agent })
		must.Equal(t, e.Scheme+" "+e.Host, want, "%s is recorded as one to", target)
	}
}
