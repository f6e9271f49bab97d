package daemon

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"heed/internal/memo"
	"heed/rules"
)

// addresses finds the address by which the names of one server keep their delay together
// (pacing.min_delay_per = "address"). It is safe for concurrent use.
type addresses struct {
	resolve map[string]string // upstream.resolve
	known   memo.Kept[string, netip.Addr]
}

// Bounds of what is looked up.
const (
	maxPlaced  = 4096
	placedFor  = time.Minute
	lookupTime = 5 * time.Second
)

// of returns the address of an origin: the least of those that its name has, IPv4 before
// IPv6, so that two names with the same addresses have the same one however they are ordered.
// It is invalid when the name has none now: the request is paced by its site.
func (a *addresses) of(ctx context.Context, o rules.Origin) netip.Addr {
	host := o.Host
	if to, ok := a.resolve[o.HostPort()]; ok {
		if placed, _, err := net.SplitHostPort(to); err == nil {
			host = placed
		}
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap()
	}
	now := time.Now()
	if found, ok := a.known.Get(host, now); ok {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil && ctx.Err() != nil {
		return netip.Addr{} // the client has left, or the resolver is slow: nothing is known
	}
	least := leastAddress(all)
	a.known.Put(host, least, now.Add(placedFor), 1, maxPlaced, maxPlaced)
	return least
}

// leastAddress returns the least address, IPv4 before IPv6; an invalid one of none.
func leastAddress(all []netip.Addr) (least netip.Addr) {
	for i := range all {
		all[i] = all[i].Unmap().WithZone("")
	}
	if len(all) > 0 {
		least = slices.MinFunc(all, netip.Addr.Compare)
	}
	return least
}
