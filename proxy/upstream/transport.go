// Package upstream reaches sites: directly, through a proxy, over TLS or into a
// tunnel, and only where heed may go.
//
// HTTP/1 is heed's own, read and written with package http1: request.go has what is sent,
// and its signature, send.go finds or makes a connection for it, conn.go is the connection,
// upload.go sends a body, answer.go reads what comes, and keeps or closes the connection
// after it. pool.go keeps connections that no request uses, and closes them in the end;
// client.go knows whose they are. HTTP/2 is net/http's (http2.go).
//
// transport.go makes what all requests take, hosttransports.go picks one for each host,
// tunneldial.go opens connections to sites, through proxies too. Package acl decides which
// addresses may be reached, guard.go which ones the redirects of a
// robots.txt may reach. failure.go has the errors, and what a client may learn of them.
package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"heed/internal/judge/acl"
)

// Limits of the connections to sites.
const (
	dialTimeout           = 10 * time.Second
	tlsTimeout            = 10 * time.Second
	connectTimeout        = time.Minute // of a proxy's answer to CONNECT
	idleUpstream          = 90 * time.Second
	maxIdlePerHost        = 64
	defaultIdle           = 1024
	maxResponseHeader     = 256 << 10
	expectContinueTimeout = time.Second

	// DefaultResponseHeaderTimeout is generous, because slow APIs and long
	// polls are legitimate.
	DefaultResponseHeaderTimeout = 10 * time.Minute
)

// TransportConfig defines how sites are reached. The zero value reaches them directly,
// verifies against the system's roots and waits DefaultResponseHeaderTimeout.
type TransportConfig struct {
	// Resolve replaces the address of a "host:port" by another "host:port".
	// Nil replaces nothing.
	Resolve map[string]string
	// Proxy returns the proxy that a request goes through (http, https or
	// socks5, with userinfo as credentials), or nil for a direct connection. A nil
	// Proxy returns nil for all. The environment is never read.
	Proxy func(*http.Request) (*url.URL, error)
	// ProxyUsed is called after each use of a proxy, named by host:port: with an error
	// when it could not be reached or refused heed's credentials, with nil when it
	// worked, whatever became of the site. Nil is not called.
	ProxyUsed func(proxy string, err error)
	// RootCAs verify sites and an https proxy; nil means the system's.
	RootCAs *x509.CertPool
	// ResponseHeaderTimeout bounds the wait for a site's answer; 0 means
	// DefaultResponseHeaderTimeout.
	ResponseHeaderTimeout time.Duration
	// ConnsPerHost is how many connections to one site may be open; further requests
	// wait for one of them. 0: any number.
	ConnsPerHost int
	// IdleConns is how many connections are kept open for later requests, to all sites
	// together. 0: 1024. All are closed when a dial finds no file descriptor free.
	IdleConns int
	// Self holds addresses that must not be dialled; nil holds none.
	Self *acl.Addrs
	// Destinations defines which destinations may be reached; nil: all. Requests
	// through Proxy are resolved there, so that only names are checked, and hosts that
	// are addresses. What Resolve contains is allowed unless it is refused expressly.
	Destinations *acl.Destinations

	// Fetches has the tunnels that are asked for through an HTTP proxy, which may ask heed about
	// them; nil: none is noted.
	Fetches *OwnFetches

	// Counts counts the connections; nil: they are not counted.
	Counts *Counts

	// Connect, if not nil, dials in place of everything above, and does the checks itself.
	// Its connections serve one request each.
	Connect func(ctx context.Context, network, addr string) (net.Conn, error)

	route Route // for sites: it does not apply to an https proxy

	// Dialer dials what the checks let pass. Its Timeout is overwritten, and its
	// ControlContext is called after the checks of an address. For tests, which give
	// it a resolver and keep it on this machine; the zero value dials as usual.
	Dialer net.Dialer
}

// transport sends requests to sites: over HTTP/1 on the connections of its pool, which its
// dialler makes, and over HTTP/2 with net/http.
type transport struct {
	http2      *http.Transport
	dialer     *dialer
	pool       *pool
	headerTime time.Duration // for the head of an answer
	once       bool          // each connection serves one request
}

// Send sends q. A plain request that an HTTP proxy answers with 407 fails: the
// credentials are heed's.
func (t *transport) Send(q *Request) (*http.Response, error) {
	if t.dialer.Proxy == nil || q.URL.Scheme != "http" {
		return t.send(q, nil)
	}
	through, err := t.dialer.through(q.Request)
	if err != nil {
		return nil, &Error{NotReached, err}
	}
	resp, err := t.send(q, through)
	switch {
	case through == nil:
		return resp, err
	case err != nil && isHTTPProxy(through) && !is[*ProxyError](err):
		err = &overProxyError{hostPortOf(through), err}
	case err != nil:
	case resp.StatusCode == http.StatusProxyAuthRequired && isHTTPProxy(through):
		resp.Body.Close()
		resp, err = nil, &ProxyError{hostPortOf(through), &upstreamRefused{resp.StatusCode}}
	}
	return resp, t.dialer.used(through, err)
}

// CloseIdleConnections closes the connections that no request uses.
func (t *transport) CloseIdleConnections() {
	t.pool.closeIdle()
	t.http2.CloseIdleConnections()
}

