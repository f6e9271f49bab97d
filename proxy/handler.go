package proxy

import (
	"context"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"heed/internal/audit"
	"heed/internal/judge"
	"heed/internal/pace"
	"heed/proxy/h2head"
	"heed/proxy/limit"
	"heed/proxy/refusal"
	"heed/proxy/server"
	"heed/proxy/upstream"
	"heed/rules"
)

// exchange is one request on its way through the proxy: what was asked, what was
// decided, and what became of it. It is the request's context, so that it travels
// through goproxy without a further allocation.
type exchange struct {
	context.Context
	proxy    *Proxy
	req      request              // the facts
	entry    audit.Entry          // the record
	recorded bool                 // the Recorder has accepted the entry
	refusal  *refusal.Answer      // the answer when heed itself answers; nil: the site's
	turn     atomic.Pointer[turn] // that x has taken last; nil: none so far
	paced    *pace.Answer         // the last answer of the Pacer when the turn was too far off; nil: none was
	use      *use                 // what the site says of the use of its pages; nil: it is not asked
	deferred chan judge.Verdict   // brings the verdict on a request that was let through before it; else nil
	site     net.Conn             // the far end of a tunnel that is not intercepted; else nil

	writer   responseWriter
	upload   uploadBody
	out      upstream.Request // as it is sent to the site
	download downloadBody
	upgraded *tunnelConn // the client's side of a WebSocket or a tunnel
	stream   *stream     // of HTTP/2; else nil
}

func newExchange(p *Proxy, conn *clientConn, w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{Context: r.Context(), proxy: p}
	x.upload.pending.Store(r.ProtoMajor == 1 && hasBody(r))
	x.req = newRequest(conn, r, p.config.Live())
	x.entry.ID, x.entry.Time, x.entry.Client = audit.NewID(), time.Now(), r.RemoteAddr
	x.writer.ResponseWriter, x.writer.exchange = w, x
	x.writer.h1, _ = w.(*server.Answer)
	return x
}

// hasBody reports whether r has a body, of which the client may still be sending a
// part.
func hasBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0
}

// handle takes every request of every connection and of every intercepted tunnel. It
// finds out what was asked, and hands requests for a site to goproxy (hook.go).
func (p *Proxy) handle(w http.ResponseWriter, r *http.Request) {
	p.running.Add(1)
	defer p.running.Add(-1)
	var note *h2head.Note
	if r.ProtoMajor == 2 {
		note = h2head.TakeNote(r)
	}
	conn := r.Context().Value(clientConnKey{}).(*clientConn)
	x := newExchange(p, conn, w, r)
	t := conn.tunnel
	if r.ProtoMajor == 2 && t != nil { // the preface of HTTP/2 outside TLS counts as a request, too
		x.stream = t.watch(w)
		defer func() { t.unwatch(x.stream, x.Context.Err() != nil) }()
	}
	defer x.finish()

	if t != nil {
		t.requested(x.entry.Time)
	}
	site := t != nil || r.Method != http.MethodConnect && r.URL.IsAbs()
	var over *limit.Exceeded
	if site {
		over = x.enter()
		defer x.leave(over)
	}
	d := x.req.admit(r)
	switch {
	case d.reason != "":
	case note != nil && note.Refused():
		d = x.noted(note)
	case site:
		d = x.req.locate(p, r, r.RequestURI)
	}
	if d.reason == "" && over != nil {
		d = overLimit(over)
	}
	switch {
	case d.reason != "":
		x.deny(d)
		x.answer(r)
	case site:
		x.serveSite(r)
	case r.Method == http.MethodConnect:
		x.connect(r)
	default:
		x.servePage(r)
	}
}

// enter counts x as a request that is under way, whatever becomes of it, until leave, or
// returns the limit that stops it. A connection of HTTP/2 can bring many requests, of
// which each waits for its record: beyond a number of them that have been stopped, x is
// ended without an answer, and counted in the record of its connection.
func (x *exchange) enter() *limit.Exceeded {
	c := x.req.conn.counted
	over := c.EnterRequest(&x.req.settings.Limits)
	if over != nil && x.stream != nil && !c.EnterStopped() {
		x.req.conn.tunnel.unrecorded.Add(1)
		panic(http.ErrAbortHandler)
	}
	return over
}

// leave undoes enter, which has returned over.
func (x *exchange) leave(over *limit.Exceeded) {
	switch c := x.req.conn.counted; {
	case over == nil:
		c.LeaveRequest()
	case x.stream != nil:
		c.LeaveStopped()
	}
}

// serveSite handles a request for a site.
func (x *exchange) serveSite(r *http.Request) {
	x.proxy.engine.ServeHTTP(&x.writer, r.WithContext(x))
	if x.upload.pending.Load() {
		x.upload.drain(&x.writer, r)
	}
}

// finish closes the record and makes sure that nothing broken looks whole: an
// answer that ended early aborts the connection (or the stream, on HTTP/2)
// instead of ending it cleanly.
func (x *exchange) finish() {
	p, w := x.proxy, &x.writer
	v := recover()
	if v != nil && v != http.ErrAbortHandler {
		p.config.Log.Error("a request failed inside heed; only this request is affected",
			"id", x.entry.ID, "panic", v, "stack", string(debug.Stack()))
		x.entry.Outcome.Err = "internal error"
		switch {
		case w.hijacked && !x.recorded: // a tunnel in its handshake, closed by now
			x.deny(denial{reason: rules.ReasonInternal})
			x.record()
		case w.status == 0:
			x.answerPanic()
			v = nil
		}
	}
	if x.upgraded != nil {
		x.upgraded.Close()
		p.open.remove(x.upgraded)
	}
	x.end()
	if v != nil || x.truncation() != nil || w.err != nil && !w.hijacked {
		if w.status != 0 {
			_ = http.NewResponseController(w.ResponseWriter).Flush() // what did arrive is the client's
		}
		panic(http.ErrAbortHandler)
	}
}
