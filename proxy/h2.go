package proxy

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"heed/proxy/limit"
	"heed/rules"
)

// streams watches the answers on one HTTP/2 connection. A client may go on
// reading octets and leave the window of a stream closed: no deadline of the
// connection passes then, and what writes to the stream waits for ever, the
// handler or net/http behind it. The zero value is ready.
type streams struct {
	mu    sync.Mutex
	open  map[*stream]struct{} // whose handlers run
	quiet time.Time            // when the last one returned; meaningless while one runs
	idle  bool                 // net/http has reported that no stream is open
	round uint                 // how often it has said so
	begun int                  // streams in this round
	gone  int                  // of these, those that were closed before their handler returned
	timer *time.Timer          // nil until there is one
}

// stream is the state of one answer.
type stream struct {
	w     http.ResponseWriter // the server's
	round uint                // of streams in which it began

	mu    sync.Mutex
	since time.Time // when what is being written began; zero: nothing is
}

// watch returns the answer that is written to w, which is watched until unwatch.
func (t *tunnel) watch(w http.ResponseWriter) *stream {
	all := &t.streams
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.open == nil {
		all.open = map[*stream]struct{}{}
	}
	s := &stream{w: w, round: all.round}
	all.open[s], all.idle = struct{}{}, false
	all.begun++
	if all.timer == nil {
		all.timer = time.AfterFunc(t.proxy.limits().ReadTime/4, t.sweep)
	}
	return s
}

// unwatch notes that the handler of s returns; reset is true when the client has
// reset the stream.
func (t *tunnel) unwatch(s *stream, reset bool) {
	all := &t.streams
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.open, s)
	all.quiet = time.Now()
	if reset && s.round == all.round {
		// A stream that its client took back may have been closed, and net/http
		// have said that none is open, before its handler came to watch.
		all.gone++
		all.idle = all.idle || all.gone == all.begun
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
// those whose handlers have returned only net/http knows; what can be seen is
// that there are any, and then the connection is closed.
func (t *tunnel) sweep() {
	now, patience := time.Now(), t.proxy.limits().ReadTime
	all := &t.streams
	for _, s := range all.running() { // without the lock: see endStalled
		if s.endStalled(now, patience) {
			t.proxy.gate.CountExceeded(limit.ReadTime)
		}
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	switch none := len(all.open) == 0; {
	case none && !all.idle && now.Sub(all.quiet) >= patience:
		t.proxy.gate.CountExceeded(limit.ReadTime)
		t.conn.Close()
		fallthrough
	case none && all.idle:
		all.timer = nil
	default:
		all.timer.Reset(patience / 4)
	}
}

// running returns the answers whose handlers run.
func (w *streams) running() []*stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.open))
}

// endStalled resets the stream if what is being written has taken longer than
// patience, and reports whether it did. net/http takes the reset in the goroutine
// that also reports when no stream is left, so that idled must not be kept waiting
// meanwhile.
func (s *stream) endStalled(now time.Time, patience time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() || now.Sub(s.since) < patience {
		return false
	}
	s.since = time.Time{}
	_ = http.NewResponseController(s.w).SetWriteDeadline(now.Add(-time.Second)) // HTTP/2 knows it
	return true
}

// note stores when what is being written began; the zero time: nothing is.
func (s *stream) note(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = since
}

// h2RejectedStreams notices HTTP/2 requests that net/http answers itself, without
// calling the handler: a connection-specific field with 400, too many fields
// with 431, no path with a reset. It reports only when the first stream of
// a connection opens and when none is left. So those beside or right before
// other requests stay unnoticed, as does what HTTP/2 does not even take for
// fields (a name in upper case), which opens no stream; none of it is forwarded.
// The zero value is ready; it is safe for concurrent use.
type h2RejectedStreams struct {
	mu      sync.Mutex
	begun   bool  // net/http also reports once at the start that it is active, then idle
	active  bool  // a stream is open
	before  int64 // the requests that were handed on before it
	suspect bool  // one ended without a request
}

// lateHandler is how late a request may be handed on: a stream that is reset
// immediately can end before.
const lateHandler = 200 * time.Millisecond

// state takes in the state that net/http reports of t's connection.
func (u *h2RejectedStreams) state(t *tunnel, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if state == http.StateActive {
		u.active, u.before = u.begun, t.requests.Load()
		u.begun = true
		return
	}
	if !u.active {
		return
	}
	u.active = false
	if before := u.before; t.requests.Load() == before {
		u.suspect = true
		time.AfterFunc(lateHandler, func() { lookAgain(t, before) })
	}
}

// lookAgain records that nothing was handed on, if that is still so.
func lookAgain(t *tunnel, before int64) {
	if t.requests.Load() == before && !t.proxy.closing.Load() {
		t.proxy.note(t.proxy.unreadEntry(t.addr, t), rules.Refuse, rules.ReasonMalformed, "HTTP/2: what came was not a request")
	}
}

// any reports whether something may have come that was no request.
func (u *h2RejectedStreams) any() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.suspect
}
