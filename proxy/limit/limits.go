// Package limit bounds what clients hold and for how long: connections, tunnels,
// requests and refusals. It knows addresses and connections, and nothing of HTTP
// but the status of an answer.
//
// Limits are the settings, Load is what clients hold, a Gate compares the two, and
// a Conn is a counted connection.
package limit

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Size is a number of octets.
type Size int64

// Limits bound what clients can hold, and for how long: the keys of [limits]. A zero
// field means its default. What one client may hold counts by its address; of an IPv6
// address, by its /64. The order of the fields is part of the hash of the settings.
type Limits struct {
	Connections          int `toml:"connections"` // open
	ConnectionsPerClient int `toml:"connections_per_client"`
	Tunnels              int `toml:"tunnels"` // of those, with a CONNECT answered
	TunnelsPerClient     int `toml:"tunnels_per_client"`
	Requests             int `toml:"requests"` // under way, but CONNECT
	RequestsPerClient    int `toml:"requests_per_client"`
	RefusalsPerClient    int `toml:"refusals_per_client"` // per minute
	Streams              int `toml:"streams"`             // per HTTP/2 connection
	SiteConnections      int `toml:"site_connections"`    // to one host and port; no default here

	HeaderBytes   Size          `toml:"header_bytes"`   // a request's head
	URIBytes      Size          `toml:"uri_bytes"`      // a request's target
	HeaderTime    time.Duration `toml:"header_time"`    // a request's head, and the wait for the first one
	ConnectTime   time.Duration `toml:"connect_time"`   // from CONNECT's answer to the first octet inside
	HandshakeTime time.Duration `toml:"handshake_time"` // from there to the end of the TLS handshake
	IdleTime      time.Duration `toml:"idle_time"`      // between two requests of a connection
	BodyTime      time.Duration `toml:"body_time"`      // for every kilobyte of a request's body, until it is answered
	ReadTime      time.Duration `toml:"read_time"`      // for a client to read what has been written to it: the deadline of writes
	TunnelTime    time.Duration `toml:"tunnel_time"`    // of a tunnel that is not intercepted, without an octet either way

	DrainTime time.Duration `toml:"-" json:"-"` // for what a client still sends after its answer
	HeadsSize Size          `toml:"-" json:"-"` // of all heads that are not complete
}

// The defaults of Limits.
const (
	DefaultHeaderBytes   = 128 << 10
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

	defaultDrainTime = time.Second
	defaultHeadsSize = 64 << 20
)

// WithDefaults returns l with its zero fields set: tunnels and requests default to
// the number of connections, and the shares of one client to three quarters of the
// whole.
func (l Limits) WithDefaults() Limits {
	l.Connections = cmp.Or(l.Connections, DefaultConnections)
	l.Tunnels, l.Requests = cmp.Or(l.Tunnels, l.Connections), cmp.Or(l.Requests, l.Connections)
	share := func(n, all int) int { return cmp.Or(n, max(1, all*3/4)) }
	l.ConnectionsPerClient = share(l.ConnectionsPerClient, l.Connections)
	l.TunnelsPerClient = share(l.TunnelsPerClient, l.Tunnels)
	l.RequestsPerClient = share(l.RequestsPerClient, l.Requests)
	l.RefusalsPerClient = cmp.Or(l.RefusalsPerClient, DefaultRefusals)
	l.Streams = cmp.Or(l.Streams, DefaultStreams)
	l.HeaderBytes = cmp.Or(l.HeaderBytes, DefaultHeaderBytes)
	l.URIBytes = cmp.Or(l.URIBytes, DefaultURIBytes)
	l.HeaderTime = cmp.Or(l.HeaderTime, DefaultHeaderTime)
	l.ConnectTime = cmp.Or(l.ConnectTime, DefaultConnectTime)
	l.HandshakeTime = cmp.Or(l.HandshakeTime, DefaultHandshakeTime)
	l.IdleTime = cmp.Or(l.IdleTime, DefaultIdleTime)
	l.BodyTime = cmp.Or(l.BodyTime, DefaultBodyTime)
	l.ReadTime = cmp.Or(l.ReadTime, DefaultReadTime)
	l.TunnelTime = cmp.Or(l.TunnelTime, DefaultTunnelTime)
	l.DrainTime = cmp.Or(l.DrainTime, defaultDrainTime)
	l.HeadsSize = cmp.Or(l.HeadsSize, defaultHeadsSize)
	return l
}

// Kind is one of the Limits that are counted when they are reached, or a limit of
// the system. The zero value is Connections.
type Kind uint8

