//go:build unix

package upstream

import "syscall"

// peek notes whether something has come on a socket.
func (s *socket) peek(fd uintptr) {
	var b [1]byte
	_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
	s.came = err != syscall.EAGAIN && err != syscall.EWOULDBLOCK && err != syscall.EINTR
}
