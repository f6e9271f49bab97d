package proxy

import (
	"bufio"
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/proxy"
)

// TunnelDialer returns what opens the far end of a tunnel to a host:port, on
// the way that t takes: through its dialler with all its guards, and through
// its proxy where it has one. t is one of NewTransport.
func TunnelDialer(t *http.Transport) func(ctx context.Context, hostPort string) (net.Conn, error) {
	return func(ctx context.Context, hostPort string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout+tlsTimeout)
		defer cancel()
		through, err := proxyFor(t, hostPort)
		switch {
		case err != nil:
			return nil, err
		case through == nil:
			return t.DialContext(ctx, "tcp", hostPort)
		case through.Scheme == "socks5" || through.Scheme == "socks5h":
			return dialSOCKS(ctx, t, through, hostPort)
		}
		return dialCONNECT(ctx, t, through, hostPort)
	}
}

// proxyFor returns the proxy that t takes to hostPort; nil for none.
func proxyFor(t *http.Transport, hostPort string) (*url.URL, error) {
	if t.Proxy == nil {
		return nil, nil
	}
	return t.Proxy(&http.Request{Method: http.MethodConnect, URL: &url.URL{Scheme: "https", Host: hostPort}, Host: hostPort})
}

func dialSOCKS(ctx context.Context, t *http.Transport, through *url.URL, hostPort string) (net.Conn, error) {
	var auth *proxy.Auth
	if u := through.User; u != nil {
		auth = &proxy.Auth{User: u.Username()}
		auth.Password, _ = u.Password()
	}
	d, err := proxy.SOCKS5("tcp", "", auth, nil) // it gets its connection below
	if err != nil {
		return nil, err
	}
	conn, err := t.DialContext(ctx, "tcp", addressOf(through, "1080"))
	if err != nil {
		return nil, err
	}
	if _, err := d.(overConn).DialWithConn(ctx, conn, "tcp", hostPort); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// overConn is what x/net's SOCKS client does with a connection that there is
// already. Its own is one of which the two directions cannot end apart.
type overConn interface {
	DialWithConn(ctx context.Context, c net.Conn, network, address string) (net.Addr, error)
}

// addressOf returns where a proxy listens.
func addressOf(u *url.URL, port string) string {
	if u.Port() != "" {
		port = u.Port()
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// dialCONNECT opens a tunnel through another HTTP proxy (RFC 9110 §9.3.6).
func dialCONNECT(ctx context.Context, t *http.Transport, through *url.URL, hostPort string) (net.Conn, error) {
	dial, port := t.DialContext, "80"
	if through.Scheme == "https" {
		dial, port = t.DialTLSContext, "443"
	}
	conn, err := dial(ctx, "tcp", addressOf(through, port))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	opened, err := askCONNECT(conn, through, hostPort)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return opened, nil
}

func askCONNECT(conn net.Conn, through *url.URL, hostPort string) (net.Conn, error) {
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: hostPort}, Host: hostPort, Header: http.Header{"User-Agent": nil}}
	if u := through.User; u != nil {
		password, _ := u.Password()
		r.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := r.Write(conn); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(io.LimitReader(conn, maxResponseHeader), 4<<10)
	resp, err := http.ReadResponse(in, r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, &upstreamRefused{status: resp.StatusCode}
	}
	head, _ := in.Peek(in.Buffered()) // what the site said at once
	return &tunnelConn{Conn: conn, head: head}, nil
}
