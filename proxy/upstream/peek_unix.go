//go:build unix

package upstream

import "syscall"

// pending reports whether octets, or the end of the stream, have come on c that nobody
// has read. It does not wait.
func pending(c syscall.RawConn) bool {
	came := false
	err := c.Control(func(fd uintptr) { // Read would wait for the goroutine that reads c
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		came = err != syscall.EAGAIN && err != syscall.EWOULDBLOCK && err != syscall.EINTR
	})
	return came || err != nil
}
