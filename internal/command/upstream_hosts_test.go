package command_test

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	golog "log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func TestHostsAreReachedInWaysOfTheirOwn(t *testing.T) {
	t.Parallel()
	f := newFar(t, "site.test", "tunnel.test") // through Squid
	near := testkit.NewOrigin(t, testkit.Site{
		Name: "near.test", Robots: "User-agent: *\nDisallow: /private\n", Config: "deny " + testkit.LeavesFrom + "; allow all;",
		Files: map[string]string{"/page.txt": "a page", "/private.txt": "no page"},
	})
	other := newFar(t, "localhost", "127.0.0.1") // through SOCKS
	squid, socks := testkit.NewSquid(t, f.o.CA, true, "site.test", "tunnel.test"), testkit.NewSOCKS(t, true)
	config := f.config("http://"+credentials(true).String()+"@"+squid.Addr, fmt.Sprintf(`
[[host]]
match = ["near.test"]
upstream = "direct"
ca_file = %q
[[host]]
match = ["localhost", "127.0.0.1"]
upstream = "env:SOCKS"
ca_file = %q
https = "tunnel"
ports = [%s]
[upstream.resolve]
"near.test:80" = %q
"near.test:443" = %q
`, near.CA.File, other.o.CA.File, other.tunnel[strings.LastIndexByte(other.tunnel, ':')+1:], near.Addr("near.test", "http"), near.Addr("near.test", "https")))
	h := testkit.Start(t, testkit.Options{Config: config, Env: []string{"SOCKS=socks5://" + credentials(true).String() + "@" + socks.Addr}})
	c := trusting(t, h)
	for _, site := range []string{f.web, f.secure, "http://near.test", "https://near.test", other.web} {
		if status, proxyStatus, body := answer(t, c, site+"/page.txt"); status != http.StatusOK || body != "a page" {
			t.Errorf("%s/page.txt is answered with %d %s %q", site, status, proxyStatus, body)
		}
		status, _, _ := answer(t, c, site+"/private.txt")
		must.True(t, status == http.StatusForbidden, "%s/private.txt is answered with %d", site, status)
	}
	tunnelled := client(t, h)
	tunnelled.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: other.o.CA.Pool()}
	status, _, body := answer(t, tunnelled, other.tunnel+"/page.txt")
	must.True(t, status == http.StatusOK && body == "a page", "the tunnel through SOCKS gives %d %q", status, body)
	if log := squid.Log(); strings.Contains(log, "near.test") || strings.Contains(log, "localhost") {
		t.Errorf("Squid was asked for what goes another way:\n%s", log)
	}
	for _, text := range []string{"near.test is reached directly", "localhost, 127.0.0.1 is reached through env:SOCKS"} {
		h.AwaitText(text)
	}
	must.Lack(t, h.Stderr(), testkit.UpstreamPassword, "the log contains the password")
}

// certSite answers under any name, with a certificate of its CA for each, and says
// whose certificate it was shown.
type certSite struct {
	ca    *testkit.CA
	leafs map[string]tls.Certificate
	addr  string
}

func newCertSite(t *testing.T, names ...string) *certSite {
	t.Helper()
	s := &certSite{ca: testkit.NewCA(t), leafs: map[string]tls.Certificate{}}
	for _, name := range names {
		cert := must.Get(tls.LoadX509KeyPair(s.ca.Leaf(t, name)))(t)
		s.leafs[name] = cert
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
			return
		}
		for _, cert := range r.TLS.PeerCertificates {
			fmt.Fprint(w, cert.Subject.CommonName)
		}
	}))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		config := &tls.Config{Certificates: []tls.Certificate{s.leafs[hello.ServerName]}, NextProtos: []string{"h2", "http/1.1"}}
		if strings.HasPrefix(hello.ServerName, "mutual") {
			config.ClientAuth = tls.RequireAnyClientCert
		}
		return config, nil
	}}
	server.Config.ErrorLog = golog.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	s.addr = server.Listener.Addr().String()
	return s
}

// hash is the SHA-256 of what of picks from a name's certificate.
func (s *certSite) hash(t *testing.T, name string, of func(*x509.Certificate) []byte) string {
	t.Helper()
	leaf := must.Get(x509.ParseCertificate(s.leafs[name].Certificate[0]))(t)
	sum := sha256.Sum256(of(leaf))
	return hex.EncodeToString(sum[:])
}

