package acl

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heed/internal/base/memo"
	"heed/rules"
)

// ErrDestination is wrapped by every error of a destination that heed may not reach.
var ErrDestination error = &barred{"heed may not reach it", rules.ReasonDestination}

// barred is the error of an address that heed does not let itself reach.
type barred struct {
	text   string
	reason rules.Reason
}

// Error implements error.
func (b *barred) Error() string { return b.text }

// BarredFor returns the reason for which a request for such an address is refused.
func (b *barred) BarredFor() rules.Reason { return b.reason }

// Destinations defines which destinations may be reached. A destination is checked
// by name and, when it is dialled, by the address that the name has at that moment,
// in this order:
//
//  1. A name or an address in Refuse is refused.
//  2. An address in Allow is allowed.
//  3. A public address is allowed.
//  4. An address of heed's own network (loopback, private, carrier-grade NAT,
//     benchmarks) is allowed when Private is set, or the name is in Allow.
//  5. Any other is refused: no site has a link-local or multicast address, or the
//     address of a cloud's metadata service.
//
// The zero value allows what is public. A nil *Destinations allows everything.
type Destinations struct {
	Private bool
	// NoLoopback excepts loopback addresses from Private: the client is not of this
	// machine's loopback network.
	NoLoopback bool

	Allow  []Destination
	Refuse []Destination
	// Placed has a key "host:port" for each destination whose address the settings
	// define: it is allowed unless Refuse contains it.
	Placed map[string]string

	// ClassOf returns the class of an address. Nil: Classify. For tests, whose sites
	// all have loopback addresses.
	ClassOf func(netip.Addr) Class
}

// DestinationError is why a destination may not be reached. It wraps
// ErrDestination.
type DestinationError struct {
	host    string     // as asked for
	address netip.Addr // that it has; invalid when the name alone was refused
	class   Class      // of address
	listed  bool       // by Refuse
}

