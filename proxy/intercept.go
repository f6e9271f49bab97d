package proxy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"heed/internal/audit"
	"heed/internal/base/safetext"
	"heed/internal/judge/acl"
	"heed/proxy/catrust"
	"heed/proxy/limit"
	"heed/rules"
)

// tunnel is an intercepted tunnel.
type tunnel struct {
	proxy      *Proxy
	addr       string         // the client's, with its port
	client     acl.ClientInfo // as its requests are judged
	proof      [32]byte       // of the password of its user; see request
	counted    *limit.Conn    // the network connection
	userAgent  string         // of the CONNECT
	trust      catrust.Attempt
	origin     rules.Origin
	serverName string // the TLS server name when it differs from the CONNECT host; else empty
	opened     time.Time
	shown      bool         // a certificate was sent, so that the client can dislike it
	resumed    bool         // the client accepted the certificate in an earlier connection
	leafErr    error        // why there was none to send
	spelling   *clientHello // what was rejected of the client; nil: nothing was
	conn       *tunnelConn
	inside     *tls.Conn       // of conn, after the handshake
	redirected *redirectedConn // the redirected connection that is the tunnel; nil: a CONNECT opened it
	unnamed    bool            // no name is known of the site of redirected: each request has its own
	requests   atomic.Int64
	streams    streams      // of HTTP/2
	unrecorded atomic.Int64 // requests over HTTP/2 that got neither an answer nor a record
}

// intercept takes over a CONNECT's connection: TLS or plain HTTP, nothing
// else, and has what is inside served.
func (x *exchange) intercept(c *tunnelConn) {
	p := x.proxy
	t := &tunnel{
		proxy: p, addr: x.entry.Client, client: x.req.client, proof: x.req.proof, counted: x.req.conn.counted,
		userAgent: x.req.userAgent, trust: catrust.Attempt{Client: x.req.trustClient(x.entry.Client)}, origin: x.req.origin, opened: x.entry.Time, conn: c,
		redirected: x.req.conn.redirected,
	}
	t.unnamed = t.redirected != nil && t.redirected.unnamed
	c.tunnel = t
	p.open.add(c)
	defer p.open.remove(c)
	p.caTrust.Opened(&t.trust, t.opened)
	defer func() {
		if v := recover(); v != nil {
			p.caTrust.Closed(&t.trust)
			c.Close() // the connection has left its server, which does not
			panic(v)
		}
	}()
	_ = c.SetDeadline(time.Now().Add(p.limits().ConnectTime))
	first, err := c.open()
	_ = c.SetDeadline(time.Now().Add(p.limits().HandshakeTime))
	switch {
	case err != nil:
		p.gate.CountTimeout(limit.ConnectTime, err)
		t.refused(c, rules.ReasonHandshake, "nothing came after CONNECT: "+endText(err))
	case first == recordHandshake:
		t.handshakeTLS(c)
	case first|0x20 >= 'a' && first|0x20 <= 'z' && !c.begins("SSH-"): // methods are spelt in either case
		t.origin.Scheme = "http"
		p.caTrust.Closed(&t.trust) // it shows nothing of what its client makes of the CA
		_ = c.SetDeadline(time.Time{})
		go t.clientConn(c).serve()
	case x.req.mayPassOpaque():
		p.caTrust.Closed(&t.trust)
		x.passOpaque(c)
	default:
		t.refused(c, rules.ReasonNotHTTP, "the octets in the tunnel are neither TLS nor HTTP")
	}
}

// clientConn returns c, the decrypted side of t, on which HTTP/1 is spoken.
func (t *tunnel) clientConn(c net.Conn) *clientConn {
	return t.proxy.newClientConn(c, t.counted, t.client, t)
}

