package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"

	"golang.org/x/net/http/httpguts"
)

// errHTTP1 is the error of a dial for HTTP/2 to a site that has chosen HTTP/1.
var errHTTP1 = errors.New("the site speaks HTTP/1")

// attempt is the context in which a connection is made for a request.
type attempt struct {
	context.Context
	through *url.URL // the proxy that the connection ends at; nil: it ends at the site
	h2      bool     // HTTP/2 is offered
	http2   func()   // called when the site has chosen it

	mu   sync.Mutex
	conn *Conn // that was made; nil: none was
	over bool  // the request does not wait for it any more
}

type attemptKey struct{}

// Value implements context.Context.
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// attemptOf returns the attempt of ctx; an empty one where there is none.
func attemptOf(ctx context.Context) *attempt {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		return a
	}
	return &attempt{Context: ctx}
}

// made stores the connection that net/http gets.
func (a *attempt) made(c net.Conn) *Conn {
	a.conn = &Conn{Conn: c}
	return a.conn
}

// negotiated notes that the site has chosen HTTP/2.
func (a *attempt) negotiated() {
	if a.http2 != nil {
		a.http2()
	}
}

// deliver gives the request a connection that net/http does not get, or closes it.
func (a *attempt) deliver(c *tls.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		c.Close()
		return
	}
	a.conn = &Conn{Conn: c}
}

// take returns what was delivered; nil: nothing was, and what comes will be closed.
func (a *attempt) take() *Conn {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	return a.conn
}

// isRepeatable reports whether r may be sent again when nothing has come of its answer
// (RFC 9110 §9.2.2).
func isRepeatable(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return !hasBody(r)
	}
	return false
}

func hasBody(r *http.Request) bool {
	return r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody
}

// keyOf returns what r's connection is kept under, and the address it leads to.
func keyOf(r *http.Request, through *url.URL) (k hostKey, addr string) {
	u := r.URL
	if host, err := httpguts.PunycodeHostPort(u.Host); err == nil && host != u.Host {
		ascii := *u
		ascii.Host = host
		u = &ascii
	}
	addr = hostPortOf(u)
	k = hostKey{scheme: u.Scheme, addr: addr, http1: r.Context().Value(http1Only{}) != nil}
	if through != nil {
		k.through = through.String()
		if through.Scheme == "http" || through.Scheme == "https" {
			k.addr = ""
		}
	}
	return k, addr
}

// send sends r, on a connection of the pool or on a new one, or over HTTP/2. The answer
// names as as its request. A request on a connection that the site has closed meanwhile
// is sent once more where that is allowed.
func (t *transport) send(r, as *http.Request, through *url.URL) (*http.Response, error) {
	w := wish{client: clientOf(r.Context()), authority: r.URL.Host, repeatable: isRepeatable(r), token: authenticates(r.Header)}
	w.replaces = !w.repeatable && !hasBody(r)
	k, addr := keyOf(r, through)
	trace := httptrace.ContextClientTrace(r.Context())
	for {
		if trace != nil && trace.GetConn != nil {
			trace.GetConn(addr)
		}
		c, resp, err := t.connection(r, k, addr, through, &w)
		if c == nil {
			return resp, err
		}
		again := c.use.reused
		resp, err = c.roundTrip(r, trace)
		if err == nil {
			resp.Request = as
			return resp, nil
		}
		again = again && w.repeatable && !w.fresh && c.use.unanswered()
		c.end()
		if !again || r.Context().Err() != nil {
			if errors.Is(err, io.EOF) {
				err = io.EOF // as a Transport returns it
			}
			return nil, err
		}
		w.fresh = true
	}
}

// connection returns a connection for r, or its answer where the site speaks HTTP/2.
func (t *transport) connection(r *http.Request, k hostKey, addr string, through *url.URL, w *wish) (*Conn, *http.Response, error) {
	withHTTP2 := k.scheme == "https" && !k.http1
	var h *siteHost
	if !withHTTP2 || !t.pool.speaksHTTP2(k) {
		for {
			var c *Conn
			var err error
			if c, h, err = t.pool.acquire(r.Context(), k, w); err != nil {
				return nil, nil, err
			} else if c == nil {
				break
			} else if c.reuse(w) {
				return c, nil, nil
			}
		}
	}
	a := &attempt{Context: r.Context(), through: through}
	if withHTTP2 {
		c, resp, err := t.tryHTTP2(r, k, h)
		if c == nil {
			return nil, resp, err
		}
		a.conn = c
	}
	if h == nil {
		h = t.pool.enter(k)
	}
	conn, err := t.http1.NewClientConn(a, k.scheme, addr)
	if err != nil {
		t.pool.release(h)
		if a.conn != nil {
			a.conn.Close()
		}
		if r.Context().Err() != nil {
			err = context.Cause(r.Context())
		}
		return nil, nil, err
	}
	a.conn.attach(conn, h, w)
	return a.conn, nil, nil
}

// tryHTTP2 sends r over HTTP/2, or returns the connection when the site chooses
// HTTP/1. h, unless it is nil, is released except with such a connection.
func (t *transport) tryHTTP2(r *http.Request, k hostKey, h *siteHost) (*Conn, *http.Response, error) {
	release := sync.OnceFunc(func() {
		if h != nil {
			t.pool.release(h)
		}
	})
	a := &attempt{Context: r.Context(), h2: true}
	a.http2 = func() {
		t.pool.noteHTTP2(k, true)
		release()
	}
	resp, err := t.Transport.RoundTrip(r.WithContext(a))
	if errors.Is(err, errHTTP1) {
		if c := a.take(); c != nil {
			t.pool.noteHTTP2(k, false)
			return c, nil, nil
		}
	}
	if c := a.take(); c != nil {
		c.Close()
	}
	release()
	if resp != nil {
		resp.Request = r
	}
	return nil, resp, err
}

// roundTrip sends r on c, which is r's alone. A request with a body is the last one of c:
// some servers answer without reading the body and then take it for the next request of
// the connection, which no rule was applied to (request smuggling, CWE-444).
func (c *Conn) roundTrip(r *http.Request, trace *httptrace.ClientTrace) (*http.Response, error) {
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Conn: c, Reused: c.use.reused, WasIdle: c.use.reused})
	}
	if hasBody(r) && !r.Close {
		r = r.WithContext(r.Context())
		r.Close = true
	}
	if err := c.use.conn.Reserve(); err != nil {
		c.use.failed()
		return nil, err
	}
	resp, err := c.use.conn.RoundTrip(r)
	if err == nil {
		c.headRead(r, resp)
	}
	return resp, err
}
