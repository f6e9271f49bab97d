package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heed/cache"
	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/upstream"
	"heed/rules"
)

// faults are parts of heed that fail on purpose, where a path asks for it.
type faults struct {
	Policies
	Recorder
	Leaves
	upstream upstream.Sender
	rules    atomic.Bool // the next look at what is settled fails
	clock    atomic.Bool // the next look at the clock, by the hook, fails
}

func (f *faults) config(c *Config) {
	all, _ := acl.ParseHostPattern("*")
	look := func(rules.Origin) *rules.Policy {
		if f.rules.CompareAndSwap(true, false) {
			panic("rules fault at 10.0.0.1")
		}
		return nil
	}
	c.Live = func() *Settings { // new Rules each time, which remembers no site
		s := c.Settings
		s.Limits, s.Rules = s.Limits.WithDefaults(), &acl.Rules{Hosts: []acl.Host{{Match: []acl.HostPattern{all}, Robots: look}}}
		return &s
	}
	c.Now = func() time.Time {
		if f.clock.CompareAndSwap(true, false) {
			panic("clock fault at 10.0.0.1")
		}
		return time.Now()
	}
	f.Policies, f.Recorder, f.Leaves, f.upstream = c.Policies, c.Recorder, c.Leaves, c.Upstream
	c.Policies, c.Recorder, c.Leaves, c.Upstream = f, f, f, f
}

func (f *faults) Policy(ctx context.Context, o rules.Origin, ua string) *rules.Policy {
	if strings.HasPrefix(ua, "policy") {
		panic("policy fault at 10.0.0.1")
	}
	return f.Policies.Policy(ctx, o, ua)
}

func (f *faults) Held(o rules.Origin) []*rules.Policy { return f.Policies.Held(o) }

func (f *faults) Decided(e *audit.Entry) error {
	if strings.HasPrefix(e.UserAgent, "record") {
		panic("record fault at 10.0.0.1")
	}
	return f.Recorder.Decided(e)
}

func (f *faults) Ended(e *audit.Entry) {
	if strings.HasPrefix(e.UserAgent, "ended") {
		panic("record fault at 10.0.0.1")
	}
	f.Recorder.Ended(e)
}

func (f *faults) Leaf(host string) (*tls.Certificate, error) {
	if host == "leaf.test" {
		panic("leaf fault at 10.0.0.1")
	}
	return f.Leaves.Leaf(host)
}

func (f *faults) Send(r *upstream.Request) (*http.Response, error) {
	if r.URL.Path == "/upstream" {
		panic("upstream fault at 10.0.0.1")
	}
	resp, err := f.upstream.Send(r)
	if r.URL.Path == "/body" && err == nil {
		resp.Body = &faultyBody{ReadCloser: resp.Body}
	}
	return resp, err
}

// faultyBody fails after its first byte.
type faultyBody struct {
	io.ReadCloser
	begun bool
}

func (b *faultyBody) Read(p []byte) (int, error) {
	if b.begun {
		panic("body fault at 10.0.0.1")
	}
	b.begun = true
	return b.ReadCloser.Read(p[:1])
}

// lockedBuffer is a log that several connections write.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// A fault in any part of heed costs one request: the client gets a 500 or a
// broken answer, never a success, the log has the stack, and the next request
// is answered.
func TestFaultCostsOneRequest(t *testing.T) {
	log := &lockedBuffer{}
	r := newRig(t, hello, new(faults).config, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(log, nil)) })
	eachMode(t, allModes, func(t *testing.T, m mode) {
		r := r.in(t)
		for _, f := range []question{
			{path: "/policy/" + string(m), header: []string{"User-Agent: policy/1"}},
			{path: "/upstream"},
		} {
			a := r.ask(m, f)
			must.True(t, a.StatusCode == 500 && proxyStatusOf(t, a.Header) == "proxy_internal_error",
				"%s: %s %v", f.path, a.Status, a.Header)
			if text := a.body + a.Status; strings.Contains(text, "10.0.0.1") || strings.Contains(text, "goroutine") {
				t.Errorf("the answer contains internals: %s", text)
			}
			r.records.await(t, f.path, func(e *audit.Entry) bool { return e.Target == f.path && e.Outcome.Status == 500 })
			if f.path != "/upstream" {
				if e := r.records.target(t, f.path); e.Decision.Verdict != rules.Refuse || e.Decision.Reason != rules.ReasonInternal {
					t.Errorf("a decision that failed is recorded as %+v", e.Decision)
				}
			}
			must.Status(t, r.ask(m, question{path: "/fine"}).Response, 200, "after the fault")
		}
		a := r.ask(m, question{path: "/body"})
		must.True(t, a.err != nil, "an answer whose body failed inside heed looks whole: %q", a.body)
	})
	must.True(t, strings.Contains(log.String(), "policy fault") && strings.Contains(log.String(), "goroutine"),
		"the operator is not told of the fault: %.300s", log.String())
	for _, seen := range r.site.reached() {
		must.True(t, !strings.Contains(seen, "/policy") && !strings.Contains(seen, "/upstream"), "the site saw %s", seen)
	}
}

