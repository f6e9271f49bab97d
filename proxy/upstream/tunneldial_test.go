package upstream

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// carrier is a proxy that opens tunnels, over TLS with config, and reports what it was
// asked; answer is its answer to CONNECT, empty for a tunnel.
func carrier(t *testing.T, config *tls.Config, answer string) (addr string, asked chan *http.Request) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	addr, asked = l.Addr().String(), make(chan *http.Request, 100)
	if config != nil {
		l = tls.NewListener(l, config)
	}
	go testkit.Accept(l, func(c net.Conn) { carry(c, answer, asked) })
	return addr, asked
}

func carry(c net.Conn, answer string, asked chan<- *http.Request) {
	defer c.Close()
	in := bufio.NewReader(c)
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	asked <- r
	if answer != "" {
		io.WriteString(c, answer)
		return
	}
	site, err := net.Dial("tcp", r.Host)
	if err != nil {
		return
	}
	defer site.Close()
	io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	go io.Copy(site, in)
	io.Copy(c, site)
}

func TestDialSite_NamesBesideCloseAreKeptThroughProxies(t *testing.T) {
	ca := testkit.NewCA(t)
	cert, key := ca.Leaf(t, "127.0.0.1")
	pair := must.Get(tls.LoadX509KeyPair(cert, key))(t)
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close, X-Hop")
		}
	})
	for _, h2 := range []bool{false, true} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(fmt.Sprintf("%s proxy, HTTP/2 %v", scheme, h2), func(t *testing.T) {
				site := httptest.NewUnstartedServer(page)
				site.TLS, site.EnableHTTP2 = config.Clone(), h2
				site.StartTLS()
				t.Cleanup(site.Close)
				of := map[string]*tls.Config{"https": config}[scheme]
				addr, asked := carrier(t, of, "")
				through := &url.URL{Scheme: scheme, Host: addr, User: url.UserPassword("u", "p")}
				w := NewHostTransports(TransportConfig{RootCAs: ca.Pool(), Proxy: http.ProxyURL(through)})
				t.Cleanup(w.CloseIdleConnections)
				r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, site.URL, nil))(t)
				resp := must.Get(w.RoundTrip(r))(t)
				resp.Body.Close()
				if got := <-asked; got.Method != http.MethodConnect || got.Host != r.URL.Host || got.Header.Get("Proxy-Authorization") != "Basic dTpw" {
					t.Errorf("the proxy was asked %s %s %v", got.Method, got.Host, got.Header)
				}
				must.Equal(t, resp.ProtoMajor == 2, h2, "the answer came by %s", resp.Proto)
				if h2 {
					return
				}
				must.Equal(t, strings.TrimSpace(strings.Join(resp.Header["Connection"], "|")), "close, X-Hop", "Connection")
			})
		}
	}
}

