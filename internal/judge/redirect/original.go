package redirect

import (
	"errors"
	"net"
	"net/netip"
)

// ErrDirect is wrapped by the error of Original for a connection that was made to the
// listener itself: the kernel has redirected nothing.
var ErrDirect = errors.New("the client connected to the listener itself; only redirected connections are served here")

// Destination returns where a client connected to, of a connection that a tproxy rule has
// brought here: the local address of the connection.
func Destination(c net.Conn) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), nil
}
