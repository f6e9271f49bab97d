package proxy

import (
	"net"
	"net/netip"

	"heed/internal/terms"
)

// whoOf returns what is known of the client of a connection before it says
// anything.
func whoOf(c net.Conn) terms.Who {
	return terms.Who{Addr: addrOf(c.RemoteAddr()), Listener: c.LocalAddr().String()}
}

// addrOf returns an address without its zone, in which no network is written.
func addrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
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
	id := x.terms.Identity(e.UserAgent, p.agents.identify)
	e.Agent, x.visible, e.SentFrom = id.Judged, id.Visible, id.From
	if id.Shown != e.UserAgent {
		e.Sent = id.Shown
	}
}