// handshakeTLS makes the handshake and has the decrypted connection served.
func (t *tunnel) handshakeTLS(c *tunnelConn) {
	p := t.proxy
	conn := tls.Server(c, p.tlsConfig)
	tap := &bytes.Buffer{}
	c.tap = tap
	err := conn.Handshake()
	c.tap = nil
	if p.config.Handshake != nil {
		p.config.Handshake(err)
	}
	if err != nil {
		p.gate.CountTimeout(limit.HandshakeTime, err)
		reason, detail := t.handshakeFailure(err, tap.Bytes())
		t.refused(c, reason, detail)
		return
	}
	_ = c.SetDeadline(time.Time{})
	t.inside = conn
	state := conn.ConnectionState()
	t.resumed = state.DidResume
	if o, err := rules.ParseOrigin("https", state.ServerName); state.ServerName != "" && (err != nil || o.Host != t.origin.Host) {
		t.serverName = state.ServerName // refused inside, where the client can read it
	}
	if state.NegotiatedProtocol == "h2" {
		p.h2Tunnels.push(t.h2Conn(conn))
		return
	}
	go t.clientConn(conn).serve()
}

// newTLSConfig returns the configuration that all tunnels share, so that sessions
// resume. What it returns for a client on this machine uses its ticket keys, too.
func (p *Proxy) newTLSConfig() *tls.Config {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			t := hello.Conn.(*tunnelConn).tunnel
			t.trust.Hello = catrust.Fingerprint(hello)
			host := t.origin.Host
			if hello.ServerName != "" {
				o, err := rules.ParseOrigin("https", hello.ServerName)
				if err != nil {
					return nil, err
				}
				host = o.Host
			}
			leaf, err := p.config.Leaves.Leaf(host)
			t.shown, t.leafErr = err == nil, err
			return leaf, err
		},
	}
	local := config.Clone()
	local.CurvePreferences = classicCurves
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if hello.Conn.(*tunnelConn).tunnel.client.Addr.IsLoopback() && slices.ContainsFunc(hello.SupportedCurves, isClassicCurve) {
			return local, nil
		}
		return nil, nil
	}
	return config
}

// classicCurves are the key exchanges without a post-quantum part. That part protects
// recorded traffic from later decryption, takes a sixth of the CPU time of a new
// connection, and is of no use on a connection that does not leave the machine.
var classicCurves = []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}

func isClassicCurve(c tls.CurveID) bool { return slices.Contains(classicCurves, c) }

// requested notes that a request came through t. The first one inside TLS shows
// that the client accepts the CA.
func (t *tunnel) requested(now time.Time) {
	if t.requests.Add(1) == 1 && t.origin.Scheme == "https" {
		t.proxy.caTrust.Accepted(&t.trust, now)
	}
}

// handshakeReason distinguishes a client that does not trust the CA from one that
// never finished or never saw a certificate. What is seen of the former
// depends on its TLS library: an alert, a hang-up, or (OpenSSL on TLS 1.3) a
// record that cannot be decrypted.
func (t *tunnel) handshakeReason(err error) rules.Reason {
	switch {
	case t.leafErr != nil:
		return rules.ReasonInternal
	case !t.shown, isTimeout(err):
		return rules.ReasonHandshake
	}
	return rules.ReasonUntrusted
}

// isTimeout reports whether err is that of a deadline, or the kernel's of a peer that has gone.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// handshakeFailure returns what a handshake that failed with err is recorded as. octets are
// the first ones of the client: the fault may be in its hello, which heed cannot mend, since
// the hello is a part of what both sides sign (RFC 8446 §4.4.1).
func (t *tunnel) handshakeFailure(err error, octets []byte) (rules.Reason, string) {
	reason, detail := t.handshakeReason(err), "the TLS handshake failed: "+endText(err)
	if h, _ := helloOf(octets); h != nil && reason == rules.ReasonHandshake && !t.shown {
		t.spelling = h
		var op *net.OpError
		switch {
		case h.fault != "":
			return rules.ReasonMalformed, h.fault + passUnjudged
		case errors.As(err, &op) && op.Op == "local error":
			return rules.ReasonMalformed, "the TLS hello breaks its standard: " + safetext.Error(err) + passUnjudged
		}
	}
	if reason == rules.ReasonUntrusted && blamesTime(err, octets) {
		detail += "; " + audit.WrongClock
	}
	return reason, detail
}

