package acl

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"heed/internal/trust/passport"
	"heed/rules"
)

// ClientInfo identifies the client of a request.
type ClientInfo struct {
	Addr      netip.Addr // where it connects from; IPv4 never mapped into IPv6
	User      string     // whose credentials it sent, verified; empty: none
	Listener  string     // host:port of heed that it connected to
	UserAgent string     // as received; empty: none
}

// Client is one [[client]] entry: conditions, and the settings of the clients that match.
// A condition that is not set matches every client.
type Client struct {
	Name string

	From      []netip.Prefix // any of them
	User      string
	Listener  string
	UserAgent Glob

	Agent             *rules.Agent // judged as these product tokens; nil: by the User-Agent
	SendUserAgent     string       // sent to sites in place of the client's; empty: the client's
	SendFrom          string       // sent to sites in the From field; empty: the client's
	Mode              *Mode        // nil: the default
	RefuseUnnamed     bool         // a request without a User-Agent is refused, not judged under "*"
	AllowSubresources bool         // the parts of an allowed page may be loaded

	Terms

	MaxWait *time.Duration // for a turn at a site; nil: as for all

	Signer *passport.Signer // signs its requests; nil: they are not signed
}

// Matches reports whether the entry applies to the client.
func (c *Client) Matches(who ClientInfo) bool {
	switch {
	case c.User != "" && c.User != who.User:
	case c.Listener != "" && c.Listener != who.Listener:
	case len(c.From) > 0 && !slices.ContainsFunc(c.From, func(p netip.Prefix) bool { return p.Contains(who.Addr) }):
	default:
		return c.UserAgent.Matches(who.UserAgent)
	}
	return false
}

// ByNameAlone reports whether the entry recognises clients by their User-Agent alone,
// which any client can send.
func (c *Client) ByNameAlone() bool {
	return len(c.From) == 0 && c.User == "" && c.Listener == "" && c.UserAgent.text != ""
}

// Mode is the effect of a verdict. The zero value enforces it.
type Mode uint8

// The modes.
const (
	Enforce Mode = iota // refused requests are not sent
	Observe             // requests are judged and recorded, not refused
	Exempt              // people, not robots: requests are counted, not judged
)

var modeNames = [...]string{"enforce", "observe", "exempt"}

// ParseMode returns the mode of a name as String returns it.
func ParseMode(name string) (Mode, error) {
	i := slices.Index(modeNames[:], name)
	if i < 0 {
		return Enforce, fmt.Errorf("%q is no mode: the modes are enforce, observe and exempt", name)
	}
	return Mode(i), nil
}

// String returns the stable name: enforce, observe or exempt.
func (m Mode) String() string {
	if m > Exempt {
		m = Enforce
	}
	return modeNames[m]
}

// HTTPS is the handling of CONNECT. The zero value judges every request inside.
type HTTPS uint8

// The ways to handle CONNECT.
const (
	Intercept HTTPS = iota // every request inside is judged by its path
	HostOnly               // tunnelled, unless robots.txt bars the agent from everything
	Tunnel                 // tunnelled unjudged
	NoHTTPS                // refused
)

// HTTPSNames are the names of all HTTPS values.
var HTTPSNames = []string{"intercept", "host-only", "tunnel", "refuse"}

// ParseHTTPS returns the value of a name as String returns it.
func ParseHTTPS(name string) (HTTPS, error) {
	i := slices.Index(HTTPSNames, name)
	if i < 0 {
		return NoHTTPS, fmt.Errorf("%q is not among %s", name, strings.Join(HTTPSNames, ", "))
	}
	return HTTPS(i), nil
}

// String returns the stable name: intercept, host-only, tunnel or refuse.
func (h HTTPS) String() string { return HTTPSNames[min(h, NoHTTPS)] }

// defaultPorts are the allowed ports of tunnels when no entry lists any.
var defaultPorts = []uint16{443}

// HTTPS returns the handling of a CONNECT to the origin. Exempt clients are not judged, so
// that their tunnels pass unless https is refused.
func (t Effective) HTTPS() HTTPS {
	h := *cmp.Or(t.Site.HTTPS, &t.https)
	if t.Mode == Exempt && h != NoHTTPS {
		return Tunnel
	}
	return h
}

