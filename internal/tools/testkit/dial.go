package testkit

import (
	"context"
	"net"
)

// dialMapped dials the mapped address in place of the named one; an
// address that is not in the map is dialled unchanged.
func dialMapped(d *net.Dialer, addrs map[string]string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if mapped, ok := addrs[addr]; ok {
			addr = mapped
		}
		return d.DialContext(ctx, network, addr)
	}
}
