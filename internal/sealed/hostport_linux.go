package sealed

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// dialHostPort is for a connection to a service of this machine.
const dialHostPort = 5 * time.Second

// serveHostPort passes the connections of the command to a port of 127.0.0.1, which l accepts,
// on to the same port outside, until l is closed. Those that are open end with this process.
func serveHostPort(l net.Listener, port uint16) {
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port).String()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go passOn(c, at)
	}
}

// passOn copies octets in both directions until both have ended.
func passOn(c net.Conn, at string) {
	defer c.Close()
	service, err := net.DialTimeout("tcp", at, dialHostPort)
	if err != nil {
		_ = c.(*net.TCPConn).SetLinger(0) // as a service that is absent
		return
	}
	defer service.Close()
	var both sync.WaitGroup
	copyEnd := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // either end may close
		_ = to.(*net.TCPConn).CloseWrite()
	}
	both.Go(func() { copyEnd(service, c) })
	both.Go(func() { copyEnd(c, service) })
	both.Wait()
}
