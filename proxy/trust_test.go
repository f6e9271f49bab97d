package proxy

import (
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/testkit"
	"heed/rules"
)

// askConnect opens a tunnel on a connection of its own and returns the answer.
func (r *rig) askConnect(host, userAgent string) *testkit.Answer {
	r.t.Helper()
	c := testkit.Dial(r.t, r.addr)
	c.Send(fmt.Sprintf("CONNECT %s:443 HTTP/1.1\r\nHost: %[1]s:443\r\nUser-Agent: %s\r\n\r\n", host, userAgent))
	return c.Answer("CONNECT")
}

func (r *rig) awaitUntrusted(host string) {
	r.t.Helper()
	r.records.await(r.t, "the rejection", func(e *audit.Entry) bool {
		return e.Host == host && e.Decision.Reason == rules.ReasonUntrusted
	})
}

// A client that rejected the CA is told so where it looks, once; the tunnel
// after that is tried again. Other clients and hosts have nothing to do with it.
func TestTrap18_TheNextTunnelIsAnsweredWithTheCure(t *testing.T) {
	r := newRig(t, hello)
	if _, err := testkit.Dial(t, r.addr).Connect("site.test:443", "User-Agent: A/1").TryTLS(r.bySite("site.test")); err == nil {
		t.Fatal("heed's certificate was accepted")
	}
	r.awaitUntrusted("site.test")
	if a := r.askConnect("site.test", "B/1"); a.StatusCode != 200 {
		t.Errorf("another client: %s", a.Status)
	}
	if a := r.askConnect("h1.test", "A/1"); a.StatusCode != 200 {
		t.Errorf("another host: %s", a.Status)
	}
	a := r.askConnect("site.test", "A/1")
	if want := "403 heed's CA is not trusted by this client: see http://" + r.addr + "/"; a.Status != want {
		t.Errorf("%s, want %s", a.Status, want)
	}
	if proxyStatusOf(t, a.Header) != "http_request_denied" || !strings.Contains(string(a.Body), "http://"+r.addr+"/ca.pem") {
		t.Errorf("%v\n%s", a.Header, a.Body)
	}
	e := r.records.await(t, "the answer", func(e *audit.Entry) bool { return e.Outcome.Status == 403 })
	if e.Decision.Reason != rules.ReasonUntrusted || e.Judged != audit.NotJudged || e.Host != "site.test" {
		t.Errorf("record %+v", e)
	}
	if a := r.askConnect("site.test", "A/1"); a.StatusCode != 200 {
		t.Errorf("the one after: %s", a.Status)
	}
}

// A client that is seen to trust the CA after all is owed no explanation, and
// neither is one whose rejection is a while ago.
func TestTrap18_WhoTrustsTheCANowIsNotToldOtherwise(t *testing.T) {
	r := newRig(t, hello)
	if _, err := testkit.Dial(t, r.addr).Connect("site.test:443").TryTLS(r.bySite("site.test")); err == nil {
		t.Fatal("heed's certificate was accepted")
	}
	r.awaitUntrusted("site.test")
	var s trusts
	tun := &tunnel{asker: askerOf("192.0.2.1:5", "a.test", "A/1")}
	now := time.Now()
	s.rejected(tun, now)
	if s.owes(askerOf("192.0.2.1:6", "a.test", "A/1"), now.Add(2*time.Minute)) {
		t.Error("two minutes later it is told")
	}
	s.rejected(tun, now)
	s.saw(tun, now)
	if s.owes(tun.asker, now) {
		t.Error("it is told although a request came through")
	}
}

// A program that shares its address and its User-Agent with another that trusts
// the CA is told from it by its TLS library.
func TestTrap18_ProgramsAreToldApartByTheirHello(t *testing.T) {
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
func TestTrap18_WhoTrustsTheCAIsNotRefusedForAnother(t *testing.T) {
	r := newRig(t, hello)
	c, _ := r.raw(mitmH1)
	c.Send(get("", "/page"))
	c.Answer("GET")
	if _, err := testkit.Dial(t, r.addr).Connect("site.test:443").TryTLS(r.bySite("site.test")); err == nil {
		t.Fatal("heed's certificate was accepted")
	}
	r.awaitUntrusted("site.test") // the record tells of it all the same
	if a := r.askConnect("site.test", ""); a.StatusCode != 200 {
		t.Errorf("%s", a.Status)
	}
}

// A spare connection of a client that trusts the CA is no rejection, be its
// session new or resumed.
func TestTrap18_SpareConnectionsAreNoRejection(t *testing.T) {
	r := newRig(t, hello)
	config := r.trusting("site.test", "http/1.1")
	config.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	c := testkit.Dial(t, r.addr).Connect("site.test:443").TLS(config)
	c.Send(get("", "/page"))
	c.Answer("GET")
	spare := r.trusting("site.test", "http/1.1")
	testkit.Dial(t, r.addr).Connect("site.test:443").TLS(spare).Close()
	resumed := testkit.Dial(t, r.addr).Connect("site.test:443").TLS(config)
	if !resumed.State().DidResume {
		t.Error("the session was not resumed")
	}
	resumed.Close()
	if a := r.askConnect("site.test", ""); a.StatusCode != 200 {
		t.Errorf("%s", a.Status)
	}
	for _, e := range r.records.all() {
		if e.Decision.Reason == rules.ReasonUntrusted {
			t.Errorf("recorded: %+v", e)
		}
	}
}

// What a person reads who runs a client again that does not trust the CA.
func TestTrap18_ClientsPrintTheCure(t *testing.T) {
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
				if err == nil {
					t.Errorf("it accepted a certificate of an unknown CA:\n%s", out)
				}
				return string(out)
			}
			run()
			r.in(t).awaitUntrusted(host)
			if said := run(); !strings.Contains(said, phrase) {
				t.Errorf("it prints:\n%s", said)
			}
		})
	}
}

// The page that clients are led to says where everything is, at this address.
func TestHeed_ThePageTellsTheCure(t *testing.T) {
	r := newRig(t, hello)
	c := testkit.Dial(t, r.addr)
	c.Send("GET / HTTP/1.1\r\nHost: " + r.addr + "\r\n\r\n")
	body := string(c.Answer("GET").Body)
	for _, want := range []string{"http://" + r.addr + "/ca.pem", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "keytool", "wget --ca-certificate", "Firefox"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, "ADDR") {
		t.Error("a place is left open")
	}
}

// A client that opens several tunnels at once and drops all but one has rejected
// nothing; one that was served on another host has not either.
func TestHeed_ASpareTunnelIsNoRejection(t *testing.T) {
	r := newRig(t, hello)
	open := func(host string) *testkit.Conn {
		c := testkit.Dial(t, r.addr).Connect(host + ":443")
		tlsConn, err := c.TryTLS(r.trusting(host))
		if err != nil {
			t.Fatal(err)
		}
		return tlsConn
	}
	used, spare := open("site.test"), open("site.test")
	spare.Close()
	used.Send(get("", "/page"))
	if got := used.Answer("GET"); got.StatusCode != 200 {
		t.Fatalf("the tunnel in use: %d", got.StatusCode)
	}
	open("h1.test").Close() // served on site.test: the CA is trusted
	for _, host := range []string{"site.test", "h1.test"} {
		c := open(host)
		c.Send(get("", "/page"))
		if got := c.Answer("GET"); got.StatusCode == 403 {
			t.Errorf("%s: told that it does not trust the CA", host)
		}
	}
	for _, e := range r.records.all() {
		if e.Decision.Reason == rules.ReasonUntrusted {
			t.Errorf("recorded: %+v", e)
		}
	}
}
