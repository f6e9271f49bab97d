package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/base/safetext"
	"heed/internal/judge/acl"
	"heed/internal/judge/redirect"
	"heed/proxy/balancer"
	"heed/proxy/catrust"
	"heed/proxy/limit"
	"heed/rules"
)

// Transparent is a listener for connections that clients made to a site, not to heed:
// the kernel has redirected them.
type Transparent struct {
	// Listener accepts the connections. Where the local address of one is its original
	// destination, Addr is the Listener by which [[client]] entries distinguish clients.
	net.Listener

	// Original returns the address that a client connected to, with an IPv4-mapped
	// address unmapped. It takes what Listener accepted. On an error the connection is
	// refused; for one that was made to the listener itself it wraps redirect.ErrDirect.
	Original func(net.Conn) (netip.AddrPort, error)

	// Name returns the one host name that the address was given out for. Requests must
	// then be for that name, which is the site also where a client sends no name.
	// Nil: addresses are those of the network.
	Name func(netip.Addr) (name string, ok bool)

	// TunnelOther returns whether connections that carry neither HTTP nor TLS are passed
	// on to their original destination, recorded as not judged. Nil: they are refused.
	TunnelOther func() bool

	// Balancers returns the networks of load balancers, as Settings.Balancers; the header
	// names the original destination too. Nil: there are none.
	Balancers func() []netip.Prefix

	// Foreign means that the clients are in another network namespace than heed, so that
	// equal addresses have no meaning.
	Foreign bool
}

// ServeTransparent accepts clients on l until Shutdown, then returns nil. It closes the
// Listener, whose address is added to Self unless it is foreign.
//
// A request is judged and sent on by the name that the client states in Host or in the
// TLS hello, as heed itself resolves it, and never by its original destination. Without
// a name the address is the site.
func (p *Proxy) ServeTransparent(l Transparent) error {
	if self := p.config.Self; !l.Foreign {
		self.Add(l.Addr())
		defer self.Remove(l.Addr())
		defer self.WatchDials()()
	}
	balancers := l.Balancers
	if balancers == nil {
		balancers = func() []netip.Prefix { return nil }
	}
	return p.accept(l.Listener, balancers, func(c net.Conn, _ *limit.Exceeded) { resetConn(c) }, func(c *limit.Conn) {
		(&redirectedConn{proxy: p, listener: &l, counted: c}).serve()
	})
}

// redirectedConn is a connection that a transparent listener has accepted.
type redirectedConn struct {
	proxy    *Proxy
	listener *Transparent
	counted  *limit.Conn
	client   acl.ClientInfo
	original netip.AddrPort // that the client connected to
	name     string         // that the address was given out for; empty: it was not
	at       time.Time
	unnamed  bool // no name is known of the site
	opaque   bool // neither HTTP nor TLS
	silent   bool // opaque, since the client had sent nothing: what it sends later is to be checked
	conn     *tunnelConn
}

// serve finds out what is spoken on the connection, and hands it over to the path that
// requests of that kind take.
func (a *redirectedConn) serve() {
	p := a.proxy
	a.at, a.client = time.Now(), clientInfo(a.counted)
	a.conn = &tunnelConn{Conn: a.counted, redirected: a}
	p.open.add(a.conn)
	defer p.open.remove(a.conn)
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			p.config.Log.Error("a connection failed inside heed; only this connection is affected", "panic", v, "stack", string(debug.Stack()))
			a.reset()
		}
	}()
	if faulty, ok := a.counted.Conn.(*faultyConn); ok {
		a.refuse(rules.ReasonMalformed, faulty.fault)
		return
	}
	unknown := a.locate()
	kind, err := a.sniff()
	switch { // a client connects before heed could refuse it; it is refused when it sends something
	case unknown != nil:
		a.refuse(rules.ReasonLoop, "the original destination is not known: "+safetext.Error(unknown))
	case a.isLoop():
		a.refuse(rules.ReasonLoop, "the connection would lead back to heed")
	case kind == redirect.TLS:
		a.serveTLS()
	case kind == redirect.HTTP1:
		a.serveHTTP(false)
	case kind == redirect.HTTP2:
		a.serveHTTP(true)
	case errors.Is(err, io.EOF) && len(a.conn.head) == 0, p.lasting.Err() != nil:
		a.conn.Close() // nothing was asked for
	default:
		a.serveOther(err)
	}
}

