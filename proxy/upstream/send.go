package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/net/http/httpguts"

	"heed/proxy/http1"
)

// isRepeatable reports whether r may be sent again when nothing has come of its answer
// (RFC 9110 §9.2.2).
func isRepeatable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return !hasBody(r)
	}
	return false
}

func hasBody(r *http.Request) bool {
	return r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody
}

// hostOf returns what the Host field of q contains.
func hostOf(q *Request) string {
	host := cmp.Or(q.Host, q.URL.Host)
	if ascii, err := httpguts.PunycodeHostPort(host); err == nil {
		return ascii
	}
	return host
}

// keyOf returns what q's connection is kept under, and the address it leads to.
func keyOf(q *Request, through *url.URL) (k hostKey, addr string) {
	u := q.URL
	if host, err := httpguts.PunycodeHostPort(u.Host); err == nil && host != u.Host {
		ascii := *u
		ascii.Host = host
		u = &ascii
	}
	addr = hostPortOf(u)
	k = hostKey{scheme: u.Scheme, addr: addr, http1: q.HTTP1Only}
	if through != nil {
		k.through = through.String()
		if isHTTPProxy(through) {
			k.addr = ""
		}
	}
	return k, addr
}

// isHTTPProxy reports whether a proxy takes plain requests as they are.
func isHTTPProxy(through *url.URL) bool {
	return through != nil && (through.Scheme == "http" || through.Scheme == "https")
}

// message returns the head of q. through is the HTTP proxy that it is sent to; nil: it
// is sent to the site.
func (w *wish) message(q *Request, through *url.URL) http1.Message {
	m := http1.Message{Method: q.Method, Target: q.target(), Host: hostOf(q), Header: q.Header, Fields: q.Fields, Length: -1, Close: w.last}
	if through != nil {
		if m.Target == "*" { // RFC 9112 §3.2.4
			m.Target = ""
		}
		m.Target = q.URL.Scheme + "://" + m.Host + m.Target
		if u := through.User; u != nil {
			m.Header = maps.Clone(m.Header)
			m.Header["Proxy-Authorization"] = []string{basic(u)}
		}
	}
	switch {
	case !hasBody(q.Request):
		if sendsZero(q.Request) {
			m.Framing, m.Length = http1.Sized, 0
		}
	case q.ContentLength > 0:
		m.Framing, m.Length = http1.Sized, q.ContentLength
	default:
		m.Framing = http1.Chunked
		for name := range q.Trailer {
			m.Trailer = append(m.Trailer, name)
		}
		slices.Sort(m.Trailer)
	}
	return m
}

// sendsZero reports whether a request without a body has a Content-Length: where one is
// expected of its method (RFC 9110 §8.6), and where "identity" says that the client has
// sent one.
func sendsZero(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		return true
	case http.MethodGet, http.MethodHead:
		return false
	}
	return slices.Equal(r.TransferEncoding, []string{"identity"})
}

// basic returns the credentials of a proxy (RFC 7617).
func basic(u *url.Userinfo) string {
	password, _ := u.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password))
}

// send sends q, on a connection of the pool or on a new one, or over HTTP/2. A request on
// a connection that the site has closed meanwhile is sent once more where that is allowed.
func (t *transport) send(q *Request, through *url.URL) (*http.Response, error) {
	w := wish{client: clientOf(q.Context()), authority: q.URL.Host, repeatable: isRepeatable(q.Request), token: authenticates(q.Header)}
	w.replaces = !w.repeatable && !hasBody(q.Request)
	w.last = t.once || q.Close || hasBody(q.Request)
	k, addr := keyOf(q, through)
	if t.dialer.route.Renegotiate && k.scheme == "https" {
		k.http1, q.Remark = true, "renegotiate of the [[host]]: TLS 1.2 at most"
	}
	var absolute *url.URL
	if isHTTPProxy(through) {
		absolute = through
	}
	for {
		if err := q.hooks().Attempt(); err != nil {
			return nil, err
		}
		c, resp, err := t.connection(q, k, addr, through, &w)
		if c == nil {
			if misdirected(resp) && w.repeatable && !k.http1 {
				resp.Body.Close()
				k.http1 = true // on another connection
				continue
			}
			if err != nil && t.pool.version(k) != required1 {
				needs, looked := needsHTTP1(err)
				if needs {
					t.pool.noteVersion(k, required1)
				}
				if needs && !hasBody(q.Request) && (!looked || w.repeatable) {
					continue
				}
			}
			return resp, err
		}
		resp, unanswered, err := c.exchange(q, &w, absolute)
		if err == nil {
			return resp, nil
		}
		if !unanswered || !w.repeatable || w.fresh || q.Context().Err() != nil {
			return nil, err
		}
		w.fresh = true
	}
}

