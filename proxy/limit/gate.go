package limit

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"heed/internal/base/memo"
)

// Gate applies the limits in force to what clients hold. Make it with NewGate; it
// is safe for concurrent use.
type Gate struct {
	load      *Load
	limits    func() *Limits
	log       func(over *Exceeded, times uint64)
	rejecting atomic.Int64 // connections that are being rejected
}

const (
	maxRejecting   = 64          // connections that are being rejected at a time, at most
	rejectShare    = 8           // one for so many that are admitted, since they need the same files
	leastRejecting = 4           // and these
	logEvery       = time.Minute // a limit that is reached again and again is logged so often
)

// NewGate returns a gate that counts in load. limits returns the limits in force,
// WithDefaults; it is called for every write to a client and must be fast. log is
// called when a limit is reached, at most once a minute for each, with the number of
// times that it was reached since the process began.
func NewGate(load *Load, limits func() *Limits, log func(over *Exceeded, times uint64)) *Gate {
	return &Gate{load: load, limits: limits, log: log}
}

// CountExceeded counts that a limit was reached, logs it now and then, and returns the error
// for the client.
func (g *Gate) CountExceeded(which Kind) *Exceeded {
	return g.exceeded(which, g.limits())
}

// CountTimeout is CountExceeded if err is that of a deadline, and does nothing otherwise.
func (g *Gate) CountTimeout(which Kind, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		g.CountExceeded(which)
	}
}

// exceeded is CountExceeded of the limits that a request began with.
func (g *Gate) exceeded(which Kind, of *Limits) *Exceeded {
	over := &Exceeded{which, which.value(of)}
	times := g.load.reached[which].Add(1)
	now, logged := time.Now().Unix(), &g.load.logged[which]
	if last := logged.Load(); now-last >= int64(logEvery/time.Second) && logged.CompareAndSwap(last, now) {
		g.log(over, times)
	}
	return over
}

// Admit counts a connection that was accepted, or returns nil. What a limit stops goes to
// reject, which must close it; it runs in a separate goroutine, a bounded number at a time,
// and what comes beyond is closed.
func (g *Gate) Admit(c net.Conn, reject func(net.Conn, *Exceeded)) *Conn {
	of := g.limits()
	counted, over := g.enter(c, of)
	if over == nil {
		return counted
	}
	if g.rejecting.Add(1) > int64(min(maxRejecting, leastRejecting+of.Connections/rejectShare)) {
		g.rejecting.Add(-1)
		c.Close()
		return nil
	}
	go func() {
		defer g.rejecting.Add(-1)
		reject(c, over)
	}()
	return nil
}

// Represent counts c as a connection of the client at its RemoteAddr until the Conn is closed,
// or returns the limit that stops it.
func (g *Gate) Represent(c net.Conn) (*Conn, *Exceeded) { return g.enter(c, g.limits()) }

func (g *Gate) enter(c net.Conn, of *Limits) (*Conn, *Exceeded) {
	at, _ := netip.ParseAddrPort(c.RemoteAddr().String())
	client, stops := g.load.enter(at.Addr(), of)
	if client == nil {
		return nil, g.exceeded(stops, of)
	}
	return &Conn{Conn: c, gate: g, client: client}, nil
}

// Conn is a client's connection, the octets of the network: whatever protocol is
// spoken on it, it counts until it is closed, and it is cut off when the client does
// not take what is written within ReadTime.
type Conn struct {
	net.Conn
	gate    *Gate
	client  *client
	tunnel  atomic.Bool  // it counts as a tunnel too
	closed  atomic.Bool  // it does not count any more
	ownTime atomic.Bool  // a caller has set a deadline for writing, which holds in place of ReadTime
	head    atomic.Int64 // octets of a head that is not complete
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	if !c.ownTime.Load() {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(c.gate.limits().ReadTime)) // on a closed connection Write fails as well
	}
	n, err := c.Conn.Write(b)
	if err != nil && !c.ownTime.Load() {
		c.gate.CountTimeout(ReadTime, err)
	}
	return n, err
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetWriteDeadline(t); err != nil {
		return err
	}
	return c.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn. net/http removes a deadline after each request,
// whether there is one or not; that of Write stays.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() && !c.ownTime.Load() {
		return nil
	}
	c.ownTime.Store(!t.IsZero())
	return c.Conn.SetWriteDeadline(t)
}

// CloseWrite passes a half-close on.
func (c *Conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// Close implements net.Conn. It ends the counting of c, and of its tunnel.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	if c.closed.CompareAndSwap(false, true) {
		c.LeaveTunnel()
		c.DropHead()
		c.gate.load.leave(c.client)
	}
	return err
}

// EnterTunnel counts c as a tunnel until LeaveTunnel or Close, or returns the limit
// that stops it.
func (c *Conn) EnterTunnel() *Exceeded {
	l, of := c.gate.load, c.gate.limits()
	over := c.gate.take(1, &l.tunnels, &c.client.tunnels, of.Tunnels, of.TunnelsPerClient, Tunnels, of)
	if over == nil {
		c.tunnel.Store(true)
	}
	return over
}

// LeaveTunnel undoes EnterTunnel, if that has counted c.
func (c *Conn) LeaveTunnel() {
	if c.tunnel.CompareAndSwap(true, false) {
		c.gate.load.tunnels.Add(-1)
		c.client.tunnels.Add(-1)
	}
}

