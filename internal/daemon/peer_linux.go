package daemon

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// peerOf returns the process at the other end of a Unix socket, as it was when it
// connected; false when it cannot be found out.
func peerOf(c net.Conn) (peer unix.Ucred, ok bool) {
	conn, ok := c.(syscall.Conn)
	if !ok {
		return peer, false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return peer, false
	}
	var found *unix.Ucred
	if raw.Control(func(fd uintptr) { found, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }) != nil || err != nil {
		return peer, false
	}
	return *found, true
}

// peerAllowed reports whether the other end of a Unix socket is a process of
// this user or of root.
func peerAllowed(c net.Conn) bool {
	peer, ok := peerOf(c)
	return ok && (peer.Uid == 0 || int(peer.Uid) == os.Geteuid())
}

// peerProcess returns the id of the process at the other end of a Unix socket; 0 when it
// is not known, or not in this namespace of processes.
func peerProcess(c net.Conn) int {
	peer, _ := peerOf(c)
	return int(peer.Pid)
}
