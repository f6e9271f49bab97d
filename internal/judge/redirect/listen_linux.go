package redirect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Listen listens on address, a host:port, for connections that the kernel redirects by a
// redirect rule, or with tproxy by a tproxy rule.
func Listen(address string, tproxy bool) (net.Listener, error) {
	var config net.ListenConfig
	if tproxy {
		config.Control = setTransparent
	}
	l, err := config.Listen(context.Background(), "tcp", address)
	if errors.Is(err, unix.EPERM) && tproxy {
		return nil, fmt.Errorf("%w\nA listener for tproxy needs the capability CAP_NET_RAW: in a systemd unit, AmbientCapabilities=CAP_NET_RAW; see heed help start", err)
	}
	return l, err
}

// setTransparent makes a socket accept connections to addresses that this machine does
// not have.
func setTransparent(network, _ string, c syscall.RawConn) error {
	level, option := unix.SOL_IP, unix.IP_TRANSPARENT
	if strings.HasSuffix(network, "6") { // takes IPv4 as well
		level, option = unix.SOL_IPV6, unix.IPV6_TRANSPARENT
	}
	var failed error
	err := c.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), level, option, 1) })
	return cmp.Or(err, failed)
}

// soOriginalDst is SO_ORIGINAL_DST of linux/netfilter_ipv4.h; IPv6 has the same number.
const soOriginalDst = 80

// Original returns where a client connected to, of a connection that a redirect rule has
// brought here. The error wraps ErrDirect when none has.
func Original(c net.Conn) (netip.AddrPort, error) {
	local, err := Destination(c)
	if err != nil {
		return netip.AddrPort{}, err
	}
	conn, ok := c.(syscall.Conn)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("a %T is no connection of the network", c)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	var original netip.AddrPort
	var failed error
	if err := raw.Control(func(fd uintptr) { original, failed = originalOf(int(fd), local.Addr().Is4()) }); err != nil {
		return netip.AddrPort{}, err
	}
	switch {
	case errors.Is(failed, unix.ENOENT), failed == nil && original == local:
		return netip.AddrPort{}, ErrDirect
	case failed != nil:
		return netip.AddrPort{}, fmt.Errorf("the kernel does not have it: %w", failed)
	}
	return original, nil
}

func originalOf(fd int, is4 bool) (netip.AddrPort, error) {
	if is4 { // a struct sockaddr_in in a buffer that is large enough
		in, err := unix.GetsockoptIPv6Mreq(fd, unix.SOL_IP, soOriginalDst)
		if err != nil {
			return netip.AddrPort{}, err
		}
		b := in.Multiaddr
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), uint16(b[2])<<8|uint16(b[3])), nil
	}
	in, err := unix.GetsockoptIPv6MTUInfo(fd, unix.SOL_IPV6, soOriginalDst)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port := in.Addr.Port // in network octet order
	return netip.AddrPortFrom(netip.AddrFrom16(in.Addr.Addr), port<<8|port>>8), nil
}