// The limits that are counted.
const (
	Connections Kind = iota
	ConnectionsPerClient
	Tunnels
	TunnelsPerClient
	Requests
	RequestsPerClient
	Heads
	HeadsPerClient
	Streams
	RefusalsPerClient
	HeaderBytes
	HeaderTime
	URIBytes
	ConnectTime
	HandshakeTime
	BodyTime
	ReadTime
	OpenFiles // the system's
	kinds     // how many there are
)

// table has a row for each Kind: its name in the settings, the status of the answer to
// a client that it stops, and its value. OpenFiles is only counted: no connection is
// accepted then, and its status is in no answer.
var table = [kinds]struct {
	name   string
	status int
	value  func(*Limits) any
}{
	Connections:          {"connections", http.StatusServiceUnavailable, func(l *Limits) any { return l.Connections }},
	ConnectionsPerClient: {"connections_per_client", http.StatusTooManyRequests, func(l *Limits) any { return l.ConnectionsPerClient }},
	Tunnels:              {"tunnels", http.StatusServiceUnavailable, func(l *Limits) any { return l.Tunnels }},
	TunnelsPerClient:     {"tunnels_per_client", http.StatusTooManyRequests, func(l *Limits) any { return l.TunnelsPerClient }},
	Requests:             {"requests", http.StatusServiceUnavailable, func(l *Limits) any { return l.Requests }},
	RequestsPerClient:    {"requests_per_client", http.StatusTooManyRequests, func(l *Limits) any { return l.RequestsPerClient }},
	Heads:                {"unfinished_heads", http.StatusServiceUnavailable, func(l *Limits) any { return octets(l.HeadsSize) }},
	HeadsPerClient:       {"unfinished_heads_per_client", http.StatusTooManyRequests, func(l *Limits) any { return octets(l.headsShare()) }},
	Streams:              {"streams", http.StatusTooManyRequests, func(l *Limits) any { return l.Streams }},
	RefusalsPerClient:    {"refusals_per_client", http.StatusTooManyRequests, func(l *Limits) any { return l.RefusalsPerClient }},
	HeaderBytes:          {"header_bytes", http.StatusRequestHeaderFieldsTooLarge, func(l *Limits) any { return octets(l.HeaderBytes) }},
	HeaderTime:           {"header_time", http.StatusRequestTimeout, func(l *Limits) any { return l.HeaderTime }},
	URIBytes:             {"uri_bytes", http.StatusRequestURITooLong, func(l *Limits) any { return octets(l.URIBytes) }},
	ConnectTime:          {"connect_time", http.StatusRequestTimeout, func(l *Limits) any { return l.ConnectTime }},
	HandshakeTime:        {"handshake_time", http.StatusRequestTimeout, func(l *Limits) any { return l.HandshakeTime }},
	BodyTime:             {"body_time", http.StatusRequestTimeout, func(l *Limits) any { return l.BodyTime }},
	ReadTime:             {"read_time", http.StatusRequestTimeout, func(l *Limits) any { return l.ReadTime }},
	OpenFiles:            {"open_files", http.StatusRequestTimeout, func(*Limits) any { return "of this process" }},
}

// headsShare is how many octets of unfinished heads one client may hold.
func (l *Limits) headsShare() Size { return l.HeadsSize * 3 / 4 }

// octets is a size as a person would write it.
type octets int

// String implements fmt.Stringer.
func (n octets) String() string { return strconv.Itoa(int(n)) + " octets" }

// String returns the name of the limit in the settings.
func (k Kind) String() string { return table[k].name }

// value returns what of allows, as a person would write it.
func (k Kind) value(of *Limits) string { return fmt.Sprint(table[k].value(of)) }

// Status returns the status of the answer to a client that k stops: 429 when the
// client itself has too much (RFC 6585 §4), 503 when all clients together have, 408,
// 414 or 431 for a request that is too slow or too large.
func (k Kind) Status() int { return table[k].status }

// Fixed reports whether no setting changes k.
func (k Kind) Fixed() bool { return k == Heads || k == HeadsPerClient || k == OpenFiles }

// Temporary reports whether the same request may be served later: k bounds a
// number, and not the size or the time of a request.
func (k Kind) Temporary() bool { return k <= RefusalsPerClient }

// Kinds returns all kinds.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// Exceeded is the error of a request or a connection that a limit stops.
type Exceeded struct {
	Kind  Kind
	Value string // the limit, as a person would write it
}

// Error returns the name and the value of the limit.
func (e *Exceeded) Error() string { return fmt.Sprintf("limit %s (%s) reached", e.Kind, e.Value) }
