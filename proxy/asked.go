package proxy

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"heed/internal/base/safetext"
	"heed/internal/judge/acl"
	"heed/proxy/http1"
	"heed/proxy/limit"
	"heed/proxy/upstream"
	"heed/rules"
)

// Asked is a listener on which other proxies ask whether a request of their client may pass,
// and send it themselves. Such a request goes the way of every other, through the same hook,
// and is recorded as one whose answer heed has not seen.
type Asked struct {
	net.Listener

	// Trust returns the networks of these proxies. What they say of a request and its
	// client is believed; all others are refused.
	Trust func() []netip.Prefix

	// Patience returns how long an answer waits for the turn of a request at most. Nil, or
	// returning nil: as long as the client would wait elsewhere.
	Patience func() *time.Duration

	// UseUnseen returns whether clients with a purpose are served, although heed does not see
	// what a page states of its use. Nil: they are refused.
	UseUnseen func() bool

	// Bumped returns whether these proxies decrypt TLS, and ask about the requests in a tunnel
	// as well: a CONNECT may pass then. Nil: one to a host whose tunnels heed would look into
	// is refused. It is for ServeICAP.
	Bumped func() bool

	// Balancers returns the networks of load balancers, as Settings.Balancers. Nil: there
	// are none.
	Balancers func() []netip.Prefix

	// Questions counts what is asked. Nil: nothing is counted.
	Questions *Questions
}

// Questions are the numbers of questions by their answers, since a listener was opened. A
// question counts once: as Refused also where only the answer of the site was refused.
type Questions struct{ Allowed, Refused, Faulty atomic.Int64 }

// count counts a question that may pass, or, with a fault, cannot be understood.
func (q *Questions) count(allowed, faulty bool) {
	switch {
	case q == nil:
	case allowed:
		q.Allowed.Add(1)
	case faulty:
		q.Faulty.Add(1)
	default:
		q.Refused.Add(1)
	}
}

// asking is what makes a clientConn that of a client about whose request another proxy asks.
type asking struct {
	of    *Asked
	fault denial // why there is no answer to it; zero: there is
	only  int    // the status of each refusal; 0: the refusal's own

	host string // what the Host field of the request names; empty: the site of its URL

	permitted bool // the request may pass

	awaits *awaited // the proxy brings the answer of the site; nil: heed does not see it
}

// trusts reports whether the proxy at an address is believed.
func (l *Asked) trusts(at netip.Addr) bool {
	return slices.ContainsFunc(l.Trust(), func(n netip.Prefix) bool { return n.Contains(at) })
}

// untrusted is the detail of a question of one that is not.
const untrusted = "the proxy at this address is not in trust of the listener"

// ServeAuthorize answers questions over HTTP until Shutdown, then returns nil. It closes the
// Listener, whose address is added to Self.
//
// A request for /authorize asks about that which X-Forwarded-Method, -Proto, -Host and -Uri
// describe; one for /envoy and a target asks about itself, with that target and the scheme in
// X-Forwarded-Proto. The client is at the last address in X-Forwarded-For. The answer is 200
// for a request that may pass, and else heed's refusal; after /authorize?refuse=403 each
// refusal has that status, for servers that pass on no other.
func (p *Proxy) ServeAuthorize(l Asked) error {
	return p.serveAsked(&l, func(c *clientConn) { c.serve() })
}

// serveAsked accepts the connections of proxies that ask, and passes each to serve.
func (p *Proxy) serveAsked(l *Asked, serve func(*clientConn)) error {
	p.config.Self.Add(l.Addr())
	defer p.config.Self.Remove(l.Addr())
	balancers := l.Balancers
	if balancers == nil {
		balancers = func() []netip.Prefix { return nil }
	}
	return p.accept(l.Listener, balancers, p.turnAway, func(c *limit.Conn) {
		if !p.serveFaulty(c) {
			own := p.newClientConn(c, c, clientInfo(c), nil)
			own.asks = l
			serve(own)
		}
	})
}

