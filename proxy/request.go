package proxy

import (
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"heed/internal/acl"
	"heed/internal/pace"
	"heed/internal/pageurl"
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
	proof    [32]byte       // of the user's password when it was verified; zero: it was not

	method    string
	userAgent string // the User-Agent field; empty: none
	part      string // its Sec-Fetch-Dest as a part of a page; empty: it is none
	page      string // the address of that page; empty: not known
	origin    rules.Origin
	host      string // of origin, with the port unless it is the scheme's own; empty: no origin is known
	target    string // path and query as they are sent; empty: not known
	raw       string // the target as it came, where that is not the end of host and target
	mismatch  string // which names differ, when that is only reported; empty: none

	unseen rules.Reason // why heed does not look inside although it should; empty: the settings say so
	https  acl.HTTPS    // what becomes of this CONNECT; Intercept for all other requests
	own    bool         // the request is for a local service of its own run

	identified bool          // effective and names are set
	effective  acl.Effective // the settings for the client at the origin
	names      acl.Identity
}

func newRequest(conn *clientConn, r *http.Request) request {
	q := request{conn: conn, client: conn.client, method: r.Method, userAgent: userAgent(r.Header)}
	q.part, q.page = partOf(r.Header)
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
	if q.conn.tunnel != nil {
		return q.stillAdmitted(q.settings.Rules)
	}
	if d := q.checkAddress(q.settings.Rules); d.reason != "" {
		return d
	}
	direct := r.Method != http.MethodConnect && !r.URL.IsAbs()
	if q.settings.Rules.Users == nil || direct {
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

// stillAdmitted decides whether a client that was admitted before may use this proxy
// under r: its user was not removed since, and has the same password.
func (q *request) stillAdmitted(r *acl.Rules) denial {
	if d := q.checkAddress(r); d.reason != "" || r.Users == nil {
		return d
	}
	switch proof := r.Users.Proof(q.client.User); {
	case q.client.User == "":
		return denial{reason: rules.ReasonAccess, detail: "this proxy asks for a user name and a password since this tunnel was opened; open a new one"}
	case proof == [32]byte{}:
		return denial{reason: rules.ReasonAccess, detail: "the user who opened this tunnel may not use this proxy any more"}
	case proof != q.proof:
		return denial{reason: rules.ReasonAccess, detail: "the password of the user who opened this tunnel was changed since; open a new one"}
	}
	return denial{}
}

// authenticate verifies the client's credentials for this proxy (RFC 7617).
func (q *request) authenticate(r *http.Request) denial {
	user, password, ok := basic(r.Header["Proxy-Authorization"])
	if !ok {
		return denial{reason: rules.ReasonCredentials, detail: "this proxy asks for a user name and a password"}
	}
	right, wait := q.settings.Rules.Users.Verify(r.Context(), q.client.Addr, user, password)
	switch {
	case right:
		q.client.User, q.proof = user, q.settings.Rules.Users.Proof(user)
		return denial{}
	case wait > 0:
		return denial{reason: rules.ReasonFailures, detail: "too many wrong passwords came from this address", retry: max(wait, time.Second)}
	}
	return denial{reason: rules.ReasonCredentials, detail: "the user name or the password is wrong"}
}

// basic reads the credentials of one Basic authorization.
func basic(lines []string) (user, password string, ok bool) {
	if len(lines) != 1 {
		return "", "", false
	}
	scheme, text, _ := strings.Cut(lines[0], " ")
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if !strings.EqualFold(scheme, "Basic") || err != nil {
		return "", "", false
	}
	return strings.Cut(string(decoded), ":")
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

// hints returns what the groups that govern q ask about speed: those of the names
// it is judged by, and of the names that the site sees.
func (q *request) hints(policy *rules.Policy) []*rules.RateHint {
	if policy == nil {
		return nil
	}
	hints := policy.RateHints(q.names.Judged)
	if q.names.Visible != nil {
		hints = slices.Concat(hints, policy.RateHints(q.names.Visible))
	}
	return hints
}

// paceAsk returns the request for a turn of q.
func (q *request) paceAsk(policy *rules.Policy, hints []*rules.RateHint) *pace.Ask {
	ask := &pace.Ask{
		Origin: q.origin, Hints: hints, Agent: "*", Client: q.pacingKey(), Name: q.userAgent, Target: q.method + " " + q.target,
		Observed: q.effective.Mode == acl.Observe, Who: q.who(),
	}
	if policy != nil && q.effective.Site.Robots == nil {
		ask.Fetched = policy.Source().FetchedAt
	}
	if a := q.names.Judged; a != nil && len(a.Tokens) > 0 {
		ask.Agent = a.Tokens[0].Name
	}
	if c := q.effective.Client; c != nil {
		ask.Patience = c.MaxWait
	}
	return ask
}

// who describes q's client for people.
func (q *request) who() pace.Who {
	return pace.Who{Address: q.client.Addr.String(), User: q.client.User, Name: q.effective.Name(), Listener: q.client.Listener}
}

// pacingKey identifies q's client: where it is, which credentials it showed and
// which listener it came to. Each run has a separate listener.
func (q *request) pacingKey() string {
	return limit.ClientKey(q.client.Addr).String() + " " + q.client.Listener + " " + q.client.User
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

// clientInfo returns what is known of the client of a connection before its first
// request.
func clientInfo(c net.Conn) acl.ClientInfo {
	return acl.ClientInfo{Addr: addrOf(c.RemoteAddr()), Listener: c.LocalAddr().String()}
}

// addrOf returns an address without its zone, since no network is written with one.
func addrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
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
	u, err := url.Parse(pageurl.EscapePercents(h.Get("Referer")))
	if err != nil || u.Host == "" {
		return v[0], ""
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	return v[0], u.String()
}
