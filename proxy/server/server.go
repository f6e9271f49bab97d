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
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Server holds connections, and the listeners that they come from. Its zero value is
// ready; it is safe for concurrent use.
type Server struct {
	HeaderTime time.Duration // that a head may take from its first octet, and a client for its first one
	IdleTime   time.Duration // between two requests
	EndTime    time.Duration // that the end of a client's stream may come after a request, from when it is watched, and is no departure
	StallTime  time.Duration // that a request under way goes on for a client that has ended its stream, without anything written to it

	ending    atomic.Bool // each connection ends with its next answer
	stopped   atomic.Bool // nothing is begun any more; changes with mu held
	mu        sync.Mutex
	listeners map[*net.Listener]struct{}
	conns     map[*Conn]struct{}
}

// Listen notes that l accepts connections. It returns false when none are taken any more.
func (s *Server) Listen(l *net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped.Load() {
		return false
	}
	if s.listeners == nil {
		s.listeners = map[*net.Listener]struct{}{}
	}
	s.listeners[l] = struct{}{}
	return true
}

// Unlisten undoes Listen.
func (s *Server) Unlisten(l *net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// add notes that c is served. It returns false when none are any more.
func (s *Server) add(c *Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped.Load() {
		return false
	}
	if s.conns == nil {
		s.conns = map[*Conn]struct{}{}
	}
	s.conns[c] = struct{}{}
	return true
}

// remove undoes add, if that was not done.
func (s *Server) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Stopped reports whether nothing is begun any more.
func (s *Server) Stopped() bool { return s.stopped.Load() }

// Leave has each connection end with its next answer. New ones are accepted still.
func (s *Server) Leave() { s.ending.Store(true) }

// stop closes the listeners, and takes no new connection.
func (s *Server) stop() {
	s.Leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped.Store(true)
	for l := range s.listeners {
		(*l).Close()
	}
}

// Shutdown takes no new connection, and waits until those that are served have ended, or
// returns ctx's error when that ends first. Idle ones are closed.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !s.closeIdle() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// freshTime is how long a connection may take for its first octets while a server shuts
// down: they may be on their way.
const freshTime = 5 * time.Second

// closeIdle closes the connections between two requests, and reports whether none is left.
func (s *Server) closeIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
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
func (s *Server) Close() error {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.state.Store(connClosed)
		c.Close()
		c.watch.cut()
	}
	return nil
}
