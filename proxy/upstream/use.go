package upstream

import (
	"container/list"
	"crypto/tls"
	"errors"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// errUnasked is the failure of a connection on which octets came that no request has
// asked for.
var errUnasked = errors.New("stream error: the site sent octets that no request had asked for")

// phase is what a connection is doing.
type phase int

const (
	busy   phase = iota // a request has it
	ended               // the answer has ended; octets read with it may remain
	silent              // nothing remained, and nothing has come since
	closed              // it is closed, or about to be
)

// connUse is how a connection is used. A connection that is not in a pool has the zero
// value.
type connUse struct {
	conn   *http.ClientConn // nil before attach
	raw    syscall.RawConn  // the socket; nil: there is none
	socket sync.Once        // finds raw

	mu       sync.Mutex
	changed  sync.Cond // phase is not ended any more
	phase    phase
	reused   bool // it has served a request before this one
	wrote    bool // of this request, something
	answered bool // something has come since
	broken   bool // it ended before that
	returned bool // the head of the answer has been read
	whole    bool // the answer has ended, and the connection may be used again

	client    *Client   // that uses it, or did last
	pinned    bool      // the client has authenticated it
	begun     bool      // the client is about to
	authority string    // of the site that the client authenticates at
	suspect   bool      // the last answer was one whose body sites get wrong
	last      bool      // no request follows
	since     time.Time // when the last answer ended

	host      *siteHost     // nil: it is in no pool
	place     *list.Element // among the idle connections; nil: it is not one. Guarded by the pool
	forgotten bool          // guarded by the pool
}

// writing notes that the request is being written.
func (u *connUse) writing() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.wrote = true
}

// failed notes that the connection is of no more use.
func (u *connUse) failed() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.broken = true
}

// reading notes that net/http reads on. After the end of an answer it does that when no
// octet remains of what it has read before.
func (u *connUse) reading() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.phase == ended {
		u.phase = silent
		u.changed.Broadcast()
	}
}

// read takes note of what a Read returned. What came before a request was written is
// not its answer.
func (u *connUse) read(n int, err error) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	unasked := u.phase == silent || u.phase == busy && u.reused && !u.wrote
	switch {
	case unasked && n > 0:
		n, err = 0, errUnasked
		fallthrough
	case err != nil:
		u.broken = true
		if u.phase == silent {
			u.phase = closed
		}
	case n > 0:
		u.answered = true
	}
	return n, err
}

// gone notes that the connection is closed. It returns the host of its pool; nil: it has
// none yet.
func (u *connUse) gone() *siteHost {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.broken = true
	if u.phase == ended {
		u.changed.Broadcast()
	}
	u.phase = closed
	return u.host
}

// unanswered reports whether the connection ended before anything came of the answer.
func (u *connUse) unanswered() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.reused && u.broken && !u.answered
}

// attach makes c, which conn speaks HTTP on, a connection to h, for w first.
func (c *Conn) attach(conn *http.ClientConn, h *siteHost, w *wish) {
	u := &c.use
	u.mu.Lock()
	u.conn, u.client, u.pinned, u.host, u.changed.L = conn, w.client, w.token, h, &u.mu
	gone := u.phase == closed
	u.mu.Unlock()
	if gone { // before it had a host
		h.pool.forget(c)
		return
	}
	conn.SetStateHook(func(conn *http.ClientConn) {
		if conn.Available() > 0 {
			c.answerEnded()
		}
	})
}

// reuse prepares c, taken from its pool, for another request, and reports whether it can
// be used. Octets that are waiting keep it in the pool, for silence: they may be a
// session ticket. If they are anything else, net/http closes it.
func (c *Conn) reuse(w *wish) bool {
	u := &c.use
	u.mu.Lock()
	for u.phase == ended {
		u.changed.Wait()
	}
	if u.phase == closed {
		u.mu.Unlock()
		c.end()
		return false
	}
	u.phase, u.client, u.pinned = busy, w.client, u.pinned || w.token
	u.reused, u.wrote, u.answered, u.broken, u.returned, u.whole = true, false, false, false, false, false
	u.mu.Unlock()
	if !c.pending() {
		return true
	}
	_, isTLS := c.Conn.(*tls.Conn)
	if !isTLS {
		c.end()
		return false
	}
	u.mu.Lock()
	back := u.phase == busy && !u.broken
	if back {
		u.phase, u.suspect, u.since = silent, true, time.Now()
	}
	u.mu.Unlock()
	if back {
		u.host.pool.put(c)
	}
	return false
}

// pending reports whether something has come on the socket of c that was not read yet.
func (c *Conn) pending() bool {
	c.use.socket.Do(func() {
		for conn := c.Conn; conn != nil; {
			switch inner := conn.(type) {
			case *tls.Conn:
				conn = inner.NetConn()
			case *openConn:
				conn = inner.Conn
			case *readAhead:
				conn = inner.Conn
			case syscall.Conn:
				c.use.raw, _ = inner.SyscallConn()
				return
			default:
				return
			}
		}
	})
	return c.use.raw != nil && pending(c.use.raw)
}

// answerEnded notes that the answer has ended and that HTTP allows another request. The
// pool gets the connection when its head has been looked at, too.
func (c *Conn) answerEnded() {
	u := &c.use
	u.mu.Lock()
	u.whole, u.since = true, time.Now()
	if u.phase == busy {
		u.phase = ended
	}
	put := u.returned && u.phase != closed
	u.mu.Unlock()
	if put {
		c.release()
	}
}

// release gives c, whose answer has ended, to its pool.
func (c *Conn) release() {
	if c.use.last {
		c.end()
		return
	}
	c.use.host.pool.put(c)
}

// headRead looks at the head of an answer to r, which decides who may use c next.
func (c *Conn) headRead(r *http.Request, resp *http.Response) {
	u := &c.use
	pins, begun := challenges(resp)
	u.mu.Lock()
	u.pinned, u.begun, u.authority = u.pinned || pins, begun, r.URL.Host
	pins = u.pinned
	client := u.client
	u.mu.Unlock()
	kept := !pins || client.pin(c)
	u.mu.Lock()
	u.returned, u.last = true, !kept
	u.suspect = r.Method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
	put := u.whole && u.phase != closed
	u.mu.Unlock()
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		u.host.pool.forget(c)
	case put:
		c.release()
	}
}

// owner returns the client that uses the connection, or did last; nil: none is known.
func (u *connUse) owner() *Client {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.client
}

// end closes c.
func (c *Conn) end() { c.use.conn.Close() }
