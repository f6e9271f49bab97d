package upstream

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"testing"

	"heed/internal/judge/acl"
	"heed/internal/tools/testkit/must"
)

func pattern(t *testing.T, text string) []acl.HostPattern {
	t.Helper()
	p := must.Get(acl.ParseHostPattern(text))(t)
	return []acl.HostPattern{p}
}

// leads returns the proxy that a request for address goes through; empty: none.
func leads(t *testing.T, w *HostTransports, address string) string {
	t.Helper()
	r := must.Get(http.NewRequest(http.MethodGet, address, nil))(t)
	way := w.transport(r.URL.Scheme, r.URL.Host)
	u, err := way.dialer.through(r)
	must.OK(t, err, "%s leads through %v", address, u)
	if u == nil {
		return ""
	}
	return u.String()
}

func TestHostTransports_TheFirstRouteWithASettingApplies(t *testing.T) {
	general, special := &url.URL{Scheme: "http", Host: "p.test:1"}, &url.URL{Scheme: "socks5", Host: "q.test:2"}
	anyCert := &SiteCert{Any: true}
	w := NewHostTransports(TransportConfig{Proxy: http.ProxyURL(general)},
		HostRoute{Match: pattern(t, "a.test"), Route: Route{Site: anyCert}},
		HostRoute{Match: pattern(t, "*.in.test"), Route: Route{Proxy: &HostProxy{}}},
		HostRoute{Match: pattern(t, "*:8443"), Route: Route{Proxy: &HostProxy{URL: special}}},
		HostRoute{Match: pattern(t, "a.test"), Route: Route{Proxy: &HostProxy{}, Site: &SiteCert{}}},
	)
	for address, want := range map[string]string{
		"http://site.test/":       "http://p.test:1",
		"https://a.test/":         "", // the fourth says so
		"https://a.test:8443/":    "socks5://q.test:2",
		"http://x.in.test/":       "",
		"https://x.in.test:8443/": "",
		"https://in.test/":        "http://p.test:1",
	} {
		must.Equal(t, leads(t, w, address), want, "%s leads through", address)
	}
	if way := w.transport("https", "a.test"); !way.dialer.tls.InsecureSkipVerify || way != w.transport("http", "A.test:80") {
		t.Error("the first that says which certificates are accepted does not count, or one way has two pools")
	}
	if w.transport("https", "x.in.test").dialer.tls.InsecureSkipVerify || w.transport("https", "site.test").dialer.tls.InsecureSkipVerify {
		t.Error("what is accepted from one host is accepted from others")
	}
}

func TestSiteCert_AcceptsThePinnedCertificateOrKeyOnly(t *testing.T) {
	leaf := &x509.Certificate{Raw: []byte("certificate"), RawSubjectPublicKeyInfo: []byte("key")}
	shown := tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf, {Raw: []byte("authority"), RawSubjectPublicKeyInfo: []byte("its key")}}}
	for _, c := range []struct {
		site *SiteCert
		ok   bool
	}{
		{&SiteCert{Any: true}, true},
		{&SiteCert{SHA256: sha256.Sum256([]byte("certificate"))}, true},
		{&SiteCert{SHA256: sha256.Sum256([]byte("key"))}, true},
		{&SiteCert{SHA256: sha256.Sum256([]byte("authority"))}, false}, // it is the site's own that counts
		{&SiteCert{}, false},
	} {
		err := c.site.check(shown)
		must.True(t, (err == nil) == c.ok && (c.ok || errors.Is(err, errPinned)), "%+v: %v", c.site, err)
	}
	err := (&SiteCert{}).check(tls.ConnectionState{})
	must.True(t, errors.Is(err, errPinned), "no certificate at all: %v", err)
}

func TestHostTransports_ConcurrentRequestsOfOneHostShareATransport(t *testing.T) {
	w := NewHostTransports(TransportConfig{}, HostRoute{Match: pattern(t, "*"), Route: Route{Site: &SiteCert{Any: true}}})
	var all sync.WaitGroup
	ways := make([]*transport, 16)
	for i := range ways {
		all.Go(func() { ways[i] = w.transport("https", "site.test") })
	}
	all.Wait()
	for _, way := range ways {
		must.Need(t, way == ways[0] && way != w.others, "one host has several ways")
	}
	w.CloseIdleConnections()
}

// What a site's robots.txt redirects to is not asked under the operator's name:
// only a site that was asked for itself is shown a client certificate.
func TestGuardRedirects_ARedirectIsNotFollowedUnderTheOperatorsName(t *testing.T) {
	refused := errors.New("no host is dialled")
	config := TransportConfig{Dialer: net.Dialer{ControlContext: func(context.Context, string, string, syscall.RawConn) error { return refused }}}
	w := NewHostTransports(config, HostRoute{Match: pattern(t, "127.0.0.7"), Route: Route{Certificate: &tls.Certificate{}, Site: &SiteCert{Any: true}}})
	for first, want := range map[string]int{"http://127.0.0.6/": 0, "https://127.0.0.7/": 1} {
		g := w.GuardRedirects()().(*guardedFetch)
		for _, address := range []string{first, "https://127.0.0.7/else"} {
			r := must.Get(http.NewRequest(http.MethodGet, address, nil))(t)
			_, err := g.RoundTrip(r)
			must.Need(t, errors.Is(err, refused) || errors.Is(err, ErrLessPublic), "%s: %v", address, err)
		}
		for took := range g.others {
			n := len(took.dialer.tls.Certificates)
			must.True(t, n == want && took.dialer.tls.InsecureSkipVerify, "redirected from %s it shows %d certificates", first, n)
		}
		must.True(t, len(g.others) == 1, "redirects from %s went %d ways", first, len(g.others))
	}
}
