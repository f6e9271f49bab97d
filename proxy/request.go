package proxy

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"heed/internal/judge/acl"
	"heed/internal/trust/passport"
	"heed/proxy/http1"
	"heed/proxy/limit"
	"heed/rules"
)

// request is what is known of a request: its client, its target, and the settings that
// apply to it. It is complete once decide has identified it. Afterwards it changes only
// when an intercepted tunnel turns out not to contain HTTP.
type request struct {
	settings *Settings      // in force when it arrived
	conn     *clientConn    // that it came on
	client   acl.ClientInfo // authenticate sets the User and identify the UserAgent
	tried    string         // the user name of wrong credentials; empty: none were
	proof    [32]byte       // of the user's password when it was verified; zero: it was not

	method    string
	userAgent string // the User-Agent field; empty: none
	part      string // its Sec-Fetch-Dest as a part of a page; empty: it is none
	page      string // the address of that page; empty: not known
	origin    rules.Origin
	host      string       // of origin, with the port unless it is the scheme's own; empty: no origin is known
	target    string       // path and query as they are sent; empty: not known
	asked     rules.Target // target, as it is judged
	raw       string       // the target as it came, where that is not the end of host and target
	mismatch  string       // which names differ, when that is only reported; empty: none
	header    http.Header  // its fields as they are sent on; nil until its target is located

	unseen     rules.Reason  // why heed does not look inside although it should; empty: the settings say so
	https      acl.HTTPS     // what becomes of this CONNECT; Intercept for all other requests
	own        bool          // the request is for a local service of its own run
	signature  bool          // it has a field of a signature, and is not signed by heed; meaningful for a client with a Signer
	reads      bool          // it is a GET or HEAD whose answer is a page, and no WebSocket
	identified bool          // effective and names are set
	effective  acl.Effective // the settings for the client at the origin
	names      acl.Identity
}

func newRequest(conn *clientConn, r *http.Request, s *Settings) request {
	q := request{settings: s, conn: conn, client: conn.client, method: r.Method, userAgent: userAgent(r.Header)}
	q.part, q.page = partOf(r.Header)
	q.reads = conn.asked == nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) && !http1.IsWebSocket(r.Header)
	if t := conn.tunnel; t != nil {
		q.proof = t.proof
	}
	return q
}

// admit decides whether the client may use this proxy at all. A denial without a
// reason lets it. Requests inside a tunnel come from the user that opened it, as long as
// that one may use this proxy.
func (q *request) admit(r *http.Request) denial {
	if q.settings.Rules == nil {
		return denial{}
	}
	d := q.checkClient(r)
	if d.reason != "" {
		q.locateDenied(r)
	}
	return d
}

func (q *request) checkClient(r *http.Request) denial {
	if q.conn.tunnel != nil || q.conn.redirected != nil {
		return q.stillAdmitted(q.settings.Rules)
	}
	if d := q.checkAddress(q.settings.Rules); d.reason != "" {
		return d
	}
	direct := r.Method != http.MethodConnect && !r.URL.IsAbs()
	if q.settings.Rules.Users == nil || direct || q.conn.asked != nil {
		return denial{}
	}
	return q.authenticate(r)
}

// checkAddress denies clients at addresses that may not use this proxy.
func (q *request) checkAddress(r *acl.Rules) denial {
	if len(r.From) > 0 && !slices.ContainsFunc(r.From, func(p netip.Prefix) bool { return p.Contains(q.client.Addr) }) {
		return denial{reason: rules.ReasonAccess, detail: "clients at this address may not use this proxy"}
	}
	return denial{}
}

// locate finds the origin and the exact target of r, and makes r.URL absolute. The
// target judged is the target that will be sent. A denial with a reason means that
// there is nothing to judge. uri is the target as it came.
func (q *request) locate(p *Proxy, r *http.Request, uri string) denial {
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
		return malformed("the method is not a token (RFC 9110, section 9.1)")
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
	} else if d := q.locateSite(r); d.reason != "" {
		return d
	}
	if p.config.Self.HasHost(q.origin.Host, q.origin.Port) {
		return denial{reason: rules.ReasonLoop, detail: ownAddress}
	}
	r.URL.Scheme, r.URL.Host = q.origin.Scheme, q.host
	if q.mismatch == "" {
		r.Host = q.host // the site is asked by the name that was judged
	}
	if r.URL.Path == "" && r.Method == http.MethodOptions && r.URL.RawQuery == "" {
		r.URL.Path = "*" // RFC 9112 §3.2.4
	}
	if !q.setTarget(r.URL, uri) { // HTTP/2 alone lets a blank through
		return malformed("the request target contains a blank")
	}
	if strings.HasSuffix(uri, q.target) {
		q.raw = ""
	} else if q.conn.asked != nil {
		return malformed("the request target cannot be sent as it is, and another proxy would")
	}
	if d := judgeable(r, q.target); d.reason != "" {
		return d
	}
	d := checkFields(r, p.config.Name)
	q.header = r.Header // without what Connection has named
	return d
}

