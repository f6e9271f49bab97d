package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"heed/internal/audit"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// askConnect opens a tunnel on a connection of its own and returns the answer.
func (r *rig) askConnect(host, userAgent string) *testkit.Answer {
	r.t.Helper()
	c := testkit.Dial(r.t, r.addr)
	c.Send(fmt.Sprintf("CONNECT %s:443 HTTP/1.1\r\nHost: %[1]s:443\r\nUser-Agent: %s\r\n\r\n", host, userAgent))
	resp := c.Head("CONNECT")
	a := &testkit.Answer{Response: resp}
	if resp.StatusCode != http.StatusOK { // what follows a 200 is the tunnel
		a.Body, _ = io.ReadAll(resp.Body)
	}
	return a
}

// awaitUntrusted waits until the CA was rejected at host.
func (r *rig) awaitUntrusted(host string) {
	r.t.Helper()
	r.awaitRejections(host, 1)
}

// awaitRejections waits until the CA was rejected at host count times in all.
func (r *rig) awaitRejections(host string, count int) {
	r.t.Helper()
	r.records.await(r.t, "the rejection", func(*audit.Entry) bool { return r.records.rejections(host) >= count })
}

// rejections counts the handshakes at host in which the CA was rejected. The caller
// holds the lock.
func (r *records) rejections(host string) (n int) {
	for i := range r.ended {
		if e := &r.ended[i]; e.Host == host && e.Decision.Reason == rules.ReasonUntrusted && e.Outcome.Status == 0 {
			n++
		}
	}
	return n
}

// rejectCA opens a tunnel in which the client rejects heed's certificate, the nth
// time at that host.
func (r *rig) rejectCA(host, userAgent string, nth int) {
	r.t.Helper()
	_, err := testkit.Dial(r.t, r.addr).Connect(host+":443", "User-Agent: "+userAgent).TryTLS(r.bySite(host))
	must.Need(r.t, err != nil, "heed's certificate was accepted")
	r.awaitRejections(host, nth)
}

// A client that rejected the CA twice gets the explanation where it can be read, with
// the third tunnel and each one after it. Other clients and hosts are not affected.
func TestTheThirdTunnelIsAnsweredWithTheCure(t *testing.T) {
	r := newRig(t, hello)
	r.rejectCA("site.test", "A/1", 1)
	r.rejectCA("site.test", "A/1", 2)
	must.Status(t, r.askConnect("site.test", "B/1").Response, 200, "another client")
	must.Status(t, r.askConnect("h1.test", "A/1").Response, 200, "another host")
	for range 2 {
		a := r.askConnect("site.test", "A/1")
		must.Equal(t, a.Status, "403 heed's CA is not trusted by this client: see http://"+r.addr+"/")
		if proxyStatusOf(t, a.Header) != "http_request_denied" || !strings.Contains(string(a.Body), "http://"+r.addr+"/ca.pem") {
			t.Errorf("%v\n%s", a.Header, a.Body)
		}
	}
	e := r.records.await(t, "the answer", func(e *audit.Entry) bool { return e.Outcome.Status == 403 })
	must.True(t, e.Decision.Reason == rules.ReasonUntrusted && e.Judged == audit.NotJudged && e.Host == "site.test",
		"record %+v", e)
}

// A browser that ignores the errors of certificates ends the handshake, and accepts the
// same certificate in its next tunnel. It may open many of them side by side: each is
// let through again, and once a request came through one, so is every later one.
func TestABrowserThatIgnoresCertificateErrorsIsServed(t *testing.T) {
	const parallel = 6
	r := newRig(t, hello)
	var first [parallel]*testkit.Conn
	for i := range first {
		first[i] = testkit.Dial(t, r.addr).Connect("site.test:443", "User-Agent: A/1")
	}
	for _, c := range first {
		_, err := c.TryTLS(r.bySite("site.test"))
		must.Need(t, err != nil, "heed's certificate was accepted")
	}
	r.awaitRejections("site.test", parallel)
	ignoring := &tls.Config{ServerName: "site.test", InsecureSkipVerify: true}
	for i := range parallel {
		c := testkit.Dial(t, r.addr).Connect("site.test:443", "User-Agent: A/1").TLS(ignoring)
		c.Send(get("", "/page"))
		must.Status(t, c.Answer("GET").Response, 200, "retry %d", i)
	}
	r.rejectCA("site.test", "A/1", parallel+1)
	r.rejectCA("site.test", "A/1", parallel+2)
	must.Status(t, r.askConnect("site.test", "A/1").Response, 200, "a later one")
}

// A plain request in a tunnel shows nothing of what the client makes of the CA.
func TestPlainRequestInATunnelIsNoAcceptanceOfTheCA(t *testing.T) {
	r := newRig(t, hello)
	plain := testkit.Dial(t, r.addr).Connect("site.test:80", "User-Agent: A/1")
	plain.Send(get("", "/page"))
	plain.Answer("GET")
	r.rejectCA("site.test", "A/1", 1)
	r.rejectCA("site.test", "A/1", 2)
	must.Status(t, r.askConnect("site.test", "A/1").Response, 403, "the rejection is not explained")
}

// A program that shares its address and its User-Agent with another that trusts the CA
// is distinguished from it by its TLS library.
func TestProgramsAreDistinguishedByTheirHello(t *testing.T) {
	r := newRig(t, hello)
	c, _ := r.raw(mitmH1)
	c.Send(get("", "/page"))
	c.Answer("GET")
	// It finishes the handshake and hangs up, as GnuTLS does.
	silent := r.bySite("site.test", "http/1.1")
	silent.InsecureSkipVerify, silent.MaxVersion = true, tls.VersionTLS12
	testkit.Dial(t, r.addr).Connect("site.test:443").TLS(silent).Close()
	r.awaitUntrusted("site.test")
}

