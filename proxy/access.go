package proxy

import (
	"encoding/base64"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"heed/rules"
)

// admit decides whether the client may use this proxy at all. What is asked
// inside a tunnel comes from the user that opened it. Otherwise it prepares the
// refusal.
func (x *exchange) admit(r *http.Request) bool {
	if x.book == nil || x.admitted(r) {
		return true
	}
	x.addressed(r)
	return false
}

// addressed puts the place that a request was for into its record.
func (x *exchange) addressed(r *http.Request) {
	if x.conn != nil && x.conn.tunnel != nil {
		x.entry.Scheme, x.entry.Host = x.conn.tunnel.origin.Scheme, x.conn.tunnel.origin.Authority()
		return
	}
	origin, err := rules.OriginOf(r.URL)
	if r.Method == http.MethodConnect {
		origin, err = rules.ParseOrigin("https", r.Host)
	}
	if err == nil {
		x.entry.Scheme, x.entry.Host = origin.Scheme, origin.Authority()
	}
}

// admitted is admit for a proxy that has terms.
func (x *exchange) admitted(r *http.Request) bool {
	if from := x.book.From; len(from) > 0 && !slices.ContainsFunc(from, func(p netip.Prefix) bool { return p.Contains(x.who.Addr) }) {
		x.refuse(rules.Decision{Reason: rules.ReasonAccess}, "clients at this address may not use this proxy")
		return false
	}
	inTunnel := x.conn != nil && x.conn.tunnel != nil
	direct := r.Method != http.MethodConnect && !r.URL.IsAbs()
	if x.book.Users == nil || inTunnel || direct {
		return true
	}
	return x.authenticate(r)
}

// authenticate verifies the client's credentials for this proxy (RFC 7617).
func (x *exchange) authenticate(r *http.Request) bool {
	user, password, ok := basic(r.Header["Proxy-Authorization"])
	if !ok {
		x.refuse(rules.Decision{Reason: rules.ReasonCredentials}, "this proxy asks for a user name and a password")
		return false
	}
	right, wait := x.book.Users.Verify(r.Context(), x.who.Addr, user, password)
	switch {
	case right:
		x.who.User, x.entry.User = user, user
		return true
	case wait > 0:
		x.refuse(rules.Decision{Reason: rules.ReasonFailures}, "too many wrong passwords came from this address")
		x.refusal.retryAfter = max(wait, time.Second)
		return false
	}
	x.refuse(rules.Decision{Reason: rules.ReasonCredentials}, "the user name or the password is wrong")
	return false
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
