package daemon

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// peer returns the process at the other end of a Unix socket, as it was when it connected, and
// whether it may use the socket: it is one of this user or of root. The id is 0 when it is not
// known, or not in this namespace of processes.
func peer(c net.Conn) (pid int, allowed bool) {
	conn, ok := c.(syscall.Conn)
	if !ok {
		return 0, false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false
	}
	var is *unix.Ucred
	if raw.Control(func(fd uintptr) { is, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }) != nil || err != nil {
		return 0, false
	}
	return int(is.Pid), is.Uid == 0 || int(is.Uid) == os.Geteuid()
}