// misdirected reports whether a site says that the connection is not one for the request,
// which may be repeated on another (RFC 9110 §15.5.20): some that need a client certificate
// for a path say so over HTTP/2. Nil is no answer.
func misdirected(resp *http.Response) bool {
	return resp != nil && resp.StatusCode == http.StatusMisdirectedRequest
}

// connection returns a connection for q, or its answer where the site speaks HTTP/2.
func (t *transport) connection(q *Request, k hostKey, addr string, through *url.URL, w *wish) (*conn, *http.Response, error) {
	withHTTP2 := k.scheme == "https" && !k.http1
	if withHTTP2 && w.token {
		t.pool.noteVersion(k, required1)
	}
	known := t.pool.version(k)
	withHTTP2 = withHTTP2 && known != required1
	var h *siteHost
	if !withHTTP2 || known != chosen2 {
		for {
			var c *conn
			var err error
			if c, h, err = t.pool.acquire(q.Context(), k, w); err != nil {
				return nil, nil, &Error{NotReached, err}
			} else if c == nil {
				break
			} else if c.ready() {
				return c, nil, nil
			}
			c.end()
		}
	}
	var raw net.Conn
	if withHTTP2 {
		c, resp, err := t.tryHTTP2(q, k, h)
		if c == nil {
			return nil, resp, err
		}
		raw = c
	} else {
		c, err := t.dialer.connect(q.Context(), k.scheme, addr, through)
		if err != nil {
			t.pool.release(h)
			return nil, nil, ofDial(q.Context(), err)
		}
		raw = c
	}
	if h == nil {
		h = t.pool.enter(k)
	}
	return newConn(raw, h, w, t.headerTime), nil, nil
}

// ofDial returns the error of a request for which no connection could be made.
func ofDial(ctx context.Context, err error) error {
	var failed *Error
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.As(err, &failed):
		return err
	}
	return &Error{NotReached, err}
}

// connect makes a connection on which HTTP/1 is spoken.
func (d *dialer) connect(ctx context.Context, scheme, addr string, through *url.URL) (net.Conn, error) {
	switch {
	case scheme == "https":
		config := d.tls.Clone()
		config.NextProtos = config.NextProtos[1:]
		return d.dialTLS(ctx, addr, config)
	case through == nil:
		return d.dial(ctx, "tcp", addr)
	case isHTTPProxy(through):
		c, err := d.dialProxy(ctx, through)
		if err != nil {
			return nil, &ProxyError{hostPortOf(through), err}
		}
		return c, nil
	}
	return d.dialThrough(ctx, through, addr)
}

// dialTLS connects to a site and makes the handshake.
func (d *dialer) dialTLS(ctx context.Context, addr string, config *tls.Config) (*tls.Conn, error) {
	raw, err := d.dialSite(ctx, addr)
	if err != nil {
		return nil, err
	}
	return d.handshake(ctx, raw, addr, config)
}

// handshake makes a TLS connection to addr of raw, which it closes when that fails.
func (d *dialer) handshake(ctx context.Context, raw net.Conn, addr string, config *tls.Config) (*tls.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		raw.Close()
		return nil, err
	}
	config.ServerName = host
	c := tls.Client(raw, config)
	ctx, cancel := context.WithTimeout(ctx, tlsTimeout)
	defer cancel()
	err = c.HandshakeContext(ctx)
	d.Counts.handshake(err)
	if err != nil {
		raw.Close()
		return nil, &Error{NoTLS, err}
	}
	return c, nil
}
