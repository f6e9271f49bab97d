package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"heed/internal/memo"
)

// errHTTP1 is the error of a dial for HTTP/2 to a site that has chosen HTTP/1.
var errHTTP1 = errors.New("the site speaks HTTP/1")

// errTargetReset is the failure of a site that resets every HTTP/2 stream with a target.
var errTargetReset = errors.New("the site resets a request for this target; over HTTP/1 it may answer it")

// errRepeated is the failure of a site that ends the stream or the connection each time that
// a request is sent, and says that it has not looked at it.
var errRepeated = fmt.Errorf("the site has taken the request %d times over HTTP/2, and has ended the stream or the connection each time without looking at it", len(pauses))

// maxStreams is how often a request with a target that no URL contains is sent over
// HTTP/2, since some servers reset its stream.
const maxStreams = 2

// pauses are how long a request waits before each time that it is sent over HTTP/2. net/http
// sends it again, and makes a connection for it, as long as the site says that it has not
// looked at it (RFC 9113 §8.7): a site that says so each time would be asked without end.
var pauses = [...]time.Duration{0, 100 * time.Millisecond, time.Second}

// attempt is the context in which net/http makes a connection for a request that may be
// sent over HTTP/2.
type attempt struct {
	context.Context
	chosen func()                   // called when the site has chosen HTTP/2
	conn   atomic.Pointer[tls.Conn] // on which HTTP/1 is to be spoken; nil: none was made; over: the request does not wait for it any more
}

var over = &tls.Conn{}

type attemptKey struct{}

// Value implements context.Context.
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// deliver gives the request a connection that net/http does not get, or closes it.
func (a *attempt) deliver(c *tls.Conn) {
	if !a.conn.CompareAndSwap(nil, c) {
		c.Close()
	}
}

// take returns what was delivered; nil: nothing was, and what comes will be closed.
func (a *attempt) take() *tls.Conn { return a.conn.Swap(over) }

// dialHTTP2 connects to a site for net/http, which takes it when the site chooses HTTP/2.
func (d *dialer) dialHTTP2(ctx context.Context, _, addr string) (net.Conn, error) {
	a := ctx.Value(attemptKey{}).(*attempt)
	c, err := d.dialTLS(ctx, addr, d.tls.Clone())
	switch {
	case err != nil:
		return nil, err
	case c.ConnectionState().NegotiatedProtocol != "h2":
		a.deliver(c)
		return nil, errHTTP1
	}
	a.chosen()
	return c, nil
}

// tryHTTP2 sends q over HTTP/2, or returns the connection when the site chooses HTTP/1.
// h, unless it is nil, is released except with such a connection.
func (t *transport) tryHTTP2(q *Request, k hostKey, h *siteHost) (*tls.Conn, *http.Response, error) {
	release := sync.OnceFunc(func() {
		if h != nil {
			t.pool.release(h)
		}
	})
	ctx, cancel := context.WithCancelCause(q.Context())
	s := &stream{q: q, cancel: cancel, odd: q.Target != "" && q.Target != q.URL.RequestURI()}
	a := &attempt{Context: httptrace.WithClientTrace(ctx, s.trace(ctx))}
	a.chosen = func() {
		t.pool.noteVersion(k, chosen2)
		release()
	}
	r := q.WithContext(a)
	if q.Signer != nil { // the header is changed each time that net/http sends it
		r.Header = maps.Clone(r.Header)
		s.header = r.Header
	}
	if s.odd {
		r.URL = exactURL(q)
	}
	resp, err := t.http2.RoundTrip(r)
	switch c := a.take(); {
	case c == nil:
	case errors.Is(err, errHTTP1):
		cancel(nil)
		t.pool.noteVersion(k, unknown)
		return c, nil, nil
	default:
		c.Close()
	}
	release()
	if err != nil {
		err = s.failed(ctx, err)
		cancel(nil)
		return nil, nil, err
	}
	if pins, _ := challenges(resp); pins {
		t.pool.noteVersion(k, required1)
	}
	resp.Request = q.Request
	return nil, resp, nil // ctx ends with the request's
}

