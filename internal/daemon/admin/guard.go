package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"heed/proxy/http1"
)

// Users verifies names and passwords; see access.Gate.
type Users interface {
	// Verify reports whether the password is the user's. When wait is more than 0, the
	// address has failed too often and is not asked for so long.
	Verify(ctx context.Context, from netip.Addr, user, password string) (right bool, wait time.Duration)
}

// refusal is an answer to a request that does not pass a check. The zero value lets it
// pass.
type refusal struct {
	status int
	text   string
	wait   time.Duration // for Retry-After; 0: none
}

func (f *refusal) answer(w http.ResponseWriter) {
	if f.status == http.StatusUnauthorized {
		w.Header().Add("WWW-Authenticate", `Basic realm="heed", charset="UTF-8"`)
		w.Header().Add("WWW-Authenticate", `Bearer realm="heed"`)
	}
	if f.wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((f.wait+time.Second-1)/time.Second)))
	}
	http.Error(w, f.text, f.status)
}

// origin refuses requests that did not come to this listener directly under one of its
// names.
func (s *Server) origin(r *http.Request, now *Settings) refusal {
	switch {
	case s.config.ProxyName != "" && http1.InVia(r.Header, s.config.ProxyName):
		return refusal{status: http.StatusForbidden, text: "The request came through heed itself. Its admin listener is not for programs that use it as their proxy."}
	case r.Method == http.MethodConnect || r.URL.IsAbs():
		return refusal{status: http.StatusBadRequest, text: "This is the admin listener of heed, not its proxy."}
	case r.Host == "" && !r.ProtoAtLeast(1, 1) && healthPaths[r.URL.Path] != nil: // HTTP/1.0 needs none, and load balancers send none
	case !s.named(r, now.Hosts):
		return refusal{status: http.StatusMisdirectedRequest, text: "The admin listener does not have the name of the Host field. Request it by its address, or add the name to hosts under [admin]."}
	}
	return refusal{}
}

// named reports whether the Host field of r names the listener: a loopback address or
// localhost, the address that the connection came to, or one of hosts.
func (s *Server) named(r *http.Request, hosts []string) bool {
	name := hostname(r.Host)
	if name == "localhost" || name != "" && slices.Contains(hosts, name) {
		return true
	}
	a, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	if a = a.Unmap(); a.IsLoopback() {
		return true
	}
	arrived, _ := r.Context().Value(arrivedKey{}).(net.Addr)
	tcp, ok := arrived.(*net.TCPAddr)
	return ok && tcp.AddrPort().Addr().WithZone("").Unmap() == a.WithZone("")
}

// hostname returns the host of a Host field in lower case, without port and brackets;
// empty when the field is not valid.
func hostname(field string) string {
	name := field
	if host, port, err := net.SplitHostPort(field); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return ""
		}
		name = host
	} else if inner, ok := strings.CutPrefix(field, "["); ok {
		if name, ok = strings.CutSuffix(inner, "]"); !ok {
			return ""
		}
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// authenticate checks the credentials of r. Settings without credentials let every request
// pass, which are not authenticated.
func authenticate(r *http.Request, now *Settings) (authenticated bool, f refusal) {
	if now.Token == "" && now.Users == nil {
		return false, refusal{}
	}
	field := r.Header.Get("Authorization")
	if scheme, given, ok := strings.Cut(field, " "); ok && strings.EqualFold(scheme, "Bearer") && isToken(now.Token, strings.TrimSpace(given)) {
		return true, refusal{}
	}
	missing := refusal{status: http.StatusUnauthorized, text: "The admin listener of heed requires a token or a user and password ([admin] in its settings)."}
	user, password, ok := r.BasicAuth()
	switch {
	case !ok:
		return false, missing
	case isToken(now.Token, password):
		return true, refusal{}
	case now.Users == nil:
		return false, missing
	}
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // zero for a Unix socket, whose clients fail together
	right, wait := now.Users.Verify(r.Context(), from.Addr(), user, password)
	switch {
	case right:
		return true, refusal{}
	case wait > 0:
		return false, refusal{http.StatusTooManyRequests, "Too many wrong passwords came from this address. Try again later.", wait}
	}
	return false, missing
}

// isToken compares in a time that does not depend on the difference.
func isToken(token, given string) bool {
	want, got := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(given))
	return token != "" && subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// actKey is the context key of whether a request may change the running heed.
type actKey struct{}

// admittedKey is the context key of the function behind StillAdmitted.
type admittedKey struct{}

// StillAdmitted reports whether the settings in force now would admit the request of ctx
// again. Handlers of answers that last ask it, so that they end when credentials are
// withdrawn.
func StillAdmitted(ctx context.Context) bool {
	admitted, ok := ctx.Value(admittedKey{}).(func() bool)
	return ok && admitted()
}

// readmission returns the function behind StillAdmitted for a request that the settings
// before have admitted. Only other settings make it check the credentials again.
func (s *Server) readmission(r *http.Request, before *Settings) func() bool {
	return func() bool {
		now := s.config.Live()
		if now == before {
			return true
		}
		if f := s.origin(r, now); f.status != 0 {
			return false
		}
		if _, f := authenticate(r, now); f.status != 0 {
			return false
		}
		before = now
		return true
	}
}

// MayAct reports whether the request of ctx may change the running heed: the settings
// allow actions, and the request has credentials. Handlers of actions check it.
func MayAct(ctx context.Context) bool {
	may, _ := ctx.Value(actKey{}).(bool)
	return may
}

// crossSite refuses requests that a page of another site has sent: those that may change
// something (http.CrossOriginProtection), and those that are not a link that the user
// follows in a tab: a page that is shown inside another one, or that a script leads to,
// would make heed read its record without the user (Fetch Metadata §2).
func crossSite(r *http.Request) refusal {
	h := r.Header
	site, byUser := h.Get("Sec-Fetch-Site"), h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document" && h.Get("Sec-Fetch-User") == "?1"
	if new(http.CrossOriginProtection).Check(r) != nil || (site == "cross-site" || site == "same-site") && !byUser {
		return refusal{status: http.StatusForbidden, text: "The request comes from a page of another site."}
	}
	return refusal{}
}
