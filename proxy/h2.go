package proxy

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heed/proxy/h2head"
	"heed/proxy/limit"
)

// maxFrame is the largest HTTP/2 frame taken, in octets: what every client
// keeps to unasked (RFC 9113 §6.5.2). Frames of a connection are read into memory.
const maxFrame = 16 << 10

// newH2Server returns the server of HTTP/2 with our limits and the one handler. There is no
// WriteTimeout: it would cut long downloads.
func (p *Proxy) newH2Server() *http.Server {
	s := &http.Server{
		Handler:                      http.HandlerFunc(p.handle),
		Protocols:                    new(http.Protocols),
		ReadHeaderTimeout:            p.config.Limits.HeaderTime,
		IdleTimeout:                  p.config.Limits.IdleTime,
		MaxHeaderBytes:               h2head.ListSize(p.h2HeaderBytes()),
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: p.config.Limits.Streams, MaxReadFrameSize: maxFrame},
		DisableGeneralOptionsHandler: true, // OPTIONS * is judged like any request
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return withClientConn(ctx, &c.(*h2Conn).clientConn)
		},
		ConnState: connState,
		ErrorLog:  log.New(serverLog{p.config.Log}, "", 0),
	}
	s.Protocols.SetUnencryptedHTTP2(true) // heed makes the TLS handshake
	return s
}

// serverLog takes the messages of an http.Server. Broken connections are every day's
// business and recorded anyway.
type serverLog struct{ log *slog.Logger }

// Write implements io.Writer for one message.
func (l serverLog) Write(p []byte) (int, error) {
	l.log.Debug("http server", "message", strings.TrimSpace(string(p)))
	return len(p), nil
}

func (p *Proxy) serveH2() {
	if err := p.h2.Serve(p.h2Tunnels); !errors.Is(err, http.ErrServerClosed) {
		p.config.Log.Error("the server of HTTP/2 ended", "error", err)
	}
}

// connState is the server's ConnState.
func connState(c net.Conn, state http.ConnState) {
	own := c.(*h2Conn)
	switch state {
	case http.StateIdle:
		own.tunnel.streams.idled()
	case http.StateClosed:
		own.tunnel.closed(own.begun.Load())
		own.recordCounted()
		own.sites.End()
	}
}

// tunnelListener is the listener of the server of HTTP/2: connections that have been
// decrypted arrive through it.
type tunnelListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// push gives c to the server, or closes it when that has ended.
func (l *tunnelListener) push(c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.done:
		c.Close()
	}
}

// Accept implements net.Listener.
func (l *tunnelListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *tunnelListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *tunnelListener) Addr() net.Addr { return &net.UnixAddr{Name: "tunnels", Net: "unix"} }

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

// h2Conn is a client's connection in an intercepted tunnel on which HTTP/2 is spoken, as
// its server sees it: the octets inside TLS. It has no ConnectionState, since net/http
// would take it for TLS and expect HTTP/1. net/http then does not reject the cipher
// suites of RFC 9113 appendix A either; crypto/tls chooses one only for a client that
// offers no other.
type h2Conn struct {
	clientConn
	frames *h2head.Reader
	begun  atomic.Bool // octets have come
}

// h2Conn returns c, the decrypted side of t, as the server of HTTP/2 takes it.
func (t *tunnel) h2Conn(c net.Conn) *h2Conn {
	p := t.proxy
	own := &h2Conn{clientConn: clientConn{Conn: c, proxy: p, counted: t.counted, client: t.client, tunnel: t}}
	own.frames = h2head.NewReader(c, h2head.Limit{
		Head: p.h2HeaderBytes(), Frame: maxFrame, Streams: p.config.Limits.Streams, Time: p.config.Limits.HeaderTime,
		Hold: t.counted.HoldHead, Drop: t.counted.DropHead, Exceeded: p.gate.CountExceeded,
	}, own.recordBroken)
	return own
}

// h2HeaderBytes returns how large a head of HTTP/2 may be, counted as in RFC 9113 §6.5.2:
// every field counts 32 octets more than it has.
func (p *Proxy) h2HeaderBytes() int { return int(p.config.Limits.HeaderBytes) + 10*32 }

// Read implements net.Conn.
func (c *h2Conn) Read(b []byte) (int, error) {
	n, err := c.frames.Read(b)
	if n > 0 {
		c.begun.Store(true)
	}
	return n, err
}

// Write implements net.Conn.
func (c *h2Conn) Write(b []byte) (int, error) {
	c.frames.Wrote(b)
	return c.Conn.Write(b)
}

// noted returns the denial of a request that net/http would have rejected for what n
// contains.
func (x *delivery) noted(n *h2head.Note) denial {
	q := &x.req
	q.method = methodOf(string(n.Method))
	q.locateUnread(string(n.Target))
	q.identify(x.proxy)
	if n.Last {
		x.writer.Header().Set("Connection", "close")
	}
	if n.Over != nil {
		return overLimit(n.Over)
	}
	return malformed(n.Fault)
}
