package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"sync"

	"github.com/elazarl/goproxy"
)

// shippedGoproxyCA is the CA that a goproxy signs with unless it is given another.
func shippedGoproxyCA() string { return string(goproxy.CA_CERT) }

// shippedGoproxy is goproxy as its README starts it, with interception.
func shippedGoproxy() error {
	s, err := readSettings()
	if err != nil {
		return err
	}
	dial, err := hostsDialer(s.Hosts)
	if err != nil {
		return err
	}
	p := goproxy.NewProxyHttpServer()
	p.Tr.DialContext = dial // for the names of the sites
	p.OnRequest().HandleConnect(goproxy.AlwaysMitm)
	return http.ListenAndServe(s.Listen, p)
}

// tunedGoproxy is goproxy with what its documentation recommends for production: a
// store of certificates, and a transport that keeps the connections to sites. It
// signs with the same CA as the other contenders.
func tunedGoproxy() error {
	s, err := readSettings()
	if err != nil {
		return err
	}
	transport, err := poolingTransport(s)
	if err != nil {
		return err
	}
	authority, err := tls.LoadX509KeyPair(s.CACert, s.CAKey)
	if err != nil {
		return err
	}
	p := goproxy.NewProxyHttpServer()
	p.Tr = transport
	p.CertStore = &certStore{known: map[string]*tls.Certificate{}}
	intercept := &goproxy.ConnectAction{Action: goproxy.ConnectMitm, TLSConfig: goproxy.TLSConfigFromCA(&authority)}
	p.OnRequest().HandleConnectFunc(func(host string, _ *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
		return intercept, host
	})
	return http.ListenAndServe(s.Listen, p)
}

// bareReverseProxy is httputil.ReverseProxy as a forward proxy of plain http.
func bareReverseProxy() error {
	s, err := readSettings()
	if err != nil {
		return err
	}
	transport, err := poolingTransport(s)
	if err != nil {
		return err
	}
	return http.ListenAndServe(s.Listen, &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host },
		Transport: transport,
	})
}

// bareRelay connects each connection to the site and copies octets, both ways: the least that
// anything between a client and a site costs.
func bareRelay() error {
	s, err := readSettings()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", s.Listen)
	for err == nil {
		var client net.Conn
		if client, err = l.Accept(); err == nil {
			go relay(client, s.Site)
		}
	}
	return err
}

func relay(client net.Conn, site string) {
	defer client.Close()
	server, err := net.Dial("tcp", site)
	if err != nil {
		return // the client's request fails
	}
	defer server.Close()
	forward := func(to, from net.Conn) {
		_, _ = io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from}) // through this process, as a proxy reads it
		_ = to.(*net.TCPConn).CloseWrite()                                 // the other way may go on
	}
	go forward(server, client)
	forward(client, server)
}

// poolingTransport keeps as many connections to sites as heed does.
func poolingTransport(s proxySettings) (*http.Transport, error) {
	dial, err := hostsDialer(s.Hosts)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		DialContext:         dial,
		MaxIdleConnsPerHost: s.ConnectionLimit,
		DisableCompression:  true,
	}, nil
}

// hostsDialer connects to the hosts of a file in the form of /etc/hosts.
func hostsDialer(path string) (func(ctx context.Context, network, addr string) (net.Conn, error), error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	addrs := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if addr, host, ok := strings.Cut(lines.Text(), " "); ok {
			addrs[host] = addr
		}
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		if known, ok := addrs[host]; ok {
			addr = net.JoinHostPort(known, port)
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}, lines.Err()
}

// certStore keeps the certificates that goproxy made.
type certStore struct {
	mu    sync.Mutex
	known map[string]*tls.Certificate
}

// Fetch implements goproxy.CertStorage.
func (s *certStore) Fetch(host string, gen func() (*tls.Certificate, error)) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.known[host]; c != nil {
		return c, nil
	}
	c, err := gen()
	if err == nil {
		s.known[host] = c
	}
	return c, err
}
