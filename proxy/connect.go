package proxy

import (
	"net/http"
	"syscall"

	"heed/internal/base/safetext"
	"heed/internal/judge/acl"
	"heed/proxy/http1"
	"heed/rules"
)

// connect answers a CONNECT: what can be refused without looking inside is
// refused here, everything else inside the tunnel, where the client sees it.
func (x *exchange) connect(r *http.Request) {
	d := x.req.locateTunnel(r)
	if d.reason == "" {
		d = x.toSelf(r)
	}
	if d.reason == "" {
		counted := x.req.conn.counted
		if over := counted.EnterTunnel(); over != nil {
			d = overLimit(over)
		}
		defer func() {
			if !x.writer.hijacked { // no tunnel after all
				counted.LeaveTunnel()
			}
		}()
	}
	if d.reason != "" {
		x.deny(d)
		x.answer(r)
		return
	}
	r = r.WithContext(x)
	x.req.identify(x.proxy)
	switch x.req.https, x.req.unseen = x.httpsMode(); x.req.https {
	case acl.Intercept:
		if d = x.mayIntercept(); d.reason == "" && x.toVacantPort() {
			d = denial{reason: rules.ReasonOriginUnreachable, err: syscall.ECONNREFUSED}
		}
	case acl.HostOnly, acl.Tunnel:
		if x.site = x.openTunnel(r); x.site != nil {
			defer x.site.Close()
		}
	default:
		d = denial{reason: rules.ReasonAccess, detail: "the operator lets no https through to " + safetext.Printable(x.req.origin.Host, 100)}
	}
	if d.reason != "" {
		x.deny(d)
	}
	if x.refusal != nil {
		x.answer(r)
		return
	}
	x.proxy.engine.ServeHTTP(&x.writer, r)
}

// toSelf denies a CONNECT that leads back to heed.
func (x *decision) toSelf(r *http.Request) denial {
	switch o := &x.req.origin; {
	case x.proxy.config.Self.HasHost(o.Host, o.Port):
		return denial{reason: rules.ReasonLoop, detail: ownAddress}
	case http1.InVia(r.Header, x.proxy.config.Name):
		return denial{reason: rules.ReasonLoop, detail: "the tunnel would lead back to heed"}
	}
	return denial{}
}

// httpsMode returns what becomes of a CONNECT. A local service of the client's own run has
// no certificate that heed could verify: its tunnels pass. Where x is observed only, a client
// that rejects the CA there is not held up by it: its tunnels pass unseen, unless it is
// observed for its User-Agent alone.
func (x *decision) httpsMode() (mode acl.HTTPS, unseen rules.Reason) {
	h := x.req.effective.HTTPS()
	if s := x.proxy.config.OwnServices; s != nil && h != acl.NoHTTPS && s.has(&x.req) {
		return acl.Tunnel, rules.ReasonOwnService
	}
	if a := x.req.conn.redirected; h != acl.NoHTTPS && a != nil && a.opaque {
		return acl.Tunnel, rules.ReasonNotHTTP
	}
	if h == acl.Intercept && x.req.effective.MayPassUnseen() && x.proxy.caTrust.Rejects(x.req.trustClient(x.entry.Client), x.entry.Time) {
		return acl.Tunnel, rules.ReasonUntrusted
	}
	return h, ""
}

// mayIntercept refuses a CONNECT whose client has rejected the CA twice, so that
// the answer explains it (a redirected connection would have none), and one for which no certificate can be made.
func (x *decision) mayIntercept() denial {
	p, host := x.proxy, safetext.Printable(x.req.origin.Host, 100)
	if x.req.conn.redirected == nil && !x.req.effective.MayPassUnseen() && p.caTrust.Explains(x.req.trustClient(x.entry.Client), x.entry.Time) {
		return denial{reason: rules.ReasonUntrusted, detail: "its last tunnels to " + host + " ended in the TLS handshake with heed; one is let through again a minute after the last"}
	}
	if _, err := p.config.Leaves.Leaf(x.req.origin.Host); err != nil { // here the client can read the answer
		p.config.Log.Error("no certificate can be made for a site", "host", x.req.origin.Host, "error", err)
		return denial{reason: rules.ReasonInternal, detail: "no certificate can be made for " + host}
	}
	return denial{}
}
