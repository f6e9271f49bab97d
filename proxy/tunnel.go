package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"heed/internal/audit"
	"heed/internal/base/memory"
	"heed/internal/base/safetext"
	"heed/internal/judge/acl"
	"heed/proxy/upstream"
	"heed/rules"
)

// openTunnel decides on a CONNECT that heed does not look into, and opens its
// far end. What it refuses is answered here, where a client sees it.
func (x *exchange) openTunnel(r *http.Request) net.Conn {
	q := &x.req
	dial := q.settings.DialTunnel
	if q.unseen == rules.ReasonOwnService {
		dial = x.proxy.config.OwnServices.DialTunnel
	}
	if ok, ports := q.effective.TunnelsTo(q.origin); !ok && q.unseen == "" || dial == nil {
		x.deny(denial{reason: rules.ReasonAccess, detail: "tunnels to " + safetext.Printable(q.origin.Host, 100) + " go to port " + ports + " only"})
		return nil
	}
	if x.decide(x); x.refusal != nil {
		return nil
	}
	site, err := dial(x, q.origin.HostPort())
	if err != nil {
		x.fail(r, err)
		return nil
	}
	if t := x.turn.Load(); t != nil {
		t.Started()
	}
	return site
}

// passTunnel carries the octets of a tunnel both ways until both sides have ended.
// None of the client's go out before its first ones were checked.
func (x *exchange) passTunnel(c *tunnelConn) {
	x.upgraded, x.writer.status = c, http.StatusOK // finish closes it
	x.proxy.open.add(c)
	x.lasts(c)
	t := &opaqueTunnel{x: &x.decision, client: c, site: x.site}
	reply := established
	if remark := x.remark(); remark != "" {
		reply = "HTTP/1.1 200 Connection established\r\nProxy-Status: " + remark + "\r\n\r\n"
	}
	if c.redirected == nil {
		if _, err := io.WriteString(c.Conn, reply); err != nil {
			t.end(audit.ByClient, safetext.Error(err))
			return
		}
	}
	t.relay()
}

// passOpaque passes on what heed cannot read in a tunnel, for a client that is
// observed only. The CONNECT has been answered.
func (x *exchange) passOpaque(c *tunnelConn) {
	c.tunnel, x.upgraded, x.writer.status = nil, c, http.StatusOK
	x.req.https, x.req.unseen = acl.Tunnel, rules.ReasonNotHTTP
	t := &opaqueTunnel{x: &x.decision, client: c}
	if x.decide(x); x.refusal != nil {
		t.end(audit.ByHeed, "the tunnel was closed: "+x.refusal.Phrase)
		return
	}
	site, err := x.req.settings.DialTunnel(x, x.req.origin.HostPort())
	if err != nil {
		t.end(audit.BySite, safetext.Error(err))
		return
	}
	defer site.Close()
	t.site = site
	x.lasts(c)
	t.relay()
}

// opaqueTunnel is a tunnel that heed does not intercept, at work.
type opaqueTunnel struct {
	x      *decision // of the CONNECT
	client *tunnelConn
	site   net.Conn
	idle   time.Duration // without an octet in either direction the tunnel ends
	last   atomic.Int64  // when the last octet passed, in Unix nanoseconds
	first  atomic.Pointer[ending]
}

// relay carries the octets of t until both directions have ended.
func (t *opaqueTunnel) relay() {
	x := t.x
	q := &x.req
	t.idle = q.settings.Limits.TunnelTime
	t.touch()
	answered := make(chan error, 1)
	go func() { answered <- t.copy(t.client, t.site, audit.BySite) }()
	if check := t.checkOfFirst(); check != nil {
		reason, detail, observed := check()
		switch {
		case observed:
			t.revise(rules.WouldRefuse, reason, detail)
		case reason != "" && t.client.revoked.Load() == nil:
			t.close()
			<-answered
			t.end(audit.ByHeed, "the tunnel was closed: "+detail)
			t.revise(rules.Refuse, reason, detail)
			return
		}
	}
	err := t.copy(t.site, t.client, audit.ByClient)
	if err := errors.Join(err, <-answered); err != nil {
		first := t.first.Load()
		t.end(first.by, first.why)
	}
}

// ending is what went wrong first.
type ending struct {
	by  audit.EndedBy
	why string
}

// end records what ended the tunnel. A client that resets its connection may
// have had all it wanted: many do so when they close.
func (t *opaqueTunnel) end(by audit.EndedBy, why string) {
	o := &t.x.entry.Outcome
	o.Truncated = by != audit.ByClient
	o.End(by, why)
}

// revise records the verdict on what the client sent, in place of the one that
// opened the tunnel.
func (t *opaqueTunnel) revise(v rules.Verdict, reason rules.Reason, detail string) {
	p, by := t.x.proxy, &t.x.entry
	e := p.unreadEntry(by.Client, t.x.req.client, nil)
	e.Method, e.UserAgent, e.Agent = by.Method, by.UserAgent, by.Agent
	e.Scheme, e.Host = by.Scheme, by.Host
	e.Outcome.Duration = e.Time.Sub(by.Time)
	e.ClientName, e.Mode = by.ClientName, by.Mode
	e.Judged = by.Judged
	e.Revises = &by.ID
	if p.note(e, v, reason, detail) {
		by.Outcome.Revision = e
	}
}

func (t *opaqueTunnel) touch() { t.last.Store(time.Now().UnixNano()) }

// close closes both sides.
func (t *opaqueTunnel) close() {
	t.client.Close()
	t.site.Close()
}

// calmBuffer is what a direction of a tunnel holds while nothing passes: most
// tunnels are idle most of the time.
const calmBuffer = 1 << 10

// copy passes on what comes from src, which by is, until it ends, and
// closes dst for writing then. When anything breaks, both sides are closed.
func (t *opaqueTunnel) copy(dst, src net.Conn, by audit.EndedBy) error {
	small := make([]byte, calmBuffer)
	for {
		err := t.step(dst, src, small)
		switch {
		case err == nil:
			continue
		case err == io.EOF:
			_ = upstream.CloseWrite(dst) // an error: the peer has gone
			return nil
		case errors.Is(err, errIdle):
			by = audit.ByHeed
			err = fmt.Errorf("nothing passed for %v", t.idle)
		case errors.Is(err, errWrite):
			by = audit.BySite + audit.ByClient - by
		}
		t.first.CompareAndSwap(nil, &ending{by, safetext.Error(err)})
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
func (t *opaqueTunnel) step(dst, src net.Conn, small []byte) error {
	n, err := t.read(src, small)
	if werr := t.write(dst, small[:n]); werr != nil {
		return werr
	}
	if err != nil || n < len(small) {
		return err
	}
	buf := memory.NewCopyBuffer()
	defer buf.Free()
	for full := true; full || n > len(small); {
		n, err = t.read(src, buf.Octets)
		full = n == len(buf.Octets)
		if werr := t.write(dst, buf.Octets[:n]); werr != nil {
			return werr
		}
		if err != nil {
			return err
		}
		if full {
			buf.Grow()
		}
	}
	return nil
}

// read reads once, as long as either direction is alive.
func (t *opaqueTunnel) read(src net.Conn, b []byte) (int, error) {
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

func (t *opaqueTunnel) write(dst net.Conn, b []byte) error {
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
