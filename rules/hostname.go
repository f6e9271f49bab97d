package rules

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

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
	host, port, _ = strings.Cut(a, ":")
	if strings.IndexByte(port, ':') >= 0 {
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
// labels of lower-case letters, digits, "-" and "_", none empty or over 63 octets.
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
	_, err := strconv.ParseUint(last, 0, 64)
	if err == nil {
		return true
	}
	return strings.Trim(last, "0123456789") == "" || last == "0x"
}