// What rejects the CA does not cost a program its tunnels that trusts it, when a
// CONNECT does not tell one from the other: many programs say no User-Agent there.
func TestWhoTrustsTheCAIsNotRefusedForAnother(t *testing.T) {
	r := newRig(t, hello)
	c, _ := r.raw(mitmH1)
	c.Send(get("", "/page"))
	c.Answer("GET")
	for n := range 2 {
		_, err := testkit.Dial(t, r.addr).Connect("site.test:443").TryTLS(r.bySite("site.test"))
		must.Need(t, err != nil, "heed's certificate was accepted")
		r.awaitRejections("site.test", n+1) // recorded all the same
	}
	must.Status(t, r.askConnect("site.test", "").Response, 200)
}

// A spare connection of a client that trusts the CA is no rejection, be its
// session new or resumed.
func TestSpareConnectionsAreNoRejection(t *testing.T) {
	r := newRig(t, hello)
	config := r.trusting("site.test", "http/1.1")
	config.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	c := testkit.Dial(t, r.addr).Connect("site.test:443").TLS(config)
	c.Send(get("", "/page"))
	c.Answer("GET")
	spare := r.trusting("site.test", "http/1.1")
	testkit.Dial(t, r.addr).Connect("site.test:443").TLS(spare).Close()
	resumed := testkit.Dial(t, r.addr).Connect("site.test:443").TLS(config)
	must.True(t, resumed.State().DidResume, "the session was not resumed")
	resumed.Close()
	must.Status(t, r.askConnect("site.test", "").Response, 200)
	for _, e := range r.records.all() {
		must.True(t, e.Decision.Reason != rules.ReasonUntrusted, "recorded: %+v", e)
	}
}

// What a person reads who runs a client again that does not trust the CA.
func TestClientsPrintTheCure(t *testing.T) {
	t.Parallel()
	r := newRig(t, hello)
	proxied := []string{"https_proxy=http://" + r.addr, "HTTPS_PROXY=http://" + r.addr, "no_proxy=", "NO_PROXY=", "SSL_CERT_FILE=", "CURL_CA_BUNDLE="}
	phrase := "heed's CA is not trusted by this client: see http://" + r.addr + "/"
	python := "import sys, urllib.request; urllib.request.urlopen(sys.argv[1])"
	for host, client := range map[string][]string{
		"curl.test":   {"curl", "-sSv", "-m", "20", "-x", "http://" + r.addr},
		"wget.test":   {"wget", "-nv", "-t", "1", "-O", "-"},
		"python.test": {"python3", "-c", python},
		"git.test":    {"env", "GIT_CURL_VERBOSE=1", "git", "ls-remote"},
	} {
		t.Run(client[0], func(t *testing.T) {
			run := func() string {
				cmd := exec.Command(testkit.Program(t, client[0]), slices.Concat(client[1:], []string{"https://" + host + "/page"})...)
				cmd.Env = append(os.Environ(), proxied...)
				out, err := cmd.CombinedOutput()
				must.True(t, err != nil, "it accepted a certificate of an unknown CA:\n%s", out)
				return string(out)
			}
			for n := range 2 {
				run()
				r.in(t).awaitRejections(host, n+1)
			}
			must.Contain(t, run(), phrase, "it prints")
		})
	}
}

// The page that clients are led to says where everything is, at this address.
func TestHeed_ThePageNamesTheCure(t *testing.T) {
	r := newRig(t, hello)
	c := testkit.Dial(t, r.addr)
	c.Send("GET / HTTP/1.1\r\nHost: " + r.addr + "\r\n\r\n")
	page := c.Answer("GET")
	body := string(page.Body)
	must.Equal(t, page.Header.Get("Proxy-Status"), `"rig-7f3a"; details="a page of this proxy"`, "Proxy-Status")
	for _, want := range []string{"http://" + r.addr + "/ca.pem", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "keytool", "wget --ca-certificate", "Firefox"} {
		must.Contain(t, body, want)
	}
	must.Lack(t, body, "ADDR", "a place is left open")
}

// A client that opens several tunnels at once and drops all but one has rejected
// nothing; one that was served on another host has not either.
func TestHeed_ASpareTunnelIsNoRejection(t *testing.T) {
	r := newRig(t, hello)
	open := func(host string) *testkit.Conn {
		c := testkit.Dial(t, r.addr).Connect(host + ":443")
		return must.Get(c.TryTLS(r.trusting(host)))(t)
	}
	used, spare := open("site.test"), open("site.test")
	spare.Close()
	used.Send(get("", "/page"))
	got := used.Answer("GET")
	must.Need(t, got.StatusCode == 200, "the tunnel in use: %d", got.StatusCode)
	open("h1.test").Close() // served on site.test: the CA is trusted
	for _, host := range []string{"site.test", "h1.test"} {
		c := open(host)
		c.Send(get("", "/page"))
		got := c.Answer("GET")
		must.True(t, got.StatusCode != 403, "%s: told that it does not trust the CA", host)
	}
	for _, e := range r.records.all() {
		must.True(t, e.Decision.Reason != rules.ReasonUntrusted, "recorded: %+v", e)
	}
}
