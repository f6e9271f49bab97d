package sealed

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// hostPort passes the connections of the command to a port of 127.0.0.1 on to the same
// port outside.
type hostPort struct {
	listener net.Listener
	at       string

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

// dialHostPort is for a connection to a service of this machine.
const dialHostPort = 5 * time.Second

// serveHostPort serves l until close.
func serveHostPort(l net.Listener, port uint16) *hostPort {
	p := &hostPort{listener: l, at: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port).String(), open: map[net.Conn]bool{}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.pass(c)
		}
	}()
	return p
}

// pass copies octets in both directions until both have ended.
func (p *hostPort) pass(c net.Conn) {
	defer p.end(c)
	service, err := net.DialTimeout("tcp", p.at, dialHostPort)
	if err != nil {
		_ = c.(*net.TCPConn).SetLinger(0) // as a service that is absent
		return
	}
	defer p.end(service)
	if !p.add(c, service) {
		return
	}
	var both sync.WaitGroup
	copyEnd := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // either end may close
		_ = to.(*net.TCPConn).CloseWrite()
	}
	both.Go(func() { copyEnd(service, c) })
	both.Go(func() { copyEnd(c, service) })
	both.Wait()
}

// add keeps connections for close; false when there was one.
func (p *hostPort) add(all ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range all {
		p.open[c] = true
	}
	return !p.closed
}

func (p *hostPort) end(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// close ends the listener and its connections.
func (p *hostPort) close() {
	p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.open {
		c.Close()
	}
}
