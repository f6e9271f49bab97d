package proxy

import (
	"io"
	"net"
	"net/http"
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

// What belongs to the client's connection stays on it, named by Connection or
// known by name; everything else passes as it is.
func TestRequestFieldsOfOneHopStayThere(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		c.Send(get(prefix, "/page", "Connection: close, X-Hop , x-other", "X-Hop: 1", "X-Other: 2",
			"Keep-Alive: timeout=5", "Proxy-Connection: keep-alive", "TE: gzip", "Upgrade: h2c",
			"X-End: stays", "Cookie: a=b", "Authorization: Basic eDp5", "Referer: http://site.test/", "Accept: a, b", "User-Agent: curl/8"))
		must.Is(t, c.Answer("GET").StatusCode, 200)
		got := r.site.last(t, "/page").Header
		want := http.Header{"X-End": {"stays"}, "Cookie": {"a=b"}, "Authorization": {"Basic eDp5"},
			"Referer": {"http://site.test/"}, "Accept": {"a, b"}, "User-Agent": {"curl/8"}, "Via": {"1.1 rig-7f3a"}}
		same(t, got, want)
	})
}

// same compares header sections whole.
func same(t *testing.T, got, want http.Header) {
	t.Helper()
	for name := range want {
		must.Equal(t, strings.Join(got[name], "|"), strings.Join(want[name], "|"), "%s: %q, want %q", name, got[name], want[name])
	}
	for name := range got {
		_, ok := want[name]
		must.True(t, ok, "%s: %q was not sent", name, got[name])
	}
}

// A client that has Connection name its User-Agent is judged by the name that
// the site then sees.
func TestConnectionCannotHideTheUserAgent(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		c.Send(get(prefix, "/page", "User-Agent: curl/8", "Connection: User-Agent"))
		c.Answer("GET")
		must.Equal(t, r.site.last(t, "/page").Header.Get("User-Agent"), "curl/8", "judged as curl/8, the site saw")
	})
}

// The other way too: a site speaks for itself and not for the proxy.
func TestAnswerFieldsOfOneHopStayThere(t *testing.T) {
	r := answering(t, func(*http.Request) string {
		return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\n" +
			"Proxy-Authenticate: Basic realm=phish\r\nProxy-Connection: keep-alive\r\nUpgrade: h2c\r\nTE: x\r\nX-End: stays\r\n" +
			"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nVia: 1.0 other\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\n\r\nok"
	})
	eachMode(t, allModes, func(t *testing.T, m mode) {
		a := r.in(t).ask(m, question{host: "raw.test", path: "/"})
		same(t, a.Header, http.Header{"Content-Length": {"2"}, "X-End": {"stays"}, "Set-Cookie": {"a=1", "b=2"},
			"Via": {"1.0 other", "1.1 rig-7f3a"}, "Date": {"Tue, 15 Nov 1994 08:12:31 GMT"}})
		must.Equal(t, a.body, "ok")
	})
}

// Nothing is added that the client did not say: no User-Agent, no
// Accept-Encoding, no Forwarded; only Via names the proxy.
func TestNothingIsInvented(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil
		io.WriteString(w, "<html>looks like a page")
	})
	eachMode(t, allModes, func(t *testing.T, m mode) {
		for _, host := range []string{"site.test", "h1.test"} {
			a := r.in(t).ask(m, question{host: host, path: "/bare"})
			v, ok := a.Header["Content-Type"]
			must.True(t, !ok, "the answer got a Content-Type: %q", v)
			got := r.site.last(t, "/bare")
			via := "1.1 rig-7f3a"
			if m == mitmH2 {
				via = "2 rig-7f3a"
			}
			must.Equal(t, got.Host, host, "Host")
			same(t, got.Header, http.Header{"Via": {via}})
		}
		r.in(t).ask(m, question{method: "POST", path: "/post", body: "x"})
		got := r.site.last(t, "/post").Header
		proto := r.site.last(t, "/post").Proto
		must.True(t, proto != "HTTP/1.1" || got.Get("Connection") == "close", "the connection goes on after an upload: %v", got)
		delete(got, "Connection")
		must.True(t, len(got) == 2 && got.Get("Content-Length") == "1", "fields of an upload: %v", got)
	})
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
