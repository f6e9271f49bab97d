package terms

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"heed/rules"
)

// Break is a mode that was asked for while heed runs and ends by itself: the
// operator's break-glass.
type Break struct {
	Mode   Mode        `json:"mode"`
	Client string      `json:"client,omitempty"` // the name of an entry; empty: every client
	Host   HostPattern `json:"host,omitzero"`    // the zero pattern: every host
	Since  time.Time   `json:"since"`
	Until  time.Time   `json:"until"`
	Reason string      `json:"reason"`
}

// holds reports whether the break is for this client and origin now.
func (b *Break) holds(client string, o rules.Origin, now time.Time) bool {
	return now.Before(b.Until) && (b.Client == "" || b.Client == client) && (b.Host == HostPattern{} || b.Host.Fits(o))
}

// Users verifies the credentials that clients show for the proxy itself.
type Users interface {
	// Verify reports whether the password is the user's. When the address has
	// to wait before it is asked again, it returns for how long.
	Verify(ctx context.Context, from netip.Addr, user, password string) (right bool, wait time.Duration)
}

// Book is what was settled, whole. It is immutable and safe for concurrent use;
// nil is a Book in which nothing is written.
type Book struct {
	Mode    Mode  // where neither client nor host says another
	Observe bool  // nothing is refused to anybody, whatever mode is written
	HTTPS   HTTPS // where the host says no other
	Clients []Client
	Hosts   []Host
	Breaks  []Break        // the latest first
	From    []netip.Prefix // where clients may be; empty: anywhere
	Users   Users          // who may use the proxy; nil: nobody is asked who it is
	Hash    string         // identifies the configuration, for the record
	Text    string         // what Hash is of, without secrets, for the record

	mu    sync.RWMutex
	sites map[rules.Origin]*Site
}

// Run is what one `heed run` asks for itself.
type Run struct {
	Client   *Client       // whom it declares itself to be; nil: nobody
	Observe  bool          // nothing is refused to it
	Services []HostPattern // what it calls and does not crawl
	Reason   string        // of Services
}

// ForRun returns b for a listener whose clients are known already: nobody is
// asked who it is. What the run asks for stands before all else; b may be nil.
func (b *Book) ForRun(r Run) *Book {
	run := b.copy()
	run.From, run.Users, run.Observe = nil, nil, run.Observe || r.Observe
	if r.Client != nil {
		run.Clients = append([]Client{*r.Client}, run.Clients...)
	}
	if len(r.Services) > 0 {
		run.Hosts = append([]Host{{Match: r.Services, Service: r.Reason}}, run.Hosts...)
	}
	return run
}

// With returns b and what was added to it while heed runs: breaks, and hosts
// with exceptions.
func (b *Book) With(breaks []Break, hosts []Host) *Book {
	more := b.copy()
	more.Breaks = append(breaks[:len(breaks):len(breaks)], more.Breaks...)
	more.Hosts = append(more.Hosts[:len(more.Hosts):len(more.Hosts)], hosts...)
	return more
}

// copy returns another Book that says what b says.
func (b *Book) copy() *Book {
	if b == nil {
		return &Book{}
	}
	return &Book{
		Mode: b.Mode, Observe: b.Observe, HTTPS: b.HTTPS, Clients: b.Clients, Hosts: b.Hosts,
		Breaks: b.Breaks, From: b.From, Users: b.Users, Hash: b.Hash, Text: b.Text,
	}
}

// maxSites bounds how many origins a Book remembers the terms of.
const maxSites = 4096

// Terms is what was settled for one client and one origin.
type Terms struct {
	Client *Client // nil: no entry fits
	Site   *Site   // never nil
	Mode   Mode    // what a verdict does
	Break  *Break  // the break that Mode comes from; nil: none

	https HTTPS // the Book's
}

// unspoken is the Site of an origin that no entry speaks of.
var unspoken = &Site{}

// ClientOf returns the first entry that fits, or nil.
func (b *Book) ClientOf(who Who) *Client {
	if b == nil {
		return nil
	}
	for i := range b.Clients {
		if b.Clients[i].Fits(who) {
			return &b.Clients[i]
		}
	}
	return nil
}

// For returns the terms of c, which may be nil, with the origin o at the time now.
func (b *Book) For(c *Client, o rules.Origin, now time.Time) Terms {
	t := Terms{Client: c, Site: b.siteOf(o)}
	if b == nil {
		return t
	}
	t.https = b.HTTPS
	switch t.Mode = b.mode(c, t.Site); {
	case t.Mode != Enforce:
		return t // people stay people, and who is observed is held up by nothing already
	case b.Observe:
		t.Mode = Observe
	}
	for i := range b.Breaks {
		if b.Breaks[i].holds(t.Name(), o, now) {
			t.Break, t.Mode = &b.Breaks[i], b.Breaks[i].Mode
			break
		}
	}
	return t
}

// mode is the client's or the site's, where they say one. People stay people on
// every site; otherwise the one that observes costs nobody an answer.
func (b *Book) mode(c *Client, s *Site) Mode {
	said := c != nil && c.ModeSet
	switch {
	case said && s.ModeSet:
		if c.Mode != Enforce {
			return c.Mode
		}
		return s.Mode
	case said:
		return c.Mode
	case s.ModeSet:
		return s.Mode
	}
	return b.Mode
}

// siteOf returns what is said of o.
func (b *Book) siteOf(o rules.Origin) *Site {
	if b == nil || len(b.Hosts) == 0 {
		return unspoken
	}
	b.mu.RLock()
	s := b.sites[o]
	b.mu.RUnlock()
	if s != nil {
		return s
	}
	s = site(b.Hosts, o)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sites == nil || len(b.sites) >= maxSites {
		b.sites = make(map[rules.Origin]*Site) // starting over is cheaper than keeping an order
	}
	b.sites[o] = s
	return s
}

// ClientNamed returns the entry of that name, or nil.
func (b *Book) ClientNamed(name string) *Client {
	if b == nil {
		return nil
	}
	for i := range b.Clients {
		if b.Clients[i].Name == name {
			return &b.Clients[i]
		}
	}
	return nil
}

// Name returns the name of the client's entry; empty when none fits.
func (t Terms) Name() string {
	if t.Client == nil {
		return ""
	}
	return t.Client.Name
}
