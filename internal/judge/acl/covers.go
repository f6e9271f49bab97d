package acl

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Covers reports whether p matches every origin that q matches. It may be false for a pair
// of which that is true.
func (p HostPattern) Covers(q HostPattern) bool {
	return p.text != "" && slices.Contains(q.CoveredBy(), p.Key())
}

// Key returns a text that two patterns share when they match the same origins.
func (p HostPattern) Key() string {
	host := p.host
	switch {
	case p.any:
		host = "*"
	case p.suffix:
		host = "*." + host
	}
	return fmt.Sprintf("%s %d", host, p.port)
}

// CoveredBy returns the keys of all patterns that cover p, as Covers reports.
func (p HostPattern) CoveredBy() []string {
	if p.text == "" {
		return nil
	}
	wider := []HostPattern{{any: true}}
	if !p.any {
		wider = append(wider, HostPattern{host: p.host, suffix: p.suffix})
		for _, parent, found := strings.Cut(p.host, "."); found; _, parent, found = strings.Cut(parent, ".") {
			wider = append(wider, HostPattern{host: parent, suffix: true})
		}
	}
	var keys []string
	for _, w := range wider {
		keys = append(keys, w.Key())
		if w.port = p.port; p.port != 0 {
			keys = append(keys, w.Key())
		}
	}
	return keys
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