// authorize answers r, with which the proxy at c asks about another request.
func (p *Proxy) authorize(c *clientConn, w http.ResponseWriter, r *http.Request) {
	q := &asking{of: c.asks}
	asked, client, fault := askedOf(r)
	if _, query, _ := strings.Cut(r.RequestURI, "?"); r.URL.Path == askPath && query == refuse403 {
		q.only = http.StatusForbidden
	}
	if fault != "" {
		q.fault, asked = malformed(fault), r
	}
	p.ask(c, q, w, asked, client, "")
}

// ask has the request asked about decided, as one of a client at the address; not valid: the
// proxy at c itself. The answer is written to w: 200 means that the request may pass. A fetch of
// heed's own may, and is recorded where it is made.
func (p *Proxy) ask(c *clientConn, q *asking, w http.ResponseWriter, asked *http.Request, client netip.AddrPort, user string) {
	defer func() {
		allowed := q.permitted && (q.awaits == nil || !q.awaits.refused)
		c.asks.Questions.count(allowed, q.fault.reason == rules.ReasonMalformed)
	}()
	fetch := asked.Header[upstream.OwnField]
	delete(asked.Header, upstream.OwnField)
	own := &clientConn{Conn: c.Conn, proxy: p, counted: c.counted, client: c.client, asked: q}
	switch {
	case !c.asks.trusts(c.client.Addr):
		q.fault = denial{reason: rules.ReasonAccess, detail: untrusted}
	case q.fault.reason != "":
	case len(fetch) == 1 && p.ownFetch(fetch[0], asked.URL):
		q.permit(w)
		return
	case asked.Method == http.MethodConnect && p.config.Fetches != nil && p.config.Fetches.ClaimTunnel(client, asked.RequestURI):
		q.permit(w)
		return
	case client.IsValid():
		counted, over := p.gate.Represent(&representedConn{c.Conn, net.TCPAddrFromAddrPort(client)})
		if over != nil {
			q.fault = overLimit(over)
			break
		}
		defer counted.Close()
		own.counted, own.client = counted, clientInfo(counted)
	}
	own.client.User = user
	asked = asked.WithContext(withClientConn(asked.Context(), own))
	defer own.sites.End()
	asked.RemoteAddr = own.counted.RemoteAddr().String()
	p.handle(w, asked)
}

// ownFetch reports whether value is that of upstream.OwnField of a fetch of heed's own from the site
// of u, once.
func (p *Proxy) ownFetch(value string, u *url.URL) bool {
	site, err := rules.OriginOf(u)
	return err == nil && p.config.Fetches != nil && p.config.Fetches.Claim(value, site)
}

// permit answers that a fetch of heed's own may pass.
func (a *asking) permit(w http.ResponseWriter) {
	a.permitted = true
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
}

// representedConn is the connection of a proxy that asks, as that of its client.
type representedConn struct {
	net.Conn
	client net.Addr
}

// RemoteAddr implements net.Conn.
func (c *representedConn) RemoteAddr() net.Addr { return c.client }

// Close implements net.Conn. The connection is the proxy's, and stays open.
func (c *representedConn) Close() error { return nil }

// What a question is asked with.
const (
	askPath   = "/authorize"
	refuse403 = "refuse=403"
	envoyPath = "/envoy/" // the path_prefix of an Envoy, and the target
)

// Fields of a question over HTTP, none of which belongs to the request.
const (
	askedMethod = "X-Forwarded-Method"
	askedScheme = "X-Forwarded-Proto"
	askedHost   = "X-Forwarded-Host"
	askedTarget = "X-Forwarded-Uri"
	askedClient = "X-Forwarded-For"
)

