package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/terms"
	"heed/internal/testkit"
	"heed/rules"
)

// observing makes a rig observe only.
func observing(c *Config) { settle(c, &terms.Book{Mode: terms.Observe}) }

// A client without the CA loses one handshake; from then on its tunnels to that
// host pass unseen, and the record says so.
func TestHeed_AnObservedClientWithoutTheCAGetsItsPage(t *testing.T) {
	r := newRig(t, hello, observing)
	try := func() (*http.Response, error) {
		c := testkit.Dial(t, r.addr).Connect("site.test:443", "User-Agent: A/1")
		inside, err := c.TryTLS(r.bySite("site.test", "http/1.1"))
		if err != nil {
			return nil, err
		}
		inside.Send(get("", "/private"))
		return inside.Head("GET"), nil
	}
	if _, err := try(); err == nil {
		t.Fatal("heed's certificate was accepted")
	}
	r.awaitUntrusted("site.test")
	resp, err := try()
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("the second attempt: %v, %v", resp, err)
	}
	resp.Body.Close()
	if a := r.askConnect("h1.test", "A/1"); a.StatusCode != 200 {
		t.Errorf("another host: %s", a.Status)
	}
	if got := r.ask(mitmH1, question{path: "/private", header: []string{"User-Agent: B/1"}}); got.StatusCode != 200 || got.Header.Get("Proxy-Status") == "" {
		t.Errorf("a client that trusts the CA is not looked at any more: %d", got.StatusCode)
	}
	r.shut()
	e := r.records.await(t, "the tunnel", func(e *audit.Entry) bool {
		return e.Method == "CONNECT" && e.Decision.Verdict == rules.Allow
	})
	if e.Judged != audit.NotJudged || e.Decision.Reason != rules.ReasonUntrusted || e.Outcome.BytesOut == 0 {
		t.Errorf("record %+v", e)
	}
}

// shut ends what is open, so that tunnels are recorded.
func (r *rig) shut() {
	r.proxy.open.closeAll()
}

// slowPolicies come when they may.
type slowPolicies struct {
	Policies
	come chan struct{}
}

func (p slowPolicies) Policy(ctx context.Context, o rules.Origin, userAgent string) *rules.Policy {
	select {
	case <-p.come:
		return p.Policies.Policy(ctx, o, userAgent)
	case <-ctx.Done():
		return rules.New(rules.Source{Origin: o, State: rules.Unreachable, Err: context.Cause(ctx)}, nil)
	}
}

// A policy that takes its time costs an observed request two seconds at most;
// its verdict follows and is counted.
func TestHeed_AnObservedRequestDoesNotWaitForItsRules(t *testing.T) {
	come := make(chan struct{})
	s := newSite(t, hello)
	tally := &audit.Tally{}
	r := newRigBefore(t, s, observing, func(c *Config) {
		c.Policies = slowPolicies{c.Policies, come}
		c.Recorder = both{tally, c.Recorder}
	})
	begun := time.Now()
	if got := r.ask(plain, question{path: "/private/x"}); got.StatusCode != 200 {
		t.Fatalf("%d", got.StatusCode)
	}
	if took := time.Since(begun); took > testkit.Patience/2 {
		t.Errorf("it took %v", took)
	}
	if got := tally.Summary(); got.NotJudged != 1 || got.WouldRefuse != 0 {
		t.Errorf("before the verdict %+v", got.Counts)
	}
	close(come)
	e := r.records.target(t, "/private/x")
	if e.Decision.Verdict != rules.Allow || e.Decision.Reason != rules.ReasonLate || e.Judged != audit.NotJudged {
		t.Errorf("the decision is %+v", e.Decision)
	}
	if d := e.Outcome.Late; d == nil || d.Verdict != rules.WouldRefuse || d.Line != 3 {
		t.Errorf("the verdict is %+v", d)
	}
	if got := tally.Summary(); got.NotJudged != 0 || got.WouldRefuse != 1 || got.ByPath != 1 || len(got.Unjudged) != 0 || len(got.Refusals) != 1 {
		t.Errorf("after the verdict %+v", got)
	}
}

// Names that differ are reported to whoever observes; the request goes where its
// tunnel was opened to.
func TestHeed_AnObservedMismatchIsReported(t *testing.T) {
	r := newRig(t, hello, observing)
	c, _ := r.raw(mitmH1)
	c.Send("GET /page HTTP/1.1\r\nHost: other.test\r\n\r\n")
	got := c.Head("GET")
	io.Copy(io.Discard, got.Body)
	if got.StatusCode != 200 || !strings.Contains(got.Header.Get("Proxy-Status"), "other.test") {
		t.Errorf("%d, %q", got.StatusCode, got.Header.Get("Proxy-Status"))
	}
	e := r.records.target(t, "/page")
	if e.Decision.Verdict != rules.WouldRefuse || e.Decision.Reason != rules.ReasonHostMismatch || e.Host != "site.test" {
		t.Errorf("%+v", e)
	}
	if at := r.site.last(t, "/page"); at.Host != "other.test" {
		t.Errorf("the site was asked as %q", at.Host)
	}
	// In a tunnel that heed does not look into, too.
	r = newRig(t, hello, func(c *Config) { settle(c, &terms.Book{Mode: terms.Observe, HTTPS: terms.HostOnly}) })
	wrong := r.bySite("h1.test", "http/1.1")
	wrong.InsecureSkipVerify = true
	if _, err := testkit.Dial(t, r.addr).Connect("site.test:443").TryTLS(wrong); err != nil {
		t.Errorf("the tunnel ended: %v", err)
	}
	r.records.await(t, "the report", func(e *audit.Entry) bool {
		return e.Decision.Verdict == rules.WouldRefuse && e.Decision.Reason == rules.ReasonHostMismatch
	})
}

