package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"heed/internal/config/access"
	"heed/internal/judge/acl"
)

// AccessConfig holds [access]: which clients may use heed, and which destinations it connects to.
type AccessConfig struct {
	Clients             []string `toml:"clients"`              // addresses and networks; empty: any
	Users               string   `toml:"users"`                // htpasswd file; empty: no password is required
	PrivateDestinations string   `toml:"private_destinations"` // auto, allow or refuse
	AllowTo             []string `toml:"allow_to"`             // each as acl.ParseDestination reads it
	RefuseTo            []string `toml:"refuse_to"`            // the same; beats AllowTo
}

// check reports the problems of the settings to d.
func (c *AccessConfig) check(d *decoder) {
	d.oneOf("access.private_destinations", c.PrivateDestinations, "auto", "allow", "refuse")
	d.destinations("access.allow_to", c.AllowTo)
	d.destinations("access.refuse_to", c.RefuseTo)
	d.networks("access.clients", c.Clients)
}

// networks reports the entries that are not networks and brings the others into
// canonical form.
func (d *decoder) networks(path string, list []string) {
	for i, text := range list {
		p, err := parseNetwork(text)
		if err != nil {
			d.problem(element(path, i), "%s: %v", path, err)
			continue
		}
		list[i] = p.String()
	}
}

// peers reports the entries that are not networks of those who are believed what they say of
// clients: "load balancers", for one.
func (d *decoder) peers(path, who string, list []string) {
	d.networks(path, list)
	for i, text := range list {
		if p, err := netip.ParsePrefix(text); err == nil && p.Bits() == 0 {
			d.problem(element(path, i), "%s: %q would let every client name an address of its choice; name the addresses of your %s", path, text, who)
		}
	}
}

// ServeAt replaces the configured values by those of --listen and --clients (or
// HEED_LISTEN and HEED_CLIENTS). Empty arguments change nothing.
func (c *Config) ServeAt(listen string, clients []string) error {
	if listen != "" {
		if err := checkListen(listen); err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
		c.Listen = Addresses{listen}
	}
	if len(clients) == 0 {
		return nil
	}
	c.Access.Clients = nil
	for _, text := range clients {
		p, err := parseNetwork(text)
		if err != nil {
			return fmt.Errorf("--clients: %w", err)
		}
		c.Access.Clients = append(c.Access.Clients, p.String())
	}
	return nil
}

// CheckExposure returns an error when other machines can connect to heed and neither
// access.clients nor access.users restricts them, or have connections redirected to it and
// access.clients does not.
func (c *Config) CheckExposure() error {
	i := slices.IndexFunc(c.Listen, func(at string) bool { return !loopbackOnly(at) || len(c.ProxyProtocol) > 0 })
	if i < 0 || len(c.Access.Clients) > 0 || c.Access.Users != "" {
		return c.checkListenerExposure()
	}
	return fmt.Errorf(`%s can be reached from other machines%s, and nothing says who may use heed
Say so in the settings: [access] with clients = ["192.0.2.0/24"], or users = "FILE" for passwords
or for this start: --clients 192.0.2.0/24, or HEED_CLIENTS=192.0.2.0/24 in the environment`, c.Listen[i], through(c.ProxyProtocol))
}

// through returns words for an address that load balancers connect clients to.
func through(balancers []string) string {
	if len(balancers) == 0 {
		return ""
	}
	return " through the load balancers of proxy_protocol"
}

// addAccess adds the allowed clients and users to r. It reads the users file.
func (c *AccessConfig) addAccess(r *acl.Rules, now func() time.Time) error {
	r.From = append(r.From, Networks(c.Clients)...)
	if c.Users == "" {
		return nil
	}
	gate, err := access.Open(c.Users, now)
	if err != nil {
		return fmt.Errorf("access.users: %w", err)
	}
	r.Users = gate
	return nil
}

