package proxy

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// An answer that breaks off at the site breaks off at the client: it never has
// a clean end. The sites speak HTTP/1.1 and HTTP/2, with and without a length.
func TestTruncatedAnswersNeverLookWhole(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/length") {
			w.Header().Set("Content-Length", "1000")
		}
		io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	eachMode(t, allModes, func(t *testing.T, m mode) {
		for _, host := range []string{"site.test", "h1.test"} {
			for _, path := range []string{"/length/", "/chunked/"} {
				path += host + "/" + string(m)
				a := r.in(t).ask(m, question{host: host, path: path})
				must.True(t, a.err != nil, "%s %s: a clean end after %q", host, path, a.body)
				must.True(t, a.StatusCode == 200 && a.body == "begun",
					"%s %s: %s %q: what did arrive is the client's", host, path, a.Status, a.body)
				e := r.records.target(t, path)
				if o := e.Outcome; !o.Truncated || !strings.HasPrefix(o.Err, "site: ") || o.Status != 200 || o.BytesOut != 5 || !o.FromSite {
					t.Errorf("record of %s: %+v", path, o)
				}
			}
		}
	})
}

// The same for an upload: what the client did not finish is not finished
// towards the site.
func TestTruncatedUploadNeverLooksWhole(t *testing.T) {
	ended := make(chan error, 1)
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		ended <- err
	})
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		for _, part := range []string{"Content-Length: 100\r\n\r\nbegun", "Transfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n"} {
			c, prefix := r.in(t).raw(m)
			c.Send(strings.TrimSuffix(rawRequest("POST", prefix, "/upload"), "\r\n") + part)
			c.Close()
			select {
			case err := <-ended:
				must.True(t, err != nil, "the site took %q for a whole upload", part)
			case <-time.After(testkit.Patience):
				t.Fatal("the site was not told that the client had left")
			}
		}
	})
}

// failures are sites that cannot be had, by host name, with the answer that is
// due.
var failures = []struct {
	host      string
	status    int
	errorType string
	path      string // empty: the site fails as a whole, robots.txt included
}{
	{"refused.test", 502, "connection_refused", ""},
	{"nowhere.invalid", 502, "dns_error", ""},
	{"untrusted.test", 502, "tls_certificate_error", ""},
	{"expired.test", 502, "tls_certificate_error", ""},
	{"othername.test", 502, "tls_certificate_error", ""},
	{"alert.test", 502, "tls_alert_received", ""},
	{"nottls.test", 502, "tls_protocol_error", ""},
	{"script.test", 504, "http_response_timeout", "/silent"},
	{"script.test", 502, "connection_terminated", "/reset"},
	{"script.test", 502, "connection_terminated", "/hangup"},
	{"script.test", 502, "http_protocol_error", "/garbage"},
	{"script.test", 502, "http_response_header_section_size", "/largehead"},
	{"script.test", 502, "http_upgrade_failed", "/unasked"},
	{"site.test", 504, "http_response_timeout", "/silent"},
	{"site.test", 502, "connection_terminated", "/reset"},
}

// needsTLS are hosts that fail in the handshake only.
var needsTLS = regexp.MustCompile(`^(untrusted|expired|othername|alert|nottls)\.`)

// inside matches what must not be told: addresses, ports, and the words of Go's
// own errors.
var inside = regexp.MustCompile(`127\.0\.0\.1|\[::1\]|:\d{4,5}\b|dial tcp|lookup |no such host|x509|tls: |read tcp|write tcp|EOF|context |net/http|malformed`)

// A site that fails is 502 or 504 with the right Proxy-Status, never a 403,
// and its text contains no internals of heed. The record does.
func TestSiteFailuresAreDistinguished(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/reset" {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
	})
	brokenSites(t, s)
	r := newRigBefore(t, s)
	hasty := newHastyRig(t, s)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		for _, f := range failures {
			t.Run(f.host+f.path, func(t *testing.T) {
				if needsTLS.MatchString(f.host) && m.scheme() == "http" || m == plain && f.host == "site.test" {
					return // these need TLS towards the site
				}
				path := "/" + string(m)
				if f.path != "" {
					path = f.path
				}
				r := r.in(t)
				if path == "/silent" {
					r = hasty.in(t)
				}
				a := r.ask(m, question{host: f.host, path: path})
				if got := proxyStatusOf(t, a.Header); a.StatusCode != f.status || got != f.errorType {
					t.Errorf("%s with %q, want %d with %q\n%s", a.Status, got, f.status, f.errorType, a.body)
				}
				told := a.Status + fmt.Sprint(a.Header) + a.body
				leak := inside.FindString(told)
				must.True(t, leak == "", "the answer contains %q: %s", leak, told)
				must.True(t, a.ContentLength == int64(len(a.body)),
					"Content-Length %d, %d octets", a.ContentLength, len(a.body))
				e := r.records.await(t, f.host+path, func(e *audit.Entry) bool {
					return e.Host == f.host && e.Target == path && e.Scheme == m.scheme() && e.Outcome.Status == f.status
				})
				must.True(t, !e.Outcome.FromSite && (e.Detail != "" || e.Outcome.Err != ""), "record %+v", e)
			})
		}
	})
}

