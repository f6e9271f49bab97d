package rules

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
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

// ErrHost is wrapped by the errors of OriginOf for hosts that do not identify a single host.
var ErrHost = errors.New("invalid host")

// splitAuthority returns the host and the port of an authority without userinfo, an IPv6 address
// without its brackets; port is empty when there is none.
func splitAuthority(a string) (host, port string, err error) {
	if strings.IndexByte(a, '@') >= 0 {
		return "", "", fmt.Errorf("%w: %q contains userinfo", ErrHost, a)
	}
	if strings.HasPrefix(a, "[") {
		end := strings.IndexByte(a, ']')
		if end < 0 || end+1 < len(a) && a[end+1] != ':' {
			return "", "", fmt.Errorf("%w: %q has a broken address in brackets", ErrHost, a)
		}
		if ip, err := netip.ParseAddr(a[1:end]); err != nil || !ip.Is6() {
			return "", "", fmt.Errorf("%w: %q is no IPv6 address", ErrHost, a[1:end])
		}
		host, port = a[1:end], strings.TrimPrefix(a[end+1:], ":")
		return host, port, nil
	}
	if host, port, _ = strings.Cut(a, ":"); strings.IndexByte(port, ':') >= 0 {
		return "", "", fmt.Errorf("%w: %q is an IPv6 address without brackets", ErrHost, a)
	}
	return host, port, nil
}

// canonicalHost returns the one spelling of a host name or an IP address: lower case,
// A-labels, no trailing dot. Spellings of IPv4 addresses other than four decimal numbers
// are errors.
func canonicalHost(h string) (string, error) {
	if plainHost(h) && !numericLast(h) {
		return h, nil // the common case: nothing to do, nothing allocated
	}
	if ip, err := netip.ParseAddr(h); err == nil {
		if ip.Zone() != "" {
			return "", fmt.Errorf("%w: %q has a zone", ErrHost, h)
		}
		return ip.Unmap().String(), nil
	}
	h = strings.TrimSuffix(h, ".")
	if ip, err := netip.ParseAddr(h); err == nil && ip.Is4() {
		return h, nil
	}
	if h == "" || len(h) > 253 {
		return "", fmt.Errorf("%w: empty or longer than 253 octets", ErrHost)
	}
	if !strings.ContainsFunc(h, func(r rune) bool { return r >= utf8.RuneSelf }) {
		h = strings.ToLower(h)
	} else {
		a, err := idna.Lookup.ToASCII(h)
		if err != nil {
			return "", fmt.Errorf("%w: %q: %v", ErrHost, h, err)
		}
		h = strings.TrimSuffix(strings.ToLower(a), ".")
	}
	if numericLast(h) {
		return "", fmt.Errorf("%w: %q is not the canonical spelling of an IPv4 address", ErrHost, h)
	}
	if !plainHost(h) {
		return "", fmt.Errorf("%w: %q", ErrHost, h)
	}
	return h, nil
}

// plainHost reports whether h is a canonical registered name: dot-separated
// labels of lower-case letters, digits, "-" and "_", none empty or over 63 bytes.
func plainHost(h string) bool {
	label := 0
	for i := range len(h) {
		switch c := h[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
			label++
		case c == '.' && label > 0:
			label = 0
		default:
			return false
		}
		if label > 63 {
			return false
		}
	}
	return label > 0 && len(h) <= 253
}

// numericLast reports whether the last label reads as a number, decimal, octal
// or hexadecimal: such a host is an IPv4 address to many resolvers (WHATWG URL,
// "ends in a number").
func numericLast(h string) bool {
	last := h[strings.LastIndexByte(h, '.')+1:]
	if last == "" {
		return false
	}
	if last[0] < '0' || last[0] > '9' {
		return false
	}
	if _, err := strconv.ParseUint(last, 0, 64); err == nil {
		return true
	}
	return strings.Trim(last, "0123456789") == "" || last == "0x"
}

// errNoSite returns the error of an address that is no URL of a site.
func errNoSite(address string) error {
	return fmt.Errorf(`%q is not the URL of a site; write it out, such as "https://example.org/page"`, address)
}

// ParseRecorded is ParseURL for an address as a record has it: it may also be tcp://HOST:PORT, of
// a redirected connection that is neither HTTP nor TLS.
func ParseRecorded(address string) (o Origin, target string, err error) {
	authority, ok := strings.CutPrefix(address, "tcp://")
	if !ok {
		return ParseURL(address)
	}
	if _, _, err := net.SplitHostPort(authority); err != nil {
		return o, "", errNoSite(address)
	}
	if o, err = ParseOrigin("https", authority); err != nil {
		return o, "", fmt.Errorf("%q names no site: %v", address, err)
	}
	o.Scheme = "tcp"
	return o, "/", nil
}

// ParseURL splits the URL of a page, such as "https://example.org/a?b", into its
// origin and the request target that a client sends: the octets as they are, without
// a fragment, and with blanks as escapes. An error describes the part that is wrong.
func ParseURL(address string) (o Origin, target string, err error) {
	asked, _, _ := strings.Cut(address, "#")
	u, err := url.Parse(EscapePercents(asked))
	if scheme, _, found := strings.Cut(asked, "://"); err != nil && (!found || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https")) {
		return o, "", errNoSite(address) // whatever url.Parse takes it for
	}
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		return o, "", fmt.Errorf("%q is not a URL: %v", address, err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return o, "", errNoSite(address)
	}
	if o, err = OriginOf(u); err != nil {
		return o, "", fmt.Errorf("%q names no site: %v", address, err)
	}
	target, _ = SendableTarget(strings.ReplaceAll(asked, " ", "%20")) // controls are errors of url.Parse
	return o, target, nil
}
