package acl

import (
	_ "embed" // special.list
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
)

// Class is how public an address is. Greater is more public; the zero value is the
// class of what is not an address.
type Class uint8

// The classes of addresses, the least public first, after the IANA registries
// of special-purpose addresses (RFC 6890).
const (
	Invalid       Class = iota // no address
	Unspecified                // 0.0.0.0/8, ::
	Multicast                  // many machines
	Broadcast                  // all machines of a network
	Documentation              // of examples, on no network
	Metadata                   // where clouds give a machine its secrets
	Loopback                   // this machine
	LinkLocal                  // this cable
	Private                    // this organisation (RFC 1918)
	UniqueLocal                // the same in IPv6 (RFC 4193)
	SiteLocal                  // the same in early IPv6 (RFC 3879)
	Reserved                   // protocols, and what is not assigned
	Benchmark                  // test networks (RFC 2544)
	CGNAT                      // this access provider (RFC 6598)
	Public                     // all else
)

var classNames = []string{
	"invalid", "unspecified", "multicast", "broadcast", "documentation", "metadata", "loopback",
	"link-local", "private", "unique-local", "site-local", "reserved", "benchmark", "cgnat", "public",
}

// String returns the class's stable name.
func (c Class) String() string {
	if int(c) >= len(classNames) {
		c = Invalid
	}
	return classNames[c]
}

// LessPublic reports whether an address of class c is less public than one of
// class d. The addresses of one organisation are equals, whatever their form.
func (c Class) LessPublic(d Class) bool { return c.rank() < d.rank() }

func (c Class) rank() Class {
	switch c {
	case UniqueLocal, SiteLocal:
		return Private
	case Benchmark:
		return Reserved
	case Broadcast:
		return Multicast
	}
	return c
}

// ownNetwork reports whether addresses of class c are in the network that heed runs
// in, where a site may be: its operator decides whether clients may reach it. Of the
// other classes, only Public has addresses of sites.
func (c Class) ownNetwork() bool {
	switch c {
	case Unspecified, Loopback, Private, UniqueLocal, SiteLocal, Benchmark, CGNAT:
		return true
	}
	return false
}

// thisMachine reports whether addresses of class c are this machine's.
func (c Class) thisMachine() bool { return c == Loopback || c == Unspecified }

// Classify returns the class of a. An IPv6 address that carries an IPv4 one to
// be reached through it (mapped, NAT64, 6to4, Teredo, ISATAP) has the less
// public class of the two. A zone makes no difference.
func Classify(a netip.Addr) Class {
	if a = a.WithZone("").Unmap(); !a.IsValid() {
		return Invalid
	}
	c := specialOf(a)
	for _, inner := range embedded(a) {
		c = min(c, specialOf(inner))
	}
	return c
}

// specialOf looks a up in the table: the longest prefix decides.
func specialOf(a netip.Addr) Class {
	c, bits := Public, -1
	if a.Is6() && a.As16()[0]>>5 != 1 { // only 2000::/3 was ever assigned (RFC 4291 §2.4)
		c = Reserved
	}
	for _, s := range special {
		if s.prefix.Bits() > bits && s.prefix.Contains(a) {
			c, bits = s.class, s.prefix.Bits()
		}
	}
	return c
}

// embedded returns the IPv4 addresses that a carries.
func embedded(a netip.Addr) []netip.Addr {
	if !a.Is6() {
		return nil
	}
	b := a.As16()
	last := netip.AddrFrom4([4]byte(b[12:]))
	switch {
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP (RFC 5214 §6.1)
		return []netip.Addr{last}
	case nat64.Contains(a), nat64Local.Contains(a), translated.Contains(a):
		return []netip.Addr{last}
	case compatible.Contains(a) && binary.BigEndian.Uint32(b[12:]) > 0xffff: // :: and ::1 are themselves
		return []netip.Addr{last}
	case sixToFour.Contains(a):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	case teredo.Contains(a):
		var client [4]byte
		binary.BigEndian.PutUint32(client[:], ^binary.BigEndian.Uint32(b[12:]))
		return []netip.Addr{netip.AddrFrom4([4]byte(b[4:8])), netip.AddrFrom4(client)}
	}
	return nil
}

// Prefixes of IPv6 addresses that carry an IPv4 address.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765
	compatible = netip.MustParsePrefix("::/96")           // RFC 4291 §2.5.5.1
	sixToFour  = netip.MustParsePrefix("2002::/16")       // RFC 3056
	teredo     = netip.MustParsePrefix("2001::/32")       // RFC 4380
)

// specialText is the list of the prefixes that are not public.
//
//go:embed special.list
var specialText string

var special = func() (all []classed) {
	for line := range strings.Lines(specialText) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] == "#" {
			continue
		}
		class := slices.Index(classNames, f[1])
		if class < 0 {
			panic("special.list has a class that is none: " + line) // it is built in
		}
		all = append(all, classed{netip.MustParsePrefix(f[0]), Class(class)})
	}
	return all
}()

// classed is a prefix and the class of its addresses.
type classed struct {
	prefix netip.Prefix
	class  Class
}
