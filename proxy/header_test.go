package proxy

import (
	"net"
	"strings"
	"testing"

	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// secret is in place of credentials for heed, which no other program may receive.
const secret = "Basic c2VjcmV0OnNlY3JldA=="

// Credentials for the proxy never reach a site: not from a request, not from a
// CONNECT, not inside a tunnel, not with the fetch of robots.txt.
func TestProxyCredentialsNeverReachASite(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		r.in(t).ask(m, question{path: "/page", header: []string{"Proxy-Authorization: " + secret}})
	})
	for _, authority := range []string{"site.test:80", "h1.test:443"} {
		c := testkit.Dial(t, r.addr).Connect(authority, "Proxy-Authorization: "+secret)
		if strings.HasSuffix(authority, "443") {
			c = c.TLS(r.trusting("h1.test", "http/1.1"))
		}
		host, _, _ := net.SplitHostPort(authority)
		c.Send(requestTo(host, "GET", "", "/inside", "Proxy-Authorization: "+secret))
		must.Status(t, c.Answer("GET").Response, 200, authority)
	}
	all := r.site.requests()
	must.Need(t, len(all) >= len(allModes)+4, "only %d requests arrived", len(all))
	for _, a := range all {
		for name, values := range a.Header {
			must.Lack(t, strings.Join(values, " "), "c2VjcmV0", "%s %s carries %s: %v", a.Method, a.Target, name, values)
		}
	}
}

// Without Via nothing of a request names heed, to all sites or to those of one entry. A Via
// of the client's own arrives, answers have heed's, and heed's own name is still a loop.
func TestHeed_ViaIsLeftOutWhereTheSettingsSaySo(t *testing.T) {
	yes, no := true, false
	host := func(name string, via *bool) acl.Host {
		p := must.Get(acl.ParseHostPattern(name))(t)
		return acl.Host{Match: []acl.HostPattern{p}, Via: via}
	}
	for name, rules := range map[string]*acl.Rules{
		"for one":         {Hosts: []acl.Host{host("site.test", &no)}},
		"for all but one": {NoVia: true, Hosts: []acl.Host{host("h1.test", &yes)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, hello, func(c *Config) { settle(c, rules) })
			eachMode(t, allModes, func(t *testing.T, m mode) {
				for _, host := range []string{"site.test", "h1.test"} {
					a := r.in(t).ask(m, question{host: host, path: "/page", header: []string{"Via: 1.0 other"}})
					got := r.site.last(t, "/page").Header["Via"]
					if want := host == "h1.test"; len(got) == 0 || got[0] != "1.0 other" || (len(got) > 1) != want || len(a.Header["Via"]) != 1 {
						t.Errorf("%s saw Via %q, the client %q", host, got, a.Header["Via"])
					}
				}
				if a := r.in(t).ask(m, question{host: "self.test", path: "/page"}); a.StatusCode != 502 || proxyStatusOf(t, a.Header) != "proxy_loop_detected" {
					t.Errorf("heed itself: %s", a.Status)
				}
			})
		})
	}
}

// A declared identity replaces the client's name, and both are recorded.
func TestHeed_DeclaredUserAgentIsSent(t *testing.T) {
	const own = "NewsBot/2.1 (+https://bots.example/about)"
	r := newRig(t, hello, func(c *Config) {
		settle(c, &acl.Rules{Clients: []acl.Client{{SendUserAgent: own}}})
	})
	eachMode(t, allModes, func(t *testing.T, m mode) {
		path := "/page/" + string(m)
		r.in(t).ask(m, question{path: path, header: []string{"User-Agent: curl/8"}})
		got := r.site.last(t, path).Header["User-Agent"]
		must.True(t, len(got) == 1 && got[0] == own, "the site saw %q", got)
		e := r.records.target(t, path)
		must.True(t, e.UserAgent == "curl/8" && e.Sent == own, "record: %q sent as %q", e.UserAgent, e.Sent)
	})
}
