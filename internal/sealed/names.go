package sealed

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"sync"
)

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
		if n.number == nil {
			n.number = map[string]uint32{}
		}
		n.names = append(n.names, name)
		i = uint32(len(n.names))
		n.number[name] = i
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
