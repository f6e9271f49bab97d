package proxy

// Recheck ends the tunnels that are not intercepted, and the WebSockets, of clients that
// the settings now in force do not admit: their user was removed or has another password,
// or their address may not use this proxy any more. The record has the reason. It is
// called when the settings have changed. In an intercepted tunnel each request is asked.
func (p *Proxy) Recheck() {
	for _, c := range p.open.all() {
		c, ok := c.(*tunnelConn)
		if !ok {
			continue
		}
		if x := c.lasting.Load(); x != nil {
			x.recheck(c)
		}
	}
}

// lasts marks c, the client's side of x, as one that Recheck ends.
func (x *exchange) lasts(c *tunnelConn) {
	c.lasting.Store(x)
	x.recheck(c) // the settings may have changed since x was admitted
}

// recheck closes c, the client's side of x, if its client is not admitted any more.
func (x *exchange) recheck(c *tunnelConn) {
	r := x.proxy.config.Live().Rules
	if r == nil {
		return
	}
	if d := x.req.stillAdmitted(r); d.reason != "" {
		why := "the tunnel was closed, since the settings have changed: " + d.detail
		c.revoked.Store(&why)
		c.Close()
	}
}
