package proxy

import (
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

	"heed/internal/terms"
	"heed/rules"
)

// HostWay says how some hosts are reached, where that differs from the way of
// all others. A setting that is nil is the others'.
type HostWay struct {
	Match       []terms.HostPattern // any of them
	Proxy       *HostProxy
	Site        *SiteCert
	RootCAs     *x509.CertPool   // in place of the others'
	Certificate *tls.Certificate // shown to sites that ask for one
}

// HostProxy is where a HostWay leads through.
type HostProxy struct {
	URL *url.URL // as TransportConfig.Proxy returns them; nil: there is none
}

// SiteCert says which certificates of a site are accepted, in place of those
// that an authority vouches for. The zero value accepts none.
type SiteCert struct {
	Any bool // whatever it shows, were it anybody's
	// SHA256 is the hash of the site's own certificate, or of the public key
	// in it (its SubjectPublicKeyInfo). Neither names nor dates are looked at.
	SHA256 [sha256.Size]byte
}

// errPinned is what a site gets that shows another certificate than the one that
// was settled.
var errPinned = errors.New("the site shows another certificate than the settings say")

// check returns errPinned unless the certificate that the site has shown is
// accepted. It is also asked when a session is resumed.
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

// fits reports whether h speaks of o.
func (h *HostWay) fits(o rules.Origin) bool {
	return slices.ContainsFunc(h.Match, func(p terms.HostPattern) bool { return p.Fits(o) })
}

// exception is what is special about an origin's way: each setting of the first
// HostWay that fits and has it. The zero value is the way of all others.
type exception struct {
	proxy       *HostProxy
	site        *SiteCert
	roots       *x509.CertPool
	certificate *tls.Certificate
}

// Ways is an http.RoundTripper that takes each request the way that its host
// has, over connections that no other way shares. It is safe for concurrent use.
type Ways struct {
	config TransportConfig
	hosts  []HostWay
	others *http.Transport // of the hosts that none of hosts speaks of

	mu      sync.Mutex
	special map[exception]*http.Transport // no more than the hosts' settings can be combined
}

// NewWays returns the ways that c and hosts describe; of each setting, the first
// of hosts that fits and has it counts.
func NewWays(c TransportConfig, hosts ...HostWay) *Ways {
	return &Ways{config: c, hosts: hosts, others: NewTransport(c), special: map[exception]*http.Transport{}}
}

// RoundTrip implements http.RoundTripper.
func (w *Ways) RoundTrip(r *http.Request) (*http.Response, error) { return w.of(r).RoundTrip(r) }

// DialTunnel opens the far end of a tunnel to a host:port, on the way that https
// to it takes.
func (w *Ways) DialTunnel(ctx context.Context, hostPort string) (net.Conn, error) {
	return TunnelDialer(w.transport("https", hostPort))(ctx, hostPort)
}

// CloseIdleConnections closes the connections that no request uses.
func (w *Ways) CloseIdleConnections() {
	w.others.CloseIdleConnections()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.special {
		t.CloseIdleConnections()
	}
}

func (w *Ways) of(r *http.Request) *http.Transport { return w.transport(r.URL.Scheme, r.URL.Host) }

func (w *Ways) transport(scheme, authority string) *http.Transport {
	if len(w.hosts) == 0 {
		return w.others
	}
	o, err := rules.ParseOrigin(scheme, authority)
	if err != nil {
		return w.others // which fails, or trusts less than any exception
	}
	return w.via(w.exception(o))
}

// nameless returns what r takes when nobody is to be shown a client certificate.
func (w *Ways) nameless(r *http.Request) *http.Transport {
	o, err := rules.OriginOf(r.URL)
	if err != nil {
		return w.others
	}
	x := w.exception(o)
	x.certificate = nil
	return w.via(x)
}

func (w *Ways) via(x exception) *http.Transport {
	if x == (exception{}) {
		return w.others
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.special[x]
	if t == nil {
		t = NewTransport(x.config(w.config))
		w.special[x] = t
	}
	return t
}

func (w *Ways) exception(o rules.Origin) exception {
	var x exception
	for i := range w.hosts {
		h := &w.hosts[i]
		if !h.fits(o) {
			continue
		}
		if x.proxy == nil {
			x.proxy = h.Proxy
		}
		if x.site == nil {
			x.site = h.Site
		}
		if x.roots == nil {
			x.roots = h.RootCAs
		}
		if x.certificate == nil {
			x.certificate = h.Certificate
		}
	}
	return x
}

// config returns c with what is special.
func (x *exception) config(c TransportConfig) TransportConfig {
	if x.proxy != nil {
		c.Proxy = nil
		if x.proxy.URL != nil {
			c.Proxy = http.ProxyURL(x.proxy.URL)
		}
	}
	if x.roots != nil {
		c.siteRoots = x.roots
	}
	c.site, c.certificate = x.site, x.certificate
	return c
}
