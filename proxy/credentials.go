package proxy

import (
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"heed/internal/base/safetext"
	"heed/internal/judge/acl"
	"heed/proxy/catrust"
	"heed/rules"
)

// stillAdmitted decides whether a client that was admitted before may use this proxy
// under r: its user was not removed since, and has the same password. A
// redirected connection has no user.
func (q *request) stillAdmitted(r *acl.Rules) denial {
	if d := q.checkAddress(r); d.reason != "" || r.Users == nil || q.conn.redirection() != nil {
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
		return denial{reason: rules.ReasonCredentials, detail: "this proxy asks for a user name and a password" + notBasic(r.Header["Proxy-Authorization"])}
	}
	right, wait := q.settings.Rules.Users.Verify(r.Context(), q.client.Addr, user, password)
	switch {
	case right:
		q.client.User, q.proof = user, q.settings.Rules.Users.Proof(user)
		return denial{}
	case wait > 0:
		q.tried = user
		return denial{reason: rules.ReasonFailures, detail: "too many wrong passwords came from this address", retry: max(wait, time.Second)}
	}
	q.tried = user
	return denial{reason: rules.ReasonCredentials, detail: "the user name or the password is wrong"}
}

// notBasic names the credentials that were sent and cannot be read; empty for none.
func notBasic(lines []string) string {
	switch scheme, _, _ := strings.Cut(strings.Join(lines, ""), " "); {
	case len(lines) == 0:
		return ""
	case len(lines) > 1:
		return ", once, and not in several Proxy-Authorization fields"
	case !strings.EqualFold(scheme, "Basic"):
		return ", by the scheme Basic, and not by " + safetext.Quote(scheme)
	}
	return ", and the Proxy-Authorization field is not that of the scheme Basic (RFC 7617)"
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

// trustClient identifies the client of a CONNECT among those that accept the CA or
// reject it.
func (q *request) trustClient(addr string) catrust.Client {
	return catrust.ClientOf(addr, q.origin.Host, q.userAgent)
}

// Recheck ends the tunnels that are not intercepted, and the WebSockets, of clients that
// the settings now in force do not admit: their user was removed or has another password,
// or their address may not use this proxy any more. The record has the reason. It is
// called when the settings have changed. In an intercepted tunnel each request is asked.
func (p *Proxy) Recheck() {
	for _, c := range p.open.all() {
		c, ok := c.(*tunnelConn)
		if !ok {
			continue
		}
		if x := c.lasting.Load(); x != nil {
			x.recheck(c)
		}
	}
}

// lasts marks c, the client's side of x, as one that Recheck ends.
func (x *decision) lasts(c *tunnelConn) {
	c.lasting.Store(x)
	x.recheck(c) // the settings may have changed since x was admitted
}

// recheck closes c, the client's side of x, if its client is not admitted any more.
func (x *decision) recheck(c *tunnelConn) {
	r := x.proxy.config.Live().Rules
	if r == nil {
		return
	}
	if d := x.req.stillAdmitted(r); d.reason != "" {
		why := "the tunnel was closed, since the settings have changed: " + d.detail
		c.revoked.Store(&why)
		c.Close()
	}
}
