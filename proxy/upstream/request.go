package upstream

import (
	"context"
	"net"
	"net/http"
	"time"

	"heed/internal/trust/passport"
	"heed/proxy/http1"
)

// Request is a request to a site, with settings that http.Request does not have.
type Request struct {
	*http.Request

	// Target is sent in place of the target that URL has: path and query as they are.
	// Empty: that of URL.
	Target string

	// Fields are the lines of the request as it came, whose names and order are kept. Nil:
	// the names of Header are written in alphabetical order. HTTP/1 only.
	Fields []http1.Field

	// Answer is where the lines of the answer's head are put, as they came; it is appended
	// to, and stays empty for an answer over HTTP/2. Nil: they are not kept.
	Answer []http1.Field

	// Signer signs the request each time that it is sent, last of all that is done to it. Nil:
	// it is not signed.
	Signer   *passport.Signer
	SignForm passport.Form

	// HTTP1Only keeps HTTP/2 from being offered on a new connection: a WebSocket handshake
	// is for HTTP/1.1.
	HTTP1Only bool

	// Remark is set by a Sender to what the settings of the host have changed, for the record.
	Remark string

	Hooks Hooks // nil: none are called

	// Reached is the address at the other end of the connection that the request was sent
	// on last: of the site, or of the proxy before it. Nil: there was none.
	Reached net.Addr
}

// Hooks are called while a request is sent.
type Hooks interface {
	// Attempt is called each time before a connection is looked for. An error is that of
	// the request, which is not sent.
	Attempt() error
	// Connected is called when the request is about to be written. Where it returns false,
	// it is too late for that: Attempt is called again, and then Connected, on the same
	// connection.
	Connected(http2 bool) bool
	// Written is called when the head of the request has been written. An HTTP/1 answer is
	// read after that, unless the request has a body.
	Written()
	// Interim is called for each answer with a status of 1xx but 101. It owns header.
	Interim(status int, header http.Header)
}

// NoHooks are Hooks that do nothing, to be embedded.
type NoHooks struct{}

// Attempt implements Hooks.
func (NoHooks) Attempt() error { return nil }

// Connected implements Hooks.
func (NoHooks) Connected(bool) bool { return true }

// Written implements Hooks.
func (NoHooks) Written() {}

// Interim implements Hooks.
func (NoHooks) Interim(int, http.Header) {}

// Sender sends requests to sites. It is safe for concurrent use.
type Sender interface {
	Send(q *Request) (*http.Response, error)
}

// target returns the request target.
func (q *Request) target() string {
	if q.Target != "" {
		return q.Target
	}
	return q.URL.RequestURI()
}

// sign puts a signature of q into h, its header.
func (q *Request) sign(h http.Header) {
	if q.Signer == nil {
		return
	}
	r := passport.Request{Method: q.Method, Scheme: q.URL.Scheme, Authority: hostOf(q), Target: q.target()}
	q.Signer.Sign(h, &r, q.SignForm, time.Now())
}

// SignerKey is the context key of the *passport.Signer that signs the requests of the client
// whose request the context is of.
type SignerKey struct{}

// SignerOf returns the value of SignerKey; nil when there is none.
func SignerOf(ctx context.Context) *passport.Signer {
	s, _ := ctx.Value(SignerKey{}).(*passport.Signer)
	return s
}

// hooks returns Hooks that can be called.
func (q *Request) hooks() Hooks {
	if q.Hooks == nil {
		return NoHooks{}
	}
	return q.Hooks
}
