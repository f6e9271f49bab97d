package command

import (
	"fmt"
	"time"

	"heed/proxy"
)

// LimitsConfig is [limits]: what clients may hold. Where 0 is a number, it stands
// for one that of finds.
type LimitsConfig struct {
	Connections          int           `toml:"connections"`
	ConnectionsPerClient int           `toml:"connections_per_client"`
	Tunnels              int           `toml:"tunnels"`
	TunnelsPerClient     int           `toml:"tunnels_per_client"`
	Requests             int           `toml:"requests"`
	RequestsPerClient    int           `toml:"requests_per_client"`
	RefusalsPerClient    int           `toml:"refusals_per_client"` // a minute
	Streams              int           `toml:"streams"`             // of an HTTP/2 connection
	SiteConnections      int           `toml:"site_connections"`    // to one host and port
	HeaderBytes          ByteSize      `toml:"header_bytes"`
	URIBytes             ByteSize      `toml:"uri_bytes"`
	HeaderTime           time.Duration `toml:"header_time"`
	ConnectTime          time.Duration `toml:"connect_time"`
	HandshakeTime        time.Duration `toml:"handshake_time"`
	IdleTime             time.Duration `toml:"idle_time"`
	BodyTime             time.Duration `toml:"body_time"`
	ReadTime             time.Duration `toml:"read_time"`
	TunnelTime           time.Duration `toml:"tunnel_time"`
}

// Bounds of what is set.
const (
	leastHeader   = 1 << 10  // octets; less, and no browser's request fits
	mostHeader    = 16 << 20 // octets, that each connection may make heed keep
	leastPatience = 100 * time.Millisecond
)

// check notes what cannot be meant.
func (c *LimitsConfig) check(d *decoder) {
	for key, n := range map[string]int{"streams": c.Streams, "site_connections": c.SiteConnections} {
		if n == 0 {
			d.problem("limits."+key, "limits.%s must be 1 or more; nothing would be served", key)
		}
	}
	if c.RefusalsPerClient == 0 {
		d.problem("limits.refusals_per_client", "limits.refusals_per_client must be 1 or more; without refusals nothing would be kept from a site")
	}
	for key, size := range map[string]ByteSize{"header_bytes": c.HeaderBytes, "uri_bytes": c.URIBytes} {
		if size < leastHeader || size > mostHeader {
			d.problem("limits."+key, "limits.%s = %q is not possible; write a size from %q to %q", key, size, ByteSize(leastHeader), ByteSize(mostHeader))
		}
	}
	for key, limit := range map[string]time.Duration{
		"header_time": c.HeaderTime, "connect_time": c.ConnectTime, "handshake_time": c.HandshakeTime,
		"idle_time": c.IdleTime, "body_time": c.BodyTime, "read_time": c.ReadTime, "tunnel_time": c.TunnelTime,
	} {
		if limit < leastPatience {
			d.problem("limits."+key, "limits.%s = %q is too short for any client; write %q or more", key, shortDuration(limit), shortDuration(leastPatience))
		}
	}
	for _, pair := range []struct {
		key      string
		own, all int
	}{
		{"connections", c.ConnectionsPerClient, c.Connections}, {"tunnels", c.TunnelsPerClient, c.Tunnels}, {"requests", c.RequestsPerClient, c.Requests},
	} {
		if pair.all > 0 && pair.own > pair.all {
			key := pair.key + "_per_client"
			d.problem("limits."+key, "limits.%s = %d is more than limits.%s = %d, so that one client could take all; write less, or 0", key, pair.own, pair.key, pair.all)
		}
	}
}

// How many connections a process has room for. Each may need one more to a site;
// the rest is for robots.txt, files, and clients that are being turned away.
const (
	mostConnections  = 16384
	leastConnections = 16
	otherFiles       = 1024
)

// of is the limits of a proxy in a process that may open so many files; 0 when
// that is not known.
func (c *LimitsConfig) of(files int) proxy.Limits {
	l := proxy.Limits{
		HeaderBytes: int(c.HeaderBytes), HeaderTime: c.HeaderTime, URIBytes: int(c.URIBytes),
		Connections: c.Connections, ConnectionsPerClient: c.ConnectionsPerClient,
		Tunnels: c.Tunnels, TunnelsPerClient: c.TunnelsPerClient,
		Requests: c.Requests, RequestsPerClient: c.RequestsPerClient, RefusalsPerClient: c.RefusalsPerClient, Streams: c.Streams,
		ConnectTime: c.ConnectTime, HandshakeTime: c.HandshakeTime, IdleTime: c.IdleTime,
		BodyTime: c.BodyTime, ReadTime: c.ReadTime, TunnelTime: c.TunnelTime,
	}
	if l.Connections == 0 && files > 0 {
		l.Connections = roomFor(files)
	}
	return l
}

// roomFor is how many clients' connections so many open files leave room for.
func roomFor(files int) int {
	return min(mostConnections, max(leastConnections, (files-min(otherFiles, files/4))/2))
}

// remark says what an operator should know of the limits; empty when nothing is
// the matter.
func (c *LimitsConfig) remark(files int) string {
	if files == 0 || c.Connections <= roomFor(files) {
		return ""
	}
	return fmt.Sprintf("limits.connections = %d is more than this process has room for: it may open %d files, which is enough for %d\nRaise the limit of open files (ulimit -n, LimitNOFILE=), or write a smaller number",
		c.Connections, files, roomFor(files))
}
