package proxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"heed/internal/acl"
	"heed/internal/audit"
	"heed/internal/memory"
	"heed/proxy/head"
	"heed/proxy/limit"
	"heed/proxy/refusal"
	"heed/proxy/upstream"
	"heed/rules"
)

// clientConn is a client's connection as an http.Server sees it: the TCP
// connection itself, or HTTP/1 inside a tunnel. It reads the heads of requests
// before net/http does, puts our reason phrases into status lines, which net/http
// has no way to do, and replaces the answers that net/http gives to malformed
// requests before any handler runs (unread.go). Of a connection with HTTP/2 it is the
// part that requests use (h2.go).
type clientConn struct {
	net.Conn
	proxy      *Proxy
	counted    *limit.Conn            // the network connection that it is, or is inside
	heads      *head.Reader           // of Conn; nil for HTTP/2
	client     acl.ClientInfo         // as far as it is known before a request
	tunnel     *tunnel                // nil outside tunnels
	redirected *redirectedConn        // of a tunnel that no CONNECT has opened, until its octets are its own; else nil
	phrase     atomic.Pointer[string] // of the next status line; nil: net/http's
	answering  atomic.Bool            // a handler has taken the request
	ended      atomic.Bool            // heed has answered in place of net/http: nothing more is sent
	begun      bool                   // Read has been called
	sites      *upstream.Client       // the owner of the connections to sites that its requests use
}

// newClientConn returns c, on which HTTP/1 is spoken, as a server takes it; t is nil
// outside tunnels.
func (p *Proxy) newClientConn(c net.Conn, counted *limit.Conn, client acl.ClientInfo, t *tunnel) *clientConn {
	own := &clientConn{Conn: c, proxy: p, counted: counted, client: client, tunnel: t}
	own.heads = &head.Reader{From: c, Limit: head.Limit{
		Head: int(p.config.Limits.HeaderBytes) + headSlack, Hold: own.holdHead, Drop: counted.DropHead,
	}}
	return own
}

// redirection returns the redirected connection that c is, or is inside; nil for one that
// its client has made to heed.
func (c *clientConn) redirection() *redirectedConn {
	if c.tunnel != nil {
		return c.tunnel.redirected
	}
	return c.redirected
}

// headSlack is how many octets more than Server.MaxHeaderBytes net/http takes of a
// head before it refuses it.
const headSlack = 4 << 10

// holdHead counts octets of an unfinished head. While a handler runs, what comes is
// the body of its request.
func (c *clientConn) holdHead(octets int) error {
	if c.answering.Load() {
		return nil
	}
	if over := c.counted.HoldHead(octets); over != nil {
		return over
	}
	return nil
}

// took notes that a handler has taken the request with the target uri. It returns the
// target as it came on the connection; exact is false when net/http has another one.
func (c *clientConn) took(uri string) (target string, exact bool) {
	c.answering.Store(true)
	if c.heads == nil { // over HTTP/2 the next head may be coming
		return uri, true
	}
	c.counted.DropHead()
	return c.heads.Target(uri)
}

type clientConnKey struct{}

// withClientConn is the servers' ConnContext: newExchange finds the connection in
// the context.
func withClientConn(ctx context.Context, c net.Conn) context.Context {
	own, ok := c.(*clientConn)
	if !ok {
		own = &c.(*h2Conn).clientConn
	}
	own.sites = &upstream.Client{}
	ctx = upstream.WithClient(ctx, own.sites)
	return context.WithValue(ctx, clientConnKey{}, own)
}

// connState is the servers' ConnState: between two requests no handler is running.
func connState(c net.Conn, state http.ConnState) {
	switch c := c.(type) {
	case *clientConn:
		if state == http.StateIdle {
			c.heads.Idle()
			c.answering.Store(false)
		}
		if state == http.StateClosed && c.tunnel != nil {
			c.tunnel.end()
		}
		c.endSites(state)
	case *h2Conn:
		if state == http.StateIdle {
			c.tunnel.streams.idled()
		}
		if state == http.StateClosed {
			c.tunnel.end()
		}
		c.endSites(state)
	}
}

// endSites closes the connections to sites that the client has authenticated, when state
// is the end of its requests.
func (c *clientConn) endSites(state http.ConnState) {
	if (state == http.StateClosed || state == http.StateHijacked) && c.sites != nil {
		c.sites.End()
	}
}

// end calls closed when the connection of t is closed. net/http recovers from no
// panic here, so that a fault in the Recorder would end the process.
func (t *tunnel) end() {
	defer func() {
		if v := recover(); v != nil {
			t.proxy.config.Log.Error("the end of a tunnel could not be recorded", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	t.closed()
}

// Write implements net.Conn. A head begins a separate write, since net/http
// flushes the answer before.
func (c *clientConn) Write(b []byte) (int, error) {
	if c.ended.Load() {
		return 0, net.ErrClosed
	}
	phrase := c.phrase.Load()
	if phrase == nil && c.answering.Load() || !bytes.HasPrefix(b, []byte("HTTP/1.")) {
		return c.Conn.Write(b)
	}
	line, rest, found := bytes.Cut(b, []byte("\r\n"))
	if !found || len(line) < len("HTTP/1.1 400") {
		return c.Conn.Write(b)
	}
	head := bytes.Clone(line[:len("HTTP/1.1 400")])
	if phrase == nil {
		c.answerUnparsed(head[len("HTTP/1.1 "):])
		return len(b), nil
	}
	if bytes.HasPrefix(line[len("HTTP/1.1 "):], []byte("100")) {
		return c.Conn.Write(b)
	}
	c.phrase.Store(nil)
	head = append(append(head, ' '), *phrase...)
	head = append(append(head, "\r\n"...), rest...)
	if _, err := c.Conn.Write(head); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Read implements net.Conn.
func (c *clientConn) Read(b []byte) (int, error) {
	if !c.begun {
		c.begun = true
		memory.ReserveStack()
	}
	n, err := c.heads.Read(b)
	if err != nil && !c.answering.Load() {
		c.answerUnread(err)
	}
	return n, err
}

// CloseWrite lets net/http end an answer before it closes the connection.
func (c *clientConn) CloseWrite() error { return closeWrite(c.Conn) }

// clientListener passes accepted connections, of type *limit.Conn, to the outer
// server.
type clientListener struct {
	net.Listener
	proxy *Proxy
}

// Accept implements net.Listener.
func (l *clientListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.proxy.newClientConn(c, c.(*limit.Conn), clientInfo(c), nil), nil
}

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
	_ = closeWrite(c)
	_, _ = io.CopyN(io.Discard, c, maxDrain)
}

// tunnelListener is the inner server's listener: connections that have been
// decrypted arrive through it.
type tunnelListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// push gives c to the inner server, or closes it when that has ended.
func (l *tunnelListener) push(c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.done:
		c.Close()
	}
}

// Accept implements net.Listener.
func (l *tunnelListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *tunnelListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *tunnelListener) Addr() net.Addr { return &net.UnixAddr{Name: "tunnels", Net: "unix"} }

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
	p.config.Log.Warn("a limit keeps clients from more", "limit", over.Kind.String(), "value", over.Value, "times", times)
}