// locate finds out where the client connected to.
func (a *redirectedConn) locate() error {
	original, err := a.destination()
	if err != nil {
		return err
	}
	a.original = netip.AddrPortFrom(original.Addr().Unmap().WithZone(""), original.Port())
	if local, _ := netip.ParseAddrPort(a.counted.LocalAddr().String()); local.Addr().Unmap() == a.original.Addr() {
		a.client.Listener = a.listener.Addr().String() // else a redirect rule leads to the local address
	}
	if a.listener.Name != nil {
		a.name, _ = a.listener.Name(a.original.Addr())
	}
	return nil
}

// destination returns the address that the client connected to.
func (a *redirectedConn) destination() (netip.AddrPort, error) {
	if b, ok := a.counted.Conn.(*balancer.Conn); ok {
		return b.Destination(), nil
	}
	return a.listener.Original(a.counted.Conn)
}

// isLoop reports whether the connection was made to heed, or by heed: its own requests
// are redirected where the rules of the kernel do not leave them out.
func (a *redirectedConn) isLoop() bool {
	self := a.proxy.config.Self
	if a.listener.Foreign {
		return false
	}
	client, _ := netip.ParseAddrPort(a.counted.RemoteAddr().String())
	return self.Has(a.original.String()) || self.Dialled(client, a.original)
}

// quiet is how long a client may take where the server may speak first, before it is
// taken for one of such a protocol.
const quiet = time.Second

// sniff reads the first octets, which stay to be read, and returns what they are. The
// error is why there are not enough of them.
func (a *redirectedConn) sniff() (redirect.Kind, error) {
	p, c := a.proxy, a.conn
	patience := p.limits().ConnectTime
	if redirect.ServerFirst(a.original.Port()) && a.tunnelsOther() {
		patience = min(patience, quiet)
	}
	stop := context.AfterFunc(p.lasting, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) }) // nothing was asked for yet
	defer stop()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	kind, first, err := redirect.ReadFirst(c.Conn.Read)
	if c.head = first; kind == redirect.HTTP1 { // servers ignore empty lines before a request (RFC 9112 §2.2)
		c.head = first[redirect.EmptyLines(first):]
	}
	return kind, err
}

// tunnelsOther reports whether what is neither HTTP nor TLS is passed on.
func (a *redirectedConn) tunnelsOther() bool {
	return a.listener.TunnelOther != nil && a.listener.TunnelOther()
}

// site returns the origin that the connection was made to: its name where one was given
// out for the address, and the address otherwise.
func (a *redirectedConn) site(scheme string) rules.Origin {
	at := a.original.String()
	if a.name != "" {
		at = net.JoinHostPort(a.name, at[strings.LastIndexByte(at, ':')+1:])
	}
	o, err := rules.ParseOrigin(scheme, at)
	if err != nil { // no address is a bad host
		o = rules.Origin{Scheme: scheme, Host: a.original.Addr().String(), Port: a.original.Port()}
	}
	return o
}

// isSite reports whether the client may mean o, which it has named: the port is that of
// its connection, and so is the address, where o is one, or the name that its address
// was given out for.
func (a *redirectedConn) isSite(o rules.Origin) bool {
	if o.Port != a.original.Port() {
		return false
	}
	if a.name != "" {
		return o == a.site(o.Scheme)
	}
	_, err := netip.ParseAddr(strings.Trim(o.Host, "[]"))
	return err != nil || o == a.site(o.Scheme)
}

// serveHTTP serves the connection, on which HTTP is spoken. Each request names its site.
func (a *redirectedConn) serveHTTP(h2 bool) {
	p, c := a.proxy, a.conn
	t := &tunnel{
		proxy: p, addr: c.RemoteAddr().String(), client: a.client, counted: a.counted, origin: a.site("http"), opened: a.at, conn: c,
		redirected: a, unnamed: a.name == "",
	}
	t.trust = catrust.Attempt{Client: catrust.ClientOf(a.client.Addr.String(), t.origin.Host, "")}
	c.tunnel = t
	_ = c.SetReadDeadline(time.Time{})
	if h2 {
		p.h2Tunnels.push(t.h2Conn(c))
		return
	}
	go t.clientConn(c).serve()
}

