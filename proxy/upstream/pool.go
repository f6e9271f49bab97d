package upstream

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"sync"
	"time"
)

// Times of connections that have been used.
const (
	// silence is how long nothing may have come from a site after the end of an answer
	// before another client gets the connection. Octets that a site sends beyond its answer
	// come within it, and close the connection.
	silence = 25 * time.Millisecond
	// pinGrace is how long a connection that a client has authenticated is kept for it
	// where the site may have no more, and others wait.
	pinGrace = time.Second
	// sweepTime is how often the idle connections are looked at: one that the site has
	// closed is not kept for longer.
	sweepTime = 500 * time.Millisecond
)

// forever is the longest duration. It means no time limit.
const forever = time.Duration(1<<63 - 1)

// pool keeps the HTTP/1 connections to sites that no request uses. A connection belongs
// to the client that used it last; another one gets it after silence. It is safe for
// concurrent use.
type pool struct {
	perHost     int // open connections of a host; 0: any number
	idlePerHost int
	idle        int // of all hosts

	mu       sync.Mutex
	hosts    map[hostKey]*siteHost // those with connections, or with requests that wait for one
	lru      list.List             // idle connections, the last used first
	sweep    *time.Timer           // calls closeOld; nil while nothing is idle
	versions map[hostKey]version
}

// hostKey is what connections have to have in common to be used for each other's
// requests.
type hostKey struct {
	scheme, addr string // addr is empty for plain requests through an HTTP proxy
	through      string // the proxy of plain requests; empty: none
	http1        bool   // HTTP/2 is not offered
}

// siteHost is one host with connections.
type siteHost struct {
	pool    *pool
	key     hostKey
	idle    []*conn         // the last used one last
	open    int             // connections, and permissions to make one
	waiting []chan struct{} // requests in their order; each receives when it may look again
}

// wish is the connection that a request needs.
type wish struct {
	client     *Client
	authority  string // of the site
	repeatable bool   // the request may be sent again, so that it needs no new connection
	fresh      bool   // nevertheless it needs one
	replaces   bool   // a new one takes the place of the client's last, which would not be used
	token      bool   // it authenticates its connection
	last       bool   // the connection serves no further request
}

func newPool(perHost, idlePerHost, idle int) *pool {
	return &pool{perHost: perHost, idlePerHost: idlePerHost, idle: idle, hosts: map[hostKey]*siteHost{}, versions: map[hostKey]version{}}
}

// acquire returns a connection for w that has been used before, or nil when the caller
// may make one: it then calls release, or keeps the connection with newConn. It waits
// where the host has as many connections as it may have.
func (p *pool) acquire(ctx context.Context, k hostKey, w *wish) (*conn, *siteHost, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hostLocked(k)
	var turn chan struct{} // nil while it does not wait
	defer func() { h.leaveLocked(turn) }()
	for {
		again := time.Duration(0)
		if len(h.waiting) == 0 || h.waiting[0] == turn {
			now := time.Now()
			if c := h.pickLocked(w, now); c != nil {
				p.takeLocked(c)
				c.client, c.pinned, c.reused = w.client, c.pinned || w.token, true
				return c, h, nil
			}
			var victim *conn
			if victim, again = h.roomLocked(w, now); victim == nil && again == 0 {
				h.open++
				return nil, h, nil
			}
			if victim != nil {
				p.takeLocked(victim)
				p.mu.Unlock()
				victim.end()
				p.mu.Lock()
				if turn == nil { // the host may have been forgotten
					h = p.hostLocked(k)
				}
				continue
			}
		}
		if turn == nil {
			turn = make(chan struct{}, 1)
			h.waiting = append(h.waiting, turn)
		}
		p.mu.Unlock()
		err := waitTurn(ctx, turn, again)
		p.mu.Lock()
		if err != nil {
			return nil, nil, err
		}
	}
}

