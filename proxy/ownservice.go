package proxy

import (
	"context"
	"net"
	"net/http"
	"net/netip"

	"heed/internal/acl"
	"heed/rules"
)

// OwnServices are services on loopback addresses that the clients of a proxy have
// started themselves, as processes of one command. Requests to them are not judged.
type OwnServices struct {
	// Find returns the address at which such a service listens now for connections to
	// host:port; false when there is none. It must be fast for other hosts.
	Find func(hostPort string) (at netip.AddrPort, ok bool)

	// Upstream and DialTunnel reach such services and nothing else.
	Upstream   http.RoundTripper
	DialTunnel func(ctx context.Context, hostPort string) (net.Conn, error)
}

// isOwnService reports whether x is for a service of its client's own. The settings have
// precedence: an address that they place elsewhere or do not allow is not looked at.
func (x *exchange) isOwnService() bool {
	own := x.proxy.config.OwnServices
	if own == nil {
		return false
	}
	o, d := x.req.origin, x.req.settings.Destinations
	if d != nil {
		if _, placed := d.Placed[o.HostPort()]; placed {
			return false
		}
	}
	at, ok := own.Find(o.HostPort())
	o.Host = at.Addr().String()
	return ok && d.CheckOrigin(o) == nil
}

// judgeOwnService decides on a plain http request for a service of the client's own, and
// reports whether it is one. Tunnels to such services are opened unread (httpsMode).
func (x *exchange) judgeOwnService(q *acl.Query, v *verdict) bool {
	r := &x.req
	if r.https != acl.Intercept || r.origin.Scheme != "http" || !x.isOwnService() {
		return false
	}
	v.Result = q.WithoutSite(rules.ReasonOwnService)
	r.own = v.Reason == rules.ReasonOwnService
	return true
}

// upstream returns what sends x, which was allowed, to its site or service.
func (x *exchange) upstream() http.RoundTripper {
	if x.req.own {
		return x.proxy.config.OwnServices.Upstream
	}
	return x.req.settings.Upstream
}

// dialTunnel returns what opens the far end of a tunnel that is not intercepted; nil when
// such tunnels are refused.
func (x *exchange) dialTunnel() func(ctx context.Context, hostPort string) (net.Conn, error) {
	if x.req.unseen == rules.ReasonOwnService {
		return x.proxy.config.OwnServices.DialTunnel
	}
	return x.req.settings.DialTunnel
}