// Error returns the text for the record, with the address, which is not for
// clients.
func (e *DestinationError) Error() string {
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
func (e *DestinationError) Unwrap() error { return ErrDestination }

// Sentence returns the text for clients, without the address: what a name resolves
// to in heed's network is not for them.
func (e *DestinationError) Sentence() string {
	if e.listed {
		return "Refused by heed: " + e.host + " is on this proxy's list of places it does not go to"
	}
	return fmt.Sprintf("Refused by heed: %s is at a %s address, where this proxy does not go", e.host, e.class)
}

// CheckedHost is a destination whose name may be reached. The zero value may reach
// every address.
type CheckedHost struct {
	*Destinations
	host   string
	opened bool // Allow contains the host
	placed bool // the settings define its address
}

// CheckOrigin returns why o may not be reached, as far as its name shows; nil when
// it may. Addresses are checked when they are dialled. A nil d allows all.
func (d *Destinations) CheckOrigin(o rules.Origin) error {
	if d == nil || len(d.Refuse) == 0 && !mayBeAddress(o.Host) {
		return nil
	}
	_, placed := d.Placed[o.HostPort()]
	_, err := d.CheckHost(o.Host, o.Port, placed)
	return err
}

// mayBeAddress reports whether a canonical host may be an IP address; it is
// sure of those that are not.
func mayBeAddress(host string) bool {
	last := host[len(host)-1]
	return last >= '0' && last <= '9' || strings.IndexByte(host, ':') >= 0
}

// CheckHost checks a destination as it was requested, before it is resolved. The
// address of one that is placed comes from the settings, whatever its name is.
func (d *Destinations) CheckHost(host string, port uint16, placed bool) (CheckedHost, error) {
	if d == nil {
		return CheckedHost{}, nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	a, noAddress := netip.ParseAddr(name)
	if noAddress == nil {
		name = "" // only "*" means it
	}
	named := func(p Destination) bool { return p.hasName(name, port) }
	if slices.ContainsFunc(d.Refuse, named) {
		return CheckedHost{}, &DestinationError{host: host, listed: true}
	}
	v := CheckedHost{d, host, slices.ContainsFunc(d.Allow, named), placed}
	if noAddress == nil && !placed {
		return v, v.CheckAddr(a, port)
	}
	return v, nil
}

// CheckHostOnly checks a destination that another proxy will resolve, as far as its
// name shows.
func (d *Destinations) CheckHostOnly(host string, port uint16) error {
	v, err := d.CheckHost(host, port, false)
	if err == nil && NamesThisMachine(host) && d != nil && (!d.Private || d.NoLoopback) && !v.opened {
		err = &DestinationError{host: host, class: Loopback}
	}
	return err
}

// NamesThisMachine reports whether a canonical host is a name of this machine (RFC 6761 §6.3).
func NamesThisMachine(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// CheckAddr checks an address of the host, and those that it carries.
func (v CheckedHost) CheckAddr(a netip.Addr, port uint16) error {
	if v.Destinations == nil {
		return nil
	}
	a = a.WithZone("").Unmap()
	for _, to := range append(embedded(a), a) {
		if slices.ContainsFunc(v.Refuse, func(p Destination) bool { return p.hasAddress(to, port) }) {
			return &DestinationError{host: v.host, address: a, listed: true}
		}
	}
	meant := func(p Destination) bool { return p.hasAddress(a, port) }
	c := v.Classify(a)
	switch {
	case v.placed, c == Public, slices.ContainsFunc(v.Allow, meant), c.ownNetwork() && (v.opened || v.Private && !(v.NoLoopback && c.thisMachine())):
		return nil
	}
	return &DestinationError{host: v.host, address: a, class: c}
}

// Classify returns the class of a, as d has it. d may be nil.
func (d *Destinations) Classify(a netip.Addr) Class {
	if d != nil && d.ClassOf != nil {
		return d.ClassOf(a)
	}
	return Classify(a)
}

// Destination is one entry of a list of destinations; see ParseDestination. The
// zero value matches none.
type Destination struct {
	prefix netip.Prefix // valid for addresses
	port   uint16       // of those; 0: any
	names  HostPattern
}

// ParseDestination reads an entry: an address or a range of them (192.0.2.7,
// 10.0.0.0/8, [2001:db8::]/32), a host (intranet.example), all hosts under one
// (*.corp.example, which does not match corp.example itself) or any (*), with or
// without ":port" behind it. An error contains what should have been written.
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
	d.names, err = ParseHostPattern(text)
	return d, err
}

// cutPort cuts the port off: what follows the last colon, unless that one is
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

// hasName reports whether d matches a host; an empty host is an address, which only
// "*" matches.
func (d Destination) hasName(host string, port uint16) bool {
	return !d.prefix.IsValid() && d.names.Matches(rules.Origin{Host: host, Port: port})
}

// hasAddress reports whether d matches an address.
func (d Destination) hasAddress(a netip.Addr, port uint16) bool {
	return (d.port == 0 || d.port == port) && d.prefix.IsValid() && d.prefix.Contains(a)
}

// Covers reports whether d matches every destination that e matches. It may be false for a
// pair of which that is true.
func (d Destination) Covers(e Destination) bool {
	switch {
	case !d.prefix.IsValid() && e.prefix.IsValid():
		return d.names.String() == "*" // a host pattern that matches addresses as well
	case !d.prefix.IsValid():
		return d.names.Covers(e.names)
	}
	return e.prefix.IsValid() && (d.port == 0 || d.port == e.port) && d.prefix.Bits() <= e.prefix.Bits() && d.prefix.Contains(e.prefix.Addr())
}

// ErrSelf is wrapped by the error of a connection to an address that heed listens on.
var ErrSelf error = &barred{"the address is heed's own", rules.ReasonLoop}

// Addrs is the set of addresses that a process listens on, with the connections that it
// opens. The zero value is empty and ready; it is safe for concurrent use.
type Addrs struct {
	Dials

	mu  sync.Mutex                       // held to change the set
	own atomic.Pointer[[]netip.AddrPort] // one for each Add. Immutable: every request looks into it
}

// Add adds an address; each Add needs a Remove. Addresses that are not of TCP, such as
// that of a Unix socket, are left out: no site has one.
func (a *Addrs) Add(addr net.Addr) {
	a.change(addr, func(own []netip.AddrPort, at netip.AddrPort) []netip.AddrPort { return append(own, at) })
}

// Remove undoes one Add of an address.
func (a *Addrs) Remove(addr net.Addr) {
	a.change(addr, func(own []netip.AddrPort, at netip.AddrPort) []netip.AddrPort {
		if i := slices.Index(own, at); i >= 0 {
			own = slices.Delete(own, i, i+1)
		}
		return own
	})
}

// change replaces the set.
func (a *Addrs) change(addr net.Addr, by func(own []netip.AddrPort, at netip.AddrPort) []netip.AddrPort) {
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	own := by(slices.Clone(a.all()), plainPort(at))
	a.own.Store(&own)
}

// all returns the set.
func (a *Addrs) all() []netip.AddrPort {
	if own := a.own.Load(); own != nil {
		return *own
	}
	return nil
}

// on returns the addresses with a port: none for that of most requests.
func (a *Addrs) on(port uint16) (own []netip.Addr) {
	for _, at := range a.all() {
		if at.Port() == port {
			own = append(own, at.Addr())
		}
	}
	return own
}

// plain returns an address without its zone, an IPv4-mapped one as the IPv4 address.
func plain(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }

// Has reports whether hostPort, a host or an address with a port, is in the set; see
// HasHost.
func (a *Addrs) Has(hostPort string) bool {
	host, text, err := net.SplitHostPort(hostPort)
	if err != nil {
		return false
	}
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && a.HasHost(host, uint16(port))
}

// IsName reports whether the host of o is a name of an address of the set. The settings, d,
// may place it there; else its addresses are not known before it is dialled. That is what
// reach does, which returns the error: it is called only for the port of an address of the
// set. d may be nil.
func (a *Addrs) IsName(o rules.Origin, d *Destinations, reach func() error) bool {
	if d != nil && len(d.Placed) > 0 && a.Has(d.Placed[o.HostPort()]) {
		return true
	}
	return len(a.on(o.Port)) > 0 && errors.Is(reach(), ErrSelf)
}

// HasHost reports whether a connection to host and port leads to an address of the set, as
// far as the host shows it: an address, in canonical form, or a name of this machine
// (RFC 6761 §6.3). An IPv4-mapped address is the address that it maps. The unspecified
// address (0.0.0.0 or ::) as a destination is every address of its port, since systems
// connect it to themselves; in the set it is every address of this machine.
func (a *Addrs) HasHost(host string, port uint16) bool {
	own := a.on(port)
	if len(own) == 0 {
		return false
	}
	if NamesThisMachine(host) {
		return leads(netip.AddrFrom4([4]byte{127, 0, 0, 1}), own) || leads(netip.IPv6Loopback(), own)
	}
	to, err := netip.ParseAddr(host)
	return err == nil && slices.ContainsFunc(append(embedded(to), plain(to)), func(to netip.Addr) bool { return leads(to, own) })
}

// leads reports whether a connection to an address leads to one of own.
func leads(to netip.Addr, own []netip.Addr) bool {
	return to.IsUnspecified() || slices.ContainsFunc(own, func(at netip.Addr) bool {
		return at == to || at.IsUnspecified() && (at.Is6() || to.Is4()) && isLocal(to)
	})
}

// isLocal reports whether an address belongs to this machine.
func isLocal(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	for _, i := range all {
		if p, bad := netip.ParsePrefix(i.String()); bad == nil && plain(p.Addr()) == a {
			return true
		}
	}
	return err != nil // not known: heed does not connect to itself
}

// Dials remembers the connections that a process opens, while WatchDials is in effect: a
// redirected one comes back to it. The zero value is ready; it is safe for concurrent use.
type Dials struct {
	watching atomic.Int32 // how many callers of WatchDials have not stopped
	made     memo.Kept[dial, struct{}]
}

// WatchDials makes d remember the connections that are opened, until stop is called.
func (d *Dials) WatchDials() (stop func()) {
	d.watching.Add(1)
	return func() { d.watching.Add(-1) }
}

// Dialled reports whether the process itself has opened a connection from one address to
// another in the last minute: what is accepted with these two is redirected from itself.
func (d *Dials) Dialled(from, to netip.AddrPort) bool {
	_, ok := d.made.Get(dial{plainPort(from), plainPort(to)}, time.Now())
	return ok
}

// NoteDial remembers a connection that was opened from one address to another, while
// WatchDials is in effect.
func (d *Dials) NoteDial(local, remote net.Addr) {
	if d.watching.Load() == 0 {
		return
	}
	from, err1 := netip.ParseAddrPort(local.String())
	if to, err2 := netip.ParseAddrPort(remote.String()); err1 == nil && err2 == nil {
		d.made.Put(dial{plainPort(from), plainPort(to)}, struct{}{}, time.Now().Add(dialTime), 0, maxDials, 0)
	}
}

func plainPort(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(plain(a.Addr()), a.Port())
}

// dial is a connection by its two ends.
type dial struct{ from, to netip.AddrPort }

// dialTime is longer than a redirected connection takes to be accepted; maxDials bounds the
// memory.
const (
	dialTime = time.Minute
	maxDials = 1 << 14
)
