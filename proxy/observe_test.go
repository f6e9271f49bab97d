package proxy

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/counts"
	"heed/internal/judge/acl"
	"heed/internal/pace"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// observing makes a rig observe only.
func observing(c *Config) { settle(c, &acl.Rules{Mode: acl.Observe}) }

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
	must.Need(t, err == nil && resp.StatusCode == 200, "the second attempt: %v, %v", resp, err)
	resp.Body.Close()
	must.Status(t, r.askConnect("h1.test", "A/1").Response, 200, "another host")
	if got := r.ask(mitmH1, question{path: "/private", header: []string{"User-Agent: B/1"}}); got.StatusCode != 200 || got.Header.Get("Proxy-Status") == "" {
		t.Errorf("a client that trusts the CA is not looked at any more: %d", got.StatusCode)
	}
	r.shut()
	e := r.records.await(t, "the tunnel", func(e *audit.Entry) bool {
		return e.Method == "CONNECT" && e.Decision.Verdict == rules.Allow
	})
	must.True(t, e.Judged == audit.NotJudged && e.Decision.Reason == rules.ReasonUntrusted && e.Outcome.BytesOut != 0,
		"record %+v", e)
}

// A client that is observed for a name, which any client can send, has no tunnels that
// pass unseen: not where it rejects the CA, and not for what is neither TLS nor HTTP. One
// that is also recognised by its address has, and so has any where all are observed.
func TestHeed_ANameAloneOpensNoUnseenTunnel(t *testing.T) {
	observe, here := acl.Observe, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for name, c := range map[string]struct {
		rules  *acl.Rules
		unseen bool
	}{
		"by name":             {&acl.Rules{Clients: []acl.Client{{Name: "a", UserAgent: acl.NewGlob("A/*"), Mode: &observe}}}, false},
		"by name and address": {&acl.Rules{Clients: []acl.Client{{Name: "a", UserAgent: acl.NewGlob("A/*"), From: here, Mode: &observe}}}, true},
		"by name, as all are": {&acl.Rules{Mode: acl.Observe, Clients: []acl.Client{{Name: "a", UserAgent: acl.NewGlob("A/*"), Mode: &observe}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, hello, func(config *Config) { settle(config, c.rules) })
			r.rejectCA("site.test", "A/1", 1)
			inside, err := testkit.Dial(t, r.addr).Connect("site.test:443", "User-Agent: A/1").TryTLS(r.bySite("site.test", "http/1.1"))
			must.Need(t, (err == nil) == c.unseen, "the second tunnel: %v", err)
			if c.unseen {
				inside.Close()
				return
			}
			r.awaitRejections("site.test", 2)
			must.Status(t, r.askConnect("site.test", "A/1").Response, 403, "the third tunnel")
			opaque := testkit.Dial(t, r.addr).Connect("h1.test:443", "User-Agent: A/1")
			opaque.Send("SSH-2.0-x\r\n")
			_, err = opaque.Read(make([]byte, 1))
			must.True(t, err != nil, "a tunnel with something else is open")
		})
	}
}

// shut ends what is open, so that tunnels are recorded.
func (r *rig) shut() {
	r.proxy.open.closeAll()
}

// An observed request is answered although its policy does not come; the verdict follows
// and is counted.
func TestHeed_AnObservedRequestDoesNotWaitForItsRules(t *testing.T) {
	t.Parallel()
	come := make(chan bool)
	s := newSite(t, hello)
	tally := &counts.Tally{}
	r := newRigBefore(t, s, observing, func(c *Config) {
		c.Policies = waiting{c.Policies, make(chan bool, 10), come}
		c.Recorder = both{observed{tally}, c.Recorder}
	})
	if got := r.ask(plain, question{path: "/private/x"}); got.StatusCode != 200 { // come is still open
		t.Fatalf("%d", got.StatusCode)
	}
	got := tally.Summary()
	must.True(t, got.Requests == 0, "before the verdict %+v", got.Counts)
	close(come)
	e := r.records.target(t, "/private/x")
	must.True(t, e.Decision.Verdict == rules.Allow && e.Decision.Reason == rules.ReasonRulesPending && e.Judged == audit.NotJudged,
		"the decision is %+v", e.Decision)
	d := e.Outcome.Late
	must.True(t, d != nil && d.Verdict == rules.WouldRefuse && d.Line == 3, "the verdict is %+v", d)
	if got := tally.Summary(); got.NotJudged != 0 || got.WouldRefuse != 1 || got.ByPath != 1 || len(got.Unjudged) != 0 || len(got.Refusals) != 1 {
		t.Errorf("after the verdict %+v", got)
	}
}

