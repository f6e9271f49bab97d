package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// userAgent is that of every request.
const userAgent = "BenchBot/1.0 (+https://bench.example/)"

// session is a client's use of connections.
type session interface {
	// get requests a target and passes the answer to check, which reads it.
	get(target int64, check func(status int, body io.Reader) error) error
	close()
}

// dialer opens connections through the proxy.
type dialer struct {
	job      job
	url      *url.URL // of the target; nil with many
	tls      *tls.Config
	resumed  atomic.Int64
	reopened atomic.Int64

	shared sync.Once // of overH2
	h2     *h2Session
}

func newDialer(j job) (*dialer, error) {
	u, err := url.Parse(strings.Replace(j.Target, "%d", "0", 1))
	if err != nil {
		return nil, err
	}
	d := &dialer{job: j, url: u}
	if u.Scheme == "https" {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(j.Roots)) {
			return nil, errors.New("no roots for an https target")
		}
		d.tls = &tls.Config{RootCAs: roots, ServerName: u.Hostname()}
	}
	return d, nil
}

// session returns a session that opens its connection with its first request.
func (d *dialer) session() session {
	switch d.job.Mode {
	case overH2:
		d.shared.Do(func() { d.h2 = &h2Session{dialer: d} })
		return d.h2
	case newEach:
		return &h1Session{dialer: d, tls: d.tls, once: true}
	case resumed:
		config := d.tls.Clone()
		config.ClientSessionCache = tls.NewLRUClientSessionCache(4)
		return &h1Session{dialer: d, tls: config, once: true}
	default:
		return &h1Session{dialer: d, tls: d.tls}
	}
}

// open connects to the proxy, and through it to an https target.
func (d *dialer) open(config *tls.Config, protocols ...string) (net.Conn, error) {
	conn, err := net.Dial("tcp", d.job.Proxy)
	if err != nil || config == nil {
		return conn, err
	}
	inner, err := d.tunnel(conn, config, protocols)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return inner, nil
}

func (d *dialer) tunnel(conn net.Conn, config *tls.Config, protocols []string) (net.Conn, error) {
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nUser-Agent: %s\r\n\r\n", d.url.Host, userAgent); err != nil {
		return nil, err
	}
	answer := bufio.NewReader(conn)
	resp, err := http.ReadResponse(answer, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, fmt.Errorf("CONNECT: %w", err)
	}
	if resp.StatusCode != http.StatusOK || answer.Buffered() > 0 {
		return nil, fmt.Errorf("CONNECT: %s", resp.Status)
	}
	if protocols != nil {
		config = config.Clone()
		config.NextProtos = protocols
	}
	inner := tls.Client(conn, config)
	if err := inner.Handshake(); err != nil {
		return nil, err
	}
	if inner.ConnectionState().DidResume {
		d.resumed.Add(1)
	}
	conn.SetDeadline(time.Time{})
	return inner, nil
}

// h1Session is one connection of HTTP/1.1, or one for each request.
type h1Session struct {
	dialer  *dialer
	tls     *tls.Config
	once    bool
	conn    net.Conn
	answers *bufio.Reader
	request []byte
}

func (s *h1Session) get(target int64, check func(int, io.Reader) error) error {
	reused := s.conn != nil
	resp, err := s.send(target)
	if reused && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)) {
		// The proxy closed the connection between two requests, as it may.
		s.dialer.reopened.Add(1)
		s.close()
		resp, err = s.send(target)
	}
	if err == nil {
		err = check(resp.StatusCode, resp.Body)
	}
	if err != nil || s.once || resp.Close {
		if resp != nil && resp.Close && !s.once {
			s.dialer.reopened.Add(1)
		}
		s.close()
	}
	return err
}

// send writes a request and reads the head of its answer.
func (s *h1Session) send(target int64) (*http.Response, error) {
	if s.conn == nil {
		conn, err := s.dialer.open(s.tls)
		if err != nil {
			return nil, err
		}
		s.conn, s.answers = conn, bufio.NewReaderSize(conn, 16<<10)
	}
	s.conn.SetDeadline(time.Now().Add(patience))
	if _, err := s.conn.Write(s.head(target)); err != nil {
		return nil, err
	}
	return http.ReadResponse(s.answers, nil)
}

// head returns the octets of a request. They are made once for a case with one
// target.
func (s *h1Session) head(target int64) []byte {
	if s.request != nil && s.dialer.job.Targets == 1 {
		return s.request
	}
	text := strings.Replace(s.dialer.job.Target, "%d", strconv.FormatInt(target, 10), 1)
	_, rest, _ := strings.Cut(text, "://")
	host, path, _ := strings.Cut(rest, "/")
	if s.tls != nil {
		text = "/" + path
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nAccept: */*\r\n\r\n", text, host, userAgent)
	s.request = b.Bytes()
	return s.request
}

func (s *h1Session) close() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// h2Session is one connection of HTTP/2 for all workers.
type h2Session struct {
	dialer *dialer
	mu     sync.Mutex
	client *http.ClientConn
}

func (s *h2Session) get(_ int64, check func(int, io.Reader) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := s.open(ctx)
	if err != nil {
		return err
	}
	resp, err := client.RoundTrip((&http.Request{
		Method: http.MethodGet, URL: s.dialer.url, Header: http.Header{"User-Agent": {userAgent}, "Accept": {"*/*"}},
	}).WithContext(ctx))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return check(resp.StatusCode, resp.Body)
}

// open returns the connection. A connection that the proxy ends is replaced.
func (s *h2Session) open(ctx context.Context) (*http.ClientConn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil && s.client.Err() == nil {
		return s.client, nil
	}
	if s.client != nil {
		s.dialer.reopened.Add(1)
	}
	transport := &http.Transport{DisableCompression: true, ForceAttemptHTTP2: true, DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
		conn, err := s.dialer.open(s.dialer.tls, "h2")
		if err != nil {
			return nil, err
		}
		if p := conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; p != "h2" {
			conn.Close()
			return nil, fmt.Errorf("the proxy speaks %q instead of HTTP/2", p)
		}
		return conn, nil
	}}
	var err error
	s.client, err = transport.NewClientConn(ctx, "https", s.dialer.url.Host)
	return s.client, err
}

func (s *h2Session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		s.client.Close()
		s.client = nil
	}
}
