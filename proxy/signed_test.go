package proxy

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"heed/internal/judge/acl"
	"heed/internal/tools/testkit/must"
	"heed/internal/trust/passport"
	"heed/rules"
)

// newSigner returns what signs the requests of a client, and its key as a site finds it.
func newSigner(t testing.TB) (*passport.Signer, []passport.ListedKey) {
	t.Helper()
	k := must.Get(passport.NewKey(time.Time{}))(t)
	s := must.Get(passport.NewSigner(k, "https://bots.example/news/keys.json"))(t)
	return s, []passport.ListedKey{{PublicKey: k.PublicKey}}
}

// signing are rules with one client, whose requests are signed and which sites see as
// NewsBot. Each host may change how.
func signing(s *passport.Signer, hosts ...acl.Host) *acl.Rules {
	return &acl.Rules{Hosts: hosts, Clients: []acl.Client{{Name: "news", Agent: rules.Declare("NewsBot"), SendUserAgent: "NewsBot/1.0 (+https://bots.example/)", Signer: s}}}
}

// outcome returns what a site finds out about a request that has arrived.
func (a arrival) outcome(scheme string, keys []passport.ListedKey) string {
	m := &passport.Message{Method: a.Method, Scheme: scheme, Authority: a.Host, Target: a.Target, Header: a.Header}
	c, err := passport.Read(m)
	if err == passport.ErrUnsigned {
		return "unsigned"
	} else if err != nil {
		return err.Error()
	}
	o, why := c.Verify(keys, time.Now())
	return strings.TrimSuffix(string(o)+": "+why, ": ")
}

// Requests over https are signed on each way, those over http only at hosts that need it,
// all after the name was set: a site can verify what it gets.
func TestHeed_TheRequestsOfAClientAreSigned(t *testing.T) {
	t.Parallel()
	signer, keys := newSigner(t)
	for _, overHTTP := range []bool{false, true} {
		r := newRig(t, hello, func(c *Config) { settle(c, signing(signer, acl.Host{Match: everywhere(t), SignHTTP: overHTTP})) })
		eachMode(t, allModes, func(t *testing.T, m mode) {
			r := r.in(t)
			want := "verified"
			if m.scheme() == "http" && !overHTTP {
				want = "unsigned"
			}
			for i, q := range []question{
				{path: "/page"}, {path: "/page?a=1&b=%20"}, {path: "/page", method: "POST", body: "text"}, {path: "/a%2Fb"}, {path: "/a/%2e/b"}, {path: "/a/./b"},
			} {
				q.path += fmt.Sprintf("?%s%d%v", m, i, overHTTP)
				got := r.ask(m, q)
				at := r.site.last(t, q.path)
				if o := at.outcome(m.scheme(), keys); o != want || got.StatusCode != 200 || at.Header.Get("User-Agent") != "NewsBot/1.0 (+https://bots.example/)" {
					t.Errorf("%s: %s, want %s; status %d; %v", q.path, o, want, got.StatusCode, at.Header)
				}
			}
		})
		for _, e := range r.records.all() {
			signed := e.Method != "CONNECT" && (e.Scheme == "https" || overHTTP)
			if signed != (e.SignedKey == keys[0].Thumbprint && e.SignedBy == signer.Agent()) || !signed && e.SignedKey+e.SignedBy != "" {
				t.Errorf("%s %s is recorded as signed with the key %q by %q", e.Method, e.URL(), e.SignedKey, e.SignedBy)
			}
		}
		for _, at := range r.site.requests() {
			must.True(t, at.Target != "/robots.txt" || !passport.Signed(at.Header),
				"heed's own request is signed with the key of a client")
		}
	}
}

// What a client signs itself passes untouched, and so does half of a signature: heed's never
// mixes with it. A field that Connection names is not the client's word to the site.
func TestHeed_NothingIsAddedToASignatureOfTheClient(t *testing.T) {
	t.Parallel()
	signer, keys := newSigner(t)
	r := newRig(t, hello, func(c *Config) { settle(c, signing(signer)) })
	const (
		agent = `Signature-Agent: x="https://evil.example"`
		input = `Signature-Input: x=("@authority");created=1;keyid="k";tag="web-bot-auth"`
		value = "Signature: x=:AAAA:"
	)
	eachMode(t, []mode{mitmH1, mitmH2, absolute}, func(t *testing.T, m mode) {
		r := r.in(t)
		for i, c := range []struct {
			header []string
			want   string // the fields that arrive; empty: heed's, verified
		}{
			{[]string{agent, input, value}, "Signature-Agent Signature-Input Signature"},
			{[]string{agent}, "Signature-Agent"},
			{[]string{"signature-agent: "}, "Signature-Agent"},
			{[]string{input}, "Signature-Input"},
			{[]string{value}, "Signature"},
			{[]string{value, input}, "Signature-Input Signature"},
			{[]string{agent, input, value, "Connection: signature-agent"}, "Signature-Input Signature"},
			{[]string{agent, "Connection: close, Signature-Agent"}, ""},
			{[]string{"Connection: Signature, Signature-Agent, Signature-Input"}, ""},
			{[]string{agent, input, value, "Connection: Signature, Signature-Agent, Signature-Input"}, ""},
		} {
			if m == mitmH2 && strings.Contains(strings.Join(c.header, "\n"), "Connection") {
				continue // HTTP/2 has no such field (RFC 9113 §8.2.2)
			}
			path := fmt.Sprintf("/own?%s%d", m, i)
			r.ask(m, question{path: path, header: c.header})
			at := r.site.last(t, path)
			var got []string
			for _, name := range []string{"Signature-Agent", "Signature-Input", "Signature"} {
				if lines, ok := at.Header[name]; ok && len(lines) == 1 && !strings.Contains(lines[0], "sig1") {
					got = append(got, name)
				}
			}
			if c.want == "" {
				must.Equal(t, at.outcome("https", keys), "verified", "%q", c.header)
			} else if strings.Join(got, " ") != c.want || strings.Contains(fmt.Sprint(at.Header), "sig1") {
				t.Errorf("%q: %v arrive", c.header, at.Header)
			}
		}
	})
}