// EnterRequest counts a request on c until LeaveRequest, or returns which of the
// limits stops it.
func (c *Conn) EnterRequest(of *Limits) *Exceeded {
	l := c.gate.load
	return c.gate.take(1, &l.requests, &c.client.requests, of.Requests, of.RequestsPerClient, Requests, of)
}

// LeaveRequest undoes an EnterRequest that returned nil.
func (c *Conn) LeaveRequest() {
	c.gate.load.requests.Add(-1)
	c.client.requests.Add(-1)
}

// maxStopped is how many requests of a client that a limit has stopped may wait for their
// refusal at a time, where its connections do not bound them.
const maxStopped = 64

// EnterStopped counts a request on c that EnterRequest has stopped until LeaveStopped. It
// returns false where its client has too many of them.
func (c *Conn) EnterStopped() bool {
	if c.client.stopped.Add(1) > maxStopped {
		c.client.stopped.Add(-1)
		return false
	}
	return true
}

// LeaveStopped undoes an EnterStopped that returned true.
func (c *Conn) LeaveStopped() { c.client.stopped.Add(-1) }

// maxRecording is how many requests of a client are with the recorder at a time: it writes
// those of all clients in one order, in which a client that has thousands would be before
// every other one.
const maxRecording = 64

// EnterRecorder waits until fewer than maxRecording requests of the client of c are with
// the recorder. LeaveRecorder must follow.
func (c *Conn) EnterRecorder() { c.client.recording <- struct{}{} }

// LeaveRecorder undoes EnterRecorder.
func (c *Conn) LeaveRecorder() { <-c.client.recording }

// HoldHead counts n more octets of a head on c that is not complete, until DropHead or
// Close, or returns the limit that stops them, an *Exceeded.
func (c *Conn) HoldHead(n int) error {
	l, of := c.gate.load, c.gate.limits()
	if over := c.gate.take(int64(n), &l.heads, &c.client.heads, int(of.HeadsSize), int(of.headsShare()), Heads, of); over != nil {
		return over
	}
	if c.head.Add(int64(n)); c.closed.Load() {
		c.DropHead()
	}
	return nil
}

// DropHead undoes every HoldHead that returned nil.
func (c *Conn) DropHead() {
	if c.head.Load() == 0 {
		return
	}
	n := c.head.Swap(0)
	c.gate.load.heads.Add(-n)
	c.client.heads.Add(-n)
}

// Load counts what clients hold at the moment, and how often limits stopped them.
// The proxies of one process share one. The zero value is ready; it is safe for
// concurrent use.
type Load struct {
	tunnels, requests atomic.Int64
	heads             atomic.Int64 // octets of those that are not complete
	reached           [kinds]atomic.Uint64
	logged            [kinds]atomic.Int64 // when each was last logged, in unix seconds
	refusals          refusalLimiter

	mu      sync.Mutex
	conns   int
	clients map[netip.Prefix]*client // those with a connection
}

// client is what one client holds.
type client struct {
	key               netip.Prefix
	conns             int // guarded by Load.mu
	tunnels, requests atomic.Int64
	stopped           atomic.Int64  // requests
	heads             atomic.Int64  // octets
	recording         chan struct{} // holds one value for each request that is with the recorder
}

// Status is a Load as data.
type Status struct {
	Connections int `json:"connections"`
	Clients     int `json:"clients"`
	Tunnels     int `json:"tunnels"`
	Requests    int `json:"requests"`

	UnfinishedHeads int64 `json:"unfinished_heads"` // octets that are kept of heads that have not ended

	Reached map[string]uint64 `json:"limits_reached"` // by the name of the Kind; only those that were
}

// Status returns what clients hold at the moment.
func (l *Load) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Status{
		Connections: l.conns, Clients: len(l.clients), Tunnels: int(l.tunnels.Load()), Requests: int(l.requests.Load()),
		UnfinishedHeads: l.heads.Load(), Reached: map[string]uint64{},
	}
	for i := range l.reached {
		if n := l.reached[i].Load(); n > 0 {
			s.Reached[Kind(i).String()] = n
		}
	}
	return s
}

// enter counts a connection from a, or returns nil and the limit that stops it.
func (l *Load) enter(a netip.Addr, of *Limits) (c *client, stops Kind) {
	key := ClientKey(a)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch c = l.clients[key]; {
	case l.conns >= of.Connections:
		return nil, Connections
	case c != nil && c.conns >= of.ConnectionsPerClient:
		return nil, ConnectionsPerClient
	case c == nil:
		c = &client{key: key, recording: make(chan struct{}, maxRecording)}
		memo.Set(&l.clients, key, c)
	}
	l.conns++
	c.conns++
	return c, 0
}

// leave undoes one enter.
func (l *Load) leave(c *client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns--
	if c.conns--; c.conns == 0 {
		delete(l.clients, c.key)
	}
}

// take counts n more tunnels, requests or octets, of all clients and of one, or returns
// the limit that stops them.
func (g *Gate) take(n int64, all, own *atomic.Int64, most, mostOwn int, inAll Kind, of *Limits) *Exceeded {
	if own.Add(n) > int64(mostOwn) {
		own.Add(-n)
		return g.exceeded(inAll+1, of)
	}
	if all.Add(n) > int64(most) {
		all.Add(-n)
		own.Add(-n)
		return g.exceeded(inAll, of)
	}
	return nil
}
