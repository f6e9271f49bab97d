package upstream

import (
	"crypto/tls"
	"net"
	"sync"
	"syscall"
)

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