// Each failure names who has failed: the proxy behind heed, or the site.
func TestDialSite_FailuresOfTheProxyAreItsOwn(t *testing.T) {
	dead := testkit.FreeAddr(t)
	stranger := testkit.NewCA(t)
	cert, key := stranger.Leaf(t, "127.0.0.1")
	pair := must.Get(tls.LoadX509KeyPair(cert, key))(t)
	site := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(site.Close)
	opens, _ := carrier(t, nil, "")
	refuses, _ := carrier(t, nil, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
	denies, _ := carrier(t, nil, "HTTP/1.1 403 Forbidden\r\n\r\n")
	garbles, _ := carrier(t, nil, "SSH-2.0-OpenSSH\r\n")
	reports := testkit.RawSite(t, func(c net.Conn) { // a SOCKS proxy whose site refuses the connection (RFC 1928 §6)
		defer c.Close()
		buf := make([]byte, 300)
		c.Read(buf)
		c.Write([]byte{5, 0})
		c.Read(buf)
		c.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
		io.Copy(io.Discard, c)
	})
	untrusted, _ := carrier(t, &tls.Config{Certificates: []tls.Certificate{pair}}, "")
	for proxy, want := range map[string]Failure{
		"http://" + dead:       {Status: 502, Type: "connection_refused", ByProxy: true},
		"socks5://" + dead:     {Status: 502, Type: "connection_refused", ByProxy: true},
		"http://" + refuses:    {Status: 502, Type: "proxy_configuration_error", ByProxy: true},
		"http://" + denies:     {Status: 502, Type: "http_request_denied", ByProxy: true},
		"http://" + garbles:    {Status: 502, Type: "http_protocol_error", ByProxy: true},
		"https://" + untrusted: {Status: 502, Type: "tls_certificate_error", ByProxy: true},
		"http://" + opens:      {Status: 502, Type: "tls_certificate_error"},
		"socks5://" + reports:  {Status: 502, Type: "connection_refused"}, // by the site, to the proxy
	} {
		through := must.Get(url.Parse(proxy))(t)
		w := NewHostTransports(TransportConfig{Proxy: http.ProxyURL(through)})
		r := must.Get(http.NewRequest(http.MethodGet, site.URL, nil))(t)
		_, err := w.RoundTrip(r)
		if got := FailureOf(err); got.Status != want.Status || got.Type != want.Type || got.ByProxy != want.ByProxy {
			t.Errorf("a request through %s: %+v for %v, want %+v", proxy, got, err, want)
		}
		c, err := w.DialTunnel(t.Context(), r.URL.Host)
		if err == nil {
			c.Close()
		}
		if got := FailureOf(err); (err != nil) != (want.ByProxy || want.Type == "connection_refused") || err != nil && got.ByProxy != want.ByProxy {
			t.Errorf("a tunnel through %s: %+v for %v", proxy, got, err)
		}
		want := (&upstreamRefused{})
		must.True(t, !strings.Contains(proxy, refuses) || errors.As(err, &want), "refused: %v", err)
	}
}

// A 407 to a plain request is the proxy's, and no client gets it as the site's answer.
func TestRoundTrip_CredentialsThatTheProxyAsksForAreItsFailure(t *testing.T) {
	asks, _ := carrier(t, nil, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
	works, _ := carrier(t, nil, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	dead := testkit.FreeAddr(t)
	for addr, want := range map[string]Failure{
		asks:  {Status: 502, Type: "proxy_configuration_error", ByProxy: true, Proxy: asks, Refused: 407},
		dead:  {Status: 502, Type: "connection_refused", ByProxy: true, Proxy: dead},
		works: {},
	} {
		var used []error
		w := NewHostTransports(TransportConfig{
			Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr}),
			ProxyUsed: func(proxy string, err error) {
				used = append(used, err)
				must.True(t, proxy == addr, "%s is used as %s", addr, proxy)
			},
		})
		r := must.Get(http.NewRequest(http.MethodGet, "http://site.test/", nil))(t)
		resp, err := w.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
			must.Equal(t, want.Status, 0, "%s: status %d", addr, resp.StatusCode)
		} else if got := FailureOf(err); got != want {
			t.Errorf("%s: %+v, want %+v", addr, got, want)
		}
		must.True(t, len(used) == 1 && (used[0] == nil) == (want.Status == 0), "%s: reported %v", addr, used)
	}
}

func TestFailureOf_CertificatesAreNamedByTheirFault(t *testing.T) {
	now := time.Now()
	for want, err := range map[string]error{
		UnknownAuthority: x509.UnknownAuthorityError{},
		OtherNames:       x509.HostnameError{Certificate: &x509.Certificate{}, Host: "site.test"},
		Expired:          x509.CertificateInvalidError{Reason: x509.Expired, Cert: &x509.Certificate{NotBefore: now.Add(-2 * time.Hour), NotAfter: now.Add(-time.Hour)}},
		NotYetValid:      x509.CertificateInvalidError{Reason: x509.Expired, Cert: &x509.Certificate{NotBefore: now.Add(time.Hour)}},
		OtherThanPinned:  errPinned,
		Unverifiable:     x509.CertificateInvalidError{Reason: x509.TooManyIntermediates},
	} {
		got := FailureOf(fmt.Errorf("fetching: %w", &tls.CertificateVerificationError{Err: err}))
		must.True(t, got.Certificate == want && got.Type == "tls_certificate_error" && !got.ByProxy,
			"%v: %+v, want %q", err, got, want)
	}
}
