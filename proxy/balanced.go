package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"heed/proxy/balancer"
	"heed/proxy/limit"
	"heed/proxy/refusal"
	"heed/rules"
)

// maxHeaders bounds the connections of load balancers whose header has not been read yet:
// they do not count as those of a client, which is not known.
const maxHeaders = 1024

// isBalancer reports whether c comes from one of the networks of load balancers, which send a
// header.
func isBalancer(c net.Conn, networks []netip.Prefix) bool {
	if len(networks) == 0 {
		return false
	}
	from := addrOf(c.RemoteAddr())
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(from) })
}

// faultyConn is the connection of a load balancer that is refused, and why.
type faultyConn struct {
	*balancer.Conn
	fault string
}

// readHeader passes the connection of a load balancer on to admit when its header is read,
// within the time for a head, in a goroutine of its own. One on which nothing is asked for is
// closed: load balancers check so whether a port is open.
func (p *Proxy) readHeader(c net.Conn, admit func(net.Conn)) {
	select {
	case p.headers <- struct{}{}:
	default:
		p.gate.CountExceeded(limit.Connections)
		resetConn(c)
		return
	}
	go func() {
		own := p.headerOf(c)
		<-p.headers
		if own == nil {
			c.Close()
			return
		}
		admit(own)
	}()
}

// headerOf reads the header of c. It returns nil when c is to be closed without an answer.
func (p *Proxy) headerOf(c net.Conn) net.Conn {
	stop := context.AfterFunc(p.lasting, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) }) // nothing was asked for yet
	defer stop()
	_ = c.SetReadDeadline(time.Now().Add(p.config.Limits.HeaderTime))
	own, err := balancer.Read(c)
	switch {
	case p.lasting.Err() != nil, errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		p.gate.CountExceeded(limit.HeaderTime)
		return &faultyConn{balancer.Unread(c), "the PROXY protocol header of the load balancer was not complete within limits.header_time"}
	case err != nil:
		return &faultyConn{balancer.Unread(c), err.Error()}
	}
	if own.Local() {
		if n, _ := c.Read(make([]byte, 1)); n == 0 {
			return nil
		}
		return &faultyConn{own, "the load balancer sent a request of its own (LOCAL in the PROXY protocol), which no client asked for: let its health checks request /readyz of [admin], or only connect"}
	}
	_ = c.SetReadDeadline(time.Time{})
	return own
}

// serveFaulty refuses and records what came on c, if its load balancer's header is the reason.
func (p *Proxy) serveFaulty(c *limit.Conn) bool {
	faulty, ok := c.Conn.(*faultyConn)
	if ok {
		p.newClientConn(c, c, clientInfo(c), nil).reject(refusal.Case{Reason: rules.ReasonMalformed, Detail: faulty.fault}, rules.Origin{})
		c.Close()
	}
	return ok
}
