package proxy

import (
	"context"
	"net"
	"net/netip"

	"heed/internal/judge/acl"
	"heed/proxy/upstream"
)

// OwnServices are services on loopback addresses that the clients of a proxy have
// started themselves, as processes of one command. Requests to them are not judged.
type OwnServices struct {
	// Find returns the address at which such a service listens now for connections to
	// host:port; false when there is none. It must be fast for other hosts.
	Find func(hostPort string) (at netip.AddrPort, ok bool)

	// Vacant reports whether host:port is a loopback address at which nothing listens now.
	Vacant func(hostPort string) bool

	// Upstream and DialTunnel reach such services and nothing else.
	Upstream   upstream.Sender
	DialTunnel func(ctx context.Context, hostPort string) (net.Conn, error)
}

// has reports whether q is for such a service. The settings have precedence: an address
// that they place elsewhere or do not allow is not looked at.
func (s *OwnServices) has(q *request) bool {
	o, d := q.origin, q.settings.Destinations
	if d != nil {
		if _, placed := d.Placed[o.HostPort()]; placed {
			return false
		}
	}
	at, ok := s.Find(o.HostPort())
	o.Host = at.Addr().String()
	return ok && d.CheckOrigin(o) == nil
}

// serves reports whether q is a plain http request for such a service. Tunnels to such
// services are opened unread (httpsMode).
func (s *OwnServices) serves(q *request) bool {
	return q.https == acl.Intercept && q.origin.Scheme == "http" && s.has(q)
}
