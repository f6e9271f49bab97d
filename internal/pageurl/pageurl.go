// Package pageurl reads the targets of requests, and the URLs of pages, as the octets
// that clients send: net/url rejects some of them and spells others anew.
package pageurl

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"heed/rules"
)

// SplitTarget splits a request target, or a URL, into what is before its path
// (empty in origin form) and the path with the query. Neither part is decoded, and a
// fragment stays part of the second.
func SplitTarget(target string) (before, rest string) {
	if strings.HasPrefix(target, "/") {
		return "", target
	}
	_, after, found := strings.Cut(target, "://")
	if !found {
		return target, ""
	}
	if i := strings.IndexAny(after, "/?#"); i >= 0 {
		return target[:len(target)-len(after)+i], after[i:]
	}
	return target, ""
}

// EscapePercents returns a request target in which every "%" of the path that does
// not begin an escape is escaped. Such a "%" is a literal octet to many servers,
// and an error to net/url; a query may hold any.
func EscapePercents(target string) string {
	if strings.IndexByte(target, '%') < 0 {
		return target
	}
	before, rest := SplitTarget(target)
	path, query := rest, ""
	if i := strings.IndexByte(rest, '?'); i >= 0 {
		path, query = rest[:i], rest[i:]
	}
	odd := 0
	for i := range len(path) {
		if path[i] == '%' && !isEscape(path[i:]) {
			odd++
		}
	}
	if odd == 0 {
		return target
	}
	var b strings.Builder
	b.Grow(len(target) + 2*odd)
	b.WriteString(before)
	for i := range len(path) {
		b.WriteByte(path[i])
		if path[i] == '%' && !isEscape(path[i:]) {
			b.WriteString("25")
		}
	}
	b.WriteString(query)
	return b.String()
}

// isEscape reports whether "%" begins an escape.
func isEscape(s string) bool {
	return len(s) > 2 && isHex(s[1]) && isHex(s[2])
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

// Fault describes what in the path of a request target keeps rules from being compared
// with it; empty when nothing does. Octets written as "%u0070" are decoded by IIS,
// which then serves the page that is written without them; other servers take them as
// they are, or refuse them.
func Fault(target string) string {
	path, _, _ := strings.Cut(target, "?")
	if strings.Contains(path, "%00") {
		return "the path contains a NUL octet"
	}
	for i := range len(path) {
		if path[i] == '%' && len(path) > i+5 && path[i+1]|0x20 == 'u' && isHex(path[i+2]) && isHex(path[i+3]) && isHex(path[i+4]) && isHex(path[i+5]) {
			return "the path contains " + path[i:i+6] + ", which some servers decode; write the character in UTF-8 with an escape for each octet"
		}
	}
	return ""
}

// SendableTarget returns the path and query of a request target, or of a URL, as a
// request line may contain them: as they are, but "/" for an empty path, and a "#",
// at which servers cut a target, as an escape. ok is false for blanks and controls,
// which a request line cannot contain.
func SendableTarget(target string) (sendable string, ok bool) {
	_, sendable = SplitTarget(target)
	if !strings.HasPrefix(sendable, "/") {
		sendable = "/" + sendable
	}
	if strings.IndexByte(sendable, '#') >= 0 {
		sendable = strings.ReplaceAll(sendable, "#", "%23")
	}
	for i := range len(sendable) {
		if c := sendable[i]; c <= ' ' || c == 0x7f {
			return sendable, false
		}
	}
	return sendable, true
}

// errNoSite returns the error of an address that is no URL of a site.
func errNoSite(address string) error {
	return fmt.Errorf(`%q is not the URL of a site; write it out, such as "https://example.org/page"`, address)
}

// ParseRecorded is Parse for an address as a record has it: it may also be tcp://HOST:PORT, of
// a redirected connection that is neither HTTP nor TLS.
func ParseRecorded(address string) (o rules.Origin, target string, err error) {
	authority, ok := strings.CutPrefix(address, "tcp://")
	if !ok {
		return Parse(address)
	}
	if _, _, err := net.SplitHostPort(authority); err != nil {
		return o, "", errNoSite(address)
	}
	if o, err = rules.ParseOrigin("https", authority); err != nil {
		return o, "", fmt.Errorf("%q names no site: %v", address, err)
	}
	o.Scheme = "tcp"
	return o, "/", nil
}

// Parse splits the URL of a page, such as "https://example.org/a?b", into its
// origin and the request target that a client sends: the octets as they are, without
// a fragment, and with blanks as escapes. An error describes the part that is wrong.
func Parse(address string) (o rules.Origin, target string, err error) {
	asked, _, _ := strings.Cut(address, "#")
	u, err := url.Parse(EscapePercents(asked))
	if scheme, _, found := strings.Cut(asked, "://"); err != nil && (!found || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https")) {
		return o, "", errNoSite(address) // whatever url.Parse takes it for
	}
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return o, "", fmt.Errorf("%q is not a URL: %v", address, err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return o, "", errNoSite(address)
	}
	if o, err = rules.OriginOf(u); err != nil {
		return o, "", fmt.Errorf("%q names no site: %v", address, err)
	}
	target, _ = SendableTarget(strings.ReplaceAll(asked, " ", "%20")) // controls are errors of url.Parse
	return o, target, nil
}