// Via reports whether requests to the origin name heed in their Via field (RFC 9110
// §7.6.3).
func (t Effective) Via() bool {
	return *cmp.Or(t.Site.Via, new(!t.noVia))
}

// TunnelsTo reports whether a tunnel that is not intercepted may go to o's port,
// and names the ports that it may go to.
func (t Effective) TunnelsTo(o rules.Origin) (ok bool, ports string) {
	all := t.Site.Ports
	if len(all) == 0 {
		all = defaultPorts
	}
	var names []string
	for _, port := range all {
		names = append(names, strconv.Itoa(int(port)))
	}
	return slices.Contains(all, o.Port), strings.Join(names, ", ")
}

// Host is one [[host]] entry: host patterns, and the settings of the hosts that match.
type Host struct {
	Match      []HostPattern // any of them
	Mode       *Mode         // nil: the client's or the default
	Exceptions []*Exception
	Licence    *Licence                         // nil: there is no contract
	Robots     func(rules.Origin) *rules.Policy // the policy in place of the site's own; nil: the site's own
	Service    string                           // why the host is called and not crawled; empty: it is crawled
	NeverAllow bool                             // no exception may allow what the site refuses
	HTTPS      *HTTPS                           // nil: the default
	Ports      []uint16                         // that tunnels which are not intercepted may go to; empty: the default's
	Via        *bool                            // requests name heed in Via; nil: the default
	SignForm   *passport.Form                   // of signatures; nil: the default
	SignHTTP   bool                             // requests over http are signed too
}

// Matches reports whether the entry applies to o.
func (h *Host) Matches(o rules.Origin) bool {
	return slices.ContainsFunc(h.Match, func(p HostPattern) bool { return p.Matches(o) })
}

// Site holds the settings of one origin: each from the first [[host]] entry that sets it,
// and the exceptions of all entries in their order. The zero Site is that of an origin
// without an entry.
type Site struct {
	Mode       *Mode // nil: the client's or the default
	Exceptions []*Exception
	Licences   []*Licence    // of all entries
	Robots     *rules.Policy // in place of the site's own; nil: the site's own
	Service    string        // why it is called and not crawled; empty: it is crawled
	NeverAllow bool
	HTTPS      *HTTPS   // nil: the default
	Ports      []uint16 // that tunnels which are not intercepted may go to; empty: 443
	Via        *bool    // requests name heed in Via; nil: the default
	SignForm   *passport.Form
	SignHTTP   bool // requests over http are signed too
}

// Signing returns the form in which requests to s are signed, and whether those to the
// origin o are.
func (s *Site) Signing(o rules.Origin) (form passport.Form, signed bool) {
	if s.SignForm != nil {
		form = *s.SignForm
	}
	return form, o.Scheme == "https" || s.SignHTTP
}

// site merges the entries that match o.
func site(hosts []Host, o rules.Origin) *Site {
	s := &Site{}
	for i := range hosts {
		h := &hosts[i]
		if !h.Matches(o) {
			continue
		}
		s.Mode, s.HTTPS, s.Service = cmp.Or(s.Mode, h.Mode), cmp.Or(s.HTTPS, h.HTTPS), cmp.Or(s.Service, h.Service)
		s.Via, s.SignForm, s.SignHTTP = cmp.Or(s.Via, h.Via), cmp.Or(s.SignForm, h.SignForm), s.SignHTTP || h.SignHTTP
		if s.Ports == nil {
			s.Ports = h.Ports
		}
		if s.Robots == nil && h.Robots != nil {
			s.Robots = h.Robots(o)
		}
		s.NeverAllow = s.NeverAllow || h.NeverAllow
		s.Exceptions = append(s.Exceptions, h.Exceptions...)
		if h.Licence != nil {
			s.Licences = append(s.Licences, h.Licence)
		}
	}
	return s
}

