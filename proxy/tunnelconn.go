package proxy

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"heed/proxy/upstream"
)

// established is the answer to a CONNECT whose tunnel is open.
const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// tunnelConn is a connection taken from an http.Server: it first gives back
// the octets that the server had read ahead.
type tunnelConn struct {
	net.Conn
	head   []byte
	tunnel *tunnel // nil for one that is not intercepted, and for WebSockets

	redirected *redirectedConn // that it is the octets of; nil: a client's own request has opened it

	lasting     atomic.Pointer[decision] // a tunnel that is not intercepted, or a WebSocket; else nil
	revoked     atomic.Pointer[string]   // why recheck ended it; nil: it did not
	read, wrote atomic.Int64             // octets that passed
	writing     sync.Mutex               // held by Write until it has counted
	tap         *bytes.Buffer            // takes what is read in a handshake; else nil
}

// open answers the CONNECT, if there was one, and returns the first octet from inside without
// consuming it.
func (c *tunnelConn) open() (byte, error) {
	if c.redirected == nil {
		if _, err := io.WriteString(c.Conn, established); err != nil {
			return 0, err
		}
	}
	if err := c.peek(1); err != nil {
		return 0, err
	}
	return c.head[0], nil
}

// peek waits for the next n octets, which are then in head.
func (c *tunnelConn) peek(n int) error {
	for len(c.head) < n {
		var b [1]byte
		if _, err := io.ReadFull(c.Conn, b[:]); err != nil {
			return err
		}
		c.head = append(c.head[:len(c.head):len(c.head)], b[0])
	}
	return nil
}

// begins reports whether what comes next on c begins with prefix, without consuming
// it. It waits for no octet that does not decide that.
func (c *tunnelConn) begins(prefix string) bool {
	for i := range len(prefix) {
		if c.peek(i+1) != nil || c.head[i] != prefix[i] {
			return false
		}
	}
	return true
}

// Read implements net.Conn.
func (c *tunnelConn) Read(b []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(b, c.head)
		c.head = c.head[n:]
		c.passed(b[:n])
		return n, nil
	}
	n, err := c.Conn.Read(b)
	c.passed(b[:n])
	return n, err
}

func (c *tunnelConn) passed(b []byte) {
	c.read.Add(int64(len(b)))
	if c.tap != nil && c.tap.Len() < maxHello {
		c.tap.Write(b)
	}
}

// Write implements net.Conn.
func (c *tunnelConn) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	n, err := c.Conn.Write(b)
	c.wrote.Add(int64(n))
	return n, err
}

// octets returns how many octets passed in each direction. c is closed: a client can have
// the last ones, and leave, before the Write that sent them has counted them.
func (c *tunnelConn) octets() (in, out int64) {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.read.Load(), c.wrote.Load()
}

// CloseWrite passes a half-close on.
func (c *tunnelConn) CloseWrite() error { return upstream.CloseWrite(c.Conn) }

// unread puts back what was read from c last.
func (c *tunnelConn) unread(b []byte) {
	c.read.Add(-int64(len(b)))
	c.head = append(b[:len(b):len(b)], c.head...)
}