// serveTLS takes the connection as a tunnel to the site that the TLS hello names.
func (a *redirectedConn) serveTLS() {
	p, c := a.proxy, a.conn
	_ = c.SetReadDeadline(time.Now().Add(p.limits().HandshakeTime))
	hello := readHello(c)
	if hello == nil {
		a.refuse(rules.ReasonHandshake, "the connection begins like TLS, and no TLS hello followed")
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	site := a.site("https")
	name, named := hello.name(), a.name != ""
	if name != "" && a.name == "" {
		_, port, _ := net.SplitHostPort(site.HostPort())
		if o, err := rules.ParseOrigin("https", net.JoinHostPort(name, port)); err == nil && a.isSite(o) {
			site, named = o, true
		} else {
			named = true // another address, or no name at all: refused inside, where the client can read it
		}
	}
	a.tunnel(site, !named)
}

// serveOther passes on or refuses what is neither HTTP nor TLS. err is why it ended
// before that was clear; nil: it did not.
func (a *redirectedConn) serveOther(err error) {
	if silent := len(a.conn.head) == 0 && isTimeout(err); a.tunnelsOther() && (err == nil || silent) {
		_ = a.conn.SetReadDeadline(time.Time{})
		a.opaque, a.silent = true, silent
		a.tunnel(a.site("https"), true)
		return
	}
	switch {
	case len(a.conn.head) == 0:
		a.proxy.gate.CountTimeout(limit.ConnectTime, err)
		a.refuse(rules.ReasonHandshake, "nothing came from the client: "+endText(err))
	case err != nil:
		a.refuse(rules.ReasonNotHTTP, "the connection ended before it was TLS or HTTP: "+endText(err))
	default:
		a.refuse(rules.ReasonNotHTTP, "the connection carries neither TLS nor HTTP")
	}
}

// tunnel handles the connection as if the client had sent a CONNECT to the site, with
// which it has in common all but the answer: there is none.
func (a *redirectedConn) tunnel(site rules.Origin, unnamed bool) {
	p := a.proxy
	a.unnamed = unnamed
	conn := &clientConn{Conn: a.conn, proxy: p, counted: a.counted, client: a.client, redirected: a}
	at := site.HostPort()
	r := (&http.Request{
		Method: http.MethodConnect, URL: &url.URL{Host: at}, Host: at, RequestURI: at, Header: http.Header{}, Body: http.NoBody,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: a.conn.RemoteAddr().String(),
	}).WithContext(context.WithValue(context.Background(), clientConnKey{}, conn))
	w := redirect.NewNoAnswer(a.conn)
	defer func() {
		if !w.Taken() {
			a.reset()
		}
	}()
	p.handle(w, r)
}

// refuse records that the connection is refused, and resets it. No request was made on it, and
// no CONNECT: it is recorded as TCP to an address.
func (a *redirectedConn) refuse(reason rules.Reason, detail string) {
	p := a.proxy
	e := p.unreadEntry(a.conn.RemoteAddr().String(), a.client, nil)
	if a.record(e, false); a.original.IsValid() {
		detail = audit.Redirected(detail, a.original)
	}
	e.Outcome.Duration = e.Time.Sub(a.at)
	a.reset()
	p.note(e, rules.Refuse, reason, detail)
}

// record writes into e what the connection is recorded as: TLS, or TCP to an address and a
// port. No client has sent a CONNECT.
func (a *redirectedConn) record(e *audit.Entry, isTLS bool) {
	e.Method, e.Raw = audit.MethodTLS, ""
	if isTLS {
		return
	}
	if e.Method, e.Scheme = audit.MethodTCP, "tcp"; a.original.IsValid() {
		e.Host = a.site("https").HostPort()
	}
}

// reset ends the connection in a way that no client takes for an answer.
func (a *redirectedConn) reset() { resetConn(a.counted) }

// resetConn closes c with a reset where it can.
func resetConn(c net.Conn) {
	raw := c
	if counted, ok := c.(*limit.Conn); ok {
		raw = counted.Conn
	}
	if tcp, ok := raw.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}
