package proxy

import (
	"cmp"
	"net"
	"net/netip"
	"slices"

	"heed/internal/terms"
	"heed/rules"
)

// whoOf returns what is known of the client of a connection before it says
// anything.
func whoOf(c net.Conn) terms.Who {
	return terms.Who{Addr: addrOf(c.RemoteAddr()), Listener: c.LocalAddr().String()}
}

func addrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// identify finds out who is asking, and under which terms: the entry that fits
// the client, the names it is judged by, and the names the site will see.
func (x *exchange) identify() {
	e, p := &x.entry, x.proxy
	x.who.UserAgent = e.UserAgent
	x.terms = x.book.For(x.book.ClientOf(x.who), x.origin, p.Now())
	e.ClientName, e.Mode = x.terms.Name(), x.terms.Mode.String()
	c := x.terms.Client
	if c == nil {
		e.Agent = p.agents.identify(e.UserAgent)
		return
	}
	shown := cmp.Or(c.SendUserAgent, e.UserAgent)
	if shown != e.UserAgent {
		e.Sent = shown
	}
	e.SentFrom = c.SendFrom
	visible := p.agents.identify(shown)
	if e.Agent = c.Agent; e.Agent == nil {
		e.Agent = visible
	} else if !names(visible, e.Agent) {
		x.visible = visible
	}
}

// names reports whether a has all the tokens of other.
func names(a, other *rules.Agent) bool {
	return !slices.ContainsFunc(other.Tokens, func(t rules.Token) bool {
		return !slices.ContainsFunc(a.Tokens, func(own rules.Token) bool { return own.Name == t.Name })
	})
}
