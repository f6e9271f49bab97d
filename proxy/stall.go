package proxy

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// streams watches the answers on one HTTP/2 connection. A client may go on
// reading octets and leave the window of a stream closed: no deadline of the
// connection passes then, and what writes to the stream waits for ever, the
// handler or net/http behind it. The zero value is ready.
type streams struct {
	mu    sync.Mutex
	open  map[*exchange]struct{} // whose handlers run
	quiet time.Time              // when the last one returned; meaningless while one runs
	idle  bool                   // no stream is open, says net/http
	round uint                   // how often it has said so
	begun int                    // streams in this round
	gone  int                    // of these, those that were closed before their handler returned
	timer *time.Timer            // nil until there is one
}

// stream is what streams knows of one answer.
type stream struct {
	watched bool // set before the handler writes, and never again
	round   uint // of streams in which it was; likewise

	mu    sync.Mutex
	since time.Time // when what is being written began; zero: nothing is
}

// watch has the answer watched when it is one of HTTP/2.
func (x *exchange) watch(major int) {
	if major != 2 || x.conn == nil || x.conn.tunnel == nil {
		return
	}
	x.stream.watched = true
	w := &x.conn.tunnel.streams
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		w.open = map[*exchange]struct{}{}
	}
	w.open[x], w.idle = struct{}{}, false
	w.begun++
	x.stream.round = w.round
	if w.timer == nil {
		t := x.conn.tunnel
		w.timer = time.AfterFunc(t.proxy.limits().ReadTime/4, t.sweep)
	}
}

// unwatch notes that the handler returns.
func (x *exchange) unwatch() {
	if x.stream.watched {
		w := &x.conn.tunnel.streams
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.open, x)
		w.quiet = time.Now()
		if x.Context.Err() != nil && x.stream.round == w.round {
			// A stream that its client took back may have been closed, and net/http
			// have said that none is open, before its handler came to watch.
			w.gone++
			w.idle = w.idle || w.gone == w.begun
		}
	}
}

// idled notes that every stream has been closed.
func (w *streams) idled() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle, w.begun, w.gone = true, 0, 0
	w.round++
}

// sweep ends the answers that the client has not been taking for too long. Of
// those whose handlers have returned only net/http knows; what can be told is
// that there are any, and then the connection is closed.
func (t *tunnel) sweep() {
	now := time.Now()
	for _, x := range t.streams.running() { // without the lock: see endStalled
		x.endStalled(now)
	}
	w, limit := &t.streams, t.proxy.limits().ReadTime
	w.mu.Lock()
	defer w.mu.Unlock()
	switch none := len(w.open) == 0; {
	case none && !w.idle && now.Sub(w.quiet) >= limit:
		t.proxy.reach(limitReadTime)
		t.conn.Close()
		fallthrough
	case none && w.idle:
		w.timer = nil
	default:
		w.timer.Reset(limit / 4)
	}
}

// running returns the answers whose handlers run.
func (w *streams) running() []*exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.open))
}

// endStalled resets the stream of an answer whose writing takes longer than a
// client may make it. net/http takes the reset in the goroutine that also tells
// when no stream is left, so that idled must not be kept waiting meanwhile.
func (x *exchange) endStalled(now time.Time) {
	s := &x.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() || now.Sub(s.since) < x.proxy.limits().ReadTime {
		return
	}
	x.proxy.reach(limitReadTime)
	s.since = time.Time{}
	_ = http.NewResponseController(x.writer.ResponseWriter).SetWriteDeadline(now.Add(-time.Second)) // HTTP/2 knows it
}

// begin notes that something is being written.
func (s *stream) begin() {
	if s.watched {
		s.note(time.Now())
	}
}

// end notes that it has been. It waits for endStalled, so that the handler does
// not return under its hands.
func (s *stream) end() {
	if s.watched {
		s.note(time.Time{})
	}
}

func (s *stream) note(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = since
}
