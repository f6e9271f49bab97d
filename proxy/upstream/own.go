package upstream

import (
	"crypto/rand"
	"net"
	"net/netip"
	"sync"

	"heed/internal/base/memo"
	"heed/rules"
)

// OwnField is the field of a fetch of heed's own by which heed recognises it when the proxy
// that it goes through asks about it. Its value counts once, for that site, and not after the
// fetch, so that it is of no use to a site that gets it.
const OwnField = "Heed-Fetch"

// OwnFetches are the fetches of heed's own that are under way through another proxy. The zero
// value is ready, and safe for concurrent use.
type OwnFetches struct {
	mu  sync.Mutex
	all map[ownFetch]bool
}

// ownFetch is a fetch from a site with a value of OwnField, or a tunnel to one that is asked for
// on the connection at an address and port.
type ownFetch struct {
	value string
	from  netip.AddrPort
	site  string
}

// Begin returns the value of OwnField for one fetch from a site. The caller must call end after
// it.
func (o *OwnFetches) Begin(site rules.Origin) (value string, end func()) {
	value = rand.Text()
	return value, o.begin(ownFetch{value: value, site: site.String()})
}

// Opens notes that heed asks for a tunnel to a site on a connection that it has made. The caller
// must call end when that is answered.
func (o *OwnFetches) Opens(conn net.Conn, hostPort string) (end func()) {
	from, _ := netip.ParseAddrPort(conn.LocalAddr().String())
	return o.begin(ownFetch{from: netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), site: hostPort})
}

func (o *OwnFetches) begin(f ownFetch) (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	memo.Set(&o.all, f, true)
	return func() { o.claim(f) }
}

// Claim reports whether value is that of a fetch from the site under way, once.
func (o *OwnFetches) Claim(value string, site rules.Origin) bool {
	return o.claim(ownFetch{value: value, site: site.String()})
}

// ClaimTunnel reports whether heed asks for a tunnel to that site from that address and port, once.
func (o *OwnFetches) ClaimTunnel(from netip.AddrPort, hostPort string) bool {
	return o.claim(ownFetch{from: from, site: hostPort})
}

func (o *OwnFetches) claim(f ownFetch) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.all[f]
	delete(o.all, f)
	return known
}
