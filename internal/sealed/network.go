package sealed

import (
	"errors"
	"net"
	"net/netip"
)

// Network is heed's end of the network of a sealed run.
type Network struct {
	// Redirected accepts the connections that the command makes to any address but
	// loopback. The address that it connected to is the local address of a connection.
	Redirected net.Listener
	// Proxy accepts connections to the address of the proxy variables.
	Proxy net.Listener
	Names Names

	dnsTCP     net.Listener
	dns4, dns6 net.PacketConn
	space      uint64 // inode of the network namespace
}

// ErrOwnPort is the error of Original for a connection to the listener itself.
var ErrOwnPort = errors.New("the command connected to the port of the transparent listener")

// Original returns the address that the command connected to, of a connection that
// Redirected has accepted.
func (n *Network) Original(c net.Conn) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return at, err
	}
	at = netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
	if at.Addr().IsLoopback() {
		return at, ErrOwnPort
	}
	return at, nil
}

// Serve answers the queries for names until Close.
func (n *Network) Serve() {
	go n.Names.serveDNSTCP(n.dnsTCP)
	go n.Names.serveDNS(n.dns4)
	if n.dns6 != nil {
		go n.Names.serveDNS(n.dns6)
	}
}

// Close closes all sockets: nothing leads out of the network any more.
func (n *Network) Close() {
	for _, c := range []interface{ Close() error }{n.Redirected, n.Proxy, n.dnsTCP, n.dns4, n.dns6} {
		if c != nil {
			c.Close()
		}
	}
}
