package proxy

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"heed/internal/pageurl"
	"heed/internal/safetext"
	"heed/proxy/headers"
	"heed/proxy/limit"
	"heed/rules"
)

// locate finds the origin and the exact target of r, and makes r.URL absolute. The
// target judged is the target that will be sent. A denial with a reason means that
// there is nothing to judge.
func (q *request) locate(p *Proxy, r *http.Request) denial {
	uri, ok := r.RequestURI, true
	if h := q.conn.heads; h != nil {
		uri, ok = h.Target(uri)
	}
	if len(uri) > int(q.settings.Limits.URIBytes) {
		return overLimit(p.gate.CountExceeded(limit.URIBytes))
	}
	if q.raw = uri; r.URL.User != nil || r.URL.Opaque != "" || r.Method == http.MethodConnect {
		q.raw = "" // it may hold credentials
	}
	t := q.conn.tunnel
	if t != nil { // where it leads to is known however broken the request is
		q.setOrigin(t.origin)
	}
	if r.Method == "PRI" { // RFC 9113 §3.4
		return malformed("HTTP/2 is spoken inside TLS only")
	}
	if !httpguts.ValidHeaderFieldName(r.Method) { // HTTP/2 alone lets such a method through
		return malformed("the method is not a token (RFC 9110 §9.1)")
	}
	if r.URL.Opaque != "" || r.Method == http.MethodConnect {
		return malformed("the request target is neither an absolute URL nor a path")
	}
	if r.URL.User != nil || strings.IndexByte(r.Host, '@') >= 0 { // HTTP/2 alone lets such an authority through
		return malformed("the URL carries userinfo; send credentials in an Authorization field")
	}
	if t != nil {
		if d := q.locateInTunnel(p, r, t); d.reason != "" {
			return d
		}
	} else {
		origin, err := rules.OriginOf(r.URL)
		if err != nil {
			return malformed(err.Error())
		}
		q.setOrigin(origin)
	}
	r.URL.Scheme, r.URL.Host = q.origin.Scheme, q.host
	if q.mismatch == "" {
		r.Host = q.host // the site is asked by the name that was judged
	}
	if r.URL.Path == "" && r.Method == http.MethodOptions && r.URL.RawQuery == "" {
		r.URL.Path = "*" // RFC 9112 §3.2.4
	}
	if !ok || !q.setTarget(r.URL, uri) { // HTTP/2 alone lets a blank through
		return malformed("the request target contains a blank")
	}
	if strings.HasSuffix(uri, q.target) {
		q.raw = ""
	}
	return judgeable(r, q.target)
}

// setTarget makes the target that is judged and sent the octets of uri, and reports
// whether they can be sent. u is uri as net/http has parsed it, and afterwards what
// makes net/http write the target. What a request line cannot contain is the
// exception: see pageurl.SendableTarget.
func (q *request) setTarget(u *url.URL, uri string) bool {
	if u.Path == "*" {
		q.target = u.RequestURI()
		return true
	}
	target, ok := pageurl.SendableTarget(uri)
	if !ok {
		return false
	}
	if q.target = u.RequestURI(); q.target == target {
		return true
	}
	if !strings.HasPrefix(target, "//") {
		u.Opaque, u.RawQuery, u.ForceQuery = target, "", false
		q.target = target
		return true
	}
	// net/http would write such an Opaque in absolute form, which not all servers take.
	u.RawPath = escapeIllegal(u.RawPath)
	u.RawQuery = strings.ReplaceAll(u.RawQuery, "#", "%23")
	q.target = u.RequestURI()
	return true
}

// checkFields refuses what the header fields of r forbid to forward, and removes
// those that concern the client's connection. name is the proxy's.
func checkFields(r *http.Request, name string) denial {
	headers.ExpectTrailer(r)
	if headers.IsWebSocket(r.Header) && hasBody(r) {
		return malformed("a WebSocket handshake has no body (RFC 6455 §4.1)")
	}
	if headers.InVia(r.Header, name) {
		return denial{reason: rules.ReasonLoop, detail: "the request has come through this proxy before"}
	}
	headers.RemoveHopByHop(r.Header)
	return denial{}
}

// locateInTunnel checks that every name in a tunnel's request is the name the
// tunnel was opened for: policy is never judged for one host and the request
// served by another (RFC 9110 §7.4). Where both are observed only, q.mismatch
// names the difference.
func (q *request) locateInTunnel(p *Proxy, r *http.Request, t *tunnel) denial {
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
		if o, err := rules.ParseOrigin(n.scheme, n.authority); err == nil && o == t.origin {
			continue
		}
		detail := n.what + " names " + safetext.Quote(n.shown) + ", but the tunnel was opened to " + q.host
		if q.identify(p); !q.observedAt(n.scheme, n.authority, p.config.Now()) {
			q.target = r.URL.RequestURI()
			return denial{reason: rules.ReasonHostMismatch, detail: detail}
		}
		q.mismatch = cmp.Or(q.mismatch, detail)
	}
	return denial{}
}

// locateTunnel finds where a CONNECT leads to.
func (q *request) locateTunnel(r *http.Request) denial {
	q.raw = r.RequestURI
	origin, err := rules.ParseOrigin("https", r.Host)
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
		origin, err = rules.ParseOrigin("https", r.Host)
	}
	if err == nil {
		q.setOrigin(origin)
	}
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
	before, _ := pageurl.SplitTarget(uri)
	if before != "" {
		scheme, authority, found := strings.Cut(before, "://")
		if q.method == http.MethodConnect {
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
	if target, ok := pageurl.SendableTarget(uri); ok && q.host != "" && q.method != http.MethodConnect {
		if q.target = target; strings.HasSuffix(uri, target) {
			q.raw = ""
		}
	}
}

func (q *request) setOrigin(o rules.Origin) { q.origin, q.host = o, o.Authority() }

// escapeIllegal writes the octets of a path that need it as escapes.
func escapeIllegal(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if c := path[i]; illegal(rune(c)) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// illegal reports whether net/http would not leave an octet in a path as it is.
func illegal(c rune) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return false
	}
	return c >= 0x80 || strings.IndexByte("-._~!$&'()*+,;=:@/%[]", byte(c)) < 0
}

// judgeable refuses targets that no rule can be compared with.
func judgeable(r *http.Request, target string) denial {
	if target[0] != '/' && !(target == "*" && r.Method == http.MethodOptions) {
		return malformed("the target's path does not begin with a slash")
	}
	if fault := pageurl.Fault(target); fault != "" {
		return malformed(fault)
	}
	return denial{}
}
