package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// watchDelay is how long an exchange lasts before its connection is watched. Most end
// before, and cost a timer's reset.
const watchDelay = 20 * time.Millisecond

// watch finds out that a client leaves while its request is served: somebody has to read
// for that. What comes instead is the next request. The zero value, with a conn, is ready.
//
// A reset is a departure. The end of the client's stream may be one, too, or that of what it
// has to say (RFC 9112 §9.6): the two differ only when something is written. An end that
// comes with the request, within Server.EndTime, is no departure, nor is any end once the
// request is under way to the site, as long as something can be written now and then. One that comes later, while the request waits, is, and so
// is every end of a TLS connection, which clients do not end by half.
type watch struct {
	conn *Conn

	mu    sync.Mutex
	timer *time.Timer        // nil before the first exchange
	leave context.CancelFunc // of the request that is served; nil: none is watched
	sent  bool               // that request is under way
	read  chan struct{}      // closed when the read has returned; nil: none has begun
	stall *time.Timer        // looks whether a client that has ended its stream gets something; nil: it has not
	taken atomic.Int64       // what was written to that client, in octets
}

// ended notes that the client of a request that goes on has ended its stream.
func (w *watch) ended(read chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.read == read {
		w.awaitWrite(w.conn.server.StallTime, w.taken.Load())
	}
}

// awaitWrite looks for what is written to the client beyond before, and again while there is
// something. w.mu is held.
func (w *watch) awaitWrite(stall time.Duration, before int64) {
	leave, read := w.leave, w.read
	w.stall = time.AfterFunc(stall, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch now := w.taken.Load(); {
		case w.read != read || leave == nil:
		case w.sent && now == before:
			leave()
		default:
			w.awaitWrite(stall, now)
		}
	})
}

// begin watches the connection of a request whose body has been read, until end; leave is
// called when the client leaves.
func (w *watch) begin(leave context.CancelFunc) {
	if len(w.conn.heads.Buffered()) > 0 {
		return // the next request has come
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leave = leave
	if w.timer == nil {
		w.timer = time.AfterFunc(watchDelay, w.run)
	} else {
		w.timer.Reset(watchDelay)
	}
}

// run reads, into the buffer that the next request will be in.
func (w *watch) run() {
	w.mu.Lock()
	leave := w.leave
	if leave == nil || w.read != nil {
		w.mu.Unlock()
		return
	}
	read := make(chan struct{})
	w.read = read
	_, secure := w.conn.Conn.(*tls.Conn)
	var until time.Time
	if !secure {
		until = time.Now().Add(w.conn.server.EndTime)
	}
	_ = w.conn.SetReadDeadline(until) // before end sets its own
	w.mu.Unlock()
	defer close(read)
	err := w.conn.heads.Fill()
	switch {
	case secure:
	case err == io.EOF:
		w.ended(read)
		return
	case errors.Is(err, os.ErrDeadlineExceeded) && w.readOn(read):
		if err = w.conn.heads.Fill(); err == io.EOF && w.underWay() {
			w.ended(read)
			return
		}
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		leave()
	}
}

// readOn takes the deadline off the read, unless it has been ended.
func (w *watch) readOn(read chan struct{}) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.read != read {
		return false
	}
	_ = w.conn.SetReadDeadline(time.Time{})
	return true
}

func (w *watch) underWay() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

// end waits for the read, if there is one, and ends the watch.
func (w *watch) end() {
	w.mu.Lock()
	read := w.read
	w.leave, w.read, w.sent = nil, nil, false
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.stall != nil {
		w.stall.Stop()
		w.stall = nil
	}
	if read != nil {
		_ = w.conn.SetReadDeadline(past)
	}
	w.mu.Unlock()
	if read != nil {
		<-read
	}
}

// cut ends the request that is served.
func (w *watch) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leave != nil {
		w.leave()
	}
}

// UnderWay notes that the request is being sent to where it is answered. From now on the
// client has not left when its stream ends: see watch.
func (a *Answer) UnderWay() {
	w := &a.conn.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = true
}
