// Package process finds the processes of a run and the sockets that they hold, from
// /proc (proc_pid_net(5), proc_pid_fd(5)), and connects to services that they offer on
// loopback addresses. Other systems than Linux have no /proc: there, no socket is found.
//
// It imports nothing of heed, and no package from outside but golang.org/x/sys.
package process

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Socket is a TCP or UDP socket of a network namespace.
type Socket struct {
	Local, Remote netip.AddrPort // IPv4 never mapped into IPv6
	State         State
	Inode         uint64 // identifies it; 0 for a connection that no process holds (yet)
}

// State is the state of a socket, as the kernel writes it.
type State string

// The states that matter here.
const (
	Connected State = "01"
	Listening State = "0A"
)

// Service returns the address at which a process of g listens now for connections to
// hostPort, a loopback address or the name localhost (RFC 6761 §6.3) with a port. It
// returns false for any other host, when no process of g listens there, and when another
// program listens there, too. Nil has no processes.
func (g *Group) Service(hostPort string) (at netip.AddrPort, ok bool) {
	if g == nil {
		return at, false
	}
	for _, at := range loopback(hostPort) {
		if ours, others := g.listeners(at); ours || others {
			return at, ours && !others
		}
	}
	return at, false
}

// Vacant reports whether hostPort is a loopback address or the name localhost with a port at
// which no program listens now.
func (g *Group) Vacant(hostPort string) bool {
	all := loopback(hostPort)
	return g != nil && len(all) > 0 && !slices.ContainsFunc(all, func(at netip.AddrPort) bool {
		ours, others := g.listeners(at)
		return ours || others
	})
}

// loopback returns the addresses of hostPort, in the order in which they are
// tried: none unless they are loopback addresses.
func loopback(hostPort string) (all []netip.AddrPort) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil
	}
	hosts := []string{host}
	if name := strings.TrimSuffix(strings.ToLower(host), "."); name == "localhost" || strings.HasSuffix(name, ".localhost") {
		hosts = []string{"::1", "127.0.0.1"}
	}
	for _, host := range hosts {
		at, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
		if err == nil && at.Addr().Unmap().IsLoopback() {
			all = append(all, netip.AddrPortFrom(at.Addr().Unmap(), at.Port()))
		}
	}
	return all
}

// ErrForeign is the error of Dial when the connection would not lead to a process of the
// group.
var ErrForeign = errors.New("no process of the run listens there any more")

// dialTimeout is for one connection on this machine.
const dialTimeout = 10 * time.Second

// Dial connects to the service at hostPort. The process that has accepted the connection,
// or will accept it, is verified after the connection is made: a port that another program
// takes meanwhile is an error.
func (g *Group) Dial(ctx context.Context, _, hostPort string) (net.Conn, error) {
	at, ok := g.Service(hostPort)
	if !ok {
		return nil, ErrForeign
	}
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "tcp", at.String())
	if err != nil {
		return nil, err
	}
	if !g.accepts(conn.LocalAddr(), at) {
		conn.Close()
		return nil, ErrForeign
	}
	return conn, nil
}

// accepts reports whether the connection from client to the address at leads to a process
// of g: one that has accepted it, or the only listener that can.
func (g *Group) accepts(client net.Addr, at netip.AddrPort) bool {
	from, err := netip.ParseAddrPort(client.String())
	if err != nil {
		return false
	}
	switch held, accepted := g.accepted(netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), at); {
	case held:
		return true
	case accepted:
		return false
	}
	ours, others := g.listeners(at)
	return ours && !others
}
