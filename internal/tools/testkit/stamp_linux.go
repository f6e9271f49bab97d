package testkit

import (
	"cmp"
	endian "encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stampedListener accepts connections that know when what they read arrived.
type stampedListener struct{ net.Listener }

// Accept implements net.Listener.
func (l stampedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp := c.(*net.TCPConn)
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	var refused error
	err = raw.Control(func(fd uintptr) {
		refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	if err := cmp.Or(err, refused); err != nil {
		return nil, err
	}
	return &stampedConn{TCPConn: tcp, raw: raw}, nil
}

// stampedConn asks the kernel when its segments arrived.
type stampedConn struct {
	*net.TCPConn
	raw syscall.RawConn
	at  atomic.Int64 // Unix time in nanoseconds
}

// arrived is when the last segment read arrived.
func (c *stampedConn) arrived() time.Time { return time.Unix(0, c.at.Load()) }

// Read implements net.Conn.
func (c *stampedConn) Read(p []byte) (n int, err error) {
	var stamp [64]byte // one control message, with room
	var size int
	failed := c.raw.Read(func(fd uintptr) bool {
		for {
			n, size, _, _, err = unix.Recvmsg(int(fd), p, stamp[:], 0)
			if err != unix.EINTR {
				return err != unix.EAGAIN
			}
		}
	})
	switch {
	case failed != nil:
		return 0, failed
	case err != nil:
		return 0, err
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	c.note(stamp[:size])
	return n, nil
}

// note keeps the kernel's time, or the present one when there is none.
func (c *stampedConn) note(control []byte) {
	at := time.Now().UnixNano()
	messages, _ := unix.ParseSocketControlMessage(control) // none then
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) == 16 {
			order := endian.NativeEndian // a struct timespec of a 64-bit system
			at = int64(order.Uint64(m.Data))*int64(time.Second) + int64(order.Uint64(m.Data[8:]))
		}
	}
	c.at.Store(at)
}
