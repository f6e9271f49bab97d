package proxy

import (
	"cmp"
	"net"
	"net/http"
	"strings"
	"time"

	"heed/internal/base/safetext"
	"heed/internal/judge/acl"
	"heed/rules"
)

// locateInTunnel checks that every name in a tunnel's request is the name the
// tunnel was opened for: policy is never judged for one host and the request
// served by another (RFC 9110 §7.4). Where both are observed only, q.mismatch
// names the difference.
func (q *request) locateInTunnel(p *Proxy, r *http.Request, t *tunnel) denial {
	site, made := t.origin, "the tunnel was opened to "
	if t.redirected != nil {
		made = "the connection was made to "
	}
	if t.unnamed {
		site = t.siteOf(r.Host)
		q.setOrigin(site)
	}
	if !r.URL.IsAbs() {
		r.URL.Scheme, r.URL.Host = t.origin.Scheme, q.host
	}
	if r.Host == "" && !r.ProtoAtLeast(1, 1) {
		r.Host = q.host // HTTP/1.0 has no Host
	}
	for _, n := range [...]struct{ what, shown, scheme, authority string }{
		{"the TLS server name", t.serverName, "https", t.serverName},
		{"the request target", r.URL.Scheme + "://" + r.URL.Host, r.URL.Scheme, r.URL.Host},
		{"the Host field", r.Host, t.origin.Scheme, r.Host},
	} {
		if n.what == "the TLS server name" && n.authority == "" {
			continue
		}
		if o, err := rules.ParseOrigin(n.scheme, n.authority); err == nil && o == site {
			continue
		}
		detail := n.what + " names " + safetext.Quote(n.shown) + ", but " + made + q.host
		if q.identify(p); !q.observedAt(n.scheme, n.authority, p.config.Now()) {
			q.target = r.URL.RequestURI()
			return denial{reason: rules.ReasonHostMismatch, detail: detail}
		}
		q.mismatch = cmp.Or(q.mismatch, detail)
	}
	return denial{}
}

// siteOf returns the site of a request for authority in t, whose connection was made to an
// address: what authority names, as far as that can be at the address, or the address.
func (t *tunnel) siteOf(authority string) rules.Origin {
	if o, err := rules.ParseOrigin(t.origin.Scheme, authority); err == nil && t.redirected.isSite(o) {
		return o
	}
	return t.origin
}

// locateTunnel finds where a CONNECT leads to.
func (q *request) locateTunnel(r *http.Request) denial {
	q.raw = r.RequestURI
	origin, err := connectOrigin(r.RequestURI, r.Host)
	if err == nil {
		q.setOrigin(origin)
	}
	_, port, splitErr := net.SplitHostPort(r.Host)
	switch {
	case r.RequestURI != r.Host:
		q.raw = "" // it may hold credentials
		return malformed("CONNECT needs host:port and nothing else")
	case err != nil:
		return malformed("CONNECT: " + err.Error())
	case splitErr != nil || port == "":
		return malformed("CONNECT needs host:port")
	}
	return denial{}
}

// locateDenied finds the origin of a request that is not let in, for its record.
func (q *request) locateDenied(r *http.Request) {
	if t := q.conn.tunnel; t != nil {
		q.setOrigin(t.origin)
		return
	}
	origin, err := rules.OriginOf(r.URL)
	if r.Method == http.MethodConnect {
		origin, err = connectOrigin(r.RequestURI, r.Host)
	}
	if err == nil {
		q.setOrigin(origin)
	}
}

// connectOrigin returns where a CONNECT leads to, which has host:port as its target; of one
// with a URL in its place, which is refused, the site that the URL names.
func connectOrigin(target, host string) (rules.Origin, error) {
	if strings.Contains(target, "://") {
		o, _, err := rules.ParseURL(target)
		return o, err
	}
	return rules.ParseOrigin("https", host)
}

// locateUnread finds the origin and the target of a request that net/http refuses. A
// target that may hold credentials is left out.
func (q *request) locateUnread(uri string) {
	if t := q.conn.tunnel; t != nil {
		q.setOrigin(t.origin)
	}
	if uri == "" || len(uri) > int(q.settings.Limits.URIBytes) {
		return
	}
	if before, _ := rules.SplitTarget(uri); before != "" {
		scheme, authority, found := strings.Cut(before, "://")
		if q.method == http.MethodConnect && !found {
			scheme, authority, found = "https", before, true
		}
		o, err := rules.ParseOrigin(scheme, authority)
		if !found || err != nil {
			return
		}
		if q.conn.tunnel == nil {
			q.setOrigin(o)
		}
	}
	q.raw = uri
	if target, ok := rules.SendableTarget(uri); ok && q.host != "" && q.method != http.MethodConnect {
		if q.target = target; strings.HasSuffix(uri, target) {
			q.raw = ""
		}
	}
}

// observedAt reports whether q is only observed, both at its own host and at the host in
// authority. A request that is not refused for one of them must not reach the other
// unless that one is only observed as well.
func (q *request) observedAt(scheme, authority string, now time.Time) bool {
	o, err := rules.ParseOrigin(scheme, authority)
	if err != nil {
		o = rules.Origin{} // of which no entry speaks
	}
	for _, port := range [...]uint16{q.origin.Port, o.Port} {
		o.Port = port
		if q.settings.Rules.For(q.effective.Client, o, now).Mode != acl.Observe {
			return false
		}
	}
	return q.effective.Mode == acl.Observe
}

// mayPassOpaque reports whether what is neither TLS nor HTTP may pass in q's
// tunnel: where it is observed only, and not for its User-Agent alone, to ports that
// tunnels may go to.
func (q *request) mayPassOpaque() bool {
	ok, _ := q.effective.TunnelsTo(q.origin)
	return ok && q.effective.MayPassUnseen() && q.settings.DialTunnel != nil
}
