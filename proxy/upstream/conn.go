package upstream

import (
	"container/list"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"heed/proxy/http1"
)

// conn is a connection to a site on which HTTP/1 is spoken. It has no goroutine: who sends
// a request on it reads the answer. While it is idle it holds no buffer.
type conn struct {
	net.Conn
	tls    *tls.Conn // the same; nil: it is not over TLS
	socket *socket
	close  func() // end, made once
	closed atomic.Bool

	in   http1.Reader
	out  http1.Writer
	head http1.Head    // of the last answer
	wait time.Duration // for the head of an answer

	message http1.Message // the request; kept, since it is written without allocating memory

	// How the connection is used. The request that has the connection changes this, and
	// the pool while it is idle.
	host      *siteHost
	client    *Client   // that uses it, or did last; guarded by the pool
	reused    bool      // it was idle before this request
	pinned    bool      // the client has authenticated it
	begun     bool      // the client is about to
	authority string    // of the site that the client authenticates at
	suspect   bool      // the last answer was one whose body sites get wrong
	since     time.Time // when the last answer ended

	place     *list.Element // among the idle connections; nil: it is not one. Guarded by the pool
	forgotten bool          // guarded by the pool
}

// newConn makes c a connection to h, for w first.
func newConn(c net.Conn, h *siteHost, w *wish, wait time.Duration) *conn {
	own := &conn{Conn: c, socket: socketOf(c), wait: wait, host: h, client: w.client, pinned: w.token}
	own.tls, _ = c.(*tls.Conn)
	own.close = own.end
	own.in = http1.Reader{From: c, Limit: http1.Limit{Head: maxResponseHeader}}
	own.out.To = c
	return own
}

// end closes c. It may be called more than once, and while c is being read.
func (c *conn) end() {
	if c.closed.Swap(true) {
		return
	}
	c.Conn.Close()
	c.host.pool.forget(c)
}

// release gives c, whose answer has ended, to its pool.
func (c *conn) release() {
	if len(c.in.Buffered()) > 0 {
		c.end() // octets that no request has asked for
		return
	}
	c.in.Release()
	c.head.Reset()
	c.message = http1.Message{}
	c.since = time.Now()
	c.host.pool.put(c)
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// ticketTime is how long a connection over TLS is read on which something has come.
const ticketTime = time.Millisecond

// ready reports whether c, taken from its pool, can be used for another request: it is
// open, and nothing has come on it but what TLS itself sends, such as session tickets.
func (c *conn) ready() bool {
	if c.closed.Load() {
		return false
	}
	if c.tls == nil {
		return !c.socket.pending()
	}
	if !c.silentUntil(past) { // what crypto/tls holds
		return false
	}
	if c.socket.pending() && !c.silentUntil(time.Now().Add(ticketTime)) {
		return false
	}
	return c.SetReadDeadline(time.Time{}) == nil
}

// silentUntil reads, and reports whether nothing came.
func (c *conn) silentUntil(deadline time.Time) bool {
	if c.SetReadDeadline(deadline) != nil {
		return false
	}
	var b [1]byte
	n, err := c.tls.Read(b[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

// CloseWrite ends what is sent on c; the other direction continues. A connection that has no
// such directions stays open.
func CloseWrite(c net.Conn) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// socket is the socket of a connection. Nil is none.
type socket struct {
	raw  syscall.RawConn
	look func(fd uintptr) // peek, made once

	mu   sync.Mutex
	came bool // what the last look has found
}

// socketOf returns the socket below conn.
func socketOf(conn net.Conn) *socket {
	for conn != nil {
		switch inner := conn.(type) {
		case *tls.Conn:
			conn = inner.NetConn()
		case *openConn:
			conn = inner.Conn
		case *readAhead:
			conn = inner.Conn
		case syscall.Conn:
			raw, err := inner.SyscallConn()
			if err != nil {
				return nil
			}
			s := &socket{raw: raw}
			s.look = s.peek
			return s
		default:
			return nil
		}
	}
	return nil
}

// pending reports whether octets, or the end of the stream, have come that have not been
// read. It does not wait, and may be called while the socket is in use.
func (s *socket) pending() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came = false
	err := s.raw.Control(s.look) // Read would wait for another reader of the socket
	return s.came || err != nil
}
