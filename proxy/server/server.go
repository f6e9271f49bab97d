// Package server serves HTTP/1 on clients' connections: the server's side of RFC 9112. It
// differs from net/http in what a proxy needs. A request arrives with its target as it
// came, one that cannot be read is given to the Client with what is wrong, a status line has
// the phrase that it is to have, and nothing of an answer is invented but Date.
//
// A connection has one goroutine. It reads a head, calls the Client, writes the answer, and
// waits for the next head without a buffer.
//
// conn.go reads requests, answer.go writes answers and reads bodies, watch.go finds out that
// a client leaves.
package server

import (
	"sync"
	"sync/atomic"
	"time"

	"heed/internal/base/memo"
)

// Server holds connections. Its zero value is ready; it is safe for concurrent use.
type Server struct {
	HeaderTime time.Duration // that a head may take from its first octet, and a client for its first one
	IdleTime   time.Duration // between two requests
	EndTime    time.Duration // that the end of a client's stream may come after a request, from when it is watched, and is no departure
	StallTime  time.Duration // that a request under way goes on for a client that has ended its stream, without anything written to it

	ending  atomic.Bool // each connection ends with its next answer
	mu      sync.Mutex
	stopped bool // nothing is begun any more
	conns   map[*Conn]struct{}
}

// add notes that c is served. It returns false when none are any more.
func (s *Server) add(c *Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	memo.Set(&s.conns, c, struct{}{})
	return true
}

// remove undoes add, if that was not done.
func (s *Server) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Leave has each connection end with its next answer. New ones are accepted still.
func (s *Server) Leave() { s.ending.Store(true) }

// freshTime is how long a connection may take for its first octets while a server stops: they
// may be on their way.
const freshTime = 5 * time.Second

// Stop takes no connection from now on, has each end with its next answer, and closes those
// between two requests. It reports whether none is left; call it again until it does. One
// whose answer has just been written is not between two requests yet.
func (s *Server) Stop() bool {
	s.Leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for c := range s.conns {
		idle := c.state.CompareAndSwap(connIdle, connClosed)
		if idle || time.Since(c.opened) > freshTime && c.state.CompareAndSwap(connFresh, connClosed) {
			c.Close()
		}
	}
	return len(s.conns) == 0
}

// Close closes everything, and ends the requests under way: closing its connection ends no
// request whose client has ended its stream already (see watch).
func (s *Server) Close() {
	s.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.state.Store(connClosed)
		c.Close()
		c.watch.cut()
	}
}
