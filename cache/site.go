package cache

import (
	"net/netip"

	"golang.org/x/net/publicsuffix"
)

// siteOf returns who is behind a host, as far as its name tells: the domain
// that was registered, or the neighbourhood of an address. Names cost nothing
// to whoever owns a domain, so bounds count by it.
func siteOf(host string) string {
	if a, err := netip.ParseAddr(host); err == nil {
		bits := 24
		if a.Is6() {
			bits = 48
		}
		near, err := a.Prefix(bits)
		if err != nil {
			return host
		}
		return near.String()
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil { // a suffix itself, such as a name without a dot
		return host
	}
	return domain
}
