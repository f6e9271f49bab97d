//go:build !linux

package redirect

import (
	"errors"
	"net"
	"net/netip"
)

var errSystem = errors.New("connections are redirected to heed on Linux only; on this system, set the proxy variables of the clients (heed help clients)")

// Listen returns an error: this system is not supported.
func Listen(string, bool) (net.Listener, error) { return nil, errSystem }

// Original returns an error: this system is not supported.
func Original(net.Conn) (netip.AddrPort, error) { return netip.AddrPort{}, errSystem }
