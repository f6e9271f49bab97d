package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"heed/rules"
)

// seat is a client's connection, the octets of the network: whatever is spoken
// on it, it counts until it is closed, and a client that does not take what is
// written to it loses it.
type seat struct {
	net.Conn
	proxy    *Proxy
	client   *client
	tunnel   atomic.Bool  // it counts as a tunnel too
	gone     atomic.Bool  // it does not count any more
	deadline atomic.Int64 // of writing, in unix nanoseconds; 0: not set by Write
	foreign  atomic.Bool  // somebody else has set a deadline
}

// Write implements net.Conn. The deadline is moved only when it has come near,
// so that it costs nothing to speak of.
func (s *seat) Write(b []byte) (int, error) {
	if !s.foreign.Load() {
		limit := s.proxy.limits().ReadTime
		now := time.Now()
		if s.deadline.Load()-now.UnixNano() < int64(limit) {
			end := now.Add(limit + limit/4)
			s.deadline.Store(end.UnixNano())
			_ = s.Conn.SetWriteDeadline(end) // a closed connection: Write says so
		}
	}
	n, err := s.Conn.Write(b)
	if err != nil && !s.foreign.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		s.proxy.reach(limitReadTime)
	}
	return n, err
}

// SetDeadline implements net.Conn.
func (s *seat) SetDeadline(t time.Time) error {
	s.foreign.Store(!t.IsZero())
	s.deadline.Store(0)
	return s.Conn.SetDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (s *seat) SetWriteDeadline(t time.Time) error {
	s.foreign.Store(!t.IsZero())
	s.deadline.Store(0)
	return s.Conn.SetWriteDeadline(t)
}

// CloseWrite passes a half-close on.
func (s *seat) CloseWrite() error {
	if w, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// Close gives the place to somebody else.
func (s *seat) Close() error {
	err := s.Conn.Close()
	if s.gone.CompareAndSwap(false, true) {
		s.leaveTunnel()
		s.proxy.Load.leave(s.client)
	}
	return err
}

// enterTunnel counts the connection as a tunnel, or says which limit is in the way.
func (s *seat) enterTunnel() *overLimit {
	l, of := s.proxy.Load, s.proxy.limits()
	over := l.take(&l.tunnels, &s.client.tunnels, of.Tunnels, of.TunnelsPerClient, limitTunnels, of)
	if over == nil {
		s.tunnel.Store(true)
	}
	return over
}

// leaveTunnel takes back what enterTunnel counted.
func (s *seat) leaveTunnel() {
	if s.tunnel.CompareAndSwap(true, false) {
		s.proxy.Load.tunnels.Add(-1)
		s.client.tunnels.Add(-1)
	}
}

// seat returns the connection that c is, or that its tunnel is in; nil for one
// that is not counted.
func (c *clientConn) seat() *seat {
	if c.tunnel != nil {
		if c = c.tunnel.conn.exchange.conn; c == nil {
			return nil
		}
	}
	s, _ := c.Conn.(*seat)
	return s
}

// seat returns the connection that x came on; nil for one that is not counted.
func (x *exchange) seat() *seat {
	if x.conn == nil {
		return nil
	}
	return x.conn.seat()
}

// enter counts x as a request under way, or says which limit is in the way.
func (x *exchange) enter() *overLimit {
	s := x.seat()
	if s == nil {
		return nil
	}
	l, of := s.proxy.Load, s.proxy.limits()
	over := l.take(&l.requests, &s.client.requests, of.Requests, of.RequestsPerClient, limitRequests, of)
	if over != nil {
		s.proxy.tell(over)
	}
	return over
}

// leave takes back what enter counted.
func (x *exchange) leave() {
	if s := x.seat(); s != nil {
		s.proxy.Load.requests.Add(-1)
		s.client.requests.Add(-1)
	}
}

// seated returns c with its place, or nil when there is none for it: then c has
// been told so and is closed.
func (p *Proxy) seated(c net.Conn) *seat {
	at, _ := netip.ParseAddrPort(c.RemoteAddr().String())
	client, over := p.Load.enter(at.Addr(), p.limits())
	if over == nil {
		return &seat{Conn: c, proxy: p, client: client}
	}
	p.tell(over)
	select {
	case p.leaving <- struct{}{}:
		go p.turnAway(c, over)
	default:
		c.Close() // too many at once to tell each
	}
	return nil
}

// maxLeaving is how many connections without a place are told so at a time.
const maxLeaving = 64

// turnAway tells a client that there is no place for its connection. It reads on
// for a moment: closed at once, the connection would take the answer along.
func (p *Proxy) turnAway(c net.Conn, over *overLimit) {
	defer func() { <-p.leaving }()
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(p.limits().drain))
	if _, err := io.WriteString(c, p.rawAnswer(over)); err != nil {
		return
	}
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
	}
	_, _ = io.CopyN(io.Discard, c, maxDrain)
}

// rawAnswer is what a client is told where no request has been read.
func (p *Proxy) rawAnswer(over *overLimit) string {
	status, title := over.limit.status(), "Refused by heed: "+over.Error()
	body, _ := json.Marshal(problem{ // strings and numbers cannot fail
		Title: title, Type: "urn:heed:" + string(rules.ReasonLimit), Status: status, Detail: limitDetail(over.limit),
		Reason: string(rules.ReasonLimit), Retry: "after", RetryAfter: seconds(limitRetry),
	})
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nProxy-Status: %s; error=%s; details=\"%s\"\r\n", status, title, p.statusName, limitErrorType(over.limit), title)
	if over.limit.passes() {
		fmt.Fprintf(&b, "Retry-After: %d\r\n", seconds(limitRetry))
	}
	fmt.Fprintf(&b, "Content-Type: application/problem+json\r\nCache-Control: no-store\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	return b.String()
}

// limitRetry is when asking again can help, where a limit is one of numbers.
const limitRetry = time.Second

// limitErrorType is what Proxy-Status calls it (RFC 9209 §2.3).
func limitErrorType(l limit) string {
	if l.status() == http.StatusServiceUnavailable {
		return "http_request_denied"
	}
	return "http_request_error"
}

// limitDetail tells a person what a limit is about, and what can be done.
func limitDetail(l limit) string {
	switch {
	case l.status() == http.StatusServiceUnavailable:
		return fmt.Sprintf("This proxy serves as much at a time as it can. Asking again in a moment can help; its operator finds limits.%s in its settings.", l)
	case l == limitRefusalsPerClient:
		return "This client goes on asking for what it is refused, more often than everybody's record of that has room for. Wait as long as Retry-After says, and do not ask again for what was refused with 403; the operator of this proxy finds limits.refusals_per_client in its settings."
	case l.passes():
		return fmt.Sprintf("One client may not take what others need. Do less at a time, or wait until something has ended; the operator of this proxy finds limits.%s in its settings.", l)
	}
	return fmt.Sprintf("The request is larger, or slower, than this proxy takes. The operator finds limits.%s in its settings.", l)
}
