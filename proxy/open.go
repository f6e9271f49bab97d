package proxy

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
)

// openConns are the connections that no http.Server watches: handshakes and
// WebSockets. The zero value is ready.
type openConns struct {
	mu    sync.Mutex
	conns map[io.Closer]struct{}
	empty chan struct{} // closed when the last one goes; nil until somebody waits
}

func (o *openConns) add(c io.Closer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conns == nil {
		o.conns = make(map[io.Closer]struct{})
	}
	o.conns[c] = struct{}{}
}

func (o *openConns) remove(c io.Closer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.conns, c)
	if len(o.conns) == 0 && o.empty != nil {
		close(o.empty)
		o.empty = nil
	}
}

// wait returns when no connection is left, or ctx's error when that ends first.
func (o *openConns) wait(ctx context.Context) error {
	o.mu.Lock()
	if len(o.conns) == 0 {
		o.mu.Unlock()
		return nil
	}
	if o.empty == nil {
		o.empty = make(chan struct{})
	}
	empty := o.empty
	o.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *openConns) closeAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.conns {
		c.Close()
	}
}

// Addrs is the set of addresses a process listens on. The zero value is empty
// and ready; it is safe for concurrent use.
type Addrs struct {
	mu    sync.RWMutex
	addrs map[string]int
}

// Add adds an address; each Add wants its own Remove.
func (a *Addrs) Add(addr net.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.addrs == nil {
		a.addrs = make(map[string]int)
	}
	a.addrs[addr.String()]++
}

// Remove takes an address out again.
func (a *Addrs) Remove(addr net.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.addrs[addr.String()]--; a.addrs[addr.String()] <= 0 {
		delete(a.addrs, addr.String())
	}
}

// has reports whether hostPort, an address with port, is in the set. An
// IPv4-mapped address is the address it maps, and the unspecified one (0.0.0.0
// or ::) is every address of its port: systems connect it to themselves.
func (a *Addrs) has(hostPort string) bool {
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
