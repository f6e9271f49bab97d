package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"heed/rules"
)

// targetsAsSent are targets and what goes to the site for them: octets that a
// URI may hold as they are, others in the path as escapes, as net/http does.
// Empty: nothing is sent.
var targetsAsSent = []struct{ target, sent string }{
	{"/page", "/page"},
	{"/a/../b", "/a/../b"},
	{"/a/%2e%2E/b", "/a/%2e%2E/b"},
	{"/a/./b/.", "/a/./b/."},
	{"/a//b", "/a//b"},
	{"//other.test/x", "//other.test/x"},
	{"///x", "///x"},
	{"/a%2Fb%2fc", "/a%2Fb%2fc"},
	{"/%41%7Ejoe", "/%41%7Ejoe"},
	{"/a%252Fb", "/a%252Fb"},
	{`/a\b`, "/a%5Cb"},
	{`/a\..\b%5c`, "/a%5C..%5Cb%5c"},
	{`/a%2Fb\c%41`, "/a%2Fb%5Cc%41"},
	{"/a|b^c`d", "/a%7Cb%5Ec%60d"},
	{`/a{b}"c<d>`, "/a%7Bb%7D%22c%3Cd%3E"},
	{"/caf\u00e9", "/caf%C3%A9"},
	{"/caf\xe9", "/caf%E9"},
	{"/a;p=1/b", "/a;p=1/b"},
	{"/a/.;/..;x/b", "/a/.;/..;x/b"},
	{"/a#f", "/a%23f"},
	{"/a?x#f", "/a?x%23f"},
	{"/a?x=caf\u00e9", "/a?x=caf\u00e9"},
	{"/a?", "/a?"},
	{"/a??b?", "/a??b?"},
	{"/a?b=/../c&d=%2F;e", "/a?b=/../c&d=%2F;e"},
	{`/a?b\c|d^"<>{}`, `/a?b\c|d^"<>{}`},
	{"/a:b@c!$&'()*+,=-._~", "/a:b@c!$&'()*+,=-._~"},
	{"/a[b]", "/a[b]"},
	{"", "/"},
	{"?q", "/?q"},
	{"/a%00b", ""},
	{"/%zz", ""},
	{"/a%", ""},
	{"/a%4", ""},
	{"/a b", ""},
	{"/a?b c", ""},
	{"/a? HTTP/1.1", ""},
	{"/a\tb", ""},
	{"/a\x7fb", ""},
	{"/a\x00b", ""},
}

// What is judged is what is sent, to the octet, in every way to ask: the site,
// the record and the table have the same target, and the record has what came
// where that differs.
func TestTrap15_TargetsAreJudgedAsTheyAreSent(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		for _, c := range targetsAsSent {
			if c.target == "" || c.target[0] != '/' {
				if m != plain && m != absolute {
					continue // without a path there is nothing to send in a tunnel
				}
			}
			r := r.in(t)
			before := len(r.site.requests())
			status, answered := r.askRaw(m, c.target)
			if c.sent == "" {
				if answered && status != http.StatusBadRequest {
					t.Errorf("%q: %d, want 400", c.target, status)
				}
				continue
			}
			if status != http.StatusOK {
				t.Errorf("%q: %d", c.target, status)
				continue
			}
			seen := r.site.requests()[before:]
			if got := seen[len(seen)-1].Target; got != c.sent {
				t.Errorf("%q: the site saw %q, want %q", c.target, got, c.sent)
			}
			e := r.records.target(t, c.sent)
			if e.Decision.Verdict != rules.Allow || c.target != c.sent && !strings.HasSuffix(e.Raw, c.target) {
				t.Errorf("%q: %+v", c.target, e)
			}
		}
	})
	for _, seen := range r.site.reached() {
		if strings.Contains(seen, "%00") || strings.Contains(seen, "%zz") {
			t.Errorf("the site saw %q", seen)
		}
	}
}

// askRaw asks for a target in octets. A stream that is reset is not answered.
func (r *rig) askRaw(m mode, target string) (status int, answered bool) {
	r.t.Helper()
	if m != mitmH2 {
		c, prefix := r.raw(m)
		c.Send(get(prefix, target))
		return c.Answer("GET").StatusCode, true
	}
	req := &http.Request{Method: "GET", Host: "site.test", Header: http.Header{"User-Agent": nil},
		URL: &url.URL{Scheme: "https", Host: "site.test", Opaque: "//site.test" + target}}
	resp, err := r.h2("site.test").RoundTrip(req)
	if err != nil {
		return 0, false
	}
	resp.Body.Close()
	return resp.StatusCode, true
}

// A rule that ends in "$" is not walked round by what a server cuts off.
func TestTrap15_FragmentsHideNothing(t *testing.T) {
	s := newSite(t, hello)
	s.robots = "User-agent: *\nDisallow: /end$\nDisallow: /*?x$\n"
	r := newRigBefore(t, s)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		for _, target := range []string{"/end", "/a?x", "/end/."} {
			if status, _ := r.in(t).askRaw(m, target); status != http.StatusForbidden {
				t.Errorf("%s: %d", target, status)
			}
		}
		for _, target := range []string{"/end#f", "/a?x#f"} {
			r.in(t).askRaw(m, target)
		}
	})
	for _, seen := range r.site.reached() {
		if strings.ContainsAny(seen, "#") {
			t.Errorf("the site saw a fragment: %q", seen)
		}
	}
}
