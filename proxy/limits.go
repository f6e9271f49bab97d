package proxy

import (
	"cmp"
	"time"
)

// Limits bound what clients can hold, and for how long. A zero field means its
// default. Sizes are in octets. What one client may hold counts by its address;
// of an IPv6 address, by its /64.
type Limits struct {
	HeaderBytes int           // a request's head
	HeaderTime  time.Duration // a request's head, and the wait for the first one
	URIBytes    int           // a request's target

	Connections, ConnectionsPerClient int // open
	Tunnels, TunnelsPerClient         int // of those, with a CONNECT answered
	Requests, RequestsPerClient       int // under way, but CONNECT
	Streams                           int // of an HTTP/2 connection
	RefusalsPerClient                 int // a minute

	ConnectTime   time.Duration // from CONNECT's answer to the first octet inside
	HandshakeTime time.Duration // from there to the end of the TLS handshake
	IdleTime      time.Duration // between two requests of a connection
	BodyTime      time.Duration // for every kilobyte of a request's body, until it is answered
	TunnelTime    time.Duration // of a tunnel that is not intercepted, without an octet either way
	ReadTime      time.Duration // for a client to take what is ready for it

	drain time.Duration // for what a client still sends after its answer
}

// The defaults of Limits.
const (
	DefaultHeaderBytes   = 256 << 10
	DefaultHeaderTime    = 15 * time.Second
	DefaultURIBytes      = 64 << 10
	DefaultConnections   = 4096
	DefaultStreams       = 250
	DefaultRefusals      = 6000
	DefaultConnectTime   = 10 * time.Second
	DefaultHandshakeTime = 10 * time.Second
	DefaultIdleTime      = 3 * time.Minute
	DefaultBodyTime      = time.Minute
	DefaultTunnelTime    = 15 * time.Minute
	DefaultReadTime      = 3 * time.Minute

	defaultDrain = time.Second
)

// WithDefaults returns l with every zero field filled in: where there is no
// number, tunnels and requests may be as many as connections, and one client
// may hold three quarters of them all.
func (l Limits) WithDefaults() Limits {
	most := cmp.Or(l.Connections, DefaultConnections)
	tunnels, requests := cmp.Or(l.Tunnels, most), cmp.Or(l.Requests, most)
	share := func(n, all int) int { return cmp.Or(n, max(1, all*3/4)) }
	return Limits{
		HeaderBytes: cmp.Or(l.HeaderBytes, DefaultHeaderBytes),
		HeaderTime:  cmp.Or(l.HeaderTime, DefaultHeaderTime),
		URIBytes:    cmp.Or(l.URIBytes, DefaultURIBytes),

		Connections: most, ConnectionsPerClient: share(l.ConnectionsPerClient, most),
		Tunnels: tunnels, TunnelsPerClient: share(l.TunnelsPerClient, tunnels),
		Requests: requests, RequestsPerClient: share(l.RequestsPerClient, requests),
		Streams: cmp.Or(l.Streams, DefaultStreams), RefusalsPerClient: cmp.Or(l.RefusalsPerClient, DefaultRefusals),

		ConnectTime:   cmp.Or(l.ConnectTime, DefaultConnectTime),
		HandshakeTime: cmp.Or(l.HandshakeTime, DefaultHandshakeTime),
		IdleTime:      cmp.Or(l.IdleTime, DefaultIdleTime),
		BodyTime:      cmp.Or(l.BodyTime, DefaultBodyTime),
		TunnelTime:    cmp.Or(l.TunnelTime, DefaultTunnelTime),
		ReadTime:      cmp.Or(l.ReadTime, DefaultReadTime),
		drain:         cmp.Or(l.drain, defaultDrain),
	}
}
