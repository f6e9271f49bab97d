package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
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
	// Proxy is the proxy to go through (http, https or socks5, with userinfo
	// as credentials); nil goes directly. The environment is never asked.
	Proxy *url.URL
	// RootCAs verify sites and an https proxy; nil means the system's.
	RootCAs *x509.CertPool
	// ResponseHeaderTimeout bounds the wait for a site's answer; 0 means
	// DefaultResponseHeaderTimeout.
	ResponseHeaderTimeout time.Duration
	// Self holds addresses that must not be dialled; nil holds none.
	Self *Addrs

	// dialer dials, once its own checks have passed. Its Timeout is set
	// whatever it is; tests give it a resolver and keep it on this machine.
	dialer net.Dialer
}

// NewTransport returns a Transport that changes nothing on the way: no
// decompression, no header of its own, no proxy from the environment.
func NewTransport(c TransportConfig) *http.Transport {
	t := &http.Transport{
		DialContext:            c.dial,
		TLSClientConfig:        &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    tlsTimeout,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleUpstream,
		ResponseHeaderTimeout:  c.ResponseHeaderTimeout,
		ExpectContinueTimeout:  expectContinueTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
	}
	if t.ResponseHeaderTimeout == 0 {
		t.ResponseHeaderTimeout = DefaultResponseHeaderTimeout
	}
	if c.Proxy != nil {
		t.Proxy = http.ProxyURL(c.Proxy)
	}
	return t
}

// dial connects to addr. ControlContext sees the address that a name resolved
// to, so that no name leads back to heed itself, or lower than the floor.
func (c TransportConfig) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if to, ok := c.Resolve[addr]; ok {
		addr = to
	}
	d := c.dialer
	d.Timeout = dialTimeout
	d.ControlContext = c.control
	return d.DialContext(ctx, network, addr)
}

func (c TransportConfig) control(ctx context.Context, network, address string, conn syscall.RawConn) error {
	if c.Self != nil && c.Self.has(address) {
		return errSelf
	}
	if err := checkFloor(ctx, address); err != nil || c.dialer.ControlContext == nil {
		return err
	}
	return c.dialer.ControlContext(ctx, network, address, conn)
}
