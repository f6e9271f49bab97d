package proxy

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
	"heed/rules"
)

// behindBalancers makes the networks of loopback those of load balancers.
func behindBalancers(c *Config) {
	c.Balancers = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	c.Rules = &acl.Rules{From: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
}

const (
	header4    = "PROXY TCP4 192.0.2.1 198.51.100.7 8080 80\r\n"
	foreign4   = "PROXY TCP4 203.0.113.9 198.51.100.7 8080 80\r\n"
	local2     = "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"
	publicPage = "GET http://site.test/public HTTP/1.1\r\nHost: site.test\r\n\r\n"
	noHeader   = "no PROXY protocol header came from the load balancer"
	ownsCheck  = "sent a request of its own (LOCAL"
)

func TestPROXY_TheClientIsTheOneOfTheHeader(t *testing.T) {
	r := newRig(t, hello, behindBalancers)
	for sent, want := range map[string]struct {
		status         int
		client, detail string
	}{
		header4 + publicPage:            {200, "192.0.2.1:8080", ""},
		foreign4 + publicPage:           {403, "203.0.113.9:8080", ""},
		publicPage:                      {400, "127.0.0.1:", noHeader},
		local2 + publicPage:             {400, "127.0.0.1:", ownsCheck},
		"PROXY UNKNOWN\r\n":             {400, "127.0.0.1:", "names no TCP address"},
		"PROXY TCP4 x\r\n" + publicPage: {400, "127.0.0.1:", "cannot be read"},
	} {
		before := len(r.records.all())
		c := testkit.Dial(t, r.addr)
		c.Send(sent)
		if a := c.Answer("GET"); a.StatusCode != want.status || want.detail != "" && !strings.Contains(string(a.Body), want.detail) {
			t.Errorf("%q: %s %s", sent, a.Status, a.Body)
		}
		if e := r.records.after(t, before); !strings.HasPrefix(e.Client, want.client) || !strings.Contains(e.Detail, want.detail) || want.status == 400 && e.Decision.Reason != rules.ReasonMalformed {
			t.Errorf("%q: %s, %v, %q", sent, e.Client, e.Decision.Reason, e.Detail)
		}
	}
}

// A load balancer that only connects, with or without a header, asks for nothing.
func TestPROXY_ACheckThatOnlyConnectsIsNoRequest(t *testing.T) {
	r := newRig(t, hello, behindBalancers)
	for _, sent := range []string{"", local2} {
		c := testkit.Dial(t, r.addr)
		c.Send(sent)
		c.CloseWrite()
		c.Closed()
	}
	must.Same(t, r.records.all(), nil, "recorded")
}

// A header is read within the time for heads, and a forged one from another address is no
// header.
func TestPROXY_AHeaderIsBoundedInTimeAndBelievedOnlyOfBalancers(t *testing.T) {
	slow := newRig(t, hello, behindBalancers, func(c *Config) { c.Limits = limit.Limits{HeaderTime: 50 * time.Millisecond} })
	c := testkit.Dial(t, slow.addr)
	c.Send("PROXY TCP4 192")
	a := c.Answer("GET")
	must.True(t, a.StatusCode == 400 && strings.Contains(string(a.Body), "limits.header_time"), "%s %s", a.Status, a.Body)
	forged := newRig(t, hello, func(c *Config) { c.Balancers = []netip.Prefix{netip.MustParsePrefix("10.0.0.5/32")} })
	c = testkit.Dial(t, forged.addr)
	c.Send(header4 + publicPage)
	a = c.Answer("GET")
	must.True(t, a.StatusCode == 400 && strings.Contains(string(a.Body), "proxy_protocol"), "%s %s", a.Status, a.Body)
	e := forged.records.after(t, 0)
	must.True(t, strings.HasPrefix(e.Client, "127.0.0.1:") && e.Decision.Reason == rules.ReasonMalformed, "%+v", e)
}

// On a transparent listener the header names the original destination too.
func TestPROXY_TheDestinationOfARedirectedConnectionIsThatOfTheHeader(t *testing.T) {
	r := newRig(t, hello)
	at := r.redirectedTo("192.0.2.99:80", func(l *Transparent) {
		l.Balancers = func() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} }
	})
	c := testkit.Dial(t, at)
	c.Send(header4 + originForm("/public", "site.test"))
	a := c.Answer("GET")
	must.True(t, a.StatusCode == 200, "%s %s", a.Status, a.Body)
	e := r.records.target(t, "/public")
	must.True(t, e.Client == "192.0.2.1:8080" && strings.Contains(e.Detail, "198.51.100.7:80"), "%s, %q", e.Client, e.Detail)
	tls := testkit.Dial(t, at)
	tls.Send(strings.Replace(header4, " 80\r", " 443\r", 1))
	inside := tls.TLS(r.trusting("site.test", "http/1.1"))
	inside.Send(originForm("/private", "site.test"))
	a = inside.Answer("GET")
	must.True(t, a.StatusCode == 403, "%s %s", a.Status, a.Body)
	for _, sent := range []string{originForm("/", "site.test"), local2 + originForm("/", "site.test")} {
		c = testkit.Dial(t, at)
		c.Send(sent)
		c.Reset()
		r.records.await(t, "a refusal", func(e *audit.Entry) bool {
			return strings.Contains(e.Detail, noHeader) || strings.Contains(e.Detail, ownsCheck)
		})
	}
}