// waitTurn waits for turn, for the end of ctx and, unless it is 0, for a time.
func waitTurn(ctx context.Context, turn chan struct{}, again time.Duration) error {
	var timer <-chan time.Time
	if again > 0 && again < forever {
		t := time.NewTimer(again)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-turn:
	case <-timer:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (p *pool) hostLocked(k hostKey) *siteHost {
	h := p.hosts[k]
	if h == nil {
		h = &siteHost{pool: p, key: k}
		p.hosts[k] = h
	}
	return h
}

// leaveLocked ends the wait of turn, which may be nil, and lets the next one look.
func (h *siteHost) leaveLocked(turn chan struct{}) {
	for i, t := range h.waiting {
		if t == turn {
			h.waiting = append(h.waiting[:i:i], h.waiting[i+1:]...)
			break
		}
	}
	h.changedLocked()
}

// changedLocked lets the first that waits look again. A host without connections is
// forgotten.
func (h *siteHost) changedLocked() {
	if len(h.waiting) > 0 {
		select {
		case h.waiting[0] <- struct{}{}:
		default:
		}
	} else if h.open == 0 && h.pool.hosts[h.key] == h {
		delete(h.pool.hosts, h.key)
	}
}

// pickLocked returns the idle connection that suits w best: the one on which its client
// continues to authenticate, then one that it has authenticated, then the client's own, then
// one that is silent. Nil: none does.
func (h *siteHost) pickLocked(w *wish, now time.Time) *conn {
	var pinned, own, silent *conn
	for i := len(h.idle) - 1; i >= 0; i-- {
		c := h.idle[i]
		quiet := now.Sub(c.since) >= silence
		switch mine := c.client == w.client && w.client != nil; {
		case c.pinned:
			if mine && c.authority == w.authority && (quiet || !c.suspect) && (w.token || !c.begun) && (pinned == nil || c.begun) {
				pinned = c
			}
		case w.fresh || !w.repeatable:
		case mine && own == nil && (quiet || !c.suspect):
			own = c
		case quiet && silent == nil:
			silent = c
		}
	}
	return cmp.Or(pinned, own, silent)
}

// roomLocked returns the idle connection to close before w can have a new one, and when
// to look again when one may become available later; forever: only after a change. It
// returns neither when w can have a new one now.
func (h *siteHost) roomLocked(w *wish, now time.Time) (victim *conn, again time.Duration) {
	if limit := h.pool.perHost; limit == 0 || h.open < limit {
		for _, c := range h.idle {
			if w.replaces && w.client != nil && c.client == w.client && !c.pinned {
				return c, 0
			}
		}
		return nil, 0
	}
	again = forever
	for _, c := range h.idle { // the longest idle first
		if !c.pinned && (w.fresh || !w.repeatable) {
			return c, 0
		}
		wait := silence
		if c.pinned {
			wait = pinGrace
		}
		switch left := wait - now.Sub(c.since); {
		case left <= 0:
			return c, 0
		default:
			again = min(again, left)
		}
	}
	return nil, again
}

// takeLocked takes c out of the idle connections.
func (p *pool) takeLocked(c *conn) {
	h := c.host
	for i := len(h.idle) - 1; i >= 0; i-- {
		if h.idle[i] == c {
			h.idle = append(h.idle[:i], h.idle[i+1:]...)
			break
		}
	}
	p.lru.Remove(c.place)
	c.place = nil
}

// put keeps c for later requests.
func (p *pool) put(c *conn) {
	p.mu.Lock()
	if c.place != nil || c.forgotten { // it was closed meanwhile
		p.mu.Unlock()
		return
	}
	h := c.host
	h.idle = append(h.idle, c)
	c.place = p.lru.PushFront(c)
	var over *conn
	if len(h.idle) > p.idlePerHost {
		over = h.idle[0]
	} else if p.lru.Len() > p.idle {
		over = p.lru.Back().Value.(*conn)
	}
	if over != nil {
		p.takeLocked(over)
	}
	if p.sweep == nil {
		p.sweep = time.AfterFunc(sweepTime, p.closeOld)
	}
	h.changedLocked()
	p.mu.Unlock()
	if over != nil {
		over.end()
	}
}

// forget gives up c, which is closed or serves no further request.
func (p *pool) forget(c *conn) {
	p.mu.Lock()
	if c.forgotten {
		p.mu.Unlock()
		return
	}
	c.forgotten = true
	if c.place != nil {
		p.takeLocked(c)
	}
	p.releaseLocked(c.host)
	client := c.client
	p.mu.Unlock()
	client.unpin(c)
}

// release returns the permission to make a connection to h.
func (p *pool) release(h *siteHost) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.releaseLocked(h)
}

func (p *pool) releaseLocked(h *siteHost) {
	h.open--
	h.changedLocked()
}

// enter counts a connection that was made without waiting for permission: one for HTTP/2 on
// which the site speaks HTTP/1.
func (p *pool) enter(k hostKey) *siteHost {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hostLocked(k)
	h.open++
	return h
}

// closeOld closes what was idle for too long, and what the site has closed, and comes
// again while anything is idle.
func (p *pool) closeOld() {
	p.closeWhere(func(c *conn) bool { return time.Since(c.since) >= idleUpstream })
	for _, c := range p.touched() {
		if !p.take(c) {
			continue
		}
		if c.ready() {
			p.put(c)
		} else {
			c.end()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lru.Len() == 0 {
		p.sweep = nil
	} else {
		p.sweep.Reset(sweepTime)
	}
}

// touched returns the idle connections on which something has come, which is their end as
// a rule.
func (p *pool) touched() []*conn {
	p.mu.Lock()
	all := make([]*conn, 0, p.lru.Len())
	for e := p.lru.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*conn))
	}
	p.mu.Unlock()
	return slices.DeleteFunc(all, func(c *conn) bool { return !c.socket.pending() })
}

// take takes c out of the idle connections, and reports whether it was one.
func (p *pool) take(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.place == nil {
		return false
	}
	p.takeLocked(c)
	return true
}

// closeIdle closes all idle connections.
func (p *pool) closeIdle() { p.closeWhere(func(*conn) bool { return true }) }

// closeWhere closes idle connections, the longest idle first, as long as old reports true.
func (p *pool) closeWhere(old func(*conn) bool) {
	for {
		p.mu.Lock()
		last := p.lru.Back()
		if last == nil || !old(last.Value.(*conn)) {
			p.mu.Unlock()
			return
		}
		c := last.Value.(*conn)
		p.takeLocked(c)
		p.mu.Unlock()
		c.end()
	}
}
