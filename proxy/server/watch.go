package server

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// watchDelay is how long an exchange lasts before its connection is watched. Most end
// before, and cost a timer's reset.
const watchDelay = 20 * time.Millisecond

// watch finds out that a client leaves while its request is served: somebody has to read
// for that. What comes instead is the next request. The zero value, with a conn, is ready.
type watch struct {
	conn *Conn

	mu    sync.Mutex
	timer *time.Timer        // nil before the first exchange
	leave context.CancelFunc // of the request that is served; nil: none is watched
	read  chan struct{}      // closed when the read has returned; nil: none has begun
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
	w.mu.Unlock()
	defer close(read)
	if err := w.conn.heads.Fill(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		leave()
	}
}

// end waits for the read, if there is one, and ends the watch.
func (w *watch) end() {
	w.mu.Lock()
	read := w.read
	w.leave, w.read = nil, nil
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	if read != nil {
		_ = w.conn.SetReadDeadline(past)
		<-read
	}
}
