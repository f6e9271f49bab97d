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
// the bytes that the server had read ahead.
type tunnelConn struct {
	net.Conn
	head   []byte
	tunnel *tunnel // nil for one that is not intercepted, and for WebSockets

	redirected *redirectedConn // that it is the octets of; nil: a client's own request has opened it

	lasting     atomic.Pointer[exchange] // a tunnel that is not intercepted, or a WebSocket; else nil
	revoked     atomic.Pointer[string]   // why recheck ended it; nil: it did not
	read, wrote atomic.Int64             // octets that passed
	writing     sync.Mutex               // held by Write until it has counted
	records     tlsRecords               // of the client; meaningless where it does not speak TLS
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
	if len(c.head) == 0 {
		b := make([]byte, 1)
		if _, err := io.ReadFull(c.Conn, b); err != nil {
			return 0, err
		}
		c.head = b
	}
	return c.head[0], nil
}

// begins reports whether what comes next on c begins with prefix, without consuming
// it. It waits for no octet that does not decide that.
func (c *tunnelConn) begins(prefix string) bool {
	for i := range len(prefix) {
		if i == len(c.head) {
			var b [1]byte
			if _, err := io.ReadFull(c.Conn, b[:]); err != nil {
				return false
			}
			c.head = append(c.head[:i:i], b[0])
		}
		if c.head[i] != prefix[i] {
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
	if c.tunnel != nil {
		c.records.pass(b)
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

// maxGoodbye is how long the encrypted records of a client are at most that
// only says goodbye or changes keys (RFC 8446 §5.2, §6): longer ones hold data.
const maxGoodbye = 24

// tlsRecords counts the records in which a TLS client sends data, from the
// outside: what is inside an encrypted record only its end of the connection
// knows, but not how many there are.
type tlsRecords struct {
	data   atomic.Int64
	header [5]byte // of the record that is being read
	have   int     // octets of header
	left   int     // octets of the record still to come
}

// pass takes note of octets on their way.
func (r *tlsRecords) pass(b []byte) {
	for len(b) > 0 {
		if r.left > 0 {
			n := min(r.left, len(b))
			r.left -= n
			b = b[n:]
			continue
		}
		r.header[r.have] = b[0]
		b = b[1:]
		if r.have++; r.have < len(r.header) {
			continue
		}
		r.have = 0
		r.left = int(r.header[3])<<8 | int(r.header[4])
		if r.header[0] == 0x17 && r.left > maxGoodbye {
			r.data.Add(1)
		}
	}
}