// streamReset has the fields of net/http's error for a stream that the site has reset.
type streamReset struct {
	StreamID, Code uint32
	Cause          error
}

// Error implements error.
func (streamReset) Error() string { return "stream reset" }

// needsHTTP1 reports whether err says that a request has to be repeated over HTTP/1
// (HTTP_1_1_REQUIRED, RFC 9113 §7).
func needsHTTP1(err error) bool {
	const code = 0xd
	var reset streamReset
	return errors.As(err, &reset) && reset.Code == code
}

// exactURL returns the URL of q with its Target as net/http sends it over HTTP/2.
func exactURL(q *Request) *url.URL {
	u := *q.URL
	u.Opaque, u.RawQuery, u.ForceQuery = q.Target, "", false
	if len(q.Target) > 1 && q.Target[:2] == "//" {
		u.Opaque = "//" + hostOf(q) + q.Target // whose beginning is left out again
	}
	return &u
}

// stream is a request over HTTP/2, as net/http reports it.
type stream struct {
	q      *Request
	cancel context.CancelCauseFunc
	header http.Header // that is signed each time; nil: it is not
	odd    bool        // the target is one that no URL contains
	sent   int         // times that it was about to be written

	mu        sync.Mutex
	connected bool
	interim   interimBudget
}

// again waits before s is sent once more, or returns why it is not.
func (s *stream) again(ctx context.Context, hooks Hooks) error {
	switch {
	case s.odd && s.sent > maxStreams:
		return errTargetReset
	case s.sent > len(pauses):
		return errRepeated
	}
	select {
	case <-time.After(pauses[s.sent-1]):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return hooks.Attempt()
}

// trace returns the functions that net/http calls; ctx is that of the request.
func (s *stream) trace(ctx context.Context) *httptrace.ClientTrace {
	hooks := s.q.hooks()
	return &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			s.mu.Lock()
			s.connected = true
			s.mu.Unlock()
			s.q.Reached = i.Conn.RemoteAddr()
			if s.sent++; s.sent > 1 { // for the first time Attempt was called before
				if err := s.again(ctx, hooks); err != nil {
					s.cancel(err)
					return
				}
			}
			if _, err := awaitStart(hooks, true); err != nil {
				s.cancel(err)
				return
			}
			s.q.sign(s.header)
		},
		WroteHeaders: hooks.Written,
		Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
			s.mu.Lock()
			err := s.interim.take(http.Header(header))
			s.mu.Unlock()
			if err != nil {
				s.cancel(&Error{NoHTTP, err})
				return err
			}
			hooks.Interim(status, http.Header(header))
			return nil
		},
	}
}

// failed returns the error of a request that was not answered over HTTP/2.
func (s *stream) failed(ctx context.Context, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var timeout net.Error
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTargetReset), errors.Is(cause, errRepeated):
		return &Error{NoAnswer, cause}
	case !s.connected:
		return ofDial(ctx, err)
	case cause != nil:
		return cause
	case errors.As(err, &timeout) && timeout.Timeout():
		return &Error{TooLate, err}
	}
	return &Error{NoAnswer, err}
}

// A version is what is known of a site that offers HTTP/2.
type version uint8

const (
	unknown   version = iota
	chosen2           // it has chosen HTTP/2 lately
	required1         // it needs HTTP/1, for connections that belong to one client; this stays
)

// maxVersions bounds the sites of which a version is known.
const maxVersions = 4096

// version returns what is known of the site.
func (p *pool) version(k hostKey) version {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.versions[k]
}

// noteVersion notes what has become known of the site.
func (p *pool) noteVersion(k hostKey, v version) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before := p.versions[k]; before == v || before == required1 {
		return
	}
	memo.MakeRoom(p.versions, maxVersions, nil)
	if p.versions[k] = v; v == unknown {
		delete(p.versions, k)
	}
}
