package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"heed/internal/terms"
	"heed/rules"
)

// ErrDestination is wrapped by every error that says that heed may not reach a
// destination.
var ErrDestination = errors.New("heed may not reach it")

// Destinations says which places may be reached. What is asked for is looked at
// by name and, when it is dialled, by the address that the name has at that
// moment. In this order:
//
//  1. A name or an address in Refuse is refused.
//  2. An address in Allow is allowed.
//  3. A public address is allowed.
//  4. An address of heed's own network (loopback, private, carrier-grade NAT,
//     benchmarks) is allowed when Private is set, or the name is in Allow.
//  5. Any other is refused: no site has a link-local or multicast address, and
//     what answers at a cloud's metadata address is no site.
//
// The zero value allows what is public. A nil *Destinations allows everything.
type Destinations struct {
	Private bool
	Allow   []Destination
	Refuse  []Destination
	// Placed has a key "host:port" for each whose address the settings give:
	// only Refuse keeps from those.
	Placed map[string]string

	classify func(netip.Addr) Class // nil: Classify
}

// refusedDestination is why a destination may not be reached.
type refusedDestination struct {
	host    string     // as asked for
	address netip.Addr // that it has; invalid when the name alone was refused
	class   Class      // of address
	listed  bool       // by Refuse
}

// Error says it with the address: for the record, not for clients.
func (e *refusedDestination) Error() string {
	text := ErrDestination.Error() + ": " + e.host
	if e.address.IsValid() && e.host != e.address.String() {
		text += " is at " + e.address.String()
	}
	if e.listed {
		return text + ", which access.refuse_to names"
	}
	return fmt.Sprintf("%s, a %s address", text, e.class)
}

// Unwrap returns ErrDestination.
func (e *refusedDestination) Unwrap() error { return ErrDestination }

// sentence says it to clients: what a name resolves to in heed's network is not
// theirs to know.
func (e *refusedDestination) sentence() string {
	if e.listed {
		return "Refused by heed: " + e.host + " is on this proxy's list of places it does not go to"
	}
	return fmt.Sprintf("Refused by heed: %s is at a %s address, where this proxy does not go", e.host, e.class)
}

// visit is a destination that was asked for and whose name may be reached. The
// zero value may reach everything.
type visit struct {
	*Destinations
	host   string
	opened bool // Allow names the host
	placed bool // the settings say where the host is
}

// visit checks a destination as it was asked for, before anything is resolved.
// One that is placed is where the settings say, whatever it is called.
func (d *Destinations) visit(host string, port uint16, placed bool) (visit, error) {
	if d == nil {
		return visit{}, nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	a, noAddress := netip.ParseAddr(name)
	if noAddress == nil {
		name = "" // only "*" means it
	}
	named := func(p Destination) bool { return p.hasName(name, port) }
	if slices.ContainsFunc(d.Refuse, named) {
		return visit{}, &refusedDestination{host: host, listed: true}
	}
	v := visit{d, host, slices.ContainsFunc(d.Allow, named), placed}
	if noAddress == nil && !placed {
		return v, v.at(a, port)
	}
	return v, nil
}

// elsewhere checks a destination that another proxy will resolve: what can be
// told from its name.
func (d *Destinations) elsewhere(host string, port uint16) error {
	v, err := d.visit(host, port, false)
	local := host == "localhost" || strings.HasSuffix(host, ".localhost") // RFC 6761 §6.3
	if err == nil && local && d != nil && !d.Private && !v.opened {
		err = &refusedDestination{host: host, class: Loopback}
	}
	return err
}

// at checks an address that the host has.
func (v visit) at(a netip.Addr, port uint16) error {
	if v.Destinations == nil {
		return nil
	}
	a = a.WithZone("").Unmap()
	meant := func(p Destination) bool { return p.hasAddress(a, port) }
	if slices.ContainsFunc(v.Refuse, func(p Destination) bool { return meant(p) || p.carriedBy(a, port) }) {
		return &refusedDestination{host: v.host, address: a, listed: true}
	}
	c := v.class(a)
	switch {
	case v.placed, c == Public, slices.ContainsFunc(v.Allow, meant), c.ownNetwork() && (v.Private || v.opened):
		return nil
	}
	return &refusedDestination{host: v.host, address: a, class: c}
}

func (d *Destinations) class(a netip.Addr) Class {
	if d.classify != nil {
		return d.classify(a)
	}
	return Classify(a)
}

// Destination is one entry of a list of destinations; see ParseDestination. The
// zero value is no place.
type Destination struct {
	prefix netip.Prefix // valid for addresses
	port   uint16       // of those; 0: any
	names  terms.HostPattern
}

// ParseDestination reads an entry: an address or a range of them (192.0.2.7,
// 10.0.0.0/8, [2001:db8::]/32), a host (intranet.example), all hosts under one
// (*.corp.example, which does not stand for corp.example itself) or any (*), with
// ":port" behind it or without. An error says what should have been written.
func ParseDestination(text string) (Destination, error) {
	if text == "" || strings.ContainsAny(text, " \t@?#") || strings.Contains(text, "://") || strings.HasPrefix(text, "[") != strings.Contains(text, "]") {
		return Destination{}, fmt.Errorf(`%q is not a destination; write an address, a range or a host, such as "10.1.0.0/16" or "*.corp.example", and a port behind it if one is meant, such as "192.0.2.7:8080"`, text)
	}
	host, port := cutPort(text)
	d := Destination{}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return Destination{}, fmt.Errorf("%q has no port from 1 to 65535; write %q", text, host+":443")
		}
		d.port = uint16(n)
	}
	bare := strings.NewReplacer("[", "", "]", "").Replace(host)
	a, err := netip.ParseAddr(bare)
	switch {
	case err == nil && a.Zone() == "":
		d.prefix = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())
		return d, nil
	case strings.Contains(bare, "/"):
		d.prefix, err = parsePrefix(text, bare)
		return d, err
	}
	d.names, err = terms.ParseHostPattern(text)
	return d, err
}

// cutPort takes the port off: what follows the last colon, unless that one is
// within an IPv6 address.
func cutPort(text string) (host, port string) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 || i < strings.LastIndexByte(text, ']') || !strings.Contains(text, "]") && strings.IndexByte(text, ':') < i {
		return text, ""
	}
	return text[:i], text[i+1:]
}

func parsePrefix(text, bare string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(bare)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf(`%q is not a range of addresses; write one such as "10.1.0.0/16" or "[2001:db8::]/32"`, text)
	}
	if p.Masked() != p {
		return netip.Prefix{}, fmt.Errorf("%q has bits set beyond its length; write %q", text, p.Masked())
	}
	if p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q is a range of IPv4 addresses in IPv6 form; write it as IPv4", text)
	}
	return p, nil
}

// hasName reports whether a host is meant; an empty one stands for an address,
// which "*" alone means.
func (d Destination) hasName(host string, port uint16) bool {
	return !d.prefix.IsValid() && d.names.Fits(rules.Origin{Host: host, Port: port})
}

// hasAddress reports whether an address is meant.
func (d Destination) hasAddress(a netip.Addr, port uint16) bool {
	return (d.port == 0 || d.port == port) && d.prefix.IsValid() && d.prefix.Contains(a)
}

// carriedBy reports whether an address is meant that a is a way to.
func (d Destination) carriedBy(a netip.Addr, port uint16) bool {
	for _, inner := range embedded(a) {
		if d.hasAddress(inner, port) {
			return true
		}
	}
	return false
}
