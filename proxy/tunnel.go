package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"heed/internal/audit"
	"heed/internal/terms"
	"heed/rules"
)

// openTunnel decides on a CONNECT that heed does not look into, and opens its
// far end. What it says no to is answered here, where a client sees it.
func (p *Proxy) openTunnel(x *exchange, r *http.Request) net.Conn {
	ok, ports := x.terms.TunnelsTo(x.origin)
	if !ok && x.unseen == "" || x.settings.DialTunnel == nil {
		x.refuse(rules.Decision{Reason: rules.ReasonAccess}, "tunnels to "+printable(x.origin.Host, 100)+" go to port "+ports+" only")
		return nil
	}
	if x.decide(r); x.refusal != nil {
		return nil
	}
	site, err := x.settings.DialTunnel(x, x.origin.HostPort())
	if err != nil {
		x.fail(r, err)
		return nil
	}
	x.started()
	return site
}

// pass carries the bytes of a tunnel both ways until both sides have ended.
// Nothing of the client's goes out before its first bytes were looked at.
func (p *Proxy) pass(x *exchange, c *tunnelConn) {
	x.upgraded, x.writer.status = c, http.StatusOK // finish closes it
	p.open.add(c)
	if _, err := io.WriteString(c.Conn, x.established()); err != nil {
		x.broken("client: " + errorText(err))
		return
	}
	p.relay(x, c)
}

// passUnread carries on as a tunnel that is not intercepted what heed cannot
// read, for a client that is observed only. c has been told that it stands.
func (p *Proxy) passUnread(x *exchange, c *tunnelConn) {
	c.tunnel, x.upgraded, x.writer.status = nil, c, http.StatusOK
	x.https, x.unseen = terms.Tunnel, rules.ReasonNotHTTP
	if x.decide(new(http.Request).WithContext(x)); x.refusal != nil {
		x.broken("heed: the tunnel was closed: " + x.refusal.phrase)
		return
	}
	site, err := x.settings.DialTunnel(x, x.origin.HostPort())
	if err != nil {
		x.broken("site: " + errorText(err))
		return
	}
	defer site.Close()
	x.site = site
	p.relay(x, c)
}

// relay carries the bytes of x's tunnel.
func (p *Proxy) relay(x *exchange, c *tunnelConn) {
	t := &relay{client: c, site: x.site, idle: x.settings.Limits.TunnelTime}
	t.touch()
	answered := make(chan error, 1)
	go func() { answered <- t.copy(c, x.site, "site") }()
	if x.terms.Mode == terms.Exempt || x.unseen == rules.ReasonNotHTTP {
		// Nobody looks.
	} else if reason, detail := x.look(c); x.mismatch != "" || reason == rules.ReasonNotHTTP && x.terms.Mode == terms.Observe {
		p.noteTunnel(x, rules.WouldRefuse, reason, detail)
	} else if reason != "" {
		t.close()
		<-answered
		x.broken("heed: the tunnel was closed: " + detail)
		p.noteTunnel(x, rules.Refuse, reason, detail)
		return
	}
	err := t.copy(x.site, c, "client")
	if err := errors.Join(err, <-answered); err != nil {
		x.broken(t.first.Load().(string))
	}
}

// broken notes what ended a tunnel. A client that resets its connection may
// have had all it wanted: many do so when they close.
func (x *exchange) broken(why string) {
	x.entry.Outcome.Truncated, x.entry.Outcome.Err = !strings.HasPrefix(why, "client: "), why
}

// noteTunnel records the verdict on what a client sent in x's tunnel, in place of
// the one that opened it.
func (p *Proxy) noteTunnel(x *exchange, v rules.Verdict, reason rules.Reason, detail string) {
	bad := p.newUnread(x.entry.Client, nil)
	e := &bad.entry
	e.Method, e.UserAgent, e.Agent = http.MethodConnect, x.entry.UserAgent, x.entry.Agent
	e.Scheme, e.Host = x.entry.Scheme, x.entry.Host
	e.Outcome.Duration = e.Time.Sub(x.entry.Time)
	e.ClientName, e.Mode = x.entry.ClientName, x.entry.Mode
	e.Judged = x.entry.Judged
	e.Revises = &audit.Revised{ID: x.entry.ID, Time: x.entry.Time, Decision: x.entry.Decision}
	bad.noteVerdict(v, reason, detail)
}

// relay is a tunnel at work.
type relay struct {
	client, site net.Conn
	idle         time.Duration // without an octet in either direction the tunnel ends
	last         atomic.Int64  // when the last octet passed, in Unix nanoseconds
	first        atomic.Value  // what went wrong first, as text
}

func (t *relay) touch() { t.last.Store(time.Now().UnixNano()) }

// close ends both sides at once.
func (t *relay) close() {
	t.client.Close()
	t.site.Close()
}

// calmBuffer is what a direction of a tunnel holds while nothing passes: most
// tunnels are idle most of the time.
const calmBuffer = 1 << 10

// copy passes on what comes from src, called name, until it ends, and tells
// dst of the end. When anything breaks, both sides are closed.
func (t *relay) copy(dst, src net.Conn, name string) error {
	small := make([]byte, calmBuffer)
	for {
		err := t.step(dst, src, small)
		switch {
		case err == nil:
			continue
		case err == io.EOF:
			closeWrite(dst)
			return nil
		case errors.Is(err, errIdle):
			name = "heed"
			err = fmt.Errorf("nothing passed for %v", t.idle)
		case errors.Is(err, errWrite):
			name = map[string]string{"client": "site", "site": "client"}[name]
		}
		t.first.CompareAndSwap(nil, name+": "+errorText(err))
		t.close()
		return err
	}
}

var (
	errIdle  = errors.New("the tunnel is idle")
	errWrite = errors.New("it does not take what is sent to it")
)

// step passes on what src has to give now. More than fits into small is read
// with a pooled buffer, as long as there is much of it.
func (t *relay) step(dst, src net.Conn, small []byte) error {
	n, err := t.read(src, small)
	if werr := t.write(dst, small[:n]); werr != nil {
		return werr
	}
	if err != nil || n < len(small) {
		return err
	}
	buf := copyBuffers.Get().(*[32 << 10]byte)
	defer copyBuffers.Put(buf)
	for n := len(buf); n == len(buf) || n > len(small); {
		n, err = t.read(src, buf[:])
		if werr := t.write(dst, buf[:n]); werr != nil {
			return werr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads once, as long as either direction is alive.
func (t *relay) read(src net.Conn, b []byte) (int, error) {
	for {
		last := time.Unix(0, t.last.Load())
		_ = src.SetReadDeadline(last.Add(t.idle))
		n, err := src.Read(b)
		if n > 0 {
			t.touch()
			return n, err
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		if t.last.Load() == last.UnixNano() { // nothing passed the other way either
			return 0, errIdle
		}
	}
}

func (t *relay) write(dst net.Conn, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_ = dst.SetWriteDeadline(time.Now().Add(t.idle))
	if _, err := dst.Write(b); err != nil {
		return fmt.Errorf("%w: %w", errWrite, err)
	}
	t.touch()
	return nil
}

// closeWrite passes the end of one direction on; the other goes on. Who cannot
// be told has gone.
func closeWrite(c net.Conn) {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
		return
	}
	c.Close()
}
