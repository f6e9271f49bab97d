package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/proxy/http1"
	"heed/proxy/limit"
	"heed/proxy/refusal"
	"heed/proxy/server"
	"heed/proxy/upstream"
	"heed/rules"
)

// clientConn is a client's connection: the TCP connection itself, or what is inside a
// tunnel. It is the server.Client of its own HTTP/1.
type clientConn struct {
	net.Conn
	proxy      *Proxy
	counted    *limit.Conn      // the network connection that it is, or is inside
	h1         *server.Conn     // of Conn; nil for HTTP/2
	client     acl.ClientInfo   // as far as it is known before a request
	tunnel     *tunnel          // nil outside tunnels
	redirected *redirectedConn  // of a tunnel that no CONNECT has opened, until its octets are its own; else nil
	asks       *Asked           // of a proxy that asks on it; else nil
	asked      *asking          // of a client about whose request a proxy asks; else nil
	sites      *upstream.Client // the owner of the connections to sites that its requests use
}

// newClientConn returns c, on which HTTP/1 is spoken; t is nil outside tunnels.
func (p *Proxy) newClientConn(c net.Conn, counted *limit.Conn, client acl.ClientInfo, t *tunnel) *clientConn {
	own := &clientConn{Conn: c, proxy: p, counted: counted, client: client, tunnel: t}
	own.h1 = p.h1.NewConn(withClientConn(context.Background(), own), c, own, own.headLimit())
	return own
}

// headLimit bounds the heads on c.
func (c *clientConn) headLimit() http1.Limit {
	return http1.Limit{Head: int(c.proxy.config.Limits.HeaderBytes) + headSlack, Hold: c.counted.HoldHead, Drop: c.counted.DropHead}
}

// headSlack is how many octets more than Limits.HeaderBytes a head may have: the limit
// is one of fields, and a request line is to have room beside them.
const headSlack = 4 << 10

// redirection returns the redirected connection that c is, or is inside; nil for one that
// its client has made to heed.
func (c *clientConn) redirection() *redirectedConn {
	if c.tunnel != nil {
		return c.tunnel.redirected
	}
	return c.redirected
}

type clientConnKey struct{}

// withClientConn returns a context for the requests on c: newExchange finds the connection in it.
func withClientConn(ctx context.Context, c *clientConn) context.Context {
	c.sites = &upstream.Client{}
	return context.WithValue(upstream.WithClient(ctx, c.sites), clientConnKey{}, c)
}

// serve answers the requests on c, over HTTP/1, until it ends.
func (c *clientConn) serve() { c.guard(c.h1.Serve) }

// guard calls serve, whose panics end c alone.
func (c *clientConn) guard(serve func()) {
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			c.proxy.config.Log.Error("a connection failed inside heed; only this connection is affected", "panic", v, "stack", string(debug.Stack()))
		}
		c.sites.End()
		if c.tunnel != nil && !c.h1.Taken() {
			c.tunnel.closed(c.h1.Begun())
		}
	}()
	serve()
}

// Handle implements server.Client.
func (c *clientConn) Handle(a *server.Answer, r *http.Request) {
	if c.asks != nil {
		c.proxy.authorize(c, a, r)
		return
	}
	c.proxy.handle(a, r)
}

// clientInfo returns what is known of the client of a connection before its first
// request.
func clientInfo(c net.Conn) acl.ClientInfo {
	return acl.ClientInfo{Addr: addrOf(c.RemoteAddr()), Listener: c.LocalAddr().String()}
}

// addrOf returns an address without its zone, since no network is written with one.
func addrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// limits are those in force.
func (p *Proxy) limits() *limit.Limits { return &p.config.Live().Limits }

func (p *Proxy) logLimit(over *limit.Exceeded, times uint64) {
	p.config.Log.Warn("limit reached", "limit", over.Kind.String(), "value", over.Value, "times", times)
}

// Serve accepts clients on l until Shutdown, then returns nil. It closes l.
// The addresses of l are added to Self.
func (p *Proxy) Serve(l net.Listener) error {
	p.config.Self.Add(l.Addr())
	defer p.config.Self.Remove(l.Addr())
	balancers := func() []netip.Prefix { return p.config.Live().Balancers }
	return p.accept(l, balancers, p.turnAway, func(c *limit.Conn) {
		if !p.serveFaulty(c) {
			p.newClientConn(c, c, clientInfo(c), nil).serve()
		}
	})
}

// accept passes each connection that l accepts to serve, in a goroutine of its own, or to reject
// when there is no room for it. It returns nil after Shutdown, and an error that does not pass. It
// closes l. What comes from balancers has a header of the PROXY protocol.
func (p *Proxy) accept(l net.Listener, balancers func() []netip.Prefix, reject func(net.Conn, *limit.Exceeded), serve func(*limit.Conn)) error {
	defer l.Close()
	p.listeners.add(l)
	defer p.listeners.remove(l)
	admit := func(c net.Conn) {
		if counted := p.gate.Admit(c, reject); counted != nil {
			go serve(counted)
		}
	}
	var pause time.Duration
	for !p.closing.Load() {
		c, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			if isBalancer(c, balancers()) {
				p.readHeader(c, admit)
			} else {
				admit(c)
			}
		case p.closing.Load():
		case slices.ContainsFunc(shortages, func(e error) bool { return errors.Is(err, e) }):
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			p.config.Log.Warn("clients cannot connect", "error", err)
			if upstream.IsShortOfFiles(err) {
				p.gate.CountExceeded(limit.OpenFiles)
				if idle, ok := p.config.Live().Upstream.(interface{ CloseIdleConnections() }); ok {
					idle.CloseIdleConnections()
				}
			}
			p.pause(p.lasting, pause)
		default:
			return err
		}
	}
	return nil
}

// shortages are the errors of accepting that pass.
var shortages = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}

// turnAway answers a client for whose connection there is no room, and closes it. It
// reads on for a moment: closed immediately, the connection could lose the answer.
func (p *Proxy) turnAway(c net.Conn, over *limit.Exceeded) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(p.limits().DrainTime))
	a := refusal.Case{Reason: rules.ReasonLimit, Entry: &audit.Entry{}, Err: over, Proxy: refusal.Proxy{Member: p.statusName}}
	if _, err := c.Write(refusal.Raw(a, &http.Request{})); err == nil {
		drain(c)
	}
}

// drain ends what is sent on c and reads what the client still sends.
func drain(c net.Conn) {
	_ = upstream.CloseWrite(c)
	_, _ = io.CopyN(io.Discard, c, maxDrain)
}
