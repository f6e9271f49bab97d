package rules

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Origin is the scope of one robots.txt: scheme, host and port
// (RFC 9309 §2.3). Values made by ParseOrigin or OriginOf are canonical, so
// that == compares origins and an Origin serves as a map key.
type Origin struct {
	Scheme string // "http" or "https"
	Host   string // lower case A-labels without a trailing dot, or an IP address without brackets
	Port   uint16 // never 0 in a canonical Origin
}

// OriginOf returns the canonical origin of an absolute http or https URL: host
// in lower case, without trailing dot, as A-labels; IPv6 in its canonical form;
// the default port filled in. Spellings of IPv4 addresses other than four
// decimal numbers are errors, because resolvers disagree about them.
func OriginOf(u *url.URL) (Origin, error) {
	return ParseOrigin(u.Scheme, u.Host)
}

// ParseOrigin does what OriginOf does for a scheme and an authority
// (host[:port]) without userinfo. With an error the Origin is zero.
func ParseOrigin(scheme, authority string) (Origin, error) {
	o := Origin{Scheme: scheme, Port: 80}
	switch {
	case scheme == "http":
	case scheme == "https":
		o.Port = 443
	default:
		if o.Scheme = strings.ToLower(scheme); o.Scheme != scheme {
			return ParseOrigin(o.Scheme, authority)
		}
		return Origin{}, fmt.Errorf("scheme %q is neither http nor https", scheme)
	}
	host, port, err := splitAuthority(authority)
	if err != nil {
		return Origin{}, err
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || port[0] == '+' {
			return Origin{}, fmt.Errorf("%w: port %q is not a number from 1 to 65535", ErrHost, port)
		}
		o.Port = uint16(n)
	}
	if o.Host, err = canonicalHost(host); err != nil {
		return Origin{}, err
	}
	return o, nil
}

// String returns the origin as scheme://host[:port], the default port left out.
func (o Origin) String() string { return o.Scheme + "://" + o.Authority() }

// RobotsURL returns the URL of the origin's robots.txt (RFC 9309 §2.3).
func (o Origin) RobotsURL() string { return o.String() + "/robots.txt" }

// Authority returns host[:port] as in a Host field: IPv6 in
// brackets, the default port of the scheme left out.
func (o Origin) Authority() string {
	switch {
	case (o.Port != 80 || o.Scheme != "http") && (o.Port != 443 || o.Scheme != "https"):
		return o.HostPort()
	case strings.IndexByte(o.Host, ':') >= 0:
		return "[" + o.Host + "]"
	}
	return o.Host
}

// HostPort returns host:port as a dialler takes it, the port always present.
func (o Origin) HostPort() string { return net.JoinHostPort(o.Host, strconv.Itoa(int(o.Port))) }