// newHastyRig starts a rig that soon gives up on sites that are silent. It does not
// ask for their rules, for which they may take longer.
func newHastyRig(t *testing.T, s *site) *rig {
	s.patience = 300 * time.Millisecond
	return newRigBefore(t, s, func(c *Config) { c.Policies = stated{rules.Source{State: rules.Unavailable}} })
}

// brokenSites makes the sites of failures.
func brokenSites(t *testing.T, s *site) {
	s.resolve["refused.test:80"], s.resolve["refused.test:443"] = testkit.FreeAddr(t), testkit.FreeAddr(t)

	stranger := testkit.NewCA(t)
	tlsSite := func(host string, certFile, keyFile string, change func(*tls.Config)) {
		cert := must.Get(tls.LoadX509KeyPair(certFile, keyFile))(t)
		config := &tls.Config{Certificates: []tls.Certificate{cert}}
		if change != nil {
			change(config)
		}
		serve(tls.NewListener(s.listen(t, host+":443"), config), func(c net.Conn) { c.(*tls.Conn).Handshake() })
	}
	leaf := func(ca *testkit.CA, host string) (string, string) { return ca.Leaf(t, host) }
	c, k := leaf(stranger, "untrusted.test")
	tlsSite("untrusted.test", c, k, nil)
	c, k = s.ca.ExpiredLeaf(t, "expired.test")
	tlsSite("expired.test", c, k, nil)
	c, k = leaf(s.ca, "another.test")
	tlsSite("othername.test", c, k, nil)
	c, k = leaf(s.ca, "alert.test")
	tlsSite("alert.test", c, k, func(config *tls.Config) {
		config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	})
	serve(s.listen(t, "nottls.test:443"), func(c net.Conn) { io.WriteString(c, "220 mail.example ESMTP\r\n") })
	s.script(t, "script.test:80", misbehave)
	c, k = leaf(s.ca, "script.test")
	s.scriptTLS(t, "script.test:443", c, k, misbehave)
}

// misbehave does what the path says.
func misbehave(c net.Conn, r *http.Request) {
	switch r.URL.Path {
	case "/silent":
		io.Copy(io.Discard, c)
	case "/reset":
		if t, ok := c.(*tls.Conn); ok {
			c = t.NetConn()
		}
		c.(*net.TCPConn).SetLinger(0)
	case "/garbage":
		io.WriteString(c, "220 mail.example ESMTP\r\n\r\n")
	case "/largehead":
		io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 512<<10)+"\r\n\r\n")
	case "/unasked":
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	}
}

// serve runs act on every connection of l and closes it.
func serve(l net.Listener, act func(net.Conn)) {
	go testkit.Accept(l, func(c net.Conn) {
		defer c.Close()
		act(c)
		io.Copy(io.Discard, bufio.NewReader(c))
	})
}

// The failure of a site before it has read the body is answered immediately, although
// the body has not arrived; and the octets that follow are not read as a request.
func TestFailureDoesNotWaitForTheBody(t *testing.T) {
	s := newSite(t, hello)
	s.resolve["refused.test:80"] = testkit.FreeAddr(t)
	r := newRigBefore(t, s, func(c *Config) { c.Limits.DrainTime = 1 })
	eachMode(t, []mode{plain, inTunnel}, func(t *testing.T, m mode) {
		for _, path := range []string{"/robots.txt", "/page"} { // robots.txt fails in forward, all else before
			c, prefix := r.in(t).rawTo(m, "refused.test")
			c.Send(requestTo("refused.test", "POST", prefix, path, "Content-Length: 100"))
			a := c.Answer("POST")
			must.True(t, a.StatusCode == 502 && a.Close, "%s: %s close %v", path, a.Status, a.Close)
			c.Closed()
		}
	})
}