// What heed refuses is not sent, and is not recorded as signed.
func TestHeed_ARefusedRequestIsNotSigned(t *testing.T) {
	t.Parallel()
	signer, _ := newSigner(t)
	r := newRig(t, hello, func(c *Config) { settle(c, signing(signer)) })
	must.Is(t, r.ask(mitmH1, question{path: "/private"}).StatusCode, 403)
	for _, e := range r.records.all() {
		must.Equal(t, e.SignedKey, "", "recorded as signed: %s", e.URL())
	}
}

// A site does not get a signature that is valid at another: a request that is let pass although
// it names another host, since the client is only observed, is not signed.
func TestHeed_ARequestThatNamesAnotherHostIsNotSigned(t *testing.T) {
	t.Parallel()
	signer, keys := newSigner(t)
	r := newRig(t, hello, func(c *Config) {
		rules := signing(signer)
		rules.Mode = acl.Observe
		settle(c, rules)
	})
	for path, c := range map[string]struct{ host, want string }{"/same": {"site.test", "verified"}, "/other": {"h1.test", "unsigned"}} {
		conn, _ := r.raw(mitmH1)
		conn.Send("GET " + path + " HTTP/1.1\r\nHost: " + c.host + "\r\n\r\n")
		must.Is(t, conn.Head("GET").StatusCode, 200, path)
		must.Equal(t, r.site.last(t, path).outcome("https", keys), c.want, path)
	}
}

// A site that redirects to another gets no signature for that one: each hop has its own.
func TestHeed_EachHopOfARedirectIsSignedForItsHost(t *testing.T) {
	t.Parallel()
	signer, keys := newSigner(t)
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/go" {
			http.Redirect(w, r, "https://h1.test/there?a=b", http.StatusFound)
		}
	}, func(c *Config) { settle(c, signing(signer)) })
	client := r.client(mitmH2)
	client.CheckRedirect = nil
	resp := must.Get(client.Get("https://site.test/go"))(t)
	resp.Body.Close()
	from, to := r.site.last(t, "/go"), r.site.last(t, "/there?a=b")
	a, b := from.outcome("https", keys), to.outcome("https", keys)
	must.True(t, a == "verified" && b == "verified" && from.Proto != to.Proto, "%s, %s", a, b)
	to.Header = from.Header
	o := to.outcome("https", keys)
	must.True(t, strings.HasPrefix(o, "invalid"), "the signature of the first is %s at the second", o)
}

// A request that is sent again since the site has closed its connection is signed again.
func TestHeed_ARequestThatIsSentAgainIsSignedAgain(t *testing.T) {
	t.Parallel()
	signer, keys := newSigner(t)
	s := newSite(t, hello)
	certFile, keyFile := s.ca.Leaf(t, "once.test")
	s.scriptTLS(t, "once.test:443", certFile, keyFile, func(c net.Conn, r *http.Request) {
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		if second, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			s.note(second) // it gets no answer
		}
	})
	r := newRigBefore(t, s, func(c *Config) { settle(c, signing(signer)) })
	c, _ := r.rawTo(mitmH1, "once.test") // one client, whose next request takes the connection of the first
	for _, path := range []string{"/first", "/second"} {
		c.Send(requestTo("once.test", "GET", "", path))
		must.Is(t, c.Head("GET").StatusCode, 200, path)
	}
	seen := map[string]bool{}
	for _, at := range s.requests() {
		if at.Target == "/second" {
			must.Equal(t, at.outcome("https", keys), "verified")
			seen[at.Header.Get("Signature")] = true
		}
	}
	must.Equal(t, len(seen), 2, "signatures of the request that is sent twice")
}

// Heed does not see what is in a tunnel, and signs nothing there; the fetch of robots.txt as
// this client is not signed either.
func TestHeed_ATunnelIsNotSigned(t *testing.T) {
	t.Parallel()
	signer, _ := newSigner(t)
	hostOnly := acl.HostOnly
	s := newSite(t, hello)
	s.serve(t, "shy.test", &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.note(r)
		if r.URL.Path == "/robots.txt" && !strings.HasPrefix(r.UserAgent(), "Own/") {
			w.WriteHeader(http.StatusForbidden)
		}
	})})
	r := newRigBefore(t, s, func(c *Config) {
		settle(c, signing(signer, acl.Host{Match: everywhere(t), HTTPS: &hostOnly, Ports: []uint16{443}}))
	})
	c, _ := r.raw(plain)
	c.Connect("shy.test:443", "User-Agent: Own/1")
	for _, at := range s.requests() {
		must.True(t, !passport.Signed(at.Header), "signed: %+v", at)
	}
}