// newTransport returns a transport that changes nothing on the way: no
// decompression, no added header, no proxy from the environment.
func newTransport(c TransportConfig) *transport {
	d := &dialer{TransportConfig: c, tls: c.siteTLS()}
	t := &transport{dialer: d, once: c.Connect != nil, headerTime: cmp.Or(c.ResponseHeaderTimeout, DefaultResponseHeaderTimeout)}
	t.http2 = &http.Transport{
		DialTLSContext:         d.dialHTTP2,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           cmp.Or(c.IdleConns, defaultIdle),
		MaxIdleConnsPerHost:    max(c.ConnsPerHost, maxIdlePerHost),
		MaxConnsPerHost:        c.ConnsPerHost,
		DisableKeepAlives:      t.once,
		IdleConnTimeout:        idleUpstream,
		ResponseHeaderTimeout:  t.headerTime,
		ExpectContinueTimeout:  expectContinueTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
	}
	t.pool = newPool(t.http2.MaxConnsPerHost, t.http2.MaxIdleConnsPerHost, t.http2.MaxIdleConns)
	d.closeIdle = t.CloseIdleConnections
	return t
}

// alone returns a transport that reaches sites as t does, over separate connections that
// serve one request each.
func (t *transport) alone() *transport {
	http2 := t.http2.Clone()
	http2.DisableKeepAlives = true
	pool := newPool(http2.MaxConnsPerHost, http2.MaxIdleConnsPerHost, http2.MaxIdleConns)
	return &transport{http2, t.dialer, pool, t.headerTime, true}
}

// siteTLS returns the TLS configuration for sites.
func (c *TransportConfig) siteTLS() *tls.Config {
	config := &tls.Config{RootCAs: cmp.Or(c.route.RootCAs, c.RootCAs), MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if c.route.Site != nil {
		config.InsecureSkipVerify, config.VerifyConnection = true, c.route.Site.check
	}
	if c.route.OldTLS {
		config.MinVersion, config.CipherSuites = tls.VersionTLS10, oldSuites()
	}
	if c.route.Renegotiate {
		config.Renegotiation, config.MaxVersion = tls.RenegotiateOnceAsClient, tls.VersionTLS12
	}
	if c.route.Certificate != nil {
		config.Certificates = []tls.Certificate{*c.route.Certificate}
	}
	return config
}

// oldSuites returns the cipher suites up to TLS 1.2 that crypto/tls has, those with RSA key
// exchange and with CBC included, but RC4 and 3DES (RFC 7465, RFC 8429).
func oldSuites() (ids []uint16) {
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if !strings.Contains(s.Name, "RC4") && !strings.Contains(s.Name, "3DES") {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// dialer dials for a Transport.
type dialer struct {
	TransportConfig
	tls       *tls.Config
	proxies   sync.Map // by host:port, those that Proxy has named
	closeIdle func()   // closes the Transport's idle connections
}

// through returns the proxy for r; an error when r's destination may not be reached.
func (d *dialer) through(r *http.Request) (*url.URL, error) {
	if d.Proxy == nil {
		return nil, nil
	}
	u, err := d.Proxy(r)
	if u == nil || err != nil {
		return u, err
	}
	host, port := r.URL.Hostname(), portOf(r.URL)
	if err := d.Destinations.CheckHostOnly(host, port); err != nil {
		return nil, err
	}
	at := hostPortOf(u)
	if _, known := d.proxies.Load(at); !known {
		d.proxies.Store(at, nil)
	}
	return u, nil
}

// portOf returns the port of a site's or a proxy's URL; 0 when it has none and its
// scheme has no default.
func portOf(u *url.URL) uint16 {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	n, _ := strconv.ParseUint(port, 10, 16)
	return uint16(n)
}

// hostPortOf returns the host and the port of a site's or a proxy's URL.
func hostPortOf(u *url.URL) string {
	return net.JoinHostPort(u.Hostname(), strconv.Itoa(int(portOf(u))))
}

// dial connects to addr. ControlContext checks each address that a name resolved
// to, so that no name leads back to heed itself, below the floor, or to an address
// that may not be reached; of several addresses, the others are tried.
func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if d.Connect != nil {
		return d.Connect(ctx, network, addr)
	}
	to, placed := d.Resolve[addr]
	v, err := d.checkDial(addr, placed)
	if err != nil {
		return nil, err
	}
	if placed {
		addr = to
	}
	netDialer := d.Dialer
	netDialer.Timeout = dialTimeout
	netDialer.ControlContext = func(ctx context.Context, network, address string, conn syscall.RawConn) error {
		if err := d.mayReach(ctx, v, address); err != nil || d.Dialer.ControlContext == nil {
			return err
		}
		return d.Dialer.ControlContext(ctx, network, address, conn)
	}
	open := func() (net.Conn, error) { return dialResolved(ctx, &netDialer, network, addr) }
	c, err := d.Counts.dial(open)
	if IsShortOfFiles(err) {
		d.closeIdle()
		c, err = d.Counts.dial(open)
	}
	if err == nil && d.Self != nil {
		d.Self.NoteDial(c.LocalAddr(), c.RemoteAddr())
	}
	return c, err
}

// checkDial checks what is dialled by its name. The proxy that Proxy returned is
// allowed wherever it is.
func (d *dialer) checkDial(addr string, placed bool) (acl.CheckedHost, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return acl.CheckedHost{}, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return acl.CheckedHost{}, err
	}
	if _, isProxy := d.proxies.Load(addr); isProxy {
		return acl.CheckedHost{}, nil
	}
	return d.Destinations.CheckHost(host, uint16(port), placed)
}

// mayReach returns an error when heed may not connect to address, an IP address and
// a port.
func (d *dialer) mayReach(ctx context.Context, v acl.CheckedHost, address string) error {
	to, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s is no address", acl.ErrDestination, address)
	case d.Self != nil && d.Self.Has(address):
		return acl.ErrSelf
	}
	if err := checkFloor(ctx, to.Addr()); err != nil {
		return err
	}
	return v.CheckAddr(to.Addr(), to.Port())
}
