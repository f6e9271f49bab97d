package accesslog

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// What is before the time of a line is "client ident user" or "host client ident user". In
// place of the client, servers behind others write the addresses that X-Forwarded-For or
// Forwarded (RFC 7239) list, in one of many forms:
//
//	203.0.113.7, 10.0.0.1 - -            203.0.113.7,10.0.0.1 - -
//	"203.0.113.7, 10.0.0.1" - -          203.0.113.7 10.0.0.1 - -
//	unknown, 203.0.113.7 - -             -, 10.0.0.1 - -
//	203.0.113.7:50221, [2001:db8::1]:443 - -
//	for=203.0.113.7;proto=https, for=10.0.0.1 - -
//
// The client is the first of them that is not of a private network, else the first.

// clientOf returns the virtual host, if there is one, and the client of what is before the
// time. A user name may have blanks.
func (p *combined) clientOf(head string) (host, client string) {
	first, rest, _ := strings.Cut(head, " ")
	if second, _, _ := strings.Cut(rest, " "); second == "-" && !strings.ContainsAny(first, `,"=;`) {
		return "", withoutPort(first)
	}
	if quote, after, ok := quoted(head); ok && strings.HasPrefix(head, `"`) {
		if list, _ := addresses(quote); len(list) > 0 {
			return "", pick(list)
		}
		first, rest = quote, strings.TrimLeft(after, " ")
	}
	whole, _ := addresses(head)
	inner, after := addresses(strings.TrimPrefix(rest, `"`))
	second, _, _ := strings.Cut(rest, " ")
	ident, _, more := strings.Cut(strings.TrimPrefix(rest, second+" "), " ")
	switch {
	case len(inner) > 0 && after != "" && p.isFirst(first):
		return withoutDash(first), pick(inner)
	case len(whole) > 0:
		return "", pick(whole)
	case more && second != "-" && ident == "-" && p.isFirst(first): // the client is a name
		return withoutDash(first), second
	}
	return "", first
}

// isFirst reports whether the first word of a line is a virtual host: an address is one in a
// log with virtual hosts, or with the port of a server.
func (p *combined) isFirst(word string) bool {
	return isHost(word) && (p.hosts || serverPort(word) || !isAddress(withoutPort(word)))
}

// addresses returns the addresses of the list that s begins with, and what follows it. Words
// for addresses that are not known are elements beside a comma only; of elements that blanks
// alone separate, each is an address.
func addresses(s string) (list []string, rest string) {
	for open := false; s != ""; {
		word, after, _ := strings.Cut(s, " ")
		after = strings.TrimLeft(after, " ")
		found, ok := elements(word)
		listed := open || strings.Contains(word, ",") || strings.HasPrefix(after, ",")
		if !ok || !listed && (len(found) == 0 || !isAddress(found[0])) {
			break
		}
		list, s, open = append(list, found...), after, strings.HasSuffix(word, ",")
	}
	return list, s
}

// elements returns the elements of a word of a list; ok is false when it has anything else.
func elements(word string) (all []string, ok bool) {
	for part := range strings.SplitSeq(strings.Trim(word, `"`), ",") {
		if part == "" {
			continue
		}
		e, ok := element(part)
		if !ok {
			return nil, false
		}
		all = append(all, e)
	}
	return all, true
}

// element returns the address of an element of a list, without its port; ok is false for
// what is no element.
func element(s string) (address string, ok bool) {
	if name, value, pair := strings.Cut(s, "="); pair { // RFC 7239 §4
		for strings.EqualFold(name, "by") || strings.EqualFold(name, "proto") || strings.EqualFold(name, "host") {
			var found bool
			if _, value, found = strings.Cut(value, ";"); !found {
				return "-", true
			}
			name, value, _ = strings.Cut(value, "=")
		}
		if !strings.EqualFold(name, "for") {
			return "", false
		}
		s, _, _ = strings.Cut(value, ";")
		s = strings.Trim(s, `"\`)
	}
	switch {
	case s == "-", strings.EqualFold(s, "unknown"), strings.HasPrefix(s, "_") && len(s) > 1:
		return s, true
	}
	s = withoutPort(s)
	return s, isAddress(s)
}

// pick returns the client of a list of addresses.
func pick(list []string) string {
	for _, fits := range []func(string) bool{func(s string) bool { return isAddress(s) && !private(s) }, isAddress} {
		if i := slices.IndexFunc(list, fits); i >= 0 {
			return list[i]
		}
	}
	return list[0]
}

// private reports whether an address is of a network that others do not reach: of the
// servers before this one, and of what is before a client. RFC 6598 has 100.64.0.0/10.
func private(s string) bool {
	a, err := netip.ParseAddr(s)
	a = a.Unmap()
	return err == nil && (a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || shared.Contains(a))
}

var shared = netip.MustParsePrefix("100.64.0.0/10")

// isAddress reports whether s may be an IP address, or one of which a part is hidden.
func isAddress(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF.:xX*") == "" && strings.ContainsAny(s, ".:") && strings.ContainsAny(s, "0123456789:") &&
		(strings.Count(s, ".") == 3 || strings.Count(s, ":") > 1 || strings.Trim(s, "0123456789.") == "")
}

// isHost reports whether s may be a virtual host.
func isHost(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.:_*-[]") == ""
}

// isHostName reports whether s may be a virtual host and no address.
func isHostName(s string) bool {
	return isHost(s) && !isAddress(withoutPort(s)) && withoutDash(s) != ""
}

// withoutDash returns a host; empty for a word that is none.
func withoutDash(host string) string {
	if host == "-" || strings.EqualFold(host, "unknown") {
		return ""
	}
	return host
}

// serverPort reports whether an address has a port of those that servers of the web use, so
// that it is a virtual host. The ports of clients are others.
func serverPort(s string) bool {
	at := strings.LastIndexByte(s, ':')
	if at < 0 || at < strings.LastIndexByte(s, ']') || strings.Count(s, ":") > 1 && s[0] != '[' {
		return false
	}
	port, err := strconv.Atoi(s[at+1:])
	return err == nil && (port < 1024 || port >= 8000 && port < 9000)
}

// clientOf returns the client of a field that may be a list, and of one with the addresses
// that a server before this one saw.
func clientOf(peer, forwarded string) string {
	list, _ := addresses(peer)
	more, _ := addresses(forwarded)
	switch {
	case len(list) == 0 && (len(more) == 0 || peer != ""):
		return peer // a name, or nothing
	case len(list) == 1 && len(more) == 0:
		return list[0]
	}
	return pick(append(list, more...))
}