// locateSite finds the origin of r outside tunnels.
func (q *request) locateSite(r *http.Request) denial {
	origin, err := rules.OriginOf(r.URL)
	if err != nil {
		return malformed(err.Error())
	}
	q.setOrigin(origin)
	return q.conn.asked.namesOther(origin)
}

// signer returns what signs the requests of the client; nil when this one is not signed:
// heed cannot see the requests in a tunnel, and adds nothing to a signature. A request to one
// host that names another would bring the first a signature that is valid at the other.
func (q *request) signer() *passport.Signer {
	if q.signature || q.https != acl.Intercept || q.conn.asked != nil || q.own || q.mismatch != "" {
		return nil
	}
	return q.effective.Signer
}

// signing returns what signs q itself, and the form; nil when it is not signed.
func (q *request) signing(now time.Time) (*passport.Signer, passport.Form) {
	s := q.signer()
	if s == nil || q.method == http.MethodConnect || !s.Key().Valid(now) {
		return nil, 0
	}
	form, signed := q.effective.Site.Signing(q.origin)
	if !signed {
		return nil, 0
	}
	return s, form
}

// ownAddress is the detail of a request that would come back to heed.
const ownAddress = "the address is one that heed itself listens on"

// setTarget makes the target that is judged and sent the octets of uri, and reports
// whether they can be sent. u is uri as net/http has parsed it. What a request line
// cannot contain is the exception: see rules.SendableTarget.
func (q *request) setTarget(u *url.URL, uri string) (ok bool) {
	if u.Path == "*" {
		q.target = u.RequestURI()
		return true
	}
	q.target, ok = rules.SendableTarget(uri)
	return ok
}

func (q *request) setOrigin(o rules.Origin) { q.origin, q.host = o, o.Authority() }

// checkFields refuses what the header fields of r forbid to forward, and removes
// those that concern the client's connection. name is the proxy's.
func checkFields(r *http.Request, name string) denial {
	http1.ExpectTrailer(r)
	if http1.IsWebSocket(r.Header) && hasBody(r) {
		return malformed("a WebSocket handshake has no body (RFC 6455, section 4.1)")
	}
	if http1.InVia(r.Header, name) {
		return denial{reason: rules.ReasonLoop, detail: "the request has come through this proxy before"}
	}
	http1.RemoveHopByHop(r.Header)
	return denial{}
}

// judgeable refuses targets that no rule can be compared with.
func judgeable(r *http.Request, target string) denial {
	if target[0] != '/' && !(target == "*" && r.Method == http.MethodOptions) {
		return malformed("the target's path does not begin with a slash")
	}
	if fault := rules.TargetFault(target); fault != "" {
		return malformed(fault)
	}
	return denial{}
}

// setIdentity puts the names that the site is to see into h. Where none were
// settled the client's own stay, and a missing one stays missing. Several
// User-Agent lines become the one that was judged: net/http would send the first
// alone.
func (q *request) setIdentity(h http.Header) {
	if q.names.From != "" {
		h["From"] = []string{q.names.From}
	}
	lines, ok := h["User-Agent"]
	switch {
	case q.names.Shown != q.userAgent:
		h["User-Agent"] = []string{q.names.Shown}
	case !ok:
		h["User-Agent"] = nil // net/http would send its own
	case len(lines) > 1:
		h["User-Agent"] = []string{q.userAgent}
	}
}

// userAgent returns the User-Agent of a request. Several lines are one value,
// so that no name in them is overlooked.
func userAgent(h http.Header) string {
	switch v := h["User-Agent"]; len(v) {
	case 0:
		return ""
	case 1:
		return v[0]
	default:
		return strings.Join(v, ", ")
	}
}

// parts are the values of Sec-Fetch-Dest (Fetch §2.2.6) for requests that a browser
// makes to show a page. Frames are separate pages, and what a script fetches is not
// part of the page.
var parts = map[string]bool{
	"audio": true, "audioworklet": true, "font": true, "image": true, "json": true, "manifest": true,
	"paintworklet": true, "script": true, "serviceworker": true, "sharedworker": true, "style": true,
	"track": true, "video": true, "worker": true, "xslt": true,
}

// partOf returns the Sec-Fetch-Dest of a request for a part of a page, such as "image",
// and the address of the page from its Referer; empty when the request is for no part,
// or the browser sends no address.
func partOf(h http.Header) (part, page string) {
	v := h["Sec-Fetch-Dest"]
	if len(v) != 1 || !parts[v[0]] {
		return "", ""
	}
	u, err := url.Parse(rules.EscapePercents(h.Get("Referer")))
	if err != nil || u.Host == "" {
		return v[0], ""
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	return v[0], u.String()
}
