package acl

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"heed/internal/memo"
	"heed/rules"
)

// ErrSelf is wrapped by the error of a connection to an address that heed listens on.
var ErrSelf error = &barred{"the address is heed's own", rules.ReasonLoop}

// Addrs is the set of addresses that a process listens on, with the connections that it
// opens. The zero value is empty and ready; it is safe for concurrent use.
type Addrs struct {
	Dials

	mu  sync.Mutex // held to change the set
	set atomic.Pointer[addrSet]
}

// addrSet is immutable: every request looks into it.
type addrSet struct {
	addrs map[netip.AddrPort]int
	ports map[uint16]int // of addrs: most requests are for a port that none has
}

// Add adds an address; each Add needs a Remove. Addresses that are not of TCP, such as
// that of a Unix socket, are left out: no site has one.
func (a *Addrs) Add(addr net.Addr) { a.count(addr, 1) }

// Remove undoes one Add of an address.
func (a *Addrs) Remove(addr net.Addr) { a.count(addr, -1) }

func (a *Addrs) count(addr net.Addr, n int) {
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return
	}
	at = netip.AddrPortFrom(plain(at.Addr()), at.Port())
	a.mu.Lock()
	defer a.mu.Unlock()
	next := &addrSet{map[netip.AddrPort]int{}, map[uint16]int{}}
	if before := a.set.Load(); before != nil {
		maps.Copy(next.addrs, before.addrs)
	}
	if next.addrs[at] += n; next.addrs[at] <= 0 {
		delete(next.addrs, at)
	}
	for at := range next.addrs {
		next.ports[at.Port()]++
	}
	a.set.Store(next)
}

// plain returns an address without its zone, an IPv4-mapped one as the IPv4 address.
func plain(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }

// Has reports whether hostPort, a host or an address with a port, is in the set; see
// HasHost.
func (a *Addrs) Has(hostPort string) bool {
	host, text, err := net.SplitHostPort(hostPort)
	if err != nil {
		return false
	}
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && a.HasHost(host, uint16(port))
}

// IsName reports whether the host of o is a name of an address of the set. The settings, d,
// may place it there; else its addresses are not known before it is dialled. That is what
// reach does, which returns the error: it is called only for the port of an address of the
// set. d may be nil.
func (a *Addrs) IsName(o rules.Origin, d *Destinations, reach func() error) bool {
	if d != nil && len(d.Placed) > 0 && a.Has(d.Placed[o.HostPort()]) {
		return true
	}
	set := a.set.Load()
	return set != nil && set.ports[o.Port] > 0 && errors.Is(reach(), ErrSelf)
}

// HasHost reports whether a connection to host and port leads to an address of the set, as
// far as the host shows it: an address, in canonical form, or a name of this machine
// (RFC 6761 §6.3). An IPv4-mapped address is the address that it maps. The unspecified
// address (0.0.0.0 or ::) as a destination is every address of its port, since systems
// connect it to themselves; in the set it is every address of this machine.
func (a *Addrs) HasHost(host string, port uint16) bool {
	set := a.set.Load()
	if set == nil || set.ports[port] == 0 {
		return false
	}
	if NamesThisMachine(host) {
		return set.has(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port) || set.has(netip.IPv6Loopback(), port)
	}
	to, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	for _, to := range append(embedded(to), plain(to)) {
		if set.has(to, port) {
			return true
		}
	}
	return false
}

func (s *addrSet) has(to netip.Addr, port uint16) bool {
	for own := range s.addrs {
		at := own.Addr()
		switch {
		case own.Port() != port:
		case at == to, to.IsUnspecified(), at.IsUnspecified() && (at.Is6() || to.Is4()) && isLocal(to):
			return true
		}
	}
	return false
}

// isLocal reports whether an address belongs to this machine.
func isLocal(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	for _, i := range all {
		if p, bad := netip.ParsePrefix(i.String()); bad == nil && plain(p.Addr()) == a {
			return true
		}
	}
	return err != nil // not known: heed does not connect to itself
}

// Dials remembers the connections that a process opens, while WatchDials is in effect: a
// redirected one comes back to it. The zero value is ready; it is safe for concurrent use.
type Dials struct {
	watching atomic.Int32 // how many callers of WatchDials have not stopped
	made     memo.Kept[dial, struct{}]
}

// WatchDials makes d remember the connections that are opened, until stop is called.
func (d *Dials) WatchDials() (stop func()) {
	d.watching.Add(1)
	return func() { d.watching.Add(-1) }
}

// Dialled reports whether the process itself has opened a connection from one address to
// another in the last minute: what is accepted with these two is redirected from itself.
func (d *Dials) Dialled(from, to netip.AddrPort) bool {
	_, ok := d.made.Get(dial{plainPort(from), plainPort(to)}, time.Now())
	return ok
}

// NoteDial remembers a connection that was opened from one address to another, while
// WatchDials is in effect.
func (d *Dials) NoteDial(local, remote net.Addr) {
	if d.watching.Load() == 0 {
		return
	}
	from, err1 := netip.ParseAddrPort(local.String())
	to, err2 := netip.ParseAddrPort(remote.String())
	if err1 == nil && err2 == nil {
		d.made.Put(dial{plainPort(from), plainPort(to)}, struct{}{}, time.Now().Add(dialTime), 0, maxDials, 0)
	}
}

func plainPort(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(plain(a.Addr()), a.Port())
}

// dial is a connection by its two ends.
type dial struct{ from, to netip.AddrPort }

// dialTime is longer than a redirected connection takes to be accepted; maxDials bounds the
// memory.
const (
	dialTime = time.Minute
	maxDials = 1 << 14
)
