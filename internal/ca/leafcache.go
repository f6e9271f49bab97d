package ca

import (
	"container/list"
	"crypto/tls"
	"fmt"
	"strings"
	"sync"
	"time"
)

// maxLeaves bounds the leaves in memory; the one unused for longest goes.
const maxLeaves = 4096

// maker makes the certificate for a host and says when the next is due.
type maker func(host string, now time.Time) (*tls.Certificate, time.Time, error)

// leafCache keeps certificates by host, each made once for all who wait.
type leafCache struct {
	mu     sync.Mutex
	limit  int
	byHost map[string]*list.Element // of *leafEntry
	recent list.List                // the most recently used first
}

type leafEntry struct {
	host string
	done chan struct{} // closed when the fields below are final

	cert *tls.Certificate
	due  time.Time // after this another is made
	err  error
}

func (c *leafCache) init(limit int) {
	c.limit = limit
	c.byHost = make(map[string]*list.Element)
}

// get returns the certificate for host, making it when there is none or it is
// due for another. A failure reaches all who waited and is not kept.
func (c *leafCache) get(host string, now time.Time, make maker) (*tls.Certificate, error) {
	e, ours := c.claim(host, now)
	if ours {
		c.fill(e, now, make)
	}
	<-e.done
	return e.cert, e.err
}

// claim returns the entry for host, and whether the caller has to fill it.
func (c *leafCache) claim(host string, now time.Time) (e *leafEntry, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if elem := c.byHost[host]; elem != nil {
		e = elem.Value.(*leafEntry)
		if !e.stale(now) {
			c.recent.MoveToFront(elem)
			return e, false
		}
		c.dropLocked(elem)
	}
	host = strings.Clone(host) // the caller's may be a piece of a whole request head
	e = &leafEntry{host: host, done: make(chan struct{})}
	c.byHost[host] = c.recent.PushFront(e)
	if len(c.byHost) > c.limit {
		c.dropLocked(c.recent.Back())
	}
	return e, true
}

// stale reports whether a finished entry is due for another. One that is
// being made is as fresh as can be.
func (e *leafEntry) stale(now time.Time) bool {
	select {
	case <-e.done:
		return now.After(e.due)
	default:
		return false
	}
}

// fill makes the certificate of an entry and releases those who wait, also
// when the making panics.
func (c *leafCache) fill(e *leafEntry, now time.Time, make maker) {
	e.err = fmt.Errorf("no certificate for %s: its making broke off", e.host)
	defer func() {
		if e.err != nil {
			c.forget(e)
		}
		close(e.done)
	}()
	e.cert, e.due, e.err = make(e.host, now)
}

// forget drops an entry unless another has taken its place.
func (c *leafCache) forget(e *leafEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if elem := c.byHost[e.host]; elem != nil && elem.Value == e {
		c.dropLocked(elem)
	}
}

func (c *leafCache) dropLocked(elem *list.Element) {
	c.recent.Remove(elem)
	delete(c.byHost, elem.Value.(*leafEntry).host)
}