// A host that is observed only does not serve what another's rules refuse: both
// names have to be observed.
func TestHeed_AnObservedHostIsNoWayToAnother(t *testing.T) {
	host, err := terms.ParseHostPattern("site.test")
	if err != nil {
		t.Fatal(err)
	}
	hosts := []terms.Host{{Match: []terms.HostPattern{host}, Mode: terms.Observe, ModeSet: true}}
	r := newRig(t, hello, func(c *Config) { settle(c, &terms.Book{Hosts: hosts}) })
	for _, m := range []mode{mitmH1, inTunnel} {
		c, _ := r.raw(m)
		c.Send("GET /other HTTP/1.1\r\nHost: other.test\r\n\r\n")
		if got := c.Answer("GET"); got.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s: %s", m, got.Status)
		}
		c, _ = r.raw(m)
		c.Send("GET http://other.test/other HTTP/1.1\r\nHost: other.test\r\n\r\n")
		if got := c.Answer("GET"); got.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s, absolute: %s", m, got.Status)
		}
	}
	wrong := r.trusting("other.test", "http/1.1")
	c := testkit.Dial(t, r.addr).Connect("site.test:443").TLS(wrong)
	c.Send("GET /other HTTP/1.1\r\nHost: site.test\r\n\r\n")
	if got := c.Answer("GET"); got.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("another TLS name: %s", got.Status)
	}
	for _, at := range r.site.requests() {
		if at.Host != "site.test" {
			t.Errorf("the site was asked as %q", at.Host)
		}
	}
	// In a tunnel that heed does not look into, as far as it is seen.
	r = newRig(t, hello, func(c *Config) { settle(c, &terms.Book{Hosts: hosts, HTTPS: terms.HostOnly}) })
	hidden := r.bySite("h1.test", "http/1.1")
	hidden.InsecureSkipVerify = true
	if _, err := testkit.Dial(t, r.addr).Connect("site.test:443").TryTLS(hidden); err == nil {
		t.Error("the tunnel stands")
	}
}

// A mismatch that is let pass does not keep credentials from being found.
func TestHeed_CredentialsBehindAMismatchAreNotRecorded(t *testing.T) {
	r := newRig(t, hello, observing)
	c := testkit.Dial(t, r.addr).Connect("site.test:443").TLS(r.trusting("h1.test", "http/1.1"))
	c.Send("GET https://u:secret@site.test/page HTTP/1.1\r\nHost: site.test\r\n\r\n")
	if got := c.Answer("GET"); got.StatusCode != http.StatusBadRequest {
		t.Errorf("%s", got.Status)
	}
	for _, e := range r.records.all() {
		if strings.Contains(e.Raw+e.Detail+e.URL(), "secret") {
			t.Errorf("%+v", e)
		}
	}
}

// What cannot be forwarded is refused to whoever observes as well.
func TestHeed_ObservingDoesNotMakeSenseOfWhatHasNone(t *testing.T) {
	r := newRig(t, hello, observing)
	if got := r.ask(plain, question{path: "/a%00b"}); got.StatusCode != http.StatusBadRequest {
		t.Errorf("malformed: %d", got.StatusCode)
	}
	if got := r.ask(plain, question{path: "/page", header: []string{"Via: 1.1 rig-7f3a"}}); got.StatusCode != http.StatusBadGateway {
		t.Errorf("a loop: %d", got.StatusCode)
	}
}

// Bytes that are no HTTP pass where a tunnel might go, for whoever observes.
func TestHeed_AnObservedTunnelMayCarryAnything(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for c, err := echo.Accept(); err == nil; c, err = echo.Accept() {
			go func() { defer c.Close(); io.Copy(c, c) }()
		}
	}()
	s := newSite(t, hello)
	s.resolve["echo.test:443"] = echo.Addr().String()
	r := newRigBefore(t, s, observing)
	c := testkit.Dial(t, r.addr).Connect("echo.test:443")
	c.Send("\x00\x01\x02")
	got := make([]byte, 3)
	if _, err := io.ReadFull(c.R, got); err != nil || string(got) != "\x00\x01\x02" {
		t.Errorf("%q, %v", got, err)
	}
	c.Close()
	e := r.records.await(t, "the tunnel", func(e *audit.Entry) bool { return e.Host == "echo.test" })
	if e.Decision.Verdict != rules.Allow || e.Decision.Reason != rules.ReasonNotHTTP || e.Judged != audit.NotJudged || e.Outcome.BytesIn != 3 {
		t.Errorf("%+v", e)
	}
}
