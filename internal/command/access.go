package command

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"heed/internal/access"
	"heed/internal/terms"
	"heed/proxy"
)

// AccessConfig is [access]: who may use heed, and where it goes.
type AccessConfig struct {
	Clients             []string `toml:"clients"`              // addresses and networks; empty: any
	Users               string   `toml:"users"`                // htpasswd file; empty: nobody is asked for a password
	PrivateDestinations string   `toml:"private_destinations"` // auto, allow or refuse
	AllowTo             []string `toml:"allow_to"`             // each as proxy.ParseDestination reads it
	RefuseTo            []string `toml:"refuse_to"`            // the same; beats AllowTo
}

// check notes what is wrong with the settings.
func (c *AccessConfig) check(d *decoder) {
	d.oneOf("access.private_destinations", c.PrivateDestinations, "auto", "allow", "refuse")
	d.destinations("access.allow_to", c.AllowTo)
	d.destinations("access.refuse_to", c.RefuseTo)
	d.networks("access.clients", c.Clients)
}

// networks notes the entries that are none and brings the others into their
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

// serveAt puts what --listen and --clients, or HEED_LISTEN and HEED_CLIENTS, say
// in the place of the configured values. Empty ones say nothing.
func (c *Config) serveAt(listen string, clients []string) error {
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

// exposed returns an error when other machines could use heed and nothing says
// which of them may.
func (c *Config) exposed() error {
	if c.servesItself() || len(c.Access.Clients) > 0 || c.Access.Users != "" {
		return nil
	}
	open := c.Listen[slices.IndexFunc(c.Listen, func(at string) bool { return !servesItself(at) })]
	return fmt.Errorf(`%s can be reached from other machines, and nothing says who may use heed
Say so in the settings: [access] with clients = ["192.0.2.0/24"], or users = "FILE" for passwords
In a container, for the clients of its network: --listen 0.0.0.0:3128 --clients 172.16.0.0/12
or the same in its environment: HEED_LISTEN=0.0.0.0:3128 HEED_CLIENTS=172.16.0.0/12`, open)
}

// admitted puts who may use heed into b. It reads the file of the users.
func (c *AccessConfig) admitted(b *terms.Book, now func() time.Time) error {
	for _, text := range c.Clients {
		b.From = append(b.From, netip.MustParsePrefix(text)) // checked
	}
	if c.Users == "" {
		return nil
	}
	gate, err := access.Open(c.Users, now)
	if err != nil {
		return fmt.Errorf("access.users: %w", err)
	}
	b.Users = gate
	return nil
}

// destinations notes the entries that are none, each under its own line.
func (d *decoder) destinations(path string, list []string) {
	for i, text := range list {
		if _, err := proxy.ParseDestination(text); err != nil {
			d.problem(element(path, i), "%s: %v", path, err)
		}
	}
}

// destinations is where a heed with these settings goes.
func (c *Config) destinations() (*proxy.Destinations, error) {
	d := &proxy.Destinations{Placed: c.Upstream.Resolve}
	switch c.Access.PrivateDestinations {
	case "allow":
		d.Private = true
	case "auto":
		d.Private = c.servesItself()
	}
	for _, l := range []struct {
		from []string
		to   *[]proxy.Destination
	}{{c.Access.AllowTo, &d.Allow}, {c.Access.RefuseTo, &d.Refuse}} {
		for _, text := range l.from {
			entry, err := proxy.ParseDestination(text)
			if err != nil {
				return nil, err
			}
			*l.to = append(*l.to, entry)
		}
	}
	return d, nil
}

// servesItself reports whether only programs of this machine can reach heed.
func (c *Config) servesItself() bool {
	return !slices.ContainsFunc(c.Listen, func(at string) bool { return !servesItself(at) })
}

// servesItself reports whether only programs of this machine can reach a
// listener.
func servesItself(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}
