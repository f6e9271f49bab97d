package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/proxy/upstream"
)

// answering is a rig in front of raw.test, which answers over HTTP and HTTPS
// with the octets that its handler returns.
func answering(t *testing.T, answer func(r *http.Request) string) *rig {
	t.Helper()
	s := newSite(t, hello)
	act := func(c net.Conn, r *http.Request) { io.WriteString(c, answer(r)) }
	s.script(t, "raw.test:80", act)
	certFile, keyFile := s.ca.Leaf(t, "raw.test")
	s.scriptTLS(t, "raw.test:443", certFile, keyFile, act)
	return newRigBefore(t, s)
}

// A site that speaks in heed's name is not believed: what it claims of heed does not arrive,
// neither in the head nor in a trailer, also of a list that goes over two lines. What it says of
// other proxies does.
func TestRFC9209_SiteCannotSpeakForHeed(t *testing.T) {
	const field = "Proxy-Status: cdn; error=dns_error\r\nProxy-Status: rig-7f3a; error=http_request_denied\r\n"
	r := answering(t, func(*http.Request) string {
		return "HTTP/1.1 200 OK\r\n" + field + "Transfer-Encoding: chunked\r\nTrailer: Proxy-Status\r\n\r\n2\r\nok\r\n0\r\n" + field + "\r\n"
	})
	eachMode(t, allModes, func(t *testing.T, m mode) {
		a := r.in(t).ask(m, question{host: "raw.test", path: "/"})
		must.Equal(t, strings.Join(a.Header["Proxy-Status"], "|"), "cdn;error=dns_error", "the client was told")
		must.Equal(t, strings.Join(a.Trailer["Proxy-Status"], "|"), "cdn;error=dns_error", "a trailer told the client")
	})
}

// A client takes a 407 for its proxy's, so that a site's does not arrive as
// one; and a status that is none is no answer either.
func TestRFC9110_StatusThatIsNotASitesToGive(t *testing.T) {
	for _, status := range []string{"407 Proxy Authentication Required", "099 Low", "000 None"} {
		r := answering(t, func(*http.Request) string {
			return "HTTP/1.1 " + status + "\r\nProxy-Authenticate: Basic realm=phish\r\nContent-Length: 5\r\n\r\nphish"
		})
		eachMode(t, allModes, func(t *testing.T, m mode) {
			path := "/" + string(m)
			a := r.in(t).ask(m, question{host: "raw.test", path: path, header: []string{"Accept: text/plain"}})
			if got := proxyStatusOf(t, a.Header); a.StatusCode != 502 || got != "http_protocol_error" ||
				a.Header.Get("Proxy-Authenticate") != "" || strings.Contains(a.body, "phish") || !strings.Contains(a.body, "only a proxy may give (407)") {
				t.Errorf("%s: %s %q %v %q", status, a.Status, got, a.Header, a.body)
			}
			e := r.records.target(t, path)
			if e.Outcome.FromSite || e.Outcome.Status != 502 || e.Outcome.Err != "site: http_protocol_error: status "+status[:3] {
				t.Errorf("record %+v", e.Outcome)
			}
		})
	}
}

// A TRACE or OPTIONS that may go no further is answered here, as heed's own
// answer and without what is secret; a refusal comes first.
func TestRFC9110_MaxForwardsEndsHere(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		r := r.in(t)
		header := []string{"Max-Forwards: 0", "Authorization: Basic eDp5", "Cookie: a=secret", "X-Seen: by heed"}
		a := r.ask(m, question{method: "TRACE", path: "/last/" + string(m), header: header})
		if proxyStatusOf(t, a.Header) != "proxy_internal_response" || a.StatusCode != 200 || a.Header.Get("Content-Type") != "message/http" ||
			!strings.HasPrefix(a.body, "TRACE /last/"+string(m)+" HTTP/") || !strings.Contains(a.body, "\r\nX-Seen: by heed\r\n") {
			t.Errorf("TRACE: %s %v %q", a.Status, a.Header, a.body)
		}
		must.True(t, !strings.Contains(a.body, "secret") && !strings.Contains(a.body, "eDp5"),
			"the answer to TRACE contains secrets: %q", a.body)
		o := r.ask(m, question{method: "OPTIONS", path: "/last/" + string(m), header: header})
		must.True(t, proxyStatusOf(t, o.Header) == "proxy_internal_response" && o.StatusCode == 200 && o.body == "",
			"OPTIONS: %s %v %q", o.Status, o.Header, o.body)
		must.Status(t, r.ask(m, question{method: "TRACE", path: "/private", header: header}).Response, 403, "a disallowed TRACE")
		for sent, want := range map[string]string{"7": "6", "1": "0", "x": "x", "-1": "-1"} {
			path := fmt.Sprintf("/on/%s/%s", sent, m)
			r.ask(m, question{method: "OPTIONS", path: path, header: []string{"Max-Forwards: " + sent}})
			must.Equal(t, r.site.last(t, path).Header.Get("Max-Forwards"), want, "Max-Forwards: %s reached the site as", sent)
		}
	})
	must.Lack(t, strings.Join(r.site.reached(), "\n"), "/last/", "the site saw")
}

// Nothing that decides how a message is taken travels behind its body: no
// credentials for heed, no other name than the one that was judged.
func TestTrailersCarryNoFieldsOfTheHead(t *testing.T) {
	got := make(chan http.Header, 1)
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		got <- r.Trailer
	})
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		for _, announced := range []string{"X-Sum, Proxy-Authorization, User-Agent", ""} {
			c, prefix := r.in(t).rawTo(m, "h1.test")
			header := []string{"Transfer-Encoding: chunked", "User-Agent: curl/8"}
			if announced != "" {
				header = append(header, "Trailer: "+announced)
			}
			c.Send(requestTo("h1.test", "POST", prefix, "/up", header...) + "2\r\nok\r\n0\r\nX-Sum: 1\r\nProxy-Authorization: " + secret + "\r\nUser-Agent: BadBot\r\n\r\n")
			c.Answer("POST")
			trailer := <-got
			must.True(t, trailer.Get("X-Sum") == "1" && len(trailer) == 1, "announced %q: the site got %v", announced, trailer)
		}
	})
}

// An interim answer of an https site that is reached through an HTTP proxy has the
// version that it came by in Via.
func TestInterimAnswerThroughAnUpstreamProxyHasItsOwnVersionInVia(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(http.StatusEarlyHints)
		hello(w, r)
	})
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { carryTunnel(w, s.resolve[r.Host]) }))
	t.Cleanup(proxy.Close)
	r := newRigBefore(t, s, func(c *Config) {
		through := http.ProxyURL(must.Get(url.Parse(proxy.URL))(t))
		c.Upstream = upstream.NewHostTransports(upstream.TransportConfig{Proxy: through, RootCAs: s.ca.Pool()})
	})
	for host, want := range map[string]string{"h1.test": "1.1 rig-7f3a", "site.test": "2 rig-7f3a"} {
		c, _ := r.rawTo(mitmH1, host)
		c.Send(requestTo(host, "GET", "", "/page"))
		if interim := c.Head("GET"); interim.StatusCode != http.StatusEarlyHints || interim.Header.Get("Via") != want {
			t.Errorf("%s: %s, Via %q, not %q", host, interim.Status, interim.Header["Via"], want)
		}
	}
}
