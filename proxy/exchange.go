package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"heed/internal/audit"
	"heed/internal/terms"
	"heed/rules"
)

// exchange is one request and its answer on their way through the proxy. It
// is the request's context, so that it travels through goproxy without an
// allocation of its own.
type exchange struct {
	context.Context
	proxy    *Proxy
	conn     *clientConn // nil only for a connection that is not ours
	writer   *responseWriter
	origin   rules.Origin
	settings *Settings   // in force when the request arrived
	book     *terms.Book // theirs
	who      terms.Who
	terms    terms.Terms
	// visible is who the site will see, when that is not whom the request is
	// judged as: both must be allowed. Nil: it sees who is judged.
	visible *rules.Agent
	entry   audit.Entry

	https  terms.HTTPS  // what becomes of this CONNECT; zero for everything else
	unseen rules.Reason // why heed does not look inside although it should; empty: the terms say so
	site   net.Conn     // the far end of such a tunnel

	mismatch string       // which names differ, when that is only to be reported; empty: none
	late     chan verdict // brings the verdict on a request that was let through before it; else nil

	turn   atomic.Pointer[permission] // its turn; nil: none is needed
	giveUp context.CancelCauseFunc    // keeps it from being sent again; nil: nothing does
	noTurn *TurnAnswer                // to being sent again; nil: it was not refused

	recorded  bool     // the Recorder has accepted the entry
	refusal   *refusal // the answer when heed itself answers; nil otherwise
	stream    stream   // of HTTP/2
	upload    uploadBody
	download  downloadBody
	upgraded  *tunnelConn // the client's side of a WebSocket or a tunnel
	webSocket bool        // the request is a handshake
}

type exchangeKey struct{}

// Value makes the exchange reachable from the request's context.
func (x *exchange) Value(key any) any {
	if key == (exchangeKey{}) {
		return x
	}
	return x.Context.Value(key)
}

// exchangeOf returns the exchange that ctx belongs to. A request that did not
// come through front is an impossible state.
func exchangeOf(ctx context.Context) *exchange {
	return ctx.Value(exchangeKey{}).(*exchange)
}

func (p *Proxy) newExchange(r *http.Request) *exchange {
	x := &exchange{Context: r.Context(), proxy: p}
	if x.conn, _ = x.Context.Value(clientConnKey{}).(*clientConn); x.conn != nil {
		x.who = x.conn.who
		x.entry.User = x.who.User
	}
	e := &x.entry
	e.ID = audit.NewID()
	e.Time = time.Now()
	e.Client = r.RemoteAddr
	e.Method = r.Method
	e.UserAgent = userAgent(r.Header)
	e.Part, e.Page = partOf(r.Header)
	return x
}

// settle has x keep to the settings in force now.
func (x *exchange) settle() {
	x.settings = x.proxy.Live()
	if x.book = x.settings.Book; x.book != nil {
		x.entry.Config, x.entry.Settings = x.book.Hash, x.book.Text
	}
}

// record hands the decision to the Recorder, once. A record that cannot be
// written refuses the request: nothing takes effect unrecorded.
func (x *exchange) record() {
	if x.recorded {
		return
	}
	if !x.slow() {
		if x.refusal != nil {
			panic(http.ErrAbortHandler) // no answer, so that there is nothing to record but their number
		}
		return
	}
	if err := x.proxy.Recorder.Decided(&x.entry); err != nil {
		x.refuse(rules.Decision{Reason: rules.ReasonRecord}, err.Error())
		return
	}
	x.recorded = true
}

// end closes the record with the outcome that w and the bodies saw.
func (x *exchange) end(w *responseWriter) {
	x.endTurn()
	o := &x.entry.Outcome
	o.Status = w.status
	o.BytesIn = x.upload.n.Load()
	o.BytesOut = w.written
	if c := x.upgraded; c != nil {
		o.BytesIn, o.BytesOut = c.read.Load(), c.wrote.Load()
	}
	o.Duration = time.Since(x.entry.Time)
	if err := x.brokeOff(w); err != nil && x.Context.Err() == nil {
		o.Truncated, o.Err = true, "site: "+errorText(err)
	} else if w.err == nil && err != nil {
		o.Truncated, o.Err = true, "client: left before the answer was complete"
	} else if w.err != nil {
		o.Truncated, o.Err = true, "client: "+errorText(w.err)
	}
	if x.proxy.cut.Load() {
		o.Truncated, o.Err = true, "heed: cut off, since heed is stopping"
	}
	x.ended()
}

// brokeOff returns what ended the site's answer early; nil when nothing did, or
// when all that it had promised was with the client by then.
func (x *exchange) brokeOff(w *responseWriter) error {
	if w.whole {
		return nil
	}
	return x.download.err
}

// uploadBody is a request's body, counted. The Transport may go on reading it
// after it has returned the answer.
type uploadBody struct {
	io.Reader
	trailer http.Header // filled when the body has been read
	n       atomic.Int64
	eof     atomic.Bool           // read to its end
	bad     atomic.Pointer[error] // why it could not be; nil while it can
}

// Read implements io.Reader. What has ended is not asked again: the server closes
// its body with the head of the answer, while the Transport may still want to
// know whether anything follows, and would take an error for a broken upload and
// cut off the answer.
func (b *uploadBody) Read(p []byte) (int, error) {
	if b.eof.Load() {
		return 0, io.EOF
	}
	n, err := b.Reader.Read(p)
	b.n.Add(int64(n))
	switch {
	case err == io.EOF:
		cleanTrailer(b.trailer)
		b.eof.Store(true)
	case err != nil:
		b.bad.CompareAndSwap(nil, &err)
	}
	return n, err
}

// Close does nothing: the Transport closes what it gives up, and net/http's
// own body waits in Close for what the client has not sent yet, so that an
// answer would wait with it. The server closes the body when all is over.
func (b *uploadBody) Close() error { return nil }

// downloadBody is a site's answer; it remembers whether it broke off.
type downloadBody struct {
	io.ReadCloser
	resp *http.Response // its Trailer is filled when the body has been read
	name string         // this proxy's
	err  error          // the first error that is not io.EOF
}

// Read implements io.Reader.
func (b *downloadBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && len(b.resp.Trailer) > 0 {
		cleanTrailer(b.resp.Trailer)
		dropUnsent(b.resp.Trailer)
		dropForged(b.resp.Trailer, b.name)
	}
	if err != nil && err != io.EOF && b.err == nil {
		b.err = err
	}
	return n, err
}
