package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heed/internal/base/memo"
	"heed/proxy/http1"
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
	if err == nil {
		err = checkAnswer(q.Method, resp)
	}
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

// checkAnswer returns what is wrong with resp, the answer to a request with a method, and
// closes its body then. What is wrong with the length of the body is the body's error, where
// there is to be one.
func checkAnswer(method string, resp *http.Response) error {
	if fault := http1.CheckAnswer(method, resp); fault != nil {
		resp.Body.Close()
		return fault
	}
	if !http1.HasBody(method, resp.StatusCode) || resp.ContentLength < 0 {
		return nil
	}
	sized := &sizedBody{ReadCloser: resp.Body, left: resp.ContentLength}
	if resp.Body = sized; sized.left > 0 {
		return nil
	}
	err := sized.awaitEnd() // before the head is passed on: it is the whole answer
	resp.Body.Close()
	if resp.Body = http.NoBody; err == io.EOF || err == nil {
		return nil
	}
	return malformed{err}
}

// sizedBody is the body of an answer over HTTP/2 with a Content-Length. Its last octet is
// held back until the stream has ended there, or endTime: a client that has them all takes
// the answer for whole, and one whose length is not that of its content may not be passed
// on (RFC 9113 §8.1.1).
type sizedBody struct {
	io.ReadCloser
	left int64      // octets that net/http has not returned
	last [1]byte    // what is held back
	held bool       // last is
	end  chan error // brings what comes after all octets: io.EOF; nil: it is not waited for
	err  error      // of all further Reads; nil: none
}

// endTime is how long the end of a stream may take after its last octet: some sites keep
// it open until they have done something else.
const endTime = 250 * time.Millisecond

// Read implements io.Reader.
func (b *sizedBody) Read(p []byte) (n int, err error) {
	switch {
	case b.err != nil || len(p) == 0:
		return 0, b.err
	case b.left > 0:
		n, err = b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
		if b.left -= int64(n); err == io.EOF && b.left > 0 {
			err = io.ErrUnexpectedEOF
		}
		if b.err = err; err != nil || b.left > 0 {
			return n, err
		}
		n--
		if b.last[0], b.held = p[n], true; n > 0 {
			return n, nil
		}
	case !b.held: // it was not waited for long enough
		b.err = <-b.end
		return 0, b.err
	}
	if b.err = b.awaitEnd(); b.err != nil && b.err != io.EOF {
		return 0, b.err
	}
	b.held = false
	return copy(p, b.last[:]), b.err
}

// awaitEnd waits for the end of the stream, after all octets. It returns io.EOF when that
// is what comes, and nil when nothing has come in endTime.
func (b *sizedBody) awaitEnd() error {
	end := make(chan error, 1)
	b.end = end
	go func() {
		var more [1]byte
		n, err := 0, error(nil)
		for n == 0 && err == nil {
			n, err = b.ReadCloser.Read(more[:])
		}
		if n > 0 || err != io.EOF && strings.Contains(err.Error(), "more than declared Content-Length") {
			err = ErrLonger // net/http has no value for it
		}
		end <- err
	}()
	late := time.NewTimer(endTime)
	defer late.Stop()
	select {
	case err := <-end:
		return err
	case <-late.C:
		return nil
	}
}

// ErrLonger is the error of the body of an answer over HTTP/2 with more octets than its
// Content-Length (RFC 9113 §8.1.1). The octets that were declared may have been read by then.
var ErrLonger = errors.New("the answer is longer than its Content-Length")

// streamReset has the fields of net/http's error for a stream that the site has reset.
type streamReset struct {
	StreamID, Code uint32
	Cause          error
}

// Error implements error.
func (streamReset) Error() string { return "stream reset" }

// needsHTTP1 reports whether err says that a request has to be repeated over HTTP/1
// (HTTP_1_1_REQUIRED, RFC 9113 §7), in the stream's RST_STREAM or in a GOAWAY, of which
// net/http has only the text. looked is true when the site may have processed the request.
func needsHTTP1(err error) (needs, looked bool) {
	const code = 0xd
	if reset := (streamReset{}); errors.As(err, &reset) {
		return reset.Code == code, false
	}
	text := err.Error()
	if last, found := strings.CutPrefix(text, "http2: Transport received GOAWAY from server ErrCode:"); found {
		return last == "HTTP_1_1_REQUIRED", false
	}
	text, _, _ = strings.Cut(text, ", debug=") // what the site says
	return strings.HasPrefix(text, "http2: server sent GOAWAY and closed the connection; ") && strings.HasSuffix(text, "ErrCode=HTTP_1_1_REQUIRED"), true
}

// malformed is the error of an answer over HTTP/2 that net/http does not take. Its text is
// net/http's.
type malformed struct{ error }

// Unwrap returns net/http's error.
func (m malformed) Unwrap() error { return m.error }

// isMalformed reports whether err, of net/http, is about what the site has sent, and the
// stream or the connection was ended for it: not by the site.
func isMalformed(err error) bool {
	if reset := (streamReset{}); errors.As(err, &reset) {
		return reset.Cause == nil || reset.Cause.Error() != "received from peer"
	}
	for _, begins := range [...]string{"connection error: ", "malformed response from server", "1xx informational response", "http2: response header list"} {
		if strings.HasPrefix(err.Error(), begins) {
			return true
		}
	}
	return false
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
			if status == http.StatusSwitchingProtocols { // RFC 9113 §8.6
				err = ErrUpgrade
			}
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
	var fault *http1.Fault
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTargetReset), errors.Is(cause, errRepeated):
		return &Error{NoAnswer, cause}
	case !s.connected:
		return ofDial(ctx, err)
	case cause != nil:
		return cause
	case errors.As(err, &timeout) && timeout.Timeout():
		return &Error{TooLate, err}
	case errors.As(err, &fault):
		return &Error{NoHTTP, err}
	case is[malformed](err):
		return &Error{NoHTTP, err}
	case isLocal(err):
		return &Error{Ended, err}
	case isMalformed(err):
		return &Error{NoHTTP, malformed{err}}
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
