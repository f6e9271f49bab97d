package sealed

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"

	"heed/internal/base/memo"
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
	if at = netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()); at.Addr().IsLoopback() {
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

// The networks of the addresses that names have inside: of benchmarks (RFC 2544 §C.2.2)
// and unique local (RFC 4193).
var (
	names4 = netip.MustParsePrefix("198.18.0.0/15")
	names6 = netip.MustParsePrefix("fd68:6565:6421::/96")
)

// maxNames is the greatest number of names that have addresses: those of names4 without
// the first and the last.
const maxNames = 1<<17 - 2

// Names gives each host name one IPv4 and one IPv6 address of its own, which it keeps. The
// zero value is ready to use. It is safe for concurrent use.
type Names struct {
	mu     sync.RWMutex
	number map[string]uint32
	names  []string // by number, less one
}

// Addresses returns the addresses of a name; false when all are in use.
func (n *Names) Addresses(name string) (v4, v6 netip.Addr, ok bool) {
	name = canonical(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	i, known := n.number[name]
	if !known {
		if len(n.names) >= maxNames {
			return v4, v6, false
		}
		n.names = append(n.names, name)
		i = uint32(len(n.names))
		memo.Set(&n.number, name, i)
	}
	return at(names4, i), at(names6, i), true
}

// Name returns the name that an address was given out for.
func (n *Names) Name(a netip.Addr) (name string, ok bool) {
	a = a.Unmap().WithZone("")
	var i uint32
	switch b := a.AsSlice(); {
	case names4.Contains(a):
		i = binary.BigEndian.Uint32(b) - binary.BigEndian.Uint32(names4.Addr().AsSlice())
	case names6.Contains(a):
		i = binary.BigEndian.Uint32(b[12:])
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	if i == 0 || int64(i) > int64(len(n.names)) {
		return "", false
	}
	return n.names[i-1], true
}

// at returns the address with a number in a network.
func at(p netip.Prefix, i uint32) netip.Addr {
	b := p.Addr().AsSlice()
	low := b[len(b)-4:]
	binary.BigEndian.PutUint32(low, binary.BigEndian.Uint32(low)+i)
	a, _ := netip.AddrFromSlice(b)
	return a
}

// canonical returns a name in lower case without the final dot.
func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
