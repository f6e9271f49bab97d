package proxy

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/http1"
	"heed/rules"
)

// asSent is a target and what goes to the site for it: the octets as they
// came, but for what would be cut off at a "#". Empty: nothing is sent.
type asSent struct{ target, sent string }

var targetsAsSent = []asSent{
	{"/page", "/page"},
	{"/a/../b", "/a/../b"},
	{"/a/%2e%2E/b", "/a/%2e%2E/b"},
	{"/a/./b/.", "/a/./b/."},
	{"/a//b", "/a//b"},
	{"//other.test/x", "//other.test/x"},
	{"///x", "///x"},
	{"//a|b?c|d", "//a|b?c|d"},
	{"/a%2Fb%2fc", "/a%2Fb%2fc"},
	{"/%41%7Ejoe", "/%41%7Ejoe"},
	{"/a%252Fb", "/a%252Fb"},
	{`/a\b`, `/a\b`},
	{`/a\..\b%5c`, `/a\..\b%5c`},
	{`/a%2Fb\c%41`, `/a%2Fb\c%41`},
	{"/a|b^c`d", "/a|b^c`d"},
	{`/a{b}"c<d>`, `/a{b}"c<d>`},
	{"/caf\u00e9", "/caf\u00e9"},
	{"/caf\xe9", "/caf\xe9"},
	{"/caf\u00e9?x=caf\xe9", "/caf\u00e9?x=caf\xe9"},
	{"/a;p=1/b", "/a;p=1/b"},
	{"/a/.;/..;x/b", "/a/.;/..;x/b"},
	{"/a#f", "/a%23f"},
	{"/a?x#f", "/a?x%23f"},
	{"/a|b?x#f", "/a|b?x%23f"},
	{"/a?x=caf\u00e9", "/a?x=caf\u00e9"},
	{"/a?", "/a?"},
	{"/a|?", "/a|?"},
	{"/a??b?", "/a??b?"},
	{"/a?b=/../c&d=%2F;e", "/a?b=/../c&d=%2F;e"},
	{`/a?b\c|d^"<>{}`, `/a?b\c|d^"<>{}`},
	{"/a:b@c!$&'()*+,=-._~", "/a:b@c!$&'()*+,=-._~"},
	{"/a[b]", "/a[b]"},
	{"", "/"},
	{"?q", "/?q"},
	{"/a%00b", ""},
	{"/%u0070rivate", ""},
	{"/a b", ""},
	{"/a?b c", ""},
	{"/a? HTTP/1.1", ""},
	{"/a\tb", ""},
	{"/a\x7fb", ""},
	{"/a\x00b", ""},
}

// oddTargets have a "%" in their path that begins no escape.
var oddTargets = []asSent{
	{"/100%-cotton", "/100%-cotton"},
	{"/%zz", "/%zz"},
	{"/a%", "/a%"},
	{"/a%4", "/a%4"},
	{"/%", "/%"},
	{"/%25%zz%2F|?%zz", "/%25%zz%2F|?%zz"},
	{"/%zz#%", "/%zz%23%"},
	{"/%%20%2", "/%%20%2"},
	{"/a%zz?b c", ""},
	{"/a%zz%00", ""},
	{"//a%zz", "//a%zz"},
}

// What is judged is what is sent, to the octet, in every way to ask: the site,
// the record and the table have the same target, and the record has what came
// where that differs.
func TestTargetsAreJudgedAsTheyAreSent(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, allModes, func(t *testing.T, m mode) { r.in(t).askTargets(m, targetsAsSent) })
	must.Lack(t, strings.Join(r.site.reached(), "\n"), "%00", "the site saw")
}

// askTargets asks for each target, and compares what goes to the site and into the record.
func (r *rig) askTargets(m mode, targets []asSent) {
	r.t.Helper()
	for _, c := range targets {
		if (c.target == "" || c.target[0] != '/') && m != plain && m != absolute {
			continue // without a path there is nothing to send in a tunnel
		}
		before := len(r.site.requests())
		status := r.askRaw(m, c.target)
		if c.sent == "" {
			must.Equal(r.t, status, http.StatusBadRequest, "%q", c.target)
			continue
		}
		seen := r.site.requests()[before:]
		if status != http.StatusOK || len(seen) == 0 || seen[len(seen)-1].Target != c.sent {
			r.t.Errorf("%q: %d, and the site saw %v, want %q", c.target, status, seen, c.sent)
			continue
		}
		e := r.records.target(r.t, c.sent)
		must.True(r.t, e.Decision.Verdict == rules.Allow && (e.Target == c.target || strings.HasSuffix(e.Raw, c.target)),
			"%q: %+v", c.target, e)
	}
}