func TestWhichCertificatesOfAHostAreAccepted(t *testing.T) {
	t.Parallel()
	names := []string{"plain.test", "rooted.test", "any.test", "cert.test", "key.test", "wrong.test", "mutual.test", "mutual-without.test", "any-behind.test", "any-tunnel.test"}
	s := newCertSite(t, names...)
	squid := testkit.NewSquid(t, testkit.NewCA(t), false) // heed does not trust the authority of its certificate
	whole := func(c *x509.Certificate) []byte { return c.Raw }
	key := func(c *x509.Certificate) []byte { return c.RawSubjectPublicKeyInfo }
	clientCert, clientKey := s.ca.Leaf(t, "AcmeBot")
	var config strings.Builder
	fmt.Fprintf(&config, "%s[log]\nformat = \"json\"\n", testkit.AnyPort)
	entry := func(name, text string) { fmt.Fprintf(&config, "[[host]]\nmatch = [%q]\n%s\n", name, text) }
	entry("rooted.test", fmt.Sprintf("ca_file = %q", s.ca.File))
	entry("any.test", `upstream_tls = "unverified"`+"\nreason = \"a test server\"")
	entry("cert.test", fmt.Sprintf("upstream_tls = \"sha256:%s\"\nreason = \"an appliance\"", s.hash(t, "cert.test", whole)))
	entry("key.test", fmt.Sprintf("upstream_tls = \"sha256:%s\"\nreason = \"an appliance\"", strings.ToUpper(s.hash(t, "key.test", key))))
	entry("wrong.test", fmt.Sprintf("upstream_tls = \"sha256:%s\"\nreason = \"an appliance\"", s.hash(t, "cert.test", whole)))
	entry("mutual.test", fmt.Sprintf("ca_file = %q\nclient_cert = %q\nclient_key = %q", s.ca.File, clientCert, clientKey))
	entry("mutual-without.test", fmt.Sprintf("ca_file = %q", s.ca.File))
	for _, behind := range []string{"any-behind.test", "any-tunnel.test"} {
		entry(behind, fmt.Sprintf("upstream_tls = \"unverified\"\nreason = \"a test server\"\nupstream = \"https://%s\"", squid.TLS))
	}
	entry("any-tunnel.test", `https = "tunnel"`)
	config.WriteString("[upstream.resolve]\n")
	for _, name := range names {
		fmt.Fprintf(&config, "\"%s:443\" = %q\n", name, s.addr)
	}
	h := testkit.Start(t, testkit.Options{Config: config.String()})
	c := trusting(t, h)
	for _, x := range []struct {
		host, body, failure string
	}{
		{"rooted.test", "", ""},
		{"any.test", "", ""},
		{"cert.test", "", ""},
		{"key.test", "", ""},
		{"mutual.test", "AcmeBot", ""},
		{"plain.test", "", "tls_certificate_error"}, // what is trusted for others is not for it
		{"wrong.test", "", "tls_certificate_error"},
		{"any-behind.test", "", "tls_certificate_error"}, // the proxy's own is verified all the same
	} {
		status, proxyStatus, body := answer(t, c, "https://"+x.host+"/page")
		switch {
		case x.failure == "" && (status != http.StatusOK || body != x.body):
			t.Errorf("%s is answered with %d %s %q", x.host, status, proxyStatus, body)
		case x.failure != "" && (status != http.StatusBadGateway || !strings.Contains(proxyStatus, "error="+x.failure)):
			t.Errorf("%s is answered with %d %s %q, want 502 %s", x.host, status, proxyStatus, body, x.failure)
		}
		status, _, _ = answer(t, c, "https://"+x.host+"/private")
		must.True(t, x.failure != "" || status == http.StatusForbidden, "%s/private is answered with %d", x.host, status)
	}
	// In TLS 1.3 a site says after the handshake that it wants another certificate,
	// and HTTP/2 may keep to itself what it said.
	if status, _, body := answer(t, c, "https://mutual-without.test/page"); status != http.StatusServiceUnavailable || !strings.Contains(body, "robots.txt was not answered") {
		t.Errorf("a site that wants a certificate and gets none is answered with %d %s", status, body)
	}
	if _, err := c.Get("https://any-tunnel.test/page"); err == nil || !strings.Contains(err.Error(), "its certificate is signed by an authority that heed does not trust") {
		t.Errorf("a tunnel through a proxy with an untrusted certificate ends in %v", err)
	}
	must.Lack(t, squid.Log(), "CONNECT", "a proxy that cannot be trusted was asked")
	for _, text := range []string{"the certificate of any.test is NOT VERIFIED", "(a test server)", "cert.test is verified by the hash of its certificate only", "(an appliance)"} {
		h.AwaitText(text)
	}
}

// What is wrong with the files that the settings name is found by config check,
// and keeps heed from starting.
func TestFilesOfAHostsWayThatDoNotFit(t *testing.T) {
	t.Parallel()
	ca := testkit.NewCA(t)
	cert, key := ca.Leaf(t, "AcmeBot")
	_, otherKey := ca.Leaf(t, "OtherBot")
	open, pipe := key+".open", key+".pipe"
	text, err := os.ReadFile(key)
	if err == nil {
		err = os.WriteFile(open, text, 0o640)
	}
	must.OK(t, errors.Join(err, syscall.Mkfifo(pipe, 0o600)))
	for settings, want := range map[string]string{
		`ca_file = "none.pem"`:                                           "ca_file: the CA file cannot be read",
		fmt.Sprintf("ca_file = %q", key):                                 "holds no certificate",
		fmt.Sprintf("client_cert = %q\nclient_key = %q", cert, open):     ", mode 0640): run `chmod 600 " + open,
		fmt.Sprintf("client_cert = %q\nclient_key = %q", cert, otherKey): "cannot be used",
		fmt.Sprintf("client_cert = %q\nclient_key = \"none.pem\"", cert): "client_key: the key cannot be read",
		fmt.Sprintf("client_cert = %q\nclient_key = %q", pipe, key):      "cannot be used",
		`upstream = "env:NOT_SET"`:                                       "upstream: heed's environment has no variable NOT_SET",
		`upstream = "file:none"`:                                         "upstream: the file cannot be read",
		fmt.Sprintf("upstream = \"file:%s\"", key):                       "does not contain exactly one line",
	} {
		h := testkit.Launch(t, testkit.Options{Config: testkit.AnyPort + "[[host]]\nmatch = [\"a.test\", \"b.test\"]\n" + settings + "\n"})
		status, said := h.Exit(), h.Stderr()
		entry := strings.Contains(said, "proxy.toml:4: host.") || strings.Contains(said, "the [[host]] of a.test, b.test: ")
		must.True(t, status != 0 && entry && strings.Contains(said, want),
			"with %s heed ends with %d:\n%s", settings, status, said)
	}
}