// A decision that cannot be recorded takes no effect: allowed or not, the
// client gets a 503, and the site nothing.
func TestHeed_NothingHappensUnrecorded(t *testing.T) {
	r := newRig(t, hello)
	r.records.fail = errors.New("disk full at /var/secret")
	eachMode(t, allModes, func(t *testing.T, m mode) {
		for _, path := range []string{"/public", "/private", "/robots.txt"} {
			a := r.in(t).ask(m, question{path: path})
			if a.StatusCode != 503 || proxyStatusOf(t, a.Header) != "proxy_internal_error" || a.Header.Get("Retry-After") == "" {
				t.Errorf("%s: %s %v", path, a.Status, a.Header)
			}
			must.Lack(t, a.body, "secret", "the answer contains the operator's path")
		}
	})
	must.Same(t, r.site.reached(), nil, "what the site saw")
	must.Same(t, r.records.all(), nil, "Ended was called for what Decided refused")
}

// A client that leaves while the site is silent frees the site's connection at
// once, and the record says who left.
func TestClientThatLeavesCancelsTheSite(t *testing.T) {
	arrived, cancelled := make(chan bool, 1), make(chan bool, 1)
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-r.Context().Done()
		cancelled <- true
	})
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		path := "/silent/" + string(m)
		c, prefix := r.in(t).raw(m)
		c.Send(get(prefix, path))
		<-arrived
		depart(c)
		select {
		case <-cancelled:
		case <-time.After(testkit.Patience):
			t.Fatal("the site was not told")
		}
		e := r.records.target(t, path)
		must.True(t, strings.HasPrefix(e.Outcome.Err, "client: "), "record %+v", e.Outcome)
	})
}

// A site that was reached and cannot be used is not one that cannot be reached: the
// answer says what is wrong, and that a retry does not help.
func TestFailuresAfterTheSiteWasReachedSayWhy(t *testing.T) {
	t.Parallel()
	s := newSite(t, hello)
	s.script(t, "length.test:80", func(c net.Conn, _ *http.Request) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello")
	})
	s.script(t, "field.test:80", func(c net.Conn, _ *http.Request) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nX-\u2013Odd: a\x01b\r\nContent-Length: 5\r\n\r\nhello")
	})
	s.script(t, "cut.test:80", func(c net.Conn, _ *http.Request) { io.WriteString(c, "HTTP/1.1 200 OK\r\nX: ") })
	s.script(t, "none.test:80", func(net.Conn, *http.Request) {})
	serve(s.listen(t, "robots.test:80"), func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n") })
	certFile, keyFile := s.ca.Leaf(t, "old.test")
	cert := must.Get(tls.LoadX509KeyPair(certFile, keyFile))(t)
	old := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	serve(tls.NewListener(s.listen(t, "old.test:443"), old), func(c net.Conn) { c.(*tls.Conn).Handshake() })
	r := newRigBefore(t, s)
	for _, c := range []struct {
		mode                 mode
		host, title, because string
		retry                string
	}{
		{plain, "length.test", "heed reached length.test, but its answer is not valid HTTP: the answer has a Content-Length that is not a number of digits", "Its operator can correct it.", "no"},
		{plain, "field.test", `heed reached field.test, but its answer is not valid HTTP: the answer has a control character in the field \"X-\\u2013Odd\"`, "A retry will not help.", "no"},
		{plain, "cut.test", "heed reached cut.test, but its answer is not valid HTTP: the answer ended within its head", "A retry can help", "after"},
		{plain, "none.test", "heed reached none.test, but the connection ended before its answer: connection_terminated", "A retry can help", "after"},
		{plain, "robots.test", "", "robots.txt could not be read: the answer has a Content-Length that is not a number of digits", "after"},
		{mitmH1, "old.test", "heed reached old.test, but TLS with it failed: the site has ended the handshake: protocol version not supported", "old_tls = true at the [[host]]", "no"},
		{mitmH1, "old.test", "", `https = \"tunnel\"`, "no"},
	} {
		a := r.ask(c.mode, question{host: c.host, path: "/page"})
		if a.StatusCode/100 != 5 || !strings.Contains(a.body, `"title": "`+c.title) || !strings.Contains(a.body, c.because) || !strings.Contains(a.body, `"retry": "`+c.retry+`"`) {
			t.Errorf("%s: %s %s", c.host, a.Status, a.body)
		}
	}
}
