// Package acl contains what an operator configures for clients and hosts: the name
// and mode of each client, the agent it is judged as, and the exceptions for each
// site. What a robots.txt says of a target is evaluated by package rules.
//
// Destinations are the places that heed may reach, by the class of their address (class.go);
// Addrs are heed's own addresses, which it never connects to (both in destination.go).
//
// Rules is one configuration, together with what was added while heed runs (a
// ModeOverride, an exception granted over the control socket). It is immutable: a
// reload creates another. The clock is a parameter, since exceptions and overrides
// expire.
//
// It imports rules, signal (the purposes), passport (the keys) and memo, and no package from
// outside.
package acl

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"heed/internal/base/memo"
	"heed/internal/judge/signal"
	"heed/internal/trust/passport"
	"heed/rules"
)

// ModeOverride is a mode that was set while heed runs and expires: the operator's
// break-glass.
type ModeOverride struct {
	Mode   Mode        `json:"mode"`
	Client string      `json:"client,omitempty"` // the name of an entry; empty: every client
	Host   HostPattern `json:"host,omitzero"`    // the zero pattern: every host
	Since  time.Time   `json:"since"`
	Until  time.Time   `json:"until"`
	Reason string      `json:"reason"`
}

// applies reports whether the override is for this client and origin now.
func (b *ModeOverride) applies(client string, o rules.Origin, now time.Time) bool {
	return now.Before(b.Until) && (b.Client == "" || b.Client == client) && (b.Host == HostPattern{} || b.Host.Matches(o))
}

// Users verifies the credentials that clients show for the proxy itself.
type Users interface {
	// Verify reports whether the password is correct. For an address that failed
	// too often, it returns how long that address has to wait.
	Verify(ctx context.Context, from netip.Addr, user, password string) (right bool, wait time.Duration)
	// Proof identifies the password of a user: it changes with the password. It
	// is zero for a user that there is not.
	Proof(user string) [32]byte
}

// Rules is a whole configuration. It is immutable and safe for concurrent use; nil is an
// empty one.
type Rules struct {
	Mode      Mode          // for clients and hosts without a mode
	Observe   bool          // no client is refused, whatever its mode
	Profile   rules.Profile // in whose readings of a target the patterns of exceptions are compared
	HTTPS     HTTPS         // for hosts without one
	NoVia     bool          // requests do not name heed in Via; for hosts without a setting
	Clients   []Client
	Hosts     []Host
	AlsoObey  PurposeTokens  // of clients with a purpose, besides their own; nil: none
	Overrides []ModeOverride // the latest first
	Flags     Flags          // of every client, in place of its own settings or beside them
	From      []netip.Prefix // where clients may be; empty: anywhere
	Users     Users          // who may use the proxy; nil: no credentials are needed
	Hash      string         // identifies the configuration, for the record
	Text      string         // what Hash is of, without secrets, for the record

	sites   memo.Map[rules.Origin, *Site]
	obeyed  memo.Map[*Client, *Obeyed]
	merged  memo.Map[*Client, *Terms]
	ready   sync.Once
	index   *ClientIndex // of Clients, once ready
	flagged bool         // Flags have Terms, once ready
}

// With returns r and what was added to it while heed runs: overrides, and hosts
// with exceptions.
func (r *Rules) With(overrides []ModeOverride, hosts []Host) *Rules {
	more := r.copy()
	more.Overrides = append(overrides[:len(overrides):len(overrides)], more.Overrides...)
	more.Hosts = append(more.Hosts[:len(more.Hosts):len(more.Hosts)], hosts...)
	return more
}

// copy returns rules equal to r.
func (r *Rules) copy() *Rules {
	if r == nil {
		return &Rules{}
	}
	return &Rules{
		Mode: r.Mode, Observe: r.Observe, Profile: r.Profile, HTTPS: r.HTTPS, NoVia: r.NoVia, Clients: r.Clients, Hosts: r.Hosts,
		Overrides: r.Overrides, AlsoObey: r.AlsoObey, Flags: r.Flags, From: r.From, Users: r.Users, Hash: r.Hash, Text: r.Text,
	}
}

// maxSites bounds the number of origins whose Site a Rules remembers.
const maxSites = 4096

// Effective holds the settings of one client for one origin.
type Effective struct {
	Client       *Client       // nil: no entry fits
	Site         *Site         // never nil
	ModeOverride *ModeOverride // the override that Mode comes from; nil: none

	*Terms // those of the client and of the flags together; nil: none

	Signer *passport.Signer // signs the requests of the client; nil: they are not signed
	Obeyed *Obeyed          // the names that the client obeys besides its own; nil: none

	Mode      Mode          // what a verdict does
	Profile   rules.Profile // as in Rules
	https     HTTPS         // the default
	noVia     bool          // likewise: Rules.NoVia
	byOneName bool          // only observed for a name that any client can send
}

