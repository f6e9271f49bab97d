package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"heed/internal/audit"
	"heed/internal/terms"
	"heed/rules"
)

// tunnel is what a CONNECT asked for.
type tunnel struct {
	proxy      *Proxy
	client     string
	userAgent  string // of the CONNECT
	asker      asker
	hello      uint64 // what the client's TLS library is like; see likeness
	origin     rules.Origin
	serverName string // the TLS server name when it differs from the CONNECT host; else empty
	opened     time.Time
	shown      bool  // a certificate was sent, so that the client can dislike it
	resumed    bool  // the client accepted the certificate in an earlier connection
	undecided  bool  // it has neither ended nor brought a request; of trusts
	leafErr    error // why there was none to send
	conn       *tunnelConn
	handshake  int64 // records with data that belong to the handshake
	requests   atomic.Int64
	streams    streams // of HTTP/2
	unheard    unheard // likewise
}

// connect answers a CONNECT: what can be refused without looking inside is
// refused here, everything else inside the tunnel, where the client sees it.
func (p *Proxy) connect(x *exchange, w *responseWriter, r *http.Request) {
	x.entry.Raw = r.RequestURI
	origin, err := rules.ParseOrigin("https", r.Host)
	_, port, splitErr := net.SplitHostPort(r.Host)
	if err == nil {
		x.origin = origin
		x.entry.Scheme, x.entry.Host = origin.Scheme, origin.Authority()
	}
	switch {
	case r.RequestURI != r.Host:
		x.entry.Raw = "" // it may hold credentials
		x.refuse(malformed("CONNECT needs host:port and nothing else"))
	case err != nil:
		x.refuse(malformed("CONNECT: " + err.Error()))
	case splitErr != nil || port == "":
		x.refuse(malformed("CONNECT needs host:port"))
	case passed(r.Header["Via"], p.Name) || p.Self.has(origin.HostPort()):
		x.refuse(rules.Decision{Reason: rules.ReasonLoop}, "the tunnel would lead back to heed")
	}
	if s := x.seat(); s != nil && x.refusal == nil {
		if over := s.enterTunnel(); over != nil {
			p.tell(over)
			x.refuseLimit(over)
		}
		defer func() {
			if !w.hijacked { // no tunnel after all
				s.leaveTunnel()
			}
		}()
	}
	if x.refusal != nil {
		x.answer(w, r)
		return
	}
	r = r.WithContext(x)
	x.identify()
	x.https, x.unseen = x.lookInside()
	switch x.https {
	case terms.Intercept:
		if x.terms.Mode == terms.Enforce && p.trusts.owes(askerOf(x.entry.Client, origin.Host, x.entry.UserAgent), x.entry.Time) {
			x.refuse(rules.Decision{Reason: rules.ReasonUntrusted}, "its last tunnel to "+printable(origin.Host, 100)+" ended in the TLS handshake with heed; the next is let through again")
		} else if _, err := p.Leaves.Leaf(origin.Host); err != nil { // told here, where a client can read it
			p.Log.Error("no certificate can be made for a site", "host", origin.Host, "error", err)
			x.refuse(rules.Decision{Reason: rules.ReasonInternal}, "no certificate can be made for "+printable(origin.Host, 100))
		}
	case terms.HostOnly, terms.Tunnel:
		if x.site = p.openTunnel(x, r); x.site != nil {
			defer x.site.Close()
		}
	default:
		x.refuse(rules.Decision{Reason: rules.ReasonAccess}, "the operator lets no https through to "+printable(origin.Host, 100))
	}
	if x.refusal != nil {
		x.answer(w, r)
		return
	}
	p.engine.ServeHTTP(w, r)
}

// lookInside says what becomes of a CONNECT. Where x is observed only, a client
// that rejects the CA there is not held up by it: its tunnels pass unseen.
func (x *exchange) lookInside() (terms.HTTPS, rules.Reason) {
	h := x.terms.HTTPS()
	if h != terms.Intercept || x.terms.Mode != terms.Observe {
		return h, ""
	}
	if x.proxy.trusts.rejects(askerOf(x.entry.Client, x.origin.Host, x.entry.UserAgent), x.entry.Time) {
		return terms.Tunnel, rules.ReasonUntrusted
	}
	return h, ""
}