// A verdict that follows its request has the reason of the temporary mode that let
// the request pass, as one in time has.
func TestVerdictAfterTheRequestHasTheReasonOfItsMode(t *testing.T) {
	t.Parallel()
	come := make(chan bool)
	r := newRig(t, hello, func(c *Config) {
		c.Policies = waiting{c.Policies, make(chan bool, 10), come}
		settle(c, &acl.Rules{Overrides: []acl.ModeOverride{{Mode: acl.Observe, Reason: "until the audit", Until: time.Now().Add(time.Hour)}}})
	})
	must.Is(t, r.ask(plain, question{path: "/private/x"}).StatusCode, 200)
	close(come)
	e := r.records.target(t, "/private/x")
	must.True(t, e.Outcome.Late != nil && e.Outcome.LateSettled == "until the audit", "%+v", e.Outcome)
}

// In observe mode names that differ are reported; the request goes to the host that its
// tunnel was opened to.
func TestHeed_AnObservedMismatchIsReported(t *testing.T) {
	r := newRig(t, hello, observing)
	c, _ := r.raw(mitmH1)
	c.Send("GET /page HTTP/1.1\r\nHost: other.test\r\n\r\n")
	got := c.Head("GET")
	io.Copy(io.Discard, got.Body)
	must.True(t, got.StatusCode == 200 && strings.Contains(got.Header.Get("Proxy-Status"), "other.test"),
		"%d, %q", got.StatusCode, got.Header.Get("Proxy-Status"))
	e := r.records.target(t, "/page")
	must.True(t, e.Decision.Verdict == rules.WouldRefuse && e.Decision.Reason == rules.ReasonHostMismatch && e.Host == "site.test",
		"%+v", e)
	must.Equal(t, r.site.last(t, "/page").Host, "other.test", "the site was asked as")
	// In a tunnel that heed does not look into, too.
	r = newRig(t, hello, func(c *Config) { settle(c, &acl.Rules{Mode: acl.Observe, HTTPS: acl.HostOnly}) })
	wrong := r.bySite("h1.test", "http/1.1")
	wrong.InsecureSkipVerify = true
	_, err := testkit.Dial(t, r.addr).Connect("site.test:443").TryTLS(wrong)
	must.True(t, err == nil, "the tunnel ended: %v", err)
	r.records.await(t, "the report", func(e *audit.Entry) bool {
		return e.Decision.Verdict == rules.WouldRefuse && e.Decision.Reason == rules.ReasonHostMismatch
	})
}

// A host that is observed only does not serve what another's rules refuse: both
// names have to be observed.
func TestHeed_AnObservedHostIsNoWayToAnother(t *testing.T) {
	host := must.Get(acl.ParseHostPattern("site.test"))(t)
	hosts := []acl.Host{{Match: []acl.HostPattern{host}, Mode: new(acl.Observe)}}
	r := newRig(t, hello, func(c *Config) { settle(c, &acl.Rules{Hosts: hosts}) })
	for _, m := range []mode{mitmH1, inTunnel} {
		c, _ := r.raw(m)
		c.Send("GET /other HTTP/1.1\r\nHost: other.test\r\n\r\n")
		must.Status(t, c.Answer("GET").Response, http.StatusMisdirectedRequest, m)
		c, _ = r.raw(m)
		c.Send("GET http://other.test/other HTTP/1.1\r\nHost: other.test\r\n\r\n")
		must.Status(t, c.Answer("GET").Response, http.StatusMisdirectedRequest, "%s, absolute", m)
	}
	wrong := r.trusting("other.test", "http/1.1")
	c := testkit.Dial(t, r.addr).Connect("site.test:443").TLS(wrong)
	c.Send("GET /other HTTP/1.1\r\nHost: site.test\r\n\r\n")
	must.Status(t, c.Answer("GET").Response, http.StatusMisdirectedRequest, "another TLS name")
	for _, at := range r.site.requests() {
		must.Equal(t, at.Host, "site.test", "the site was asked as")
	}
	// In a tunnel that heed does not look into, as far as it is seen.
	r = newRig(t, hello, func(c *Config) { settle(c, &acl.Rules{Hosts: hosts, HTTPS: acl.HostOnly}) })
	hidden := r.bySite("h1.test", "http/1.1")
	hidden.InsecureSkipVerify = true
	_, err := testkit.Dial(t, r.addr).Connect("site.test:443").TryTLS(hidden)
	must.True(t, err != nil, "the tunnel is open")
}

