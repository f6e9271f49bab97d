package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Limits of the connections to sites.
const (
	dialTimeout           = 10 * time.Second
	tlsTimeout            = 10 * time.Second
	idleUpstream          = 90 * time.Second
	maxIdlePerHost        = 64
	maxIdle               = 1024
	maxResponseHeader     = 256 << 10
	expectContinueTimeout = time.Second

	// DefaultResponseHeaderTimeout is generous, because slow APIs and long
	// polls are legitimate.
	DefaultResponseHeaderTimeout = 10 * time.Minute
)

// TransportConfig says how sites are reached. The zero value goes directly,
// verifies against the system's roots and waits DefaultResponseHeaderTimeout.
type TransportConfig struct {
	// Resolve replaces the address of a "host:port" by another "host:port".
	// Nil replaces nothing.
	Resolve map[string]string
	// Proxy returns the proxy that a request goes through (http, https or
	// socks5, with userinfo as credentials), or nil for those that go directly.
	// A nil Proxy sends all directly. The environment is never asked.
	Proxy func(*http.Request) (*url.URL, error)
	// RootCAs verify sites and an https proxy; nil means the system's.
	RootCAs *x509.CertPool
	// ResponseHeaderTimeout bounds the wait for a site's answer; 0 means
	// DefaultResponseHeaderTimeout.
	ResponseHeaderTimeout time.Duration
	// ConnsPerHost is how many connections to one site may be open; what comes
	// beyond waits for one of them. 0: any number.
	ConnsPerHost int
	// Self holds addresses that must not be dialled; nil holds none.
	Self *Addrs
	// Destinations says which places may be reached; nil: all. What goes through
	// Proxy is resolved there, so that only its names are looked at, and hosts
	// that are addresses. What Resolve names is allowed unless it is refused
	// expressly.
	Destinations *Destinations

	// What Ways knows of sites alone, and an https proxy is not meant by.
	siteRoots   *x509.CertPool   // nil: RootCAs
	site        *SiteCert        // nil: what the roots vouch for
	certificate *tls.Certificate // nil: none is shown

	// dialer dials, once its own checks have passed. Its Timeout is set
	// whatever it is; tests give it a resolver and keep it on this machine.
	dialer net.Dialer
}

// NewTransport returns a Transport that changes nothing on the way: no
// decompression, no header of its own, no proxy from the environment.
func NewTransport(c TransportConfig) *http.Transport {
	w := &wayOut{TransportConfig: c, tls: c.siteTLS()}
	t := &http.Transport{
		DialContext:            w.dialHTTP,
		DialTLSContext:         w.dialTLS,
		TLSClientConfig:        w.tls.Clone(), // for sites behind Proxy
		TLSHandshakeTimeout:    tlsTimeout,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		MaxConnsPerHost:        c.ConnsPerHost,
		IdleConnTimeout:        idleUpstream,
		ResponseHeaderTimeout:  c.ResponseHeaderTimeout,
		ExpectContinueTimeout:  expectContinueTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
	}
	if t.ResponseHeaderTimeout == 0 {
		t.ResponseHeaderTimeout = DefaultResponseHeaderTimeout
	}
	if c.Proxy != nil {
		t.Proxy, t.OnProxyConnectResponse = w.through, connectAnswered
	}
	return t
}

// siteTLS is how TLS is spoken with sites.
func (c *TransportConfig) siteTLS() *tls.Config {
	config := &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if c.siteRoots != nil {
		config.RootCAs = c.siteRoots
	}
	if c.site != nil {
		config.InsecureSkipVerify, config.VerifyConnection = true, c.site.check
	}
	if c.certificate != nil {
		config.Certificates = []tls.Certificate{*c.certificate}
	}
	return config
}

// connectAnswered returns why a tunnel through another proxy is not open.
func connectAnswered(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return &upstreamRefused{status: resp.StatusCode}
	}
	return nil
}

// wayOut dials for a Transport.
type wayOut struct {
	TransportConfig
	tls     *tls.Config
	proxies sync.Map // by host:port, those that Proxy has named
}

// through returns the proxy for r, unless r's destination may not be reached.
func (w *wayOut) through(r *http.Request) (*url.URL, error) {
	u, err := w.Proxy(r)
	if u == nil || err != nil {
		return u, err
	}
	host, port := r.URL.Hostname(), portOf(r.URL)
	if err := w.Destinations.elsewhere(host, port); err != nil {
		return nil, err
	}
	at := net.JoinHostPort(u.Hostname(), strconv.Itoa(int(portOf(u))))
	if _, known := w.proxies.Load(at); !known {
		w.proxies.Store(at, nil)
	}
	return u, nil
}

// portOf returns the port of a site's or a proxy's URL; 0 when it has none that
// is known.
func portOf(u *url.URL) uint16 {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	n, _ := strconv.ParseUint(port, 10, 16)
	return uint16(n)
}

// dial connects to addr. ControlContext sees each address that a name resolved
// to, so that no name leads back to heed itself, lower than the floor, or to a
// place that may not be reached; of several addresses, the others are tried.
func (w *wayOut) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	to, placed := w.Resolve[addr]
	v, err := w.visit(addr, placed)
	if err != nil {
		return nil, err
	}
	if placed {
		addr = to
	}
	d := w.dialer
	d.Timeout = dialTimeout
	d.ControlContext = func(ctx context.Context, network, address string, conn syscall.RawConn) error {
		if err := w.mayReach(ctx, v, address); err != nil || w.dialer.ControlContext == nil {
			return err
		}
		return w.dialer.ControlContext(ctx, network, address, conn)
	}
	return d.DialContext(ctx, network, addr)
}

// visit checks what is dialled by its name. The proxy to go through is where the
// settings or a run's environment say.
func (w *wayOut) visit(addr string, placed bool) (visit, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return visit{}, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return visit{}, err
	}
	if _, isProxy := w.proxies.Load(addr); isProxy {
		return visit{}, nil
	}
	return w.Destinations.visit(host, uint16(port), placed)
}

// mayReach returns why address, an IP address and a port, may not be connected
// to; nil when it may.
func (w *wayOut) mayReach(ctx context.Context, v visit, address string) error {
	if w.Self != nil && w.Self.has(address) {
		return errSelf
	}
	if err := checkFloor(ctx, address); err != nil {
		return err
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s is no address", ErrDestination, address)
	}
	return v.at(to.Addr(), to.Port())
}
