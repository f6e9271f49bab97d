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
	"testing"

	"heed/internal/audit"
	"heed/internal/testkit"
	"heed/rules"
)

// faults are parts of heed that fail on purpose, where a path asks for it.
type faults struct {
	Policies
	Recorder
	Leaves
	upstream http.RoundTripper
}

func (f *faults) config(c *Config) {
	f.Policies, f.Recorder, f.Leaves, f.upstream = c.Policies, c.Recorder, c.Leaves, c.Upstream
	c.Policies, c.Recorder, c.Leaves, c.Upstream = f, f, f, f
}

func (f *faults) Policy(ctx context.Context, o rules.Origin, ua string) *rules.Policy {
	if strings.HasPrefix(ua, "policy") {
		panic("policy fault at 10.0.0.1")
	}
	return f.Policies.Policy(ctx, o, ua)
}

func (f *faults) Decided(e *audit.Entry) error {
	if strings.HasPrefix(e.UserAgent, "record") {
		panic("record fault at 10.0.0.1")
	}
	return f.Recorder.Decided(e)
}

func (f *faults) Leaf(host string) (*tls.Certificate, error) {
	if host == "leaf.test" {
		panic("leaf fault at 10.0.0.1")
	}
	return f.Leaves.Leaf(host)
}

func (f *faults) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/upstream" {
		panic("upstream fault at 10.0.0.1")
	}
	resp, err := f.upstream.RoundTrip(r)
	if r.URL.Path == "/body" && err == nil {
		resp.Body = &faultyBody{ReadCloser: resp.Body}
	}
	return resp, err
}

// faultyBody fails after its first octet.
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
func TestTrap02_FaultCostsOneRequest(t *testing.T) {
	log := &lockedBuffer{}
	r := newRig(t, hello, new(faults).config, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(log, nil)) })
	eachMode(t, allModes, func(t *testing.T, m mode) {
		r := r.in(t)
		for _, f := range []question{
			{path: "/policy/" + string(m), header: []string{"User-Agent: policy/1"}},
			{path: "/upstream"},
		} {
			a := r.ask(m, f)
			if a.StatusCode != 500 || proxyStatusOf(t, a.Header) != "proxy_internal_error" {
				t.Errorf("%s: %s %v", f.path, a.Status, a.Header)
			}
			if told := a.body + a.Status; strings.Contains(told, "10.0.0.1") || strings.Contains(told, "goroutine") {
				t.Errorf("the client is told the inside: %s", told)
			}
			r.records.await(t, f.path, func(e *audit.Entry) bool { return e.Target == f.path && e.Outcome.Status == 500 })
			if f.path != "/upstream" {
				if e := r.records.target(t, f.path); e.Decision.Verdict != rules.Refuse || e.Decision.Reason != rules.ReasonInternal {
					t.Errorf("a decision that failed is recorded as %+v", e.Decision)
				}
			}
			if a := r.ask(m, question{path: "/fine"}); a.StatusCode != 200 {
				t.Errorf("after the fault: %s", a.Status)
			}
		}
		if a := r.ask(m, question{path: "/body"}); a.err == nil {
			t.Errorf("an answer whose body failed inside heed looks whole: %q", a.body)
		}
	})
	if !strings.Contains(log.String(), "policy fault") || !strings.Contains(log.String(), "goroutine") {
		t.Errorf("the operator is not told of the fault: %.300s", log.String())
	}
	for _, seen := range r.site.reached() {
		if strings.Contains(seen, "/policy") || strings.Contains(seen, "/upstream") {
			t.Errorf("the site saw %s", seen)
		}
	}
}

// A recorder that fails so badly that not even a refusal can be recorded closes
// the connection; nothing reaches the site.
func TestTrap02_FaultInTheRecorderClosesTheConnection(t *testing.T) {
	r := newRig(t, hello, new(faults).config)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		c.Send(get(prefix, "/public", "User-Agent: record/1"))
		c.Closed()
	})
	if seen := r.site.reached(); len(seen) > 0 {
		t.Errorf("the site saw %q", seen)
	}
	if a := r.ask(plain, question{path: "/fine"}); a.StatusCode != 200 {
		t.Error(a.Status)
	}
}

// A certificate that cannot be made ends its tunnel: nobody else would close
// that connection. The record does not blame the client.
func TestTrap02_FaultInTheHandshakeClosesTheTunnel(t *testing.T) {
	r := newRig(t, hello, new(faults).config)
	c := testkit.Dial(t, r.addr).Connect("leaf.test:443")
	if _, err := c.TryTLS(r.trusting("leaf.test")); err == nil {
		t.Fatal("a handshake without a certificate")
	}
	c.Closed()
	r.records.await(t, "the fault", func(e *audit.Entry) bool { return e.Decision.Reason == rules.ReasonInternal })
}