// newLenientSite returns a site that serves every target of a request line as site.test,
// over HTTP/1, also those that net/http's parser rejects.
func newLenientSite(t testing.TB) *site {
	s := newSite(t, hello)
	cert := must.Get(tls.LoadX509KeyPair(s.ca.Leaf(t, "site.test")))(t)
	config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}}
	go testkit.Accept(s.listen(t, "site.test:80"), s.serveLeniently)
	go testkit.Accept(tls.NewListener(s.listen(t, "site.test:443"), config), s.serveLeniently)
	return s
}

// serveLeniently answers the requests on c.
func (s *site) serveLeniently(c net.Conn) {
	defer c.Close()
	heads, out := http1.Reader{From: c}, http1.Writer{To: c}
	for {
		var h http1.Head
		var body http1.Body
		if heads.ReadRequest(&h) != nil {
			return
		}
		body.Reset(&heads, &h)
		r, err := h.Request(context.Background(), rules.EscapePercents(h.Target), &body)
		if err != nil {
			return
		}
		s.note(r)
		_, _ = io.Copy(io.Discard, r.Body)
		text := ""
		if r.URL.Path == "/robots.txt" {
			text = s.robots
		}
		_ = out.Begin(&http1.Message{Status: 200, Phrase: "OK", Framing: http1.Sized, Length: int64(len(text)), Close: h.Close})
		_, _ = io.WriteString(&out, text)
		if out.End(nil) != nil || h.Close {
			return
		}
	}
}

// A "%" that begins no escape is a literal "%": it is judged as one, and reaches the
// site as it came.
func TestOddPercentsReachTheSiteAsTheyCame(t *testing.T) {
	s := newLenientSite(t)
	s.robots = "User-agent: *\nDisallow: /50%-off\nDisallow: /%25zz/no\n"
	r := newRigBefore(t, s)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		r := r.in(t)
		r.askTargets(m, oddTargets)
		for _, refused := range []string{"/50%-off", "/50%25-off/x", "/%zz/no", "/%25zz/no"} {
			must.Equal(t, r.askRaw(m, refused), http.StatusForbidden, refused)
		}
	})
}

// A site that resets HTTP/2 streams for such a target is not asked for a minute.
func TestOddPercentsThatASiteResets(t *testing.T) {
	r := newRig(t, hello)
	c, prefix := r.raw(mitmH1)
	c.Send(get(prefix, "/%zz")) // to net/http's HTTP/2
	if a := c.Answer("GET"); a.StatusCode != http.StatusBadGateway || proxyStatusOf(t, a.Header) != "connection_terminated" {
		t.Errorf("%s %v", a.Status, a.Header)
	}
}

// Several requests of one connection, with and without bodies, keep their targets.
func TestOddPercentsOnOneConnection(t *testing.T) {
	r := newRigBefore(t, newLenientSite(t))
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		post := func(path, framing string) string {
			return "POST " + prefix + path + " HTTP/1.1\r\nHost: site.test\r\n" + framing
		}
		c.Send(post("/%a?1", "Content-Length: 5\r\n\r\n%zz G") + get(prefix, "/%zz?2") +
			post("/%?3", "Transfer-Encoding: chunked\r\n\r\n3\r\n%zz\r\n0\r\n\r\n") + get(prefix, "/plain?4") + get(prefix, "/%?5"))
		for n := range 5 {
			must.Status(t, c.Answer("GET").Response, http.StatusOK, "request %d", n)
		}
		for _, target := range []string{"/%a?1", "/%zz?2", "/%?3", "/plain?4", "/%?5"} {
			r.site.last(t, target)
		}
	})
}

// askRaw asks for a target in bytes.
func (r *rig) askRaw(m mode, target string) (status int) {
	r.t.Helper()
	if m != mitmH2 {
		c, prefix := r.raw(m)
		c.Send(get(prefix, target))
		return c.Answer("GET").StatusCode
	}
	status, _ = strconv.Atoi(r.rawH2().ask(":method", "GET", ":scheme", "https", ":authority", "site.test", ":path", target))
	return status
}
