package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"heed/internal/base/memory"
	"heed/proxy/http1"
	"heed/rules"
)

// Client is whom a Conn calls, in the goroutine of Serve.
type Client interface {
	// Handle answers a request.
	Handle(*Answer, *http.Request)
	// Unread is called for a request that cannot be read, with a *http1.Fault, the error of
	// Limit.Hold or that of the connection, which is closed afterwards. Head of the Conn has
	// what could be read.
	Unread(error)
	// Hello is called in place of Handle when a TLS hello comes first. The connection is
	// closed afterwards.
	Hello()
	// Silent is called when the client ends the connection before it has sent anything.
	Silent()
}

// Conn is a client's connection. Make it with NewConn.
type Conn struct {
	net.Conn
	Head http1.Head // of the request that is served, or cannot be read

	server *Server
	client Client
	ctx    context.Context // what the requests belong to
	heads  http1.Reader    // of Conn
	out    http1.Writer    // to Conn
	watch  watch           // for the client to leave
	state  atomic.Int32    // connFresh and others
	opened time.Time
	addr   string        // the client's, with its port
	begun  bool          // octets have come
	taken  bool          // see Taken
	room   []http1.Field // see FieldRoom; nil before the first
	head   http1.Message // of the answer; kept, since it is written without allocating memory
	first  [1]byte       // of a request after a pause
}

// The states of a Conn.
const (
	connFresh  int32 = iota // nothing has come
	connBusy                // a request is read or served
	connIdle                // between two requests
	connClosed              // closed by its server
)

// NewConn returns c as a connection of s, whose requests have a context of ctx. limit bounds
// their heads.
func (s *Server) NewConn(ctx context.Context, c net.Conn, client Client, limit http1.Limit) *Conn {
	own := &Conn{Conn: c, server: s, client: client, ctx: ctx, opened: time.Now(), addr: c.RemoteAddr().String()}
	own.heads = http1.Reader{From: c, Limit: limit}
	own.out.To, own.watch.conn = own, own
	return own
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.watch.taken.Add(int64(n))
	return n, err
}

// Begun reports whether octets of a request have come.
func (c *Conn) Begun() bool { return c.begun }

// Taken reports whether a handler has taken the connection over.
func (c *Conn) Taken() bool { return c.taken }

// Rest returns the octets that were read and belong to no request so far, and gives the
// buffer back.
func (c *Conn) Rest() []byte { return c.heads.Rest() }

// Buffered returns the octets that were read and belong to no request so far: of one that
// cannot be read, those of a head that is not complete. They are valid until the next read.
func (c *Conn) Buffered() []byte { return c.heads.Buffered() }

// Serve answers the requests on c until it ends. It closes c, unless that was taken over.
func (c *Conn) Serve() {
	if !c.server.add(c) {
		c.Close()
		return
	}
	defer c.end()
	memory.ReserveStack()
	for c.await() && c.serveRequest() {
		c.state.CompareAndSwap(connBusy, connIdle)
	}
}

// end is called when c serves no further request.
func (c *Conn) end() {
	c.server.remove(c)
	if !c.taken {
		c.out.Release()
		c.Close()
	}
}

// calm is how long a connection keeps its buffer between two requests.
const calm = time.Second

// await waits for the first octets of a request. It reports whether they came.
func (c *Conn) await() bool {
	if len(c.heads.Buffered()) == 0 {
		if err := c.fill(); err != nil {
			if err == io.EOF && !c.begun {
				c.client.Silent()
			}
			return false
		}
	}
	return c.state.CompareAndSwap(connFresh, connBusy) || c.state.CompareAndSwap(connIdle, connBusy)
}

// fill reads the first octets of a request. The buffer goes when they do not come soon.
func (c *Conn) fill() error {
	patience := c.server.IdleTime
	if !c.begun {
		patience = c.server.HeaderTime
	}
	now := time.Now()
	_ = c.SetReadDeadline(now.Add(min(calm, patience)))
	if err := c.heads.Fill(); patience <= calm || !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	c.heads.Release()
	_ = c.SetReadDeadline(now.Add(patience))
	for {
		n, err := c.Conn.Read(c.first[:])
		if n > 0 {
			c.heads.Prepend(c.first[0])
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// helloRecord is the type of a TLS record that begins a connection (RFC 8446 §5.1).
const helloRecord = 0x16

// serveRequest reads a request and has it answered. It reports whether another one may
// follow.
func (c *Conn) serveRequest() (again bool) {
	if first := c.heads.Buffered()[0]; first == helloRecord && !c.begun {
		c.client.Hello()
		return false
	}
	c.begun = true
	if !c.heads.HasHead() {
		_ = c.SetReadDeadline(time.Now().Add(c.server.HeaderTime))
	}
	err := c.heads.ReadRequest(&c.Head)
	if err != nil {
		c.client.Unread(err)
		return false
	}
	a := &Answer{conn: c}
	r, err := a.request(&c.Head)
	if err != nil {
		c.client.Unread(err)
		return false
	}
	defer a.release()
	if a.body.ended.Load() {
		c.watch.begin(a.cancel) // whose read has a deadline of its own
	} else {
		_ = c.SetReadDeadline(time.Time{})
	}
	c.client.Handle(a, r)
	again = a.finish()
	c.Head.Reset()
	c.head = http1.Message{}
	clear(c.room)
	return again
}

// request returns the request with the head h, which a is the answer to.
func (a *Answer) request(h *http1.Head) (*http.Request, error) {
	target := h.Target
	if h.Method != http.MethodConnect {
		target = rules.EscapePercents(target)
	}
	a.body.from.Reset(&a.conn.heads, h)
	ctx, cancel := context.WithCancel(a.conn.ctx)
	a.cancel = cancel
	r, err := h.Request(ctx, target, &a.body.from)
	if err != nil {
		cancel()
		return nil, err
	}
	a.head, a.old, a.close = h.Method == http.MethodHead, !h.AtLeast11(), h.Close
	if r.Body == http.NoBody {
		a.body.ended.Store(true)
	} else {
		a.body.answer, a.body.expects = a, h.Expects && !a.old
		r.Body = &a.body
	}
	r.RemoteAddr = a.conn.addr
	return r, nil
}
