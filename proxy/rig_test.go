package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/cache"
	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/internal/trust/ca"
	"heed/proxy/upstream"
)

// robots is what the rig's site answers for /robots.txt.
const robots = `# the rig's rules
User-agent: *
Disallow: /private
Allow: /private/ok

User-agent: BadBot
Disallow: /
`

// rig is a proxy on a real listener, with the real cache and CA, in front of a
// real site called site.test that speaks HTTP, HTTPS and HTTP/2.
type rig struct {
	t       testing.TB
	proxy   *Proxy
	addr    string
	roots   *x509.CertPool // trusts the proxy's CA
	caPEM   []byte         // that CA
	records *records
	site    *site
}

// newRig starts a rig. Each change may alter the configuration first.
func newRig(t testing.TB, handler http.HandlerFunc, changes ...func(*Config)) *rig {
	t.Helper()
	return newRigBefore(t, newSite(t, handler), changes...)
}

// newRigBefore starts a rig in front of a site that was altered first.
func newRigBefore(t testing.TB, s *site, changes ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, site: s, records: &records{}}
	r.addr = testkit.FreeAddr(t) // no other server gets it after a Shutdown
	l := must.Get(net.Listen("tcp", r.addr))(t)
	_, port, _ := net.SplitHostPort(r.addr)
	s.resolve["self.test:80"], s.resolve["self.test:443"], s.resolve["self.test:"+port] = r.addr, r.addr, r.addr
	authority := must.Get(ca.Open(t.TempDir(), time.Now))(t)
	r.roots = x509.NewCertPool()
	r.caPEM = authority.CertPEM()
	r.roots.AppendCertsFromPEM(r.caPEM)
	self := &acl.Addrs{}
	ways := upstream.NewHostTransports(upstream.TransportConfig{
		Resolve: s.resolve, RootCAs: s.ca.Pool(), Self: self, ResponseHeaderTimeout: s.patience,
	})
	t.Cleanup(ways.CloseIdleConnections)
	config := Config{
		Name: "rig-7f3a", Leaves: authority, Recorder: r.records, Self: self,
		Settings: Settings{
			Upstream: ways, DialTunnel: ways.DialTunnel,
			Policies: cache.New(cache.Config{Transport: ways, Carry: upstream.CarryClient, UserAgent: "heed-rig"}),
		},
	}
	for _, change := range changes {
		change(&config)
	}
	r.proxy = must.Get(New(config))(t)
	served := make(chan error, 1)
	go func() { served <- r.proxy.Serve(l) }()
	t.Cleanup(func() {
		r.proxy.close()
		r.proxy.open.closeAll()
		must.OK(t, <-served, "Serve")
	})
	return r
}

// mode is one way a client reaches a site through the proxy.
type mode string

// The five ways. All of them end in the same decision.
const (
	plain    mode = "plain"    // http, absolute form
	mitmH1   mode = "h1"       // https, intercepted, HTTP/1.1
	mitmH2   mode = "h2"       // https, intercepted, HTTP/2
	inTunnel mode = "tunnel"   // http inside CONNECT
	absolute mode = "absolute" // https in absolute form on the proxy port
)

var (
	allModes = []mode{plain, mitmH1, mitmH2, inTunnel, absolute}
	rawModes = []mode{plain, mitmH1, inTunnel, absolute} // a test speaks HTTP/1 on them in octets
)

// scheme is the scheme of the addresses asked for.
func (m mode) scheme() string {
	if m == plain || m == inTunnel {
		return "http"
	}
	return "https"
}

// eachMode runs test once per mode.
func eachMode(t *testing.T, modes []mode, test func(t *testing.T, m mode)) {
	for _, m := range modes {
		t.Run(string(m), func(t *testing.T) { test(t, m) })
	}
}

