package proxy

import (
	"net/http"
	"runtime/debug"

	"heed/rules"
)

// front takes every request of every connection, outer and inner. It does
// what needs the true ResponseWriter and leaves the rest to the engine.
func (p *Proxy) front(w http.ResponseWriter, r *http.Request) {
	p.running.Add(1)
	defer p.running.Add(-1)
	x := p.newExchange(r)
	rw := &responseWriter{ResponseWriter: w, exchange: x}
	x.writer = rw
	if x.conn != nil {
		x.conn.answering.Store(true)
	}
	x.watch(r.ProtoMajor)
	defer x.unwatch()
	defer p.finish(x, rw)

	x.settle()
	if !x.admit(r) {
		x.answer(rw, r)
		return
	}
	switch inTunnel := x.conn != nil && x.conn.tunnel != nil; {
	case inTunnel:
		if t := x.conn.tunnel; t.requests.Add(1) == 1 {
			p.trusts.saw(t, x.entry.Time)
		}
		p.proxied(x, rw, r)
	case r.Method == http.MethodConnect:
		p.connect(x, rw, r)
	case !r.URL.IsAbs():
		p.page(x, rw, r)
	default:
		p.proxied(x, rw, r)
	}
}

// proxied handles a request for a site.
func (p *Proxy) proxied(x *exchange, w *responseWriter, r *http.Request) {
	expectTrailer(r)
	r = r.WithContext(x)
	if len(r.RequestURI) > x.settings.Limits.URIBytes {
		x.refuseLimit(p.reach(limitURIBytes))
		x.answer(w, r)
		return
	}
	if d, detail := x.locate(r); d.Reason != "" {
		x.refuse(d, detail)
		x.answer(w, r)
		return
	}
	if over := x.enter(); over != nil {
		x.refuseLimit(over)
		x.answer(w, r)
		return
	}
	defer x.leave()
	if passed(r.Header["Via"], p.Name) {
		x.refuse(rules.Decision{Reason: rules.ReasonLoop}, "the request has come through this proxy before")
		x.answer(w, r)
		return
	}
	removeHopByHop(r.Header)
	p.engine.ServeHTTP(w, r)
	x.drain(w, r)
}

// answer records x's refusal and writes it to w without asking the engine.
func (x *exchange) answer(w *responseWriter, r *http.Request) {
	x.record()
	resp := x.refusalResponse(r)
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = w.ReadFrom(resp.Body) // the writer remembers its own error
	x.drain(w, r)
}

// finish closes the record and makes sure that nothing broken looks whole: an
// answer that ended early aborts the connection (or the stream, on HTTP/2)
// instead of ending it cleanly.
func (p *Proxy) finish(x *exchange, w *responseWriter) {
	w.answered() // nobody touches the connection behind the handler's back any more
	v := recover()
	if v != nil && v != http.ErrAbortHandler {
		p.Log.Error("a request failed inside heed; only this request is affected",
			"id", x.entry.ID, "panic", v, "stack", string(debug.Stack()))
		x.entry.Outcome.Err = "internal error"
		switch {
		case w.hijacked && !x.recorded: // a tunnel in its handshake, closed by now
			x.refuse(rules.Decision{Reason: rules.ReasonInternal}, "")
			x.record()
		case w.status == 0:
			p.answerPanic(x, w)
			v = nil
		}
	}
	if x.upgraded != nil {
		x.upgraded.Close()
		p.open.remove(x.upgraded)
	}
	x.end(w)
	if v != nil || x.brokeOff(w) != nil || w.err != nil && !w.hijacked {
		if w.status != 0 {
			_ = http.NewResponseController(w.ResponseWriter).Flush() // what did arrive is the client's
		}
		panic(http.ErrAbortHandler)
	}
}

// answerPanic turns a panic before the first byte into the table's answer.
func (p *Proxy) answerPanic(x *exchange, w *responseWriter) {
	if !x.recorded {
		x.refuse(rules.Decision{Reason: rules.ReasonInternal}, "")
		x.record()
	}
	x.refusal = &refusal{reason: rules.ReasonInternal}
	h := w.Header()
	clear(h)
	resp := x.refusalResponse(&http.Request{Method: x.entry.Method, ProtoMajor: 1})
	for k, vs := range resp.Header {
		h[k] = vs
	}
	h.Set("Connection", "close")
	w.WriteHeader(resp.StatusCode)
	_, _ = w.ReadFrom(resp.Body)
}