// blamesTime reports whether a client ended a handshake for the time of a certificate. crypto/tls
// has a client's alert only as text. In TLS 1.3, OpenSSL does not encrypt it, so that crypto/tls
// cannot read it; it sends bad_certificate for one that is not valid yet, and for little else,
// where Go's clients send that for all.
func blamesTime(err error, octets []byte) bool {
	const badCertificate, expired = 42, 45 // RFC 8446 §6
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "remote error" {
		return op.Err.Error() == "tls: expired certificate"
	}
	last, _ := bytes.CutPrefix(octets[max(0, len(octets)-7):], []byte{21, 3, 3, 0, 2}) // a record of one alert
	return len(last) == 2 && (last[1] == badCertificate || last[1] == expired)
}

// trustHint is added to the record of a client that does not accept the CA.
const trustHint = "; if this client does not trust heed's CA yet, give it the file that heed ca path prints"

// refused records a tunnel in which nothing was asked for, and closes it.
func (t *tunnel) refused(c io.Closer, reason rules.Reason, detail string) {
	c.Close()
	t.proxy.caTrust.Closed(&t.trust)
	e := t.proxy.unreadEntry(t.addr, t.client, t)
	if reason == rules.ReasonUntrusted {
		detail += trustHint
		t.proxy.caTrust.Rejected(&t.trust, e.Time)
	}
	e.Method, e.UserAgent, e.Agent = http.MethodConnect, t.userAgent, t.proxy.agents.agentOf(t.userAgent)
	e.Outcome.Duration = e.Time.Sub(t.opened)
	if t.spelling != nil {
		e.Host = t.spelling.dotted(e.Host)
	}
	if a := t.redirected; a != nil {
		a.record(e, t.origin.Scheme == "https")
		detail = audit.Redirected(detail, a.original)
	}
	t.proxy.note(e, rules.Refuse, reason, detail)
}

// notTLS returns what was wrong with what came after the handshake, such as octets that
// cannot be decrypted; nil: nothing is known, or the tunnel is not of TLS. The connection must
// be closed, so that a read does not wait: it returns again what ended an earlier one.
func (t *tunnel) notTLS() error {
	if t.inside == nil {
		return nil
	}
	_, err := t.inside.Read(make([]byte, 1))
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "local error" {
		return op.Err
	}
	return nil
}

// closed is called when a tunnel's connection has ended. GnuTLS and others
// finish the handshake before they reject a certificate, so that a tunnel
// without a request is all there is to see. begun: octets have come from inside.
func (t *tunnel) closed(begun bool) {
	last := t.proxy.caTrust.Closed(&t.trust)
	if t.requests.Load() > 0 || t.proxy.closing.Load() {
		return
	}
	reason, detail := rules.ReasonHandshake, ""
	switch err := t.notTLS(); {
	case t.origin.Scheme == "http":
		detail = "no complete request came through the tunnel"
	case time.Since(t.opened) >= t.proxy.limits().HeaderTime:
		detail = "no request came after the handshake"
	case begun:
		detail = "no request that can be read came through the tunnel"
	case err != nil:
		detail = "what came after the handshake is not valid TLS: " + safetext.Error(err)
	default:
		reason, detail = rules.ReasonUntrusted, "the client closed the tunnel after the handshake, without a request"
	}
	t.requests.Add(1) // once
	sameHost, anyHost := t.proxy.caTrust.Recently(&t.trust, time.Now())
	spare := reason == rules.ReasonUntrusted && (!last || anyHost)
	if t.origin.Scheme == "https" && (spare || sameHost || t.resumed) {
		return // a spare connection: nothing was asked for and nothing is wrong
	}
	t.refused(io.NopCloser(nil), reason, detail)
}