// askedOf returns the request that r asks about, and the address of its client, which is not
// valid where none is stated; or else what is wrong with r.
func askedOf(r *http.Request) (asked *http.Request, client netip.AddrPort, fault string) {
	head := &http1.Head{Proto: "HTTP/1.1", Major: 1, Minor: 1, Framing: http1.NoBody}
	var host string
	names := []string{askedMethod, askedScheme, askedHost, askedTarget}
	values := []*string{&head.Method, new(string), &host, &head.Target}
	switch path := r.URL.Path; {
	case strings.HasPrefix(r.RequestURI, envoyPath):
		head.Method, host, head.Target = r.Method, r.Host, r.RequestURI[len(envoyPath)-1:]
		names, values = names[1:2], values[1:2]
	case path != askPath:
		return nil, client, "other proxies ask at " + askPath + ", or at " + envoyPath + " and the target (heed help other-proxies)"
	}
	for i, name := range names {
		lines := r.Header[name]
		if len(lines) != 1 || lines[0] == "" {
			has := fmt.Sprintf("%d fields %s", len(lines), name)
			if len(lines) == 1 {
				has = "an empty " + name
			}
			return nil, client, "the question has " + has + ", and needs one: what the proxy sends is in heed help other-proxies"
		}
		*values[i] = lines[0]
	}
	scheme := values[slices.Index(names, askedScheme)]
	if *scheme = strings.Replace(strings.ToLower(*scheme), "ws", "http", 1); *scheme != "http" && *scheme != "https" { // of a WebSocket
		return nil, client, askedScheme + " is neither http nor https"
	}
	if head.Method == http.MethodConnect || head.Target[0] != '/' || host == "" || strings.ContainsAny(host, "/?#@ \t") {
		return nil, client, "the question is not about a request for a host and a path"
	}
	if lines := r.Header[askedClient]; len(lines) > 0 {
		last := lines[len(lines)-1]
		var err error
		if client, err = parseClient(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])); err != nil {
			return nil, client, askedClient + " does not end in an address: " + safetext.Error(err)
		}
	}
	head.Target = *scheme + "://" + host + head.Target
	asked, err := head.Request(r.Context(), rules.EscapePercents(head.Target), nil)
	if err != nil {
		return nil, client, safetext.Error(err)
	}
	asked.Header = r.Header.Clone()
	for _, name := range []string{askedMethod, askedScheme, askedHost, askedTarget, askedClient, "Content-Length"} {
		delete(asked.Header, name)
	}
	return asked, client, ""
}

// parseClient parses the address of a client, with or without a port.
func parseClient(text string) (netip.AddrPort, error) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), nil
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return netip.AddrPortFrom(addr.Unmap().WithZone(""), 0), err
}

// permit begins the turn of x and answers that it may pass.
func (x *delivery) permit(r *http.Request) *http.Response {
	for !x.Connected(false) { // the turn is over
		if err := x.retryTurn(); err != nil {
			return x.fail(r, err)
		}
	}
	x.Written()
	x.entry.Outcome.Elsewhere, x.req.conn.asked.permitted = true, true
	if a := x.req.conn.asked.awaits; a != nil && x.use != nil {
		return x.await(r, a)
	}
	return emptyAnswer(r, http.StatusOK)
}

// emptyAnswer returns an answer to r without content.
func emptyAnswer(r *http.Request, status int) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Body: http.NoBody,
		Header: http.Header{"Content-Length": {"0"}, "Cache-Control": {"no-store"}},
	}
}

// unseenUse refuses a client with a purpose whose pages another proxy fetches: what they
// state of their use would not be read.
func (x *decision) unseenUse() denial {
	a := x.req.conn.asked
	if a == nil || a.awaits != nil || x.req.effective.Purposes() == nil || x.req.effective.Mode != acl.Enforce || a.of.UseUnseen != nil && a.of.UseUnseen() {
		return denial{}
	}
	return denial{reason: rules.ReasonAccess, detail: "this client has a purpose, and heed does not see what the page that another proxy fetches states of its use"}
}

// refused returns the answer to x, which heed refuses.
func (x *decision) refused(r *http.Request) *http.Response {
	resp := x.refusal.Response(r)
	if a := x.req.conn.asked; a != nil && a.only != 0 {
		resp.StatusCode, resp.Status = a.only, ""
	}
	return resp
}

// namesOther denies a request to a site whose Host names another: to which of them the proxy that
// asks sends it is not known.
func (a *asking) namesOther(site rules.Origin) denial {
	if a == nil || a.host == "" {
		return denial{}
	}
	if o, err := rules.ParseOrigin(site.Scheme, a.host); err == nil && o == site {
		return denial{}
	}
	return denial{reason: rules.ReasonHostMismatch, detail: "the Host field names " + safetext.Quote(a.host) + ", but the URL " + site.Authority()}
}
