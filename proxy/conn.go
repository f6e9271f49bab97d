package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"

	"heed/internal/audit"
	"heed/internal/terms"
	"heed/rules"
)

// clientConn is a client's connection as an http.Server sees it: the TCP
// connection itself, or HTTP/1 inside a tunnel. It puts our reason phrases
// into status lines, which net/http has no way to do, and owns up to the
// answers that net/http gives to malformed requests before any handler runs.
// For HTTP/2 it only carries what is known of the tunnel.
type clientConn struct {
	net.Conn
	proxy     *Proxy
	who       terms.Who
	tunnel    *tunnel // nil outside tunnels
	phrase    atomic.Pointer[string]
	answering atomic.Bool // a handler has taken the request
	begun     atomic.Bool // octets of the next request have come
	late      atomic.Bool // they did not become one in time: nothing more is said
}

type clientConnKey struct{}

// withClientConn is the servers' ConnContext: it makes the connection known
// to newExchange.
func withClientConn(ctx context.Context, c net.Conn) context.Context {
	switch c := c.(type) {
	case *clientConn:
		return context.WithValue(ctx, clientConnKey{}, c)
	case *tls.Conn: // HTTP/2
		t := c.NetConn().(*tunnelConn)
		return context.WithValue(ctx, clientConnKey{}, &clientConn{Conn: c, proxy: t.exchange.proxy, who: t.exchange.who, tunnel: t.tunnel})
	}
	return ctx
}

// connState is the servers' ConnState: between two requests nobody is answering.
func connState(c net.Conn, state http.ConnState) {
	switch c := c.(type) {
	case *clientConn:
		if state == http.StateIdle {
			c.begun.Store(false)
			c.answering.Store(false)
		}
		if state == http.StateClosed && c.tunnel != nil {
			c.tunnel.end()
		}
	case *tls.Conn:
		t, ok := c.NetConn().(*tunnelConn)
		if !ok {
			return
		}
		t.tunnel.unheard.state(t.tunnel, state)
		if state == http.StateIdle {
			t.tunnel.streams.idled()
		}
		if state == http.StateClosed {
			t.tunnel.end()
		}
	}
}

// end tells a tunnel that its connection is closed. net/http recovers from no
// panic here, so that a fault in the Recorder would end the process.
func (t *tunnel) end() {
	defer func() {
		if v := recover(); v != nil {
			t.proxy.Log.Error("the end of a tunnel could not be recorded", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	t.closed()
}

// setPhrase makes phrase the reason phrase of the next status line.
func (c *clientConn) setPhrase(phrase string) { c.phrase.Store(&phrase) }

// Write implements net.Conn. A head begins a write of its own, since net/http
// flushes the answer before.
func (c *clientConn) Write(b []byte) (int, error) {
	if c.late.Load() {
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
	if phrase != nil {
		if bytes.HasPrefix(line[len("HTTP/1.1 "):], []byte("100")) {
			return c.Conn.Write(b)
		}
		c.phrase.Store(nil)
		head = append(append(head, ' '), *phrase...)
	} else {
		text, ok := c.proxy.recordUnparsed(c, string(line[len("HTTP/1.1 "):]))
		if !ok {
			return 0, net.ErrClosed // there is no answer without a record
		}
		head = append(append(head, " Refused by heed: "...), text...)
		head = append(append(head, "\r\nProxy-Status: "...), c.proxy.statusName...)
		head = append(head, "; error=http_request_error"...)
	}
	head = append(append(head, "\r\n"...), rest...)
	if _, err := c.Conn.Write(head); err != nil {
		return 0, err
	}
	return len(b), nil
}

// CloseWrite lets net/http end an answer before it closes the connection.
func (c *clientConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// recordUnparsed records a request that net/http answered by itself, with
// status (such as "400 Bad Request"), and returns what to tell the client, if it
// could be recorded.
func (p *Proxy) recordUnparsed(c *clientConn, status string) (text string, ok bool) {
	text = map[string]string{
		"400": "the request is not valid HTTP",
		"413": "the request is too large",
		"417": "the expectation cannot be met",
		"431": "the request's header fields are too large",
		"501": "the transfer coding is not known",
		"505": "the HTTP version is not known",
	}[status[:3]]
	text, reason := firstOf(text, "the request cannot be read"), rules.ReasonMalformed
	if status[:3] == "431" {
		text, reason = text+": "+p.reach(limitHeaderBytes).Error(), rules.ReasonLimit
	}
	if c.tunnel != nil {
		c.tunnel.requests.Add(1)
	}
	x := p.newUnread(c.RemoteAddr().String(), c.tunnel)
	x.entry.Outcome.Status = int(status[0]-'0')*100 + int(status[1]-'0')*10 + int(status[2]-'0')
	x.note(reason, text)
	return text, x.recorded
}

// newUnread returns an exchange for which no request could be read.
func (p *Proxy) newUnread(client string, t *tunnel) *exchange {
	x := p.newExchange(&http.Request{RemoteAddr: client})
	x.settle()
	x.entry.Judged = audit.NotJudged
	if t != nil {
		x.entry.Scheme, x.entry.Host = t.origin.Scheme, t.origin.Authority()
	}
	return x
}

// note records an exchange that ends with its decision.
func (x *exchange) note(reason rules.Reason, detail string) {
	x.noteVerdict(rules.Refuse, reason, detail)
}

func (x *exchange) noteVerdict(v rules.Verdict, reason rules.Reason, detail string) {
	x.entry.Decision, x.entry.Detail = rules.Decision{Verdict: v, Reason: reason}, detail
	x.record()
	if x.recorded {
		x.proxy.Recorder.Ended(&x.entry)
	}
}

// clientListener hands accepted connections to the outer server.
type clientListener struct {
	net.Listener
	proxy *Proxy
}

// Accept implements net.Listener. A connection for which there is no place is
// told so and forgotten.
func (l *clientListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			l.proxy.reach(limitOpenFiles) // net/http waits, longer each time, and comes again
		}
		if err != nil {
			return nil, err
		}
		if s := l.proxy.seated(c); s != nil {
			return &clientConn{Conn: s, proxy: l.proxy, who: whoOf(c)}, nil
		}
	}
}

// handovers is the inner server's listener: connections that have been
// decrypted arrive through it.
type handovers struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newHandovers() *handovers {
	return &handovers{conns: make(chan net.Conn), done: make(chan struct{})}
}

// push gives c to the inner server, or closes it when that has ended.
func (h *handovers) push(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.done:
		c.Close()
	}
}

// Accept implements net.Listener.
func (h *handovers) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handovers) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr implements net.Listener.
func (h *handovers) Addr() net.Addr { return &net.UnixAddr{Name: "tunnels", Net: "unix"} }