// passesUnread reports whether what is neither TLS nor HTTP may pass in x's
// tunnel: where it is observed only, to ports that tunnels may go to.
func (x *exchange) passesUnread() bool {
	ok, _ := x.terms.TunnelsTo(x.origin)
	return ok && x.terms.Mode == terms.Observe && x.settings.DialTunnel != nil
}

const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// intercept takes over a CONNECT's connection: TLS or plain HTTP, nothing
// else, and hands what is inside to the inner server.
func (p *Proxy) intercept(x *exchange, c *tunnelConn) {
	t := &tunnel{
		proxy: p, client: x.entry.Client, userAgent: x.entry.UserAgent, origin: x.origin,
		asker:  askerOf(x.entry.Client, x.origin.Host, x.entry.UserAgent),
		opened: x.entry.Time, conn: c,
	}
	c.tunnel = t
	p.open.add(c)
	defer p.open.remove(c)
	p.trusts.enter(t)
	defer func() {
		if v := recover(); v != nil {
			p.trusts.leave(t)
			c.Close() // nobody else would: the connection has left its server
			panic(v)
		}
	}()
	_ = c.SetDeadline(time.Now().Add(p.limits().ConnectTime))
	first, err := c.open()
	_ = c.SetDeadline(time.Now().Add(p.limits().HandshakeTime))
	switch {
	case err != nil:
		p.lateTunnel(limitConnectTime, err)
		t.refused(c, rules.ReasonHandshake, "nothing came after CONNECT: "+endText(err))
	case first == recordHandshake:
		p.interceptTLS(c, t, x.who)
	case first|0x20 >= 'a' && first|0x20 <= 'z': // methods are spelt in either case
		t.origin.Scheme = "http"
		_ = c.SetDeadline(time.Time{})
		p.handovers.push(&clientConn{Conn: c, proxy: p, who: x.who, tunnel: t})
	case x.passesUnread():
		p.trusts.leave(t)
		p.passUnread(x, c)
	default:
		t.refused(c, rules.ReasonNotHTTP, "the bytes in the tunnel are neither TLS nor HTTP")
	}
}

func (p *Proxy) interceptTLS(c *tunnelConn, t *tunnel, who terms.Who) {
	conn := tls.Server(c, p.tlsConfig)
	if err := conn.Handshake(); err != nil {
		p.lateTunnel(limitHandshakeTime, err)
		t.refused(c, t.handshakeReason(err), "the TLS handshake failed: "+endText(err))
		return
	}
	_ = c.SetDeadline(time.Time{})
	state := conn.ConnectionState()
	t.resumed = state.DidResume
	if state.Version >= tls.VersionTLS13 {
		t.handshake = 1 // the client's Finished is encrypted as data is
	}
	if o, err := rules.ParseOrigin("https", state.ServerName); state.ServerName != "" && (err != nil || o.Host != t.origin.Host) {
		t.serverName = state.ServerName // told inside, where the client can read it
	}
	if state.NegotiatedProtocol == "h2" {
		p.handovers.push(conn) // net/http speaks HTTP/2 on a bare *tls.Conn only
		return
	}
	p.handovers.push(&clientConn{Conn: conn, proxy: p, who: who, tunnel: t})
}

// newTLSConfig returns the one configuration that all tunnels share, so that
// sessions resume.
func (p *Proxy) newTLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			t := hello.Conn.(*tunnelConn).tunnel
			t.hello = likeness(hello)
			host := t.origin.Host
			if hello.ServerName != "" {
				o, err := rules.ParseOrigin("https", hello.ServerName)
				if err != nil {
					return nil, err
				}
				host = o.Host
			}
			leaf, err := p.Leaves.Leaf(host)
			t.shown, t.leafErr = err == nil, err
			return leaf, err
		},
	}
}

