package upstream

import (
	"net"
	"sync/atomic"
)

// Counts counts connections to sites and to upstream proxies. The zero value is ready; it
// is safe for concurrent use.
type Counts struct {
	connecting, open atomic.Int64
	handshakes       [2]atomic.Uint64 // of TLS: those that failed, and those that succeeded
}

// ConnCounts is what Counts has counted.
type ConnCounts struct {
	Connecting, Open int64  // now
	OK, Failed       uint64 // TLS handshakes since the start
}

// Read returns the counts. Those of a nil Counts are zero.
func (c *Counts) Read() ConnCounts {
	if c == nil {
		return ConnCounts{}
	}
	return ConnCounts{c.connecting.Load(), c.open.Load(), c.handshakes[1].Load(), c.handshakes[0].Load()}
}

// dial counts the connection that do makes. c may be nil.
func (c *Counts) dial(do func() (net.Conn, error)) (net.Conn, error) {
	if c == nil {
		return do()
	}
	c.connecting.Add(1)
	conn, err := do()
	c.connecting.Add(-1)
	if err != nil {
		return nil, err
	}
	c.open.Add(1)
	return &openConn{Conn: conn, counts: c}, nil
}

// handshake counts a TLS handshake. c may be nil.
func (c *Counts) handshake(err error) {
	switch {
	case c == nil:
	case err != nil:
		c.handshakes[0].Add(1)
	default:
		c.handshakes[1].Add(1)
	}
}

// openConn counts as open until it is closed.
type openConn struct {
	net.Conn
	counts *Counts
	closed atomic.Bool
}

// Close closes the connection. It may be called more than once.
func (c *openConn) Close() error {
	if !c.closed.Swap(true) {
		c.counts.open.Add(-1)
	}
	return c.Conn.Close()
}

// CloseWrite ends what is sent.
func (c *openConn) CloseWrite() error { return CloseWrite(c.Conn) }
