package command

import (
	"net"
	"net/netip"

	"heed/proxy"
)

// AccessConfig is [access]: where heed goes.
type AccessConfig struct {
	PrivateDestinations string   `toml:"private_destinations"` // auto, allow or refuse
	AllowTo             []string `toml:"allow_to"`             // each as proxy.ParseDestination reads it
	RefuseTo            []string `toml:"refuse_to"`            // the same; beats AllowTo
}

// check notes what is wrong with the settings.
func (c *AccessConfig) check(d *decoder) {
	d.oneOf("access.private_destinations", c.PrivateDestinations, "auto", "allow", "refuse")
	d.destinations("access.allow_to", c.AllowTo)
	d.destinations("access.refuse_to", c.RefuseTo)
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
		d.Private = servesItself(c.Listen)
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
