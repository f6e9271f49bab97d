package terms

import (
	"net/netip"
	"slices"
	"time"

	"heed/rules"
)

// Who is what is known of a client when it asks.
type Who struct {
	Addr      netip.Addr // where it connects from; IPv4 never mapped into IPv6
	User      string     // whose credentials it showed, verified; empty: none
	Listener  string     // host:port of heed's that it connected to
	UserAgent string     // as received; empty: none
}

// Client is one [[client]] entry: who is meant, and what was settled for them.
// A condition that is not set fits everyone.
type Client struct {
	Name string

	From      []netip.Prefix // any of them
	User      string
	Listener  string
	UserAgent Glob

	Agent         *rules.Agent // judged as these product tokens; nil: by the User-Agent
	SendUserAgent string       // sent to sites in place of the client's; empty: the client's
	SendFrom      string       // sent to sites in the From field; empty: the client's
	Mode          Mode
	ModeSet       bool // Mode was written; otherwise the default counts
	RefuseUnnamed bool // a request without a User-Agent is refused, not judged under "*"
	AllowParts    bool // the parts of an allowed page may be loaded

	MaxWait *time.Duration // for a turn at a site; nil: as for all
}

// Fits reports whether who is meant by the entry.
func (c *Client) Fits(who Who) bool {
	switch {
	case c.User != "" && c.User != who.User:
	case c.Listener != "" && c.Listener != who.Listener:
	case len(c.From) > 0 && !slices.ContainsFunc(c.From, func(p netip.Prefix) bool { return p.Contains(who.Addr) }):
	default:
		return c.UserAgent.Fits(who.UserAgent)
	}
	return false
}