// A mismatch that is let pass does not keep credentials from being found.
func TestHeed_CredentialsBehindAMismatchAreNotRecorded(t *testing.T) {
	r := newRig(t, hello, observing)
	c := testkit.Dial(t, r.addr).Connect("site.test:443").TLS(r.trusting("h1.test", "http/1.1"))
	c.Send("GET https://u:secret@site.test/page HTTP/1.1\r\nHost: site.test\r\n\r\n")
	must.Status(t, c.Answer("GET").Response, http.StatusBadRequest)
	for _, e := range r.records.all() {
		must.Lack(t, e.Raw+e.Detail+e.URL(), "secret", "%+v", e)
	}
}

// A request that cannot be forwarded is refused in observe mode as well.
func TestHeed_ObservingDoesNotMakeSenseOfWhatHasNone(t *testing.T) {
	r := newRig(t, hello, observing)
	must.Status(t, r.ask(plain, question{path: "/a%00b"}).Response, http.StatusBadRequest, "malformed")
	must.Status(t, r.ask(plain, question{path: "/page", header: []string{"Via: 1.1 rig-7f3a"}}).Response, http.StatusBadGateway, "a loop")
}

// In observe mode octets that are no HTTP pass where a tunnel would be allowed.
func TestHeed_AnObservedTunnelMayCarryAnything(t *testing.T) {
	s := newSite(t, hello)
	mirrorSite(t, s, "echo.test:443", "")
	r := newRigBefore(t, s, observing)
	for _, sent := range []string{"\x00\x01\x02", "SSH-2.0-OpenSSH_9.6\r\n"} {
		c := testkit.Dial(t, r.addr).Connect("echo.test:443")
		c.Send(sent)
		got := make([]byte, len(sent))
		_, err := io.ReadFull(c.R, got)
		must.True(t, err == nil && string(got) == sent, "%q, %v", got, err)
		c.Close()
		e := r.records.await(t, "the tunnel", func(e *audit.Entry) bool { return e.Host == "echo.test" && e.Outcome.BytesIn == int64(len(sent)) })
		must.True(t, e.Decision.Verdict == rules.Allow && e.Decision.Reason == rules.ReasonNotHTTP && e.Judged == audit.NotJudged,
			"%+v", e)
	}
}

// What an observed answer says of a postponement is what the refusal would have
// said.
func TestObservedAnswerNamesTheTimeOfAPostponement(t *testing.T) {
	far := &turnstile{answer: func(context.Context, *pace.Ask) pace.Answer {
		return pace.Answer{Refused: true, RetryAfter: 40 * time.Second, Position: pace.Position{Wait: 40 * time.Second, Delay: 10 * time.Second, Asked: 10 * time.Second}}
	}}
	paced := newPaced(t, far, observing).ask(plain, question{path: "/page", header: slow})
	if got := paced.Header.Get("Proxy-Status"); !strings.Contains(got, "observed only") || !strings.Contains(got, "no other request waits") || !strings.Contains(got, "40 s") {
		t.Errorf("paced: %s", got)
	}

	unread := newRig(t, hello, observing, func(c *Config) {
		c.Policies = stated{rules.Source{State: rules.Unreachable, RetryAt: time.Now().Add(time.Minute)}}
	}).ask(plain, question{path: "/page"})
	got := unread.Header.Get("Proxy-Status")
	must.True(t, regexp.MustCompile(`ask again after ([1-5]\d|60) s`).MatchString(got), "unreachable: %s", got)
}

// stated are policies of one kind.
type stated struct{ source rules.Source }

func (stated) Held(rules.Origin) []*rules.Policy { return nil }

func (s stated) Policy(_ context.Context, o rules.Origin, _ string) *rules.Policy {
	s.source.Origin = o
	return rules.New(s.source, nil)
}
