package proxy

import (
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"heed/internal/audit"
	"heed/internal/base/safetext"
	"heed/proxy/h2head"
	"heed/proxy/limit"
	"heed/proxy/server"
	"heed/rules"
)

// exchange is one request on its way through the proxy: a delivery, which holds the decision
// before it, which holds the request. It is the request's context, so that it travels through
// goproxy without a further allocation.
type exchange struct {
	delivery
	site net.Conn // the far end of a tunnel that is not intercepted; else nil
}

func newExchange(p *Proxy, conn *clientConn, w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{}
	x.Context, x.proxy = r.Context(), p
	x.upload.pending.Store(r.ProtoMajor == 1 && hasBody(r))
	x.req = newRequest(conn, r, p.config.Live())
	x.entry.ID, x.entry.Time, x.entry.Client = audit.NewID(), time.Now(), r.RemoteAddr
	x.writer.ResponseWriter, x.writer.of = w, &x.delivery
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
	site := t != nil || r.Method != http.MethodConnect && (conn.asked != nil || r.URL.IsAbs())
	var over *limit.Exceeded
	if site {
		over = x.enter()
		defer x.leave(over)
	}
	d := x.req.admit(r)
	switch {
	case d.reason != "":
	case conn.asked != nil && conn.asked.fault.reason != "":
		d = conn.asked.fault
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
	case r.Method == http.MethodConnect && conn.asked != nil:
		x.connectAsked(r)
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
func (x *delivery) enter() *limit.Exceeded {
	c := x.req.conn.counted
	over := c.EnterRequest(&x.req.settings.Limits)
	if over != nil && x.stream != nil && !c.EnterStopped() {
		x.req.conn.tunnel.unrecorded.Add(1)
		panic(http.ErrAbortHandler)
	}
	return over
}

// leave undoes enter, which has returned over.
func (x *delivery) leave(over *limit.Exceeded) {
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

// end closes the record with the outcome that the writer and the bodies saw; where
// a verdict follows the request, endDeferred closes it.
func (x *exchange) end() {
	if t := x.turn.Load(); t != nil {
		t.End()
	}
	o, w := &x.entry.Outcome, &x.writer
	if o.Status = w.status; x.req.conn.redirected != nil && !w.hijacked || o.Elsewhere {
		o.Status = 0 // no client has read it
	}
	o.BytesIn = x.upload.n.Load()
	if o.BytesOut = w.written; o.Status == 0 {
		o.BytesOut = 0
	}
	var revoked *string
	if c := x.upgraded; c != nil {
		o.BytesIn, o.BytesOut = c.octets()
		revoked = c.revoked.Load()
	}
	o.Duration = time.Since(x.entry.Time)
	if err := x.truncation(); err != nil && x.Context.Err() == nil {
		o.Truncated = true
		o.End(audit.BySite, safetext.Error(err))
	} else if w.err == nil && err != nil {
		o.Truncated = true
		o.End(audit.ByClient, "left before the answer was complete")
	} else if w.err != nil {
		o.Truncated = true
		o.End(audit.ByClient, safetext.Error(w.err))
	}
	if revoked != nil {
		o.Truncated = true
		o.End(audit.ByHeed, *revoked)
	}
	if x.proxy.cut.Load() {
		o.Truncated = true
		o.End(audit.ByHeed, "cut off, since heed is stopping")
	}
	if x.deferred != nil {
		go x.endDeferred()
	} else if x.recorded {
		x.req.conn.counted.EnterRecorder()
		x.proxy.config.Recorder.Ended(&x.entry)
		x.req.conn.counted.LeaveRecorder()
	}
}
