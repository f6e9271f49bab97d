package proxy

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// limit is one of Limits, as it can be reached.
type limit uint8

// The limits that are counted.
const (
	limitConnections limit = iota
	limitConnectionsPerClient
	limitTunnels
	limitTunnelsPerClient
	limitRequests
	limitRequestsPerClient
	limitRefusalsPerClient
	limitHeaderBytes
	limitHeaderTime
	limitURIBytes
	limitConnectTime
	limitHandshakeTime
	limitBodyTime
	limitReadTime
	limitOpenFiles // the system's
	limits         // how many there are
)

// String returns the name that the limit has in the settings.
func (l limit) String() string {
	return [limits]string{
		"connections", "connections_per_client", "tunnels", "tunnels_per_client", "requests", "requests_per_client", "refusals_per_client",
		"header_bytes", "header_time", "uri_bytes", "connect_time", "handshake_time", "body_time", "read_time", "open_files",
	}[l]
}

// value is what l allows, as a person would write it.
func (l limit) value(of *Limits) string {
	counts := [...]int{of.Connections, of.ConnectionsPerClient, of.Tunnels, of.TunnelsPerClient, of.Requests, of.RequestsPerClient, of.RefusalsPerClient}
	switch {
	case int(l) < len(counts):
		return strconv.Itoa(counts[l])
	case l == limitHeaderBytes:
		return fmt.Sprintf("%d octets", of.HeaderBytes)
	case l == limitURIBytes:
		return fmt.Sprintf("%d octets", of.URIBytes)
	}
	if l == limitOpenFiles {
		return "of this process"
	}
	times := map[limit]time.Duration{
		limitHeaderTime: of.HeaderTime, limitConnectTime: of.ConnectTime, limitHandshakeTime: of.HandshakeTime,
		limitBodyTime: of.BodyTime, limitReadTime: of.ReadTime,
	}
	return times[l].String()
}

// status is how a client is told that l was reached: 429 when the client itself
// has too much (RFC 6585 §4), 503 when all together have.
func (l limit) status() int {
	switch l {
	case limitConnectionsPerClient, limitTunnelsPerClient, limitRequestsPerClient, limitRefusalsPerClient:
		return http.StatusTooManyRequests
	case limitHeaderBytes:
		return http.StatusRequestHeaderFieldsTooLarge
	case limitURIBytes:
		return http.StatusRequestURITooLong
	case limitConnections, limitTunnels, limitRequests:
		return http.StatusServiceUnavailable
	}
	return http.StatusRequestTimeout
}

// passes reports whether waiting helps.
func (l limit) passes() bool { return l <= limitRefusalsPerClient }

// overLimit is the error of what a limit stopped.
type overLimit struct {
	limit limit
	value string
}

// Error says which limit it was.
func (e *overLimit) Error() string { return fmt.Sprintf("limit %s (%s) reached", e.limit, e.value) }

// Load is what clients hold at the moment, and how often a limit kept them from
// more. The proxies of one process share one. The zero value is ready; it is safe
// for concurrent use.
type Load struct {
	tunnels, requests atomic.Int64
	reached           [limits]atomic.Uint64
	told              [limits]atomic.Int64 // when it was last logged, in unix seconds
	loops             loops

	mu      sync.Mutex
	conns   int
	clients map[netip.Prefix]*client // those with a connection
}

// client is what one client holds.
type client struct {
	key               netip.Prefix
	conns             int // guarded by Load.mu
	tunnels, requests atomic.Int64
}

// LoadStatus is a Load, as data.
type LoadStatus struct {
	Connections int               `json:"connections"`
	Clients     int               `json:"clients"`
	Tunnels     int               `json:"tunnels"`
	Requests    int               `json:"requests"`
	Reached     map[string]uint64 `json:"limits_reached"` // by the limit's name; none that was not
}

// Status returns how things are.
func (l *Load) Status() LoadStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := LoadStatus{
		Connections: l.conns, Clients: len(l.clients), Tunnels: int(l.tunnels.Load()), Requests: int(l.requests.Load()),
		Reached: map[string]uint64{},
	}
	for i := range l.reached {
		if n := l.reached[i].Load(); n > 0 {
			s.Reached[limit(i).String()] = n
		}
	}
	return s
}

// clientKey is what a client is counted by. Whoever has an IPv6 address has the
// other ones of its /64 as well.
func clientKey(a netip.Addr) netip.Prefix {
	a = a.WithZone("").Unmap()
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // no address: the zero prefix, one client too
	return p
}

// enter gives a connection from a its place, or says which limit is in the way.
func (l *Load) enter(a netip.Addr, of *Limits) (*client, *overLimit) {
	key := clientKey(a)
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.clients[key]
	switch {
	case l.conns >= of.Connections:
		return nil, l.reach(limitConnections, of)
	case c != nil && c.conns >= of.ConnectionsPerClient:
		return nil, l.reach(limitConnectionsPerClient, of)
	case c == nil:
		if l.clients == nil {
			l.clients = map[netip.Prefix]*client{}
		}
		c = &client{key: key}
		l.clients[key] = c
	}
	l.conns++
	c.conns++
	return c, nil
}

// leave takes back what enter gave.
func (l *Load) leave(c *client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns--
	if c.conns--; c.conns == 0 {
		delete(l.clients, c.key)
	}
}

// take counts one more tunnel or request, in all and of one client, or says
// which limit is in the way.
func (l *Load) take(all, own *atomic.Int64, most, mostOwn int, inAll limit, of *Limits) *overLimit {
	if own.Add(1) > int64(mostOwn) {
		own.Add(-1)
		return l.reach(inAll+1, of)
	}
	if all.Add(1) > int64(most) {
		all.Add(-1)
		own.Add(-1)
		return l.reach(inAll, of)
	}
	return nil
}

// reach counts that which was reached.
func (l *Load) reach(which limit, of *Limits) *overLimit {
	l.reached[which].Add(1)
	return &overLimit{which, which.value(of)}
}

// tellEvery is how long a limit that goes on being reached is not logged again.
const tellEvery = time.Minute

// reach counts that a limit was reached, and logs it now and then.
func (p *Proxy) reach(which limit) *overLimit {
	over := p.Load.reach(which, p.limits())
	p.tell(over)
	return over
}

// tell logs that a limit was reached, once in a while.
func (p *Proxy) tell(over *overLimit) {
	now, told := time.Now().Unix(), &p.Load.told[over.limit]
	last := told.Load()
	if now-last < int64(tellEvery/time.Second) || !told.CompareAndSwap(last, now) {
		return
	}
	p.Log.Warn("a limit keeps clients from more", "limit", over.limit.String(), "value", over.value,
		"times", p.Load.reached[over.limit].Load())
}
