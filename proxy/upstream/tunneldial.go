package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/proxy"

	"heed/proxy/http1"
)

// dialSite connects to a site at host:port, through its proxy where it has one. A
// failure of the proxy itself is a ProxyError.
func (d *dialer) dialSite(ctx context.Context, hostPort string) (net.Conn, error) {
	through, err := d.through(&http.Request{Method: http.MethodConnect, URL: &url.URL{Scheme: "https", Host: hostPort}, Host: hostPort})
	switch {
	case err != nil:
		return nil, err
	case through == nil:
		return d.dial(ctx, "tcp", hostPort)
	}
	conn, err := d.dialThrough(ctx, through, hostPort)
	return conn, d.used(through, err)
}

// dialThrough opens a tunnel to hostPort through a proxy.
func (d *dialer) dialThrough(ctx context.Context, through *url.URL, hostPort string) (net.Conn, error) {
	conn, err := d.dialProxy(ctx, through)
	if err != nil {
		return nil, &ProxyError{hostPortOf(through), err}
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if through.Scheme == "socks5" || through.Scheme == "socks5h" {
		return askSOCKS(ctx, conn, through, hostPort)
	}
	if d.Fetches != nil {
		defer d.Fetches.Opens(conn, hostPort)()
	}
	return openCONNECT(ctx, conn, through, hostPort)
}

// used reports how the use of a proxy has ended to ProxyUsed, and returns err.
func (d *dialer) used(through *url.URL, err error) error {
	var failed *ProxyError
	switch {
	case d.ProxyUsed == nil:
	case err == nil:
		d.ProxyUsed(hostPortOf(through), nil)
	case errors.As(err, &failed):
		d.ProxyUsed(failed.Proxy, failed.usable())
	}
	return err
}

// dialProxy connects to a proxy. The settings of sites are not for an https one.
func (d *dialer) dialProxy(ctx context.Context, through *url.URL) (net.Conn, error) {
	addr := hostPortOf(through)
	c, err := d.dial(ctx, "tcp", addr)
	if err != nil || through.Scheme != "https" {
		return c, err
	}
	return d.handshake(ctx, c, addr, &tls.Config{RootCAs: d.RootCAs, MinVersion: tls.VersionTLS12})
}

func askSOCKS(ctx context.Context, conn net.Conn, through *url.URL, hostPort string) (net.Conn, error) {
	var auth *proxy.Auth
	if u := through.User; u != nil {
		auth = &proxy.Auth{User: u.Username()}
		auth.Password, _ = u.Password()
	}
	d, err := proxy.SOCKS5("tcp", "", auth, nil) // it gets its connection below
	if err == nil {
		_, err = d.(overConn).DialWithConn(ctx, conn, "tcp", hostPort)
	}
	if err != nil {
		conn.Close()
		return nil, ofSOCKS(err, through)
	}
	return conn, nil
}

// ofSOCKS marks err as the failure of a SOCKS proxy, where that is known.
func ofSOCKS(err error, through *url.URL) error {
	if _, kind := proxyFailure(err); kind == "proxy_configuration_error" || kind == "http_request_denied" {
		return &ProxyError{hostPortOf(through), err}
	}
	return err
}

// overConn is the method of x/net's SOCKS client that uses an existing connection.
// One that the client dials itself cannot be closed in one direction only.
type overConn interface {
	DialWithConn(ctx context.Context, c net.Conn, network, address string) (net.Addr, error)
}

// openCONNECT opens a tunnel through another HTTP proxy (RFC 9110 §9.3.6).
func openCONNECT(ctx context.Context, conn net.Conn, through *url.URL, hostPort string) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	opened, err := askCONNECT(conn, through, hostPort)
	switch {
	case !stop(): // the site may be what is slow
		err = context.Cause(ctx)
	case err != nil:
		err = &ProxyError{hostPortOf(through), err}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return opened, nil
}

func askCONNECT(conn net.Conn, through *url.URL, hostPort string) (net.Conn, error) {
	m := http1.Message{Method: http.MethodConnect, Target: hostPort, Host: hostPort}
	if u := through.User; u != nil {
		m.Header = http.Header{"Proxy-Authorization": {basic(u)}}
	}
	request, err := m.Append(nil)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	in := http1.Reader{From: conn, Limit: http1.Limit{Head: maxResponseHeader}}
	var head http1.Head
	for head.Status < 200 {
		if err := in.ReadAnswer(&head, http.MethodConnect); err != nil {
			return nil, err
		}
	}
	if head.Status != http.StatusOK {
		return nil, &upstreamRefused{status: head.Status}
	}
	return &readAhead{Conn: conn, head: in.Rest()}, nil
}

// readAhead is a connection of which the beginning has been read.
type readAhead struct {
	net.Conn
	head []byte // what was read
}

// Read implements net.Conn.
func (c *readAhead) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// CloseWrite ends what is sent to the site.
func (c *readAhead) CloseWrite() error { return CloseWrite(c.Conn) }
