package proxy

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"heed/internal/audit"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// tunnels are the modes in which a CONNECT names the place before a request does.
var tunnels = []mode{mitmH1, inTunnel}

// A request for another place than its tunnel leads to is 421: nothing is
// judged for one host and served by another.
func TestHostIsTheTunnelsHost(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, tunnels, func(t *testing.T, m mode) {
		for _, other := range []string{"h1.test", "site.test:8080", "127.0.0.1", "site.test.example", "sub.site.test", "xn--site.test"} {
			path := "/" + string(m) + "/" + other
			c, _ := r.in(t).raw(m)
			c.Send(requestTo(other, "GET", "", path))
			misdirected(t, r, c.Answer("GET"), path)
			c.Send(get("", "/page"))
			must.Status(t, c.Answer("GET").Response, 200, "after 421 the connection goes on")
		}
		wrong := map[mode]string{mitmH1: "http", inTunnel: "https"}[m]
		for _, prefix := range []string{"http://h1.test", "https://h1.test", wrong + "://site.test", "ftp://site.test"} {
			path := "/absolute/" + string(m)
			c, _ := r.in(t).raw(m)
			c.Send(get(prefix, path))
			misdirected(t, r, c.Answer("GET"), path)
		}
		c, _ := r.in(t).raw(m)
		c.Send(get(m.scheme()+"://site.test", "/page")) // the same place in absolute form
		must.Status(t, c.Answer("GET").Response, 200, "absolute form of the tunnel's own place")
	})
	t.Run("h2", func(t *testing.T) {
		for _, other := range []string{"h1.test", "site.test:8080"} {
			req, _ := http.NewRequest("GET", "https://site.test/h2", nil)
			req.Host = other
			resp, err := r.in(t).h2("site.test").RoundTrip(req)
			must.True(t, err == nil && resp.StatusCode == 421, "%s: %v %v", other, resp, err)
		}
	})
	for _, seen := range r.site.reached() {
		must.Equal(t, seen, "GET /page", "the site saw")
	}
}

func misdirected(t *testing.T, r *rig, a *testkit.Answer, path string) {
	t.Helper()
	got := proxyStatusOf(t, a.Header)
	must.True(t, a.StatusCode == 421 && got == "http_request_denied", "%s: %s %q", path, a.Status, got)
	e := r.records.target(t, path)
	must.True(t, e.Decision.Reason == rules.ReasonHostMismatch && e.Host == "site.test" && e.Detail != "", "record %+v", e)
}

// All spellings of a place are one place: one robots.txt, the same rules, and
// the one name that was judged goes to the site.
func TestSpellingsOfAHostAreOnePlace(t *testing.T) {
	s := newSite(t, hello)
	s.serveAs(t, "xn--bcher-kva.test")
	r := newRigBefore(t, s)
	for name, spellings := range map[string][]string{
		"site.test":          {"site.test", "SITE.test", "site.test.", "site.test:80", "Site.Test.:80", "site.test:"},
		"xn--bcher-kva.test": {"xn--bcher-kva.test", "XN--BCHER-KVA.test", "b%C3%BCcher.test", "B%C3%BCCHER.test."},
	} {
		for _, spelling := range spellings {
			c := testkit.Dial(t, r.addr)
			c.Send(requestTo(name, "GET", "http://"+spelling, "/page"))
			if a := c.Answer("GET"); a.StatusCode != 200 {
				t.Errorf("%s: %s", spelling, a.Status)
				continue
			}
			must.Equal(t, s.last(t, "/page").Host, name, "%s", spelling)
			c.Send(requestTo(name, "GET", "http://"+spelling, "/private"))
			must.Status(t, c.Answer("GET").Response, 403, "%s, a disallowed page", spelling)
		}
	}
	s.fetchedOnce(t)
}

// fetchedOnce checks that robots.txt was fetched of each host by its one name, and once.
func (s *site) fetchedOnce(t *testing.T) {
	t.Helper()
	fetched := map[string]int{}
	for _, a := range s.requests() {
		if a.Target == "/robots.txt" {
			fetched[a.Host]++
		}
	}
	must.Same(t, fetched, map[string]int{"site.test": 1, "xn--bcher-kva.test": 1}, "robots.txt was fetched")
}

// IPv6 literals are places too, in any spelling.
func TestIPv6Literals(t *testing.T) {
	s := newSite(t, hello)
	s.script(t, "[2001:db8::1]:80", func(c net.Conn, r *http.Request) {
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%s", r.Host)
	})
	r := newRigBefore(t, s)
	for _, spelling := range []string{"[2001:db8::1]", "[2001:DB8:0:0::1]", "[2001:db8::1]:80"} {
		for path, want := range map[string]int{"/page": 200, "/private": 403} {
			c := testkit.Dial(t, r.addr)
			c.Send(requestTo(spelling, "GET", "http://"+spelling, path))
			a := c.Answer("GET")
			if a.StatusCode != want || want == 200 && string(a.Body) != "[2001:db8::1]" {
				t.Errorf("%s%s: %s %q", spelling, path, a.Status, a.Body)
			}
			c = testkit.Dial(t, r.addr).Connect(strings.TrimSuffix(spelling, ":80") + ":80")
			c.Send(requestTo(spelling, "GET", "", path))
			must.Status(t, c.Answer("GET").Response, want, "tunnel to %s%s", spelling, path)
		}
	}
}

// Spellings of addresses that resolvers read differently are refused.
func TestOddAddressesAreRefused(t *testing.T) {
	r := newRig(t, hello)
	for _, host := range []string{"2130706433", "0x7f000001", "127.1", "0177.0.0.1", "127.0.0.1.", "[fe80::1%25eth0]", "[::1"} {
		c := testkit.Dial(t, r.addr)
		c.Send(requestTo("x.test", "GET", "http://"+host+":1", "/"))
		a := c.Answer("GET")
		if want := 400; a.StatusCode != want && host != "127.0.0.1." {
			t.Errorf("%s: %s", host, a.Status)
		}
		c = testkit.Dial(t, r.addr)
		c.Send("CONNECT " + host + ":443 HTTP/1.1\r\nHost: x\r\n\r\n")
		if resp := c.Head("CONNECT"); resp.StatusCode != 400 && host != "127.0.0.1." {
			t.Errorf("CONNECT %s: %s", host, resp.Status)
		}
	}
}

// Two origins differ by port alone; each has rules of its own.
func TestRFC9309_EachPortHasRulesOfItsOwn(t *testing.T) {
	s := newSite(t, hello)
	s.script(t, "site.test:8080", func(c net.Conn, r *http.Request) {
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n8080")
	})
	r := newRigBefore(t, s)
	c := testkit.Dial(t, r.addr)
	c.Send(requestTo("site.test:8080", "GET", "http://site.test:8080", "/page"))
	a := c.Answer("GET")
	must.True(t, string(a.Body) == "8080", "%s %q", a.Status, a.Body)
	e := r.records.await(t, "8080", func(e *audit.Entry) bool { return e.Host == "site.test:8080" })
	must.Equal(t, e.Policy.Source().Origin.RobotsURL(), "http://site.test:8080/robots.txt", "judged by")
}
