package upstream

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Dials remembers the connections that a process opens, while WatchDials is in effect: a
// redirected one comes back to it. The zero value is ready; it is safe for concurrent use.
type Dials struct {
	watching atomic.Int32 // how many callers of WatchDials have not stopped
	memory   dialMemory
}

// WatchDials makes d remember the connections that are opened, until stop is called.
func (d *Dials) WatchDials() (stop func()) {
	d.watching.Add(1)
	return func() { d.watching.Add(-1) }
}

// Dialled reports whether the process itself has opened a connection from one address to
// another in the last minute: what is accepted with these two is redirected from itself.
func (d *Dials) Dialled(from, to netip.AddrPort) bool {
	return d.memory.has(dial{plainPort(from), plainPort(to)}, time.Now())
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
		d.memory.add(dial{plainPort(from), plainPort(to)}, time.Now())
	}
}

func plainPort(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(plain(a.Addr()), a.Port())
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