// destinations reports the entries that are not destinations, each with its line.
func (d *decoder) destinations(path string, list []string) {
	for i, text := range list {
		if _, err := acl.ParseDestination(text); err != nil {
			d.problem(element(path, i), "%s: %v", path, err)
		}
	}
}

// Destinations returns the destinations that these settings allow.
func (c *Config) Destinations() *acl.Destinations {
	d := &acl.Destinations{Placed: c.Upstream.Resolve}
	switch c.Access.PrivateDestinations {
	case "allow":
		d.Private = true
	case "auto":
		d.Private = c.loopbackOnly()
	}
	for _, text := range c.Access.AllowTo {
		d.Allow = append(d.Allow, checked(acl.ParseDestination(text)))
	}
	for _, text := range c.Access.RefuseTo {
		d.Refuse = append(d.Refuse, checked(acl.ParseDestination(text)))
	}
	return d
}

// loopbackOnly reports whether heed listens on loopback addresses only, and no load balancer
// connects others to them.
func (c *Config) loopbackOnly() bool {
	if len(c.ProxyProtocol) > 0 || slices.ContainsFunc(c.Listeners, func(l ListenerConfig) bool { return l.servesOthers() }) {
		return false
	}
	return !slices.ContainsFunc(c.Listen, func(at string) bool { return !loopbackOnly(at) })
}

// loopbackOnly reports whether the address of a listener is a loopback address.
func loopbackOnly(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// Addresses are the addresses that heed listens on, host:port each. In TOML they are a
// string or a list of strings.
type Addresses []string

// First returns the first address as it is written; empty when l is empty.
func (l Addresses) First() string {
	if len(l) == 0 {
		return ""
	}
	return l[0]
}

// String returns all addresses, separated by commas.
func (l Addresses) String() string { return strings.Join(l, ", ") }

// checkAddresses reports missing, invalid and repeated addresses.
func (d *decoder) checkAddresses(path string, l Addresses) {
	if len(l) == 0 {
		d.problem(path, `%s has no address; write "127.0.0.1:3128"`, path)
	}
	for i, addr := range l {
		at := element(path, i)
		if _, listed := d.lines[at]; !listed {
			at = path
		}
		if err := checkListen(addr); err != nil {
			d.problem(at, "%s: %v", path, err)
		} else if slices.Contains(l[:i], addr) {
			d.problem(at, "%s: %q is listed twice; remove one of them", path, addr)
		}
	}
}

// unmatchedListener returns a notice when heed does not listen on the listener of an
// entry, so that the entry never matches; empty when it does.
func (c *Config) unmatchedListener(cl *ClientConfig) string {
	accepts := func(at string) bool { return mayAccept(at, cl.Listener) }
	redirected := func(l ListenerConfig) bool {
		if l.Mode == ListenerTProxy { // its connections have the addresses of sites
			return l.Address == cl.Listener
		}
		return accepts(l.Address)
	}
	if cl.Listener == "" || slices.ContainsFunc(c.Listen, accepts) || slices.ContainsFunc(c.Listeners, redirected) {
		return ""
	}
	for _, l := range c.Listeners {
		if accepts(l.Address) {
			return fmt.Sprintf("client %q never matches: of a listener for tproxy, write the address as in [[listener]], which is listener = %q", cl.Name, l.Address)
		}
	}
	return fmt.Sprintf("client %q never matches: heed does not listen on %s (listen has %s)", cl.Name, cl.Listener, c.Listen)
}

// mayAccept reports whether a client that connects to addr may reach the listener at.
// An unspecified address accepts connections on every address of the machine, and port
// 0 matches every port.
func mayAccept(at, addr string) bool {
	host, port, err := net.SplitHostPort(at)
	to, bad := netip.ParseAddrPort(addr)
	if err != nil || bad != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	everywhere := err == nil && a.IsUnspecified()
	sameHost := everywhere || err == nil && a.Unmap() == to.Addr().Unmap() || host == "localhost" && to.Addr().IsLoopback()
	return sameHost && (port == "0" || port == fmt.Sprint(to.Port()))
}
