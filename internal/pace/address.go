package pace

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"heed/rules"
)

// addressScheme is the scheme of the origin at which the requests to all names of one address
// take turns.
const addressScheme = "address"

// AddressOrigin returns the origin at which the requests to all names of an address take the
// turns of MinDelay.
func AddressOrigin(a netip.Addr) rules.Origin {
	return rules.Origin{Scheme: addressScheme, Host: a.String()}
}

// sharedAddress returns the address whose names take turns at o; empty: o is a site.
func sharedAddress(o rules.Origin) string {
	if o.Scheme != addressScheme {
		return ""
	}
	return o.Host
}

// joined returns the answer of a request that took a turn at its site and then at its address.
func joined(site, address Answer, at netip.Addr) Answer {
	answer := address
	answer.Waited += site.Waited
	answer.Note = site.Note
	if address.Refused || address.Left {
		if site.Turn != nil {
			site.Turn.End()
		}
	} else {
		answer.Turn = both{site.Turn, address.Turn}
	}
	if site.Delay > address.Delay && address.Wait == 0 {
		answer.Position = site.Position
	}
	answer.Position.Wait = max(site.Wait, address.Wait)
	if address.Wait > 0 || address.Refused || address.Left {
		answer.Address = at.String()
		answer.addNote(fmt.Sprintf("its turn was one of all names at %s", at))
	}
	if site.Asked > answer.Asked {
		answer.Asked, answer.Delay, answer.By = site.Asked, site.Delay, site.By
	}
	return answer
}

// both is a turn at a site and one at its address; nil: there is none that needs a report.
type both [2]Turn

// Going implements Turn. Whether it is too late is said by the turn that was given last: the
// one at the site may be over while that at the address is waited for, each time anew.
func (b both) Going() bool {
	going := true
	b.each(func(t Turn) { going = t.Going() })
	return going
}

// Started implements Turn.
func (b both) Started() { b.each(Turn.Started) }

// End implements Turn.
func (b both) End() { b.each(Turn.End) }

func (b both) each(f func(Turn)) {
	for _, t := range b {
		if t != nil {
			f(t)
		}
	}
}

// Place returns the site, or the address whose names take turns together.
func (s *SiteStatus) Place() string {
	if s.Address != "" {
		return "all names at " + s.Address
	}
	return s.Origin
}

// parsePlace returns the origin of a Checkpoint.
func parsePlace(scheme, authority string) (rules.Origin, error) {
	if scheme != addressScheme {
		return rules.ParseOrigin(scheme, authority)
	}
	host, _, err := net.SplitHostPort(authority)
	if err != nil {
		host = strings.Trim(authority, "[]")
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return rules.Origin{}, err
	}
	return AddressOrigin(a), nil
}
