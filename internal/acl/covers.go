package acl

import (
	"net/netip"
	"slices"
	"strings"
)

// Covers reports whether p matches every origin that q matches. It may be false for a pair
// of which that is true.
func (p HostPattern) Covers(q HostPattern) bool {
	switch {
	case p.text == "" || q.text == "" || p.port != 0 && p.port != q.port:
		return false
	case p.any:
		return true
	case q.any:
		return false
	case p.suffix:
		return q.suffix && q.host == p.host || strings.HasSuffix(q.host, "."+p.host)
	}
	return !q.suffix && q.host == p.host
}

// Covers reports whether g matches every text that o matches. It may be false for a pair of
// which that is true.
func (g Glob) Covers(o Glob) bool {
	const any = "\x00" // in place of each star of o; only a star of g matches it
	if strings.Contains(g.text, any) {
		return false
	}
	if len(o.parts) == 0 {
		return g.Matches(any)
	}
	return g.Matches(strings.Join(o.parts, any))
}

// Covers reports whether c matches every client that o matches. It may be false for a pair
// of which that is true.
func (c *Client) Covers(o *Client) bool {
	inside := func(q netip.Prefix) bool {
		return slices.ContainsFunc(c.From, func(p netip.Prefix) bool { return p.Bits() <= q.Bits() && p.Contains(q.Addr()) })
	}
	switch {
	case c.User != "" && c.User != o.User:
	case c.Listener != "" && c.Listener != o.Listener:
	case len(c.From) > 0 && (len(o.From) == 0 || slices.ContainsFunc(o.From, func(q netip.Prefix) bool { return !inside(q) })):
	default:
		return c.UserAgent.Covers(o.UserAgent)
	}
	return false
}
