package testkit

import (
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// FreeAddr returns an address of this machine at which connections are refused
// until a server listens there. Until the test ends, the system does not choose its port
// for other listeners, so that it belongs to the test also before the server starts and
// after it. The server has to set SO_REUSEADDR, as
// nearly all do.
func FreeAddr(t testing.TB) string {
	t.Helper()
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	own := bound.(*unix.SockaddrInet4)
	return netip.AddrPortFrom(netip.AddrFrom4(own.Addr), uint16(own.Port)).String()
}