// MayPassUnseen reports whether a tunnel of the client may pass unseen where it cannot be
// intercepted: the client is only observed, and not for its User-Agent alone, which any
// client can send.
func (t Effective) MayPassUnseen() bool { return t.Mode == Observe && !t.byOneName }

// PurposeNames returns the names of its purposes; nil for none.
func (t Effective) PurposeNames() []string { return signal.PurposeNames(t.Purposes()) }

// noSite is the Site of an origin without an entry.
var noSite = &Site{}

// ClientOf returns the first entry that fits, or nil.
func (r *Rules) ClientOf(who ClientInfo) *Client {
	if r == nil {
		return nil
	}
	return r.prepared().index.Of(&who)
}

// prepared returns r with what is derived from it.
func (r *Rules) prepared() *Rules {
	r.ready.Do(func() { r.index, r.flagged = NewClientIndex(r.Clients), len(r.Flags.Keys()) > 0 })
	return r
}

// For returns the settings of c, which may be nil, for the origin o at the time now.
func (r *Rules) For(c *Client, o rules.Origin, now time.Time) Effective {
	t := r.effective(c, o, now)
	if t.Mode == Observe && c != nil && c.ByNameAlone() {
		t.byOneName = r.effective(nil, o, now).Mode != Observe
	}
	return t
}

func (r *Rules) effective(c *Client, o rules.Origin, now time.Time) Effective {
	t := Effective{Client: c, Site: r.siteOf(o)}
	if r == nil {
		return t
	}
	t.https, t.noVia, t.Profile, t.Terms, t.Signer = r.HTTPS, r.NoVia, r.Profile, r.terms(c), r.Flags.Signer
	if c != nil {
		t.Signer = cmp.Or(t.Signer, c.Signer)
	}
	t.Obeyed = r.obeys(c, t.Terms)
	switch t.Mode = r.mode(c, t.Site); {
	case t.Mode != Enforce:
		return t // exempt and observed clients are not refused anyway
	case r.Observe:
		t.Mode = Observe
	}
	for i := range r.Overrides {
		if r.Overrides[i].applies(t.Name(), o, now) {
			t.ModeOverride, t.Mode = &r.Overrides[i], r.Overrides[i].Mode
			break
		}
	}
	return t
}

// mode returns the mode that the client or the site sets, else the default. An exempt
// client is exempt on every site; otherwise the one that observes has precedence.
func (r *Rules) mode(c *Client, s *Site) Mode {
	if c != nil && c.Mode != nil && (*c.Mode != Enforce || s.Mode == nil) {
		return *c.Mode
	}
	return *cmp.Or(s.Mode, &r.Mode)
}

// siteOf returns the Site of o.
func (r *Rules) siteOf(o rules.Origin) *Site {
	if r == nil || len(r.Hosts) == 0 {
		return noSite
	}
	s, ok := r.sites.Get(o)
	if !ok {
		s = site(r.Hosts, o)
		o.Host = strings.Clone(o.Host) // it may be part of a whole request
		r.sites.Put(o, s, maxSites)
	}
	return s
}

// ClientNamed returns the entry of that name, or nil.
func (r *Rules) ClientNamed(name string) *Client {
	if r == nil {
		return nil
	}
	for i := range r.Clients {
		if r.Clients[i].Name == name {
			return &r.Clients[i]
		}
	}
	return nil
}

// Name returns the name of the client's entry; empty when none fits.
func (t Effective) Name() string {
	if t.Client == nil {
		return ""
	}
	return t.Client.Name
}

// Signature returns how requests of a client with a Signer are signed at a site, or why they
// are not, in words.
func (t Effective) Signature(o rules.Origin, now time.Time) string {
	key := t.Signer.Key()
	switch form, signed := t.Site.Signing(o); {
	case o.Scheme == "https" && t.HTTPS() != Intercept:
		return "no, https to this host is not intercepted"
	case !signed:
		return "no, requests over http are signed only with sign_http"
	case !key.Valid(now):
		return fmt.Sprintf("no, the key %s is not valid now (nbf, exp)", key.Thumbprint)
	case form == passport.String:
		return fmt.Sprintf("as %s with the key %s, in the older form (sign_form)", t.Signer.Agent(), key.Thumbprint)
	default:
		return fmt.Sprintf("as %s with the key %s", t.Signer.Agent(), key.Thumbprint)
	}
}
