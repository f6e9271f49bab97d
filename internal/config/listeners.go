package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// ListenerConfig holds one [[listener]]: an address for connections that the kernel
// redirects to heed, or for other proxies that ask heed.
type ListenerConfig struct {
	Address string `toml:"address"` // host:port; an empty host means every address of this machine
	Mode    string `toml:"mode"`    // transparent (redirect rules), tproxy, authorize or icap
	Other   string `toml:"other"`   // refuse or tunnel: what is neither HTTP nor TLS; empty: refuse

	ProxyProtocol []string `toml:"proxy_protocol"` // networks of load balancers whose connections begin with a header

	// Of proxies that ask.
	Trust    []string       `toml:"trust"`    // their networks
	MaxWait  *time.Duration `toml:"max_wait"` // of an answer for a turn; nil: pacing.max_wait
	Purposes string         `toml:"purposes"` // refuse or allow: clients with a purpose; empty: refuse
	Connect  string         `toml:"connect"`  // refuse or bumped: a CONNECT over ICAP; empty: refuse
}

// The values of ListenerConfig.
const (
	ListenerTransparent = "transparent"
	ListenerTProxy      = "tproxy"
	ListenerAuthorize   = "authorize"
	ListenerICAP        = "icap"
	OtherRefuse         = "refuse"
	OtherTunnel         = "tunnel"
	PurposesRefuse      = "refuse"
	PurposesAllow       = "allow"
	ConnectRefuse       = "refuse"
	ConnectBumped       = "bumped"
)

// checkListeners reports the problems of [[listener]] to d.
func (c *Config) checkListeners(d *decoder) {
	defer func() { d.scope = "" }()
	seen := map[string]bool{}
	for _, at := range c.Listen {
		seen[at] = true
	}
	for i := range c.Listeners {
		d.scope = entry(i)
		l := &c.Listeners[i]
		l.Address = everyAddress(l.Address)
		switch err := checkListen(l.Address); {
		case l.Address == "":
			d.problem("listener.address", `this [[listener]] has no address; give it one, such as address = ":3129"`)
		case err != nil:
			d.note("listener.address", err)
		case seen[l.Address]:
			d.problem("listener.address", "listener.address: heed listens on %q already; each listener needs a separate port", l.Address)
		}
		seen[l.Address] = true
		known := d.oneOf("listener.mode", l.Mode, ListenerTransparent, ListenerTProxy, ListenerAuthorize, ListenerICAP)
		d.peers("listener.proxy_protocol", "load balancers", l.ProxyProtocol)
		d.oneOfOrNone("listener.other", l.Other, OtherRefuse, OtherTunnel)
		d.oneOfOrNone("listener.purposes", l.Purposes, PurposesRefuse, PurposesAllow)
		d.peers("listener.trust", "proxies", l.Trust)
		d.oneOfOrNone("listener.connect", l.Connect, ConnectRefuse, ConnectBumped)
		if known && l.Connect != "" && l.Mode != ListenerICAP {
			d.problem("listener.connect", "listener.connect is for mode = %q; this [[listener]] has mode = %q", ListenerICAP, l.Mode)
		}
		if l.MaxWait != nil && *l.MaxWait > maxWait {
			d.problem("listener.max_wait", "listener.max_wait = %q is too long; write %q or less", shortDuration(*l.MaxWait), shortDuration(maxWait))
		}
		switch asked := l.Asked(); {
		case asked && len(l.Trust) == 0:
			d.problem("listener.trust", "a [[listener]] with mode = %q has no trust; name the addresses of the proxies that ask, such as trust = [\"127.0.0.1\"]", l.Mode)
		case asked && l.Other != "":
			d.problem("listener.other", "listener.other is for connections that are redirected; mode = %q has none", l.Mode)
		case known && !asked && (len(l.Trust) > 0 || l.MaxWait != nil || l.Purposes != ""):
			d.problem("listener.trust", "trust, max_wait and purposes are for a [[listener]] with mode = %q or %q, on which other proxies ask; this one has mode = %q", ListenerAuthorize, ListenerICAP, l.Mode)
		}
	}
}

// Networks returns networks that were checked.
func Networks(list []string) (all []netip.Prefix) {
	for _, text := range list {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// Asked reports whether other proxies ask on the listener.
func (l *ListenerConfig) Asked() bool { return l.Mode == ListenerAuthorize || l.Mode == ListenerICAP }

// IsAsked reports whether other proxies ask heed.
func (c *Config) IsAsked() bool {
	return slices.ContainsFunc(c.Listeners, func(l ListenerConfig) bool { return l.Asked() })
}

// servesOthers reports whether other machines can have connections made to the listener, by
// themselves or through a load balancer, or have another proxy ask there.
func (l *ListenerConfig) servesOthers() bool {
	return !loopbackOnly(l.Address) || len(l.ProxyProtocol) > 0 || l.Asked()
}

// everyAddress returns address; with an empty host, as that of every address, IPv4 as well.
func everyAddress(address string) string {
	if strings.HasPrefix(address, ":") {
		return "[::]" + address
	}
	return address
}

// hasTProxy reports whether there is a [[listener]] for tproxy at the address.
func (c *Config) hasTProxy(address string) bool {
	return slices.ContainsFunc(c.Listeners, func(l ListenerConfig) bool { return l.Mode == ListenerTProxy && l.Address == address })
}

// checkListenerExposure returns an error when other machines can have connections
// redirected to heed, and access.clients does not restrict them.
func (c *Config) checkListenerExposure() error {
	i := slices.IndexFunc(c.Listeners, func(l ListenerConfig) bool { return l.servesOthers() && !l.Asked() }) // trust says who asks
	if i < 0 || len(c.Access.Clients) > 0 {
		return nil
	}
	port := c.Listeners[i].Address[strings.LastIndexByte(c.Listeners[i].Address, ':')+1:]
	return Mistakes{c.FindEntry(i, "listener.address", `connections from other machines can be redirected to %s%s, and nothing says who may use heed
Say so in the settings: [access] with clients = ["192.0.2.0/24"]; passwords cannot apply here
For the programs of this machine alone, write two listeners: %q and %q`,
		c.Listeners[i].Address, through(c.Listeners[i].ProxyProtocol), net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port))}
}

// unjudgedListeners returns a notice for each listener that passes on what heed cannot judge.
func (c *Config) unjudgedListeners() (all []string) {
	for _, l := range c.Listeners {
		if l.Other == OtherTunnel {
			all = append(all, fmt.Sprintf("connections to %s that are neither HTTP nor TLS are passed on, not judged", l.Address))
		}
		if l.Connect == ConnectBumped {
			all = append(all, fmt.Sprintf("a CONNECT about which a proxy asks at %s passes, NOT JUDGED; what is inside is judged only where it decrypts TLS and asks again", l.Address))
		}
		if l.Purposes == PurposesAllow {
			all = append(all, fmt.Sprintf("of clients with a purpose about which proxies ask at %s, what pages state of their use is NOT JUDGED", l.Address))
		}
	}
	return all
}