// A fault before the decision is answered by the table of reasons, on the open
// connection, and recorded.
func TestFaultBeforeTheDecision(t *testing.T) {
	f := new(faults)
	r := newRig(t, hello, f.config)
	for name, armed := range map[string]*atomic.Bool{"rules": &f.rules, "clock": &f.clock} {
		eachMode(t, allModes, func(t *testing.T, m mode) {
			r, path := r.in(t), "/before/"+name+string(m)
			var resp *http.Response
			if m == mitmH2 {
				client := r.h2("site.test")
				armed.Store(true)
				req, _ := http.NewRequest("GET", "https://site.test"+path, nil)
				var err error
				resp, err = client.RoundTrip(req)
				must.Need(t, err == nil, "%v", err)
			} else {
				c, prefix := r.raw(m)
				armed.Store(true)
				c.Send(get(prefix, path))
				resp = c.Head("GET")
			}
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != 500 || proxyStatusOf(t, resp.Header) != "proxy_internal_error" || strings.Contains(string(body), "10.0.0.1") {
				t.Errorf("%s: %s %v %s", name, resp.Status, resp.Header, body)
			}
			r.records.await(t, path, func(e *audit.Entry) bool {
				return e.Decision.Verdict == rules.Refuse && e.Decision.Reason == rules.ReasonInternal && e.Outcome.Status == 500
			})
			must.Status(t, r.ask(m, question{path: "/fine"}).Response, 200, "after the fault")
		})
	}
	must.Lack(t, strings.Join(r.site.reached(), "\n"), "/before", "the site saw")
}

// A fault while a robots.txt is read is a file that cannot be had: nothing may
// be fetched until it is read again.
func TestFaultInTheReadingOfRobots(t *testing.T) {
	r := newRig(t, hello, func(c *Config) {
		c.Policies = cache.New(cache.Config{Transport: faultyRobots{c.Upstream.(http.RoundTripper)}, UserAgent: "heed-rig"})
	})
	eachMode(t, allModes, func(t *testing.T, m mode) {
		r, path := r.in(t), "/reading/"+string(m)
		a := r.ask(m, question{path: path})
		if a.StatusCode != 503 || a.Header.Get("Retry-After") == "" || proxyStatusOf(t, a.Header) != "http_request_denied" ||
			!strings.Contains(a.body, `"retry": "after"`) {
			t.Errorf("%s %v %s", a.Status, a.Header, a.body)
		}
		must.Lack(t, a.body+a.Status, "10.0.0.1", "the answer contains internals")
		if e := r.records.target(t, path); e.Decision.Reason != rules.ReasonRobotsUnreachable || !strings.Contains(e.Detail, "internal fault") {
			t.Errorf("recorded as %+v, %q", e.Decision, e.Detail)
		}
		must.Status(t, r.ask(m, question{path: "/robots.txt"}).Response, 200, "after the fault")
	})
	must.Lack(t, strings.Join(r.site.reached(), "\n"), "/reading", "the site saw")
}

// faultyRobots is a way to sites whose robots.txt fail inside heed.
type faultyRobots struct{ http.RoundTripper }

func (f faultyRobots) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := f.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = &faultyBody{ReadCloser: resp.Body}
	}
	return resp, err
}

// A recorder that fails refuses the request: nothing takes effect unrecorded.
// When it fails at the end, the client has had its answer.
func TestFaultInTheRecorder(t *testing.T) {
	log := &lockedBuffer{}
	r := newRig(t, hello, new(faults).config, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(log, nil)) })
	eachMode(t, allModes, func(t *testing.T, m mode) {
		r := r.in(t)
		for _, path := range []string{"/public", "/private"} {
			a := r.ask(m, question{path: path, header: []string{"User-Agent: record/1"}})
			if a.StatusCode != 503 || a.Header.Get("Retry-After") == "" || proxyStatusOf(t, a.Header) != "proxy_internal_error" {
				t.Errorf("%s: %s %v", path, a.Status, a.Header)
			}
			must.Lack(t, a.body+a.Status, "10.0.0.1", "the answer contains internals")
		}
		must.Same(t, r.site.reached(), nil, "what the site saw")
	})
	must.Contain(t, log.String(), "record fault", "the operator is not told of the fault")
	eachMode(t, allModes, func(t *testing.T, m mode) {
		a := r.in(t).ask(m, question{path: "/fine", header: []string{"User-Agent: ended/1"}})
		must.True(t, a.StatusCode == 200 && a.err == nil, "%s, %v", a.Status, a.err)
	})
}

// A failure of the CA is answered where a client can read it: to CONNECT.
func TestFaultInTheSigner(t *testing.T) {
	r := newRig(t, hello, new(faults).config)
	c := testkit.Dial(t, r.addr)
	c.Send("CONNECT leaf.test:443 HTTP/1.1\r\nHost: leaf.test:443\r\n\r\n")
	a := c.Answer("CONNECT")
	if a.StatusCode != 500 || proxyStatusOf(t, a.Header) != "proxy_internal_error" || strings.Contains(string(a.Body), "10.0.0.1") {
		t.Errorf("%s %v %s", a.Status, a.Header, a.Body)
	}
	r.records.await(t, "the fault", func(e *audit.Entry) bool {
		return e.Decision.Reason == rules.ReasonInternal && e.Host == "leaf.test" && e.Outcome.Status == 500
	})
}

// A certificate that cannot be made for the name in the handshake ends its
// tunnel: nothing else would close that connection. The record does not blame the client.
func TestFaultInTheHandshakeClosesTheTunnel(t *testing.T) {
	r := newRig(t, hello, new(faults).config)
	c := testkit.Dial(t, r.addr).Connect("site.test:443")
	_, err := c.TryTLS(r.trusting("leaf.test"))
	must.Need(t, err != nil, "a handshake without a certificate")
	c.Closed()
	r.records.await(t, "the fault", func(e *audit.Entry) bool { return e.Decision.Reason == rules.ReasonInternal })
}
