package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"heed/internal/terms"
	"heed/rules"
)

// maxDetail bounds what is said of a malformed request, in octets: a client
// chooses how long the part is that gets quoted.
const maxDetail = 300

func malformed(detail string) (rules.Decision, string) {
	return rules.Decision{Reason: rules.ReasonMalformed}, printable(detail, maxDetail)
}

// locate finds the origin and the exact target of r, makes r.URL absolute and
// fills the entry. The target judged is the target that will be sent. A
// Decision with a reason means that there is nothing to judge.
func (x *exchange) locate(r *http.Request) (rules.Decision, string) {
	e := &x.entry
	e.Raw = r.RequestURI
	inTunnel := x.conn != nil && x.conn.tunnel != nil
	if inTunnel { // where it leads to is known however broken the request is
		x.origin = x.conn.tunnel.origin
		e.Scheme, e.Host = x.origin.Scheme, x.origin.Authority()
	}
	if r.Method == "PRI" { // RFC 9113 §3.4
		return malformed("HTTP/2 is spoken inside TLS only")
	}
	if r.URL.Opaque != "" || r.Method == http.MethodConnect {
		e.Raw = "" // it may hold credentials
		return malformed("the request target is neither an absolute URL nor a path")
	}
	if inTunnel {
		if d, detail := x.locateInTunnel(r, x.conn.tunnel); d.Reason != "" {
			return d, detail
		}
	} else {
		if r.URL.User != nil {
			e.Raw = "" // it holds credentials
			return malformed("the URL carries userinfo; send credentials in an Authorization field")
		}
		origin, err := rules.OriginOf(r.URL)
		if err != nil {
			return malformed(err.Error())
		}
		x.origin = origin
	}
	e.Scheme, e.Host = x.origin.Scheme, x.origin.Authority()
	r.URL.Scheme, r.URL.Host = e.Scheme, e.Host
	if x.mismatch == "" {
		r.Host = e.Host // the site is asked by the name that was judged
	}
	if r.URL.Path == "" && r.Method == http.MethodOptions && r.URL.RawQuery == "" {
		r.URL.Path = "*" // RFC 9112 §3.2.4
	}
	if !sendable(r.URL) { // HTTP/2 alone lets such a target through
		return malformed("the request target contains a blank")
	}
	e.Target = r.URL.RequestURI()
	if strings.HasSuffix(e.Raw, e.Target) {
		e.Raw = ""
	}
	return judgeable(r, e.Target)
}

// sendable makes u's target one that can be sent: octets that a URI may not
// hold become escapes, all others go out as they came (RFC 9110 §7.7). By itself
// net/http would write the whole path anew, with "%2F" as "/", and leave a "#"
// in the query, where sites cut the query off that a rule was compared with. A
// blank makes it false: it would end the target in the request line.
func sendable(u *url.URL) bool {
	if strings.IndexByte(u.RawPath, ' ') >= 0 || strings.IndexByte(u.RawQuery, ' ') >= 0 {
		return false
	}
	if strings.IndexFunc(u.RawPath, illegal) >= 0 {
		u.RawPath = escapeIllegal(u.RawPath)
	}
	if strings.IndexByte(u.RawQuery, '#') >= 0 {
		u.RawQuery = strings.ReplaceAll(u.RawQuery, "#", "%23")
	}
	return true
}

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
func judgeable(r *http.Request, target string) (rules.Decision, string) {
	if target[0] != '/' && !(target == "*" && r.Method == http.MethodOptions) {
		return malformed("the target's path does not begin with a slash")
	}
	path, _, _ := strings.Cut(target, "?")
	if strings.Contains(path, "%00") {
		return malformed("the target's path contains a NUL octet")
	}
	return rules.Decision{}, ""
}

// locateInTunnel checks that every name in a tunnel's request is the name the
// tunnel was opened for: policy is never judged for one host and the request
// served by another (RFC 9110 §7.4). Where both are observed only, x.mismatch
// says so.
func (x *exchange) locateInTunnel(r *http.Request, t *tunnel) (rules.Decision, string) {
	if r.URL.User != nil {
		x.entry.Raw = ""
		return malformed("the URL carries userinfo; send credentials in an Authorization field")
	}
	if !r.URL.IsAbs() {
		r.URL.Scheme, r.URL.Host = t.origin.Scheme, t.origin.Authority()
	}
	if r.Host == "" && !r.ProtoAtLeast(1, 1) {
		r.Host = t.origin.Authority() // HTTP/1.0 knows no Host
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
		detail := n.what + " names " + quote(n.shown) + ", but the tunnel was opened to " + t.origin.Authority()
		if x.identify(); !x.observes(n.scheme, n.authority) {
			x.entry.Target = r.URL.RequestURI()
			return rules.Decision{Reason: rules.ReasonHostMismatch}, detail
		}
		x.mismatch = firstOf(x.mismatch, detail)
	}
	return rules.Decision{}, ""
}

// observes reports whether x is observed only, and would be at the host of that
// name too: what one host's terms let pass is not served by another's that do not.
func (x *exchange) observes(scheme, authority string) bool {
	o, err := rules.ParseOrigin(scheme, authority)
	if err != nil {
		o = rules.Origin{} // of which no entry speaks
	}
	for _, port := range [...]uint16{x.origin.Port, o.Port} {
		o.Port = port
		if x.book.For(x.terms.Client, o, x.proxy.Now()).Mode != terms.Observe {
			return false
		}
	}
	return x.terms.Mode == terms.Observe
}
