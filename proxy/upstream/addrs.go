package upstream

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Addrs is the set of addresses a process listens on. The zero value is empty
// and ready; it is safe for concurrent use. It also remembers the connections that the
// process has opened, while WatchDials is in effect.
type Addrs struct {
	mu    sync.RWMutex
	addrs map[string]int

	watching atomic.Int32 // how many callers of WatchDials have not stopped
	dials    dialMemory
}

// Add adds an address; each Add needs a Remove.
func (a *Addrs) Add(addr net.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.addrs == nil {
		a.addrs = make(map[string]int)
	}
	a.addrs[addr.String()]++
}

// Remove undoes one Add of an address.
func (a *Addrs) Remove(addr net.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.addrs[addr.String()]--; a.addrs[addr.String()] <= 0 {
		delete(a.addrs, addr.String())
	}
}

// Has reports whether hostPort, an address with port, is in the set. An
// IPv4-mapped address is the address it maps, and the unspecified one (0.0.0.0
// or ::) is every address of its port: systems connect it to themselves.
func (a *Addrs) Has(hostPort string) bool {
	ap, err := netip.ParseAddrPort(hostPort)
	if err == nil {
		ap = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
		hostPort = ap.String()
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	if err == nil && ap.Addr().IsUnspecified() {
		for own := range a.addrs {
			if strings.HasSuffix(own, ":"+strconv.Itoa(int(ap.Port()))) {
				return true
			}
		}
	}
	return a.addrs[hostPort] > 0
}

// WatchDials makes a remember the connections that are opened, until stop is called.
func (a *Addrs) WatchDials() (stop func()) {
	a.watching.Add(1)
	return func() { a.watching.Add(-1) }
}

// Dialled reports whether the process itself has opened a connection from one address to
// another in the last minute: what is accepted with these two is redirected from itself.
func (a *Addrs) Dialled(from, to netip.AddrPort) bool {
	return a.dials.has(dial{unmapped(from), unmapped(to)}, time.Now())
}

// NoteDial remembers a connection that was opened from one address to another, while
// WatchDials is in effect.
func (a *Addrs) NoteDial(local, remote net.Addr) {
	if a.watching.Load() == 0 {
		return
	}
	from, err1 := netip.ParseAddrPort(local.String())
	to, err2 := netip.ParseAddrPort(remote.String())
	if err1 == nil && err2 == nil {
		a.dials.add(dial{unmapped(from), unmapped(to)}, time.Now())
	}
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// dial is a connection by its two ends.
type dial struct{ from, to netip.AddrPort }

// dialMemory remembers dials for one to two times dialTime. The zero value is ready; it is
// safe for concurrent use.
type dialMemory struct {
	mu            sync.Mutex
	since         time.Time // when recent began
	recent, older map[dial]struct{}
}

// dialTime is longer than a redirected connection takes to be accepted.
const dialTime = time.Minute

func (m *dialMemory) add(d dial, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renewLocked(now)
	m.recent[d] = struct{}{}
}

func (m *dialMemory) has(d dial, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renewLocked(now)
	_, recent := m.recent[d]
	_, older := m.older[d]
	return recent || older
}

func (m *dialMemory) renewLocked(now time.Time) {
	age := now.Sub(m.since)
	if m.recent != nil && age < dialTime {
		return
	}
	if m.older = m.recent; age >= 2*dialTime {
		m.older = nil
	}
	m.recent, m.since = map[dial]struct{}{}, now
}
