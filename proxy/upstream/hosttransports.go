package upstream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"heed/internal/judge/acl"
	"heed/rules"
)

// HostRoute is how some hosts are reached.
type HostRoute struct {
	Match []acl.HostPattern // any of them
	Route
}

// Route is what differs for some hosts. A setting that is nil is that of the
// TransportConfig.
type Route struct {
	Proxy       *HostProxy
	Site        *SiteCert
	OldTLS      bool             // TLS 1.0 and 1.1, RSA key exchange and CBC are accepted; false: as a route after it
	Renegotiate bool             // one renegotiation is allowed, which TLS 1.3 and HTTP/2 do not have; false: as a route after it
	RootCAs     *x509.CertPool   // in place of TransportConfig.RootCAs, for the site only
	Certificate *tls.Certificate // the client certificate for sites that ask for one
}

// HostProxy is the proxy of a HostRoute.
type HostProxy struct {
	URL *url.URL // as TransportConfig.Proxy returns it; nil: the hosts are reached directly
}

// SiteCert defines which certificates of a site are accepted, in place of those
// that an authority has signed. The zero value accepts none.
type SiteCert struct {
	Any bool // every certificate, which verifies nothing
	// SHA256 is the hash of the site's own certificate, or of the public key
	// in it (its SubjectPublicKeyInfo). Names and dates are not checked.
	SHA256 [sha256.Size]byte
}

// errPinned is the error of a handshake with a site that shows another certificate
// than the settings name.
var errPinned = errors.New("the site shows another certificate than the settings say")

// check returns errPinned unless the certificate that the site has shown is
// accepted. crypto/tls calls it for resumed sessions too.
func (s *SiteCert) check(c tls.ConnectionState) error {
	if s.Any {
		return nil
	}
	if len(c.PeerCertificates) > 0 {
		leaf := c.PeerCertificates[0]
		if sha256.Sum256(leaf.Raw) == s.SHA256 || sha256.Sum256(leaf.RawSubjectPublicKeyInfo) == s.SHA256 {
			return nil
		}
	}
	return errPinned
}

// HostTransports is a Sender with a transport for each combination of
// the hosts' settings: routes that differ share no connections. It is safe for
// concurrent use.
type HostTransports struct {
	config TransportConfig
	routes []HostRoute
	others *transport // of the hosts that match no route

	mu      sync.Mutex
	special map[Route]*transport // no more than the settings can be combined
}

// NewHostTransports returns the transports for c and routes. Of each setting, that of
// the first route that matches and has it applies.
func NewHostTransports(c TransportConfig, routes ...HostRoute) *HostTransports {
	return &HostTransports{config: c, routes: routes, others: newTransport(c), special: map[Route]*transport{}}
}

// Send implements Sender. A request with a body is the last one of its connection, unless
// that is an HTTP/2 connection.
func (h *HostTransports) Send(q *Request) (*http.Response, error) {
	return h.transport(q.URL.Scheme, q.URL.Host).Send(q)
}

// RoundTrip implements http.RoundTripper.
func (h *HostTransports) RoundTrip(r *http.Request) (*http.Response, error) {
	return h.Send(&Request{Request: r})
}

// DialTunnel opens the far end of a tunnel to a host:port, as a request for https
// to it would be sent: through the same proxy, with the same checks.
func (h *HostTransports) DialTunnel(ctx context.Context, hostPort string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout+tlsTimeout)
	defer cancel()
	return h.transport("https", hostPort).dialer.dialSite(ctx, hostPort)
}

// CloseIdleConnections closes the connections that no request uses.
func (h *HostTransports) CloseIdleConnections() {
	h.others.CloseIdleConnections()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.special {
		t.CloseIdleConnections()
	}
}

func (h *HostTransports) transport(scheme, authority string) *transport {
	if len(h.routes) == 0 {
		return h.others
	}
	o, err := rules.ParseOrigin(scheme, authority)
	if err != nil {
		return h.others // which fails, or trusts less than any other
	}
	return h.byRoute(h.routeOf(o))
}

// withoutCertificate returns the transport that is as t, but shows no client certificate.
func (h *HostTransports) withoutCertificate(t *transport) *transport {
	r := t.dialer.route
	r.Certificate = nil
	return h.byRoute(r)
}

// routeOf returns each setting of the first route that matches an origin and has it.
func (h *HostTransports) routeOf(o rules.Origin) (of Route) {
	for i := range h.routes {
		r := &h.routes[i]
		if !slices.ContainsFunc(r.Match, func(p acl.HostPattern) bool { return p.Matches(o) }) {
			continue
		}
		of.Proxy = cmp.Or(of.Proxy, r.Proxy)
		of.Site = cmp.Or(of.Site, r.Site)
		of.OldTLS = of.OldTLS || r.OldTLS
		of.Renegotiate = of.Renegotiate || r.Renegotiate
		of.RootCAs = cmp.Or(of.RootCAs, r.RootCAs)
		of.Certificate = cmp.Or(of.Certificate, r.Certificate)
	}
	return of
}

// byRoute returns the transport for a route; the zero one is that of all other hosts.
func (h *HostTransports) byRoute(r Route) *transport {
	if r == (Route{}) {
		return h.others
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.special[r]
	if t == nil {
		t = newTransport(r.apply(h.config))
		h.special[r] = t
	}
	return t
}

// apply returns c with the settings of r.
func (r Route) apply(c TransportConfig) TransportConfig {
	if r.Proxy != nil {
		c.Proxy = nil
		if r.Proxy.URL != nil {
			c.Proxy = http.ProxyURL(r.Proxy.URL)
		}
	}
	c.route = r
	return c
}