// handshakeReason tells a client that does not trust the CA from one that
// never finished or never saw a certificate. What is seen of the former
// depends on its TLS library: an alert, a hang-up, or (OpenSSL on TLS 1.3) a
// record that cannot be decrypted.
func (t *tunnel) handshakeReason(err error) rules.Reason {
	var netErr net.Error
	switch {
	case t.leafErr != nil:
		return rules.ReasonInternal
	case !t.shown, errors.As(err, &netErr) && netErr.Timeout():
		return rules.ReasonHandshake
	}
	return rules.ReasonUntrusted
}

// trustHint is added to the record of a client that does not accept the CA.
const trustHint = "; if this client does not trust heed's CA yet, give it the file that heed ca path prints"

// refused records a tunnel in which nothing was asked for, and closes it.
func (t *tunnel) refused(c io.Closer, reason rules.Reason, detail string) {
	c.Close()
	t.proxy.trusts.leave(t)
	x := t.proxy.newUnread(t.client, t)
	if reason == rules.ReasonUntrusted {
		detail += trustHint
		t.proxy.trusts.rejected(t, x.entry.Time)
	}
	x.entry.UserAgent, x.entry.Agent = t.userAgent, t.proxy.agents.identify(t.userAgent)
	x.entry.Method = http.MethodConnect
	x.entry.Judged = audit.NotJudged
	x.entry.Outcome.Duration = x.entry.Time.Sub(t.opened)
	x.note(reason, detail)
}

// closed is called when a tunnel's connection has ended. GnuTLS and others
// finish the handshake before they reject a certificate, so that a tunnel
// without a request is all there is to see.
func (t *tunnel) closed() {
	last := t.proxy.trusts.leave(t)
	if t.requests.Load() > 0 || t.unheard.any() || t.proxy.closing.Load() {
		return
	}
	reason, detail := rules.ReasonUntrusted, "the client closed the tunnel after the handshake, without a request"
	if t.conn.records.data.Load() > t.handshake {
		reason, detail = rules.ReasonHandshake, "no request that can be read came through the tunnel"
	}
	if time.Since(t.opened) >= t.proxy.limits().HeaderTime {
		reason, detail = rules.ReasonHandshake, "no request came after the handshake"
	}
	if t.origin.Scheme == "http" {
		reason, detail = rules.ReasonHandshake, "no complete request came through the tunnel"
	}
	t.requests.Add(1) // once
	sameHost, anyHost := t.proxy.trusts.recently(t, time.Now())
	spare := reason == rules.ReasonUntrusted && (!last || anyHost)
	if t.origin.Scheme == "https" && (spare || sameHost || t.resumed) {
		return // a spare connection: nothing was asked for and nothing is wrong
	}
	t.refused(io.NopCloser(nil), reason, detail)
}

// endText says how a connection ended, without addresses.
func endText(err error) string {
	switch {
	case errors.Is(err, io.EOF):
		return "the client hung up"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "no more bytes in time"
	}
	return errorText(err)
}

// tunnelConn is a connection taken from an http.Server: it first gives back
// the bytes that the server had read ahead.
type tunnelConn struct {
	net.Conn
	head     []byte
	exchange *exchange
	tunnel   *tunnel // nil for WebSockets

	read, wrote atomic.Int64 // octets that passed
	records     tlsRecords   // of the client; meaningless where it does not speak TLS
}

// open tells the client that the tunnel stands and returns the first octet
// from inside without consuming it.
func (c *tunnelConn) open() (byte, error) {
	if _, err := io.WriteString(c.Conn, established); err != nil {
		return 0, err
	}
	if len(c.head) == 0 {
		b := make([]byte, 1)
		if _, err := io.ReadFull(c.Conn, b); err != nil {
			return 0, err
		}
		c.head = b
	}
	return c.head[0], nil
}

// Read implements net.Conn.
func (c *tunnelConn) Read(b []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(b, c.head)
		c.head = c.head[n:]
		c.passed(b[:n])
		return n, nil
	}
	n, err := c.Conn.Read(b)
	c.passed(b[:n])
	return n, err
}

func (c *tunnelConn) passed(b []byte) {
	c.read.Add(int64(len(b)))
	if c.tunnel != nil {
		c.records.pass(b)
	}
}

// Write implements net.Conn.
func (c *tunnelConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.wrote.Add(int64(n))
	return n, err
}

// CloseWrite passes a half-close on.
func (c *tunnelConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}