// client returns a Go client that goes through the proxy in mode m; raw modes
// that net/http cannot speak are for raw.
func (r *rig) client(m mode) *http.Client {
	proxyURL := &url.URL{Scheme: "http", Host: r.addr}
	tr := &http.Transport{
		Proxy:              http.ProxyURL(proxyURL),
		TLSClientConfig:    &tls.Config{RootCAs: r.roots},
		DisableCompression: true,
		ForceAttemptHTTP2:  m == mitmH2,
	}
	r.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{
		Transport:     tr,
		Timeout:       testkit.Patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// in returns the rig for a subtest.
func (r *rig) in(t testing.TB) *rig {
	sub := *r
	sub.t = t
	return &sub
}

// raw opens a connection on which HTTP/1 is spoken in octets, and returns
// the text before the path in a request line.
func (r *rig) raw(m mode) (c *testkit.Conn, prefix string) {
	r.t.Helper()
	return r.rawTo(m, "site.test")
}

// rawTo is raw for a host of the caller's choice.
func (r *rig) rawTo(m mode, host string) (c *testkit.Conn, prefix string) {
	r.t.Helper()
	c = testkit.Dial(r.t, r.addr)
	switch m {
	case plain:
		return c, "http://" + host
	case absolute:
		return c, "https://" + host
	case inTunnel:
		return c.Connect(host + ":80"), ""
	case mitmH1:
		return c.Connect(host + ":443").TLS(r.trusting(host, "http/1.1")), ""
	default:
		r.t.Fatalf("mode %s is not spoken in bytes", m)
		return nil, ""
	}
}

// trusting is the TLS configuration of a client that trusts the proxy's CA.
func (r *rig) trusting(host string, protocols ...string) *tls.Config {
	return &tls.Config{RootCAs: r.roots, ServerName: host, NextProtos: protocols}
}

// close ends every connection of p.
func (p *Proxy) close() {
	p.closing.Store(true)
	p.listeners.closeAll()
	p.h1.Close()
	p.h2.Close()
}

// h2 opens a tunnel in which HTTP/2 is spoken.
func (r *rig) h2(host string) *http.ClientConn {
	r.t.Helper()
	return testkit.Dial(r.t, r.addr).Connect(host + ":443").TLS(r.trusting(host, "h2")).HTTP2()
}

// question is one request, to be asked in any mode.
type question struct {
	method string // empty: GET
	host   string // empty: site.test
	path   string
	header []string // each "Name: value"
	body   string
}

// reply is what a client made of the answer.
type reply struct {
	*http.Response
	body string
	err  error // reading the body
}

// ask asks q in mode m on a connection of its own.
func (r *rig) ask(m mode, q question) *reply {
	r.t.Helper()
	q.method, q.host = cmp.Or(q.method, "GET"), cmp.Or(q.host, "site.test")
	var resp *http.Response
	if m == mitmH2 {
		resp = r.askH2(q)
	} else {
		c, prefix := r.rawTo(m, q.host)
		if q.body != "" {
			q.header = append(q.header, fmt.Sprintf("Content-Length: %d", len(q.body)))
		}
		c.Send(requestTo(q.host, q.method, prefix, q.path, q.header...) + q.body)
		resp = c.Head(q.method)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	return &reply{resp, string(body), err}
}

func (r *rig) askH2(q question) *http.Response {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	r.t.Cleanup(cancel)
	req := must.Get(http.NewRequestWithContext(ctx, q.method, "https://"+q.host+q.path, strings.NewReader(q.body)))(r.t)
	if q.body == "" {
		req.Body = nil
	}
	req.Header["User-Agent"] = nil
	for _, h := range q.header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header[http.CanonicalHeaderKey(name)] = append(req.Header[http.CanonicalHeaderKey(name)], value)
	}
	resp, err := r.h2(q.host).RoundTrip(req)
	must.OK(r.t, err, "%s %s over HTTP/2", q.method, q.path)
	return resp
}

// get is a request in octets with the fields of header, each "Name: value".
func get(prefix, path string, header ...string) string {
	return rawRequest("GET", prefix, path, header...)
}

func rawRequest(method, prefix, path string, header ...string) string {
	return requestTo("site.test", method, prefix, path, header...)
}

func requestTo(host, method, prefix, path string, header ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s%s HTTP/1.1\r\nHost: %s\r\n", method, prefix, path, host)
	for _, h := range header {
		b.WriteString(h + "\r\n")
	}
	return b.String() + "\r\n"
}

// records is a Recorder that keeps copies.
type records struct {
	mu      sync.Mutex
	changed chan struct{}
	decided []audit.Entry
	ended   []audit.Entry
	fail    error // what Decided answers
}

func (r *records) Decided(e *audit.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return r.fail
	}
	r.decided = append(r.decided, *e)
	return nil
}

func (r *records) Ended(e *audit.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = append(r.ended, *e)
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// await returns the first ended entry that fits, waiting for it.
func (r *records) await(t testing.TB, what string, fits func(*audit.Entry) bool) audit.Entry {
	t.Helper()
	deadline := time.After(testkit.Patience)
	for {
		r.mu.Lock()
		for i := range r.ended {
			if fits(&r.ended[i]) {
				defer r.mu.Unlock()
				return r.ended[i]
			}
		}
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("no record of %s; there are %d others", what, len(r.ended))
		}
	}
}

// target waits for the record of a path.
func (r *records) target(t testing.TB, target string) audit.Entry {
	t.Helper()
	return r.await(t, target, func(e *audit.Entry) bool { return e.Target == target })
}

// after returns the one entry that ends after so many others, waiting for it: a client has
// its answer before that is recorded.
func (r *records) after(t testing.TB, others int) audit.Entry {
	t.Helper()
	testkit.Until(t, "one more entry", func() bool { return len(r.all()) > others })
	must.Equal(t, len(r.all()), others+1, "entries")
	return r.all()[others]
}

// all returns the entries that have ended so far.
func (r *records) all() []audit.Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]audit.Entry(nil), r.ended...)
}