// Exception allows or refuses a part of a site, whatever its robots.txt contains.
type Exception struct {
	Patterns []string  // as in robots.txt: a path prefix, with "*" and a final "$"
	Refuse   bool      // refuse what they match; otherwise allow it
	Reason   string    // who agreed to it, or why; never empty
	Expires  time.Time // it no longer holds from then on; zero: it does not end
	Clients  []string  // the names of the clients it is for; empty: all
	Granted  bool      // added while heed ran, not by the configuration

	policy, strict *rules.Policy // strict is policy with all readings of a target
}

// Licence is a contract with a site: what its licences ask for counts as met.
type Licence struct {
	Reference string    // of the contract, for the record; never empty
	Expires   time.Time // it no longer holds from then on; zero: it does not end
	Clients   []string  // the names of the clients it is for; empty: all
}

// Licence returns the reference of the first contract with the site that holds for the
// client now; empty for none.
func (t Effective) Licence(now time.Time) string {
	for _, l := range t.Site.Licences {
		if holds(l.Expires, l.Clients, t.Name(), now) {
			return l.Reference
		}
	}
	return ""
}

// Block reports whether e was added while heed ran, to block something immediately.
func (e *Exception) Block() bool { return e.Refuse && e.Granted }

// NewException returns e ready for use. It returns an error for a pattern that
// could never match a target.
func NewException(e Exception) (*Exception, error) {
	text, verdict := "User-agent: *\nDisallow: /\n", "Allow: "
	if e.Refuse {
		text, verdict = "User-agent: *\n", "Disallow: "
	}
	for _, p := range e.Patterns {
		if err := checkPattern(p); err != nil {
			return nil, err
		}
		text += verdict + p + "\n"
	}
	// The patterns are judged as rules of a robots.txt: an exception that allows matches only
	// when every reading of a target does, one that refuses when any does.
	e.policy = rules.New(rules.Source{State: rules.Available}, []byte(text))
	e.strict = e.policy.ReadAs(rules.Strict)
	return &e, nil
}

// anyAgent has no name, so that the group * applies.
var anyAgent = &rules.Agent{}

// Match returns the pattern that matches the target in its readings under a profile, as
// judge judges it, and whether there is one.
func (e *Exception) Match(judge func(*rules.Policy, *rules.Agent, *rules.Target) rules.Decision, profile rules.Profile, target *rules.Target) (string, bool) {
	policy := e.policy
	if profile == rules.Strict {
		policy = e.strict
	}
	d := judge(policy, anyAgent, target)
	if e.Refuse {
		return d.Rule, d.Verdict == rules.Refuse
	}
	return d.Rule, d.Verdict == rules.Allow && d.Reason == rules.ReasonRule
}

// Exceptions returns the exceptions that are for the client now, in their order.
func (t Effective) Exceptions(now time.Time) iter.Seq[*Exception] {
	return func(yield func(*Exception) bool) {
		for _, e := range t.Site.Exceptions {
			if holds(e.Expires, e.Clients, t.Name(), now) && !yield(e) {
				return
			}
		}
	}
}

// holds reports whether an agreement until expires with some clients holds for one now.
func holds(expires time.Time, clients []string, client string, now time.Time) bool {
	return (expires.IsZero() || now.Before(expires)) && (len(clients) == 0 || slices.Contains(clients, client))
}

// checkPattern returns an error for an invalid pattern of an exception.
func checkPattern(p string) error {
	switch {
	case p == "" || p[0] != '/' && p[0] != '*':
		return fmt.Errorf("%q is no path pattern: it begins with a slash, or with a star", p)
	case !rules.Sendable(p), strings.Contains(p, "#"):
		return fmt.Errorf("%q is no path pattern: write a blank as %%20 and a # as %%23", p)
	}
	return nil
}

// Decision returns the exception's decision, with its pattern as the rule.
func (e *Exception) Decision(rule string) rules.Decision {
	d := rules.Decision{Reason: rules.ReasonOverride, Rule: rule}
	if !e.Refuse {
		d.Verdict = rules.Allow
	}
	return d
}

// WholeSite returns the pattern that is for all of a site, and whether there is one.
func (e *Exception) WholeSite() (string, bool) {
	field := "Allow: "
	if e.Refuse {
		field = "Disallow: "
	}
	for _, p := range e.Patterns {
		if p == "/" || p == "*" || p == "/*" {
			return field + p, true
		}
	}
	return "", false
}
