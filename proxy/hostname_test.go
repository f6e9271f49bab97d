package proxy

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// In absolute form the target names the place and the Host field says nothing
// (RFC 9112 §3.2.2): the site is asked by the name that was judged.
func TestTheTargetOutranksTheHostField(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, []mode{plain, absolute}, func(t *testing.T, m mode) {
		for _, host := range []string{"h1.test", "site.test:8080", "127.0.0.1", "SITE.TEST."} {
			r := r.in(t)
			c, prefix := r.raw(m)
			path := "/outranked-" + string(m) + "-" + host
			c.Send(requestTo(host, "GET", prefix, path))
			if a := c.Answer("GET"); a.StatusCode != 200 {
				t.Errorf("Host %s: %s", host, a.Status)
				continue
			}
			must.Equal(t, r.site.last(t, path).Host, "site.test", "Host %s: the site was asked as", host)
			c.Send(requestTo(host, "GET", prefix, "/private"))
			must.Status(t, c.Answer("GET").Response, 403, "Host %s, a disallowed page", host)
		}
	})
}

// placeNames are spellings of one host each, by the name they mean.
var placeNames = map[string][]string{
	"site.test":          {"site.test", "SITE.test", "site.test.", "Site.Test."},
	"xn--bcher-kva.test": {"xn--bcher-kva.test", "XN--Bcher-KVA.test", "xn--bcher-kva.test."},
}

// However CONNECT and the requests inside spell a host: it is one place, with
// one set of rules, over HTTP/1.1 and HTTP/2.
func TestSpellingsOfAHostInsideTLS(t *testing.T) {
	s := newSite(t, hello)
	s.serveAs(t, "xn--bcher-kva.test")
	r := newRigBefore(t, s)
	for name, spellings := range placeNames {
		for i, outside := range spellings {
			inside := spellings[(i+1)%len(spellings)] + []string{"", ":443"}[i%2]
			eachMode(t, []mode{mitmH1, mitmH2}, func(t *testing.T, m mode) {
				r := r.in(t)
				for path, want := range map[string]int{"/page": 200, "/private": 403} {
					got := r.askSpelled(m, name, outside, inside, path)
					must.True(t, got == want, "CONNECT %s, %s inside: %d for %s", outside, inside, got, path)
				}
				must.Equal(t, s.last(t, "/page").Host, name, "CONNECT %s, %s inside: the site was asked as", outside, inside)
			})
		}
	}
	s.fetchedOnce(t)
}

// askSpelled asks the host called name in a tunnel opened to outside, with
// inside as the Host field or :authority, and returns the status.
func (r *rig) askSpelled(m mode, name, outside, inside, path string) int {
	r.t.Helper()
	c := testkit.Dial(r.t, r.addr).Connect(outside + ":443")
	if m == mitmH1 {
		s := c.TLS(r.trusting(name, "http/1.1"))
		s.Send(requestTo(inside, "GET", "", path))
		return s.Answer("GET").StatusCode
	}
	req := must.Get(http.NewRequest("GET", "https://"+name+path, nil))(r.t)
	req.Host = inside
	resp, err := c.TLS(r.trusting(name, "h2")).HTTP2().RoundTrip(req)
	must.OK(r.t, err, "CONNECT %s, %s inside", outside, inside)
	resp.Body.Close()
	return resp.StatusCode
}

// The same for IPv6 literals, which TLS clients do not name in the handshake.
func TestIPv6LiteralsInsideTLS(t *testing.T) {
	const name = "2001:db8::1"
	s := newSite(t, hello)
	certFile, keyFile := s.ca.Leaf(t, name)
	s.scriptTLS(t, "["+name+"]:443", certFile, keyFile, func(c net.Conn, r *http.Request) {
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello")
	})
	r := newRigBefore(t, s)
	spellings := []string{"[2001:db8::1]", "[2001:DB8::1]", "[2001:db8:0:0:0:0:0:1]", "[2001:0db8::0001]"}
	for i, outside := range spellings {
		inside := spellings[(i+1)%len(spellings)]
		for path, want := range map[string]int{"/page": 200, "/private": 403} {
			c := testkit.Dial(t, r.addr).Connect(outside + ":443").TLS(&tls.Config{RootCAs: r.roots, ServerName: name, NextProtos: []string{"http/1.1"}})
			c.Send(requestTo(inside, "GET", "", path))
			must.Status(t, c.Answer("GET").Response, want, "CONNECT %s, Host %s, for %s", outside, inside, path)
			req, _ := http.NewRequest("GET", "https://["+name+"]"+path, nil)
			req.Host = inside
			tunnel := testkit.Dial(t, r.addr).Connect(outside + ":443").TLS(&tls.Config{RootCAs: r.roots, ServerName: name, NextProtos: []string{"h2"}})
			resp, err := tunnel.HTTP2().RoundTrip(req)
			must.True(t, err == nil && resp.StatusCode == want,
				"CONNECT %s, :authority %s: %v %v for %s", outside, inside, resp, err, path)
		}
	}
	must.Equal(t, s.last(t, "/page").Host, "["+name+"]", "the site was asked as")
}

// A Host that names no place, or smuggles a path, and names that lead two ways are refused in
// every tunnel as outside.
func TestOddNamesInTunnels(t *testing.T) {
	r := newRig(t, hello)
	for _, inside := range []string{
		"site.test#", "site.test?", "site.test/x?", "u:p@site.test", "site test", "", "site.test:0", "site.test:x", "[::1", "0x7f.1",
		"site.test..", "site.test:0443", "site.test:80", "site.test:443:443", "2130706433", "user@site.test", "site.test/private?", "[::1]", "%73ite.test",
	} {
		eachMode(t, []mode{mitmH1, mitmH2, inTunnel}, func(t *testing.T, m mode) {
			r, got := r.in(t), 0
			switch {
			case m == inTunnel:
				c, _ := r.raw(m)
				c.Send(requestTo(inside, "GET", "", "/page"))
				got = c.Answer("GET").StatusCode
			case m == mitmH2 && (inside == "" || strings.ContainsAny(inside, "/@#? ")):
				return // this client would send none of it, or another
			default:
				got = r.askSpelled(m, "site.test", "site.test", inside, "/page")
			}
			if inside == "site.test:0443" && m != inTunnel || inside == "site.test:80" && m == inTunnel {
				must.Equal(t, got, 200, inside) // the port is a number, and that of the tunnel
			} else if got != 400 && got != 421 {
				t.Errorf("%s: %d", inside, got)
			}
		})
	}
	must.Equal(t, len(r.site.reached()), 3, "requests at the site")
}
