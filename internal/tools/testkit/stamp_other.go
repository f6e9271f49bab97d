//go:build !linux

package testkit

import (
	"net"
	"sync/atomic"
	"time"
)

// stampedListener accepts connections that know when what they read arrived.
type stampedListener struct{ net.Listener }

// Accept implements net.Listener.
func (l stampedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &stampedConn{Conn: c}, nil
}

// stampedConn takes the time when Read returns.
type stampedConn struct {
	net.Conn
	at atomic.Int64 // Unix time in nanoseconds
}

// arrived is when the last read returned.
func (c *stampedConn) arrived() time.Time { return time.Unix(0, c.at.Load()) }

// Read implements net.Conn.
func (c *stampedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.at.Store(time.Now().UnixNano())
	return n, err
}
