package command

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"heed/internal/terms"
	"heed/rules"
)

// ClientConfig is [[client]]: who is asking. The conditions that are written
// must all fit; the first entry that fits decides.
type ClientConfig struct {
	Name string `toml:"name"` // unique

	From      []string `toml:"from"` // addresses and networks; empty: any
	User      string   `toml:"user"`
	Listener  string   `toml:"listener"`   // host:port of heed's
	UserAgent string   `toml:"user_agent"` // with "*" for any run of characters

	Agent         []string `toml:"agent"` // product tokens; empty: by the User-Agent
	SendUserAgent string   `toml:"send_user_agent"`
	SendFrom      string   `toml:"send_from"`
	Mode          string   `toml:"mode"`          // enforce, observe or exempt; empty: as elsewhere
	NoUserAgent   string   `toml:"no_user_agent"` // star or refuse; empty: star
	Parts         string   `toml:"parts"`         // allow; empty: judged as all else

	MaxWait *time.Duration `toml:"max_wait"` // for a turn at a site; nil: pacing.max_wait
}

// checkClients notes what cannot be meant in [[client]].
func (c *Config) checkClients(d *decoder) {
	defer func() { d.scope = "" }()
	names := map[string]bool{}
	for i := range c.Clients {
		d.scope = entry(i)
		cl := &c.Clients[i]
		switch {
		case cl.Name == "":
			d.problem("client.name", `this [[client]] has no name; give it one, such as name = "newsbot", which the record will use`)
		case names[cl.Name]:
			d.problem("client.name", "client.name = %q stands there twice; each client needs a name of its own", cl.Name)
		case cl.Name == runName:
			d.problem("client.name", "client.name = %q is the name of what heed run declares; take another", cl.Name)
		}
		names[cl.Name] = true
		d.networks("client.from", cl.From)
		d.note("client.listener", checkListener(cl.Listener))
		if cl.Mode != "" {
			d.oneOf("client.mode", cl.Mode, "enforce", "observe", "exempt")
		}
		if cl.NoUserAgent != "" {
			d.oneOf("client.no_user_agent", cl.NoUserAgent, "star", "refuse")
		}
		if cl.Parts != "" {
			d.oneOf("client.parts", cl.Parts, "allow")
		}
		if cl.MaxWait != nil && *cl.MaxWait > mostWait {
			d.problem("client.max_wait", "client.max_wait = %q is longer than anything waits; write %q or less", shortDuration(*cl.MaxWait), shortDuration(mostWait))
		}
		for _, token := range cl.Agent {
			d.note("client.agent", checkToken(token))
		}
		d.note("client.send_user_agent", checkField(cl.SendUserAgent))
		d.note("client.send_from", checkField(cl.SendFrom))
		if cl.Mode == "exempt" && (len(cl.Agent) > 0 || cl.Parts != "") {
			d.problem("client.mode", `client.mode = "exempt" means people, who are not judged; leave out agent and parts`)
		}
	}
}

// parseNetwork reads a network ("192.0.2.0/24") or a single address.
func parseNetwork(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil || p.Addr().Is4In6():
		return p, fmt.Errorf(`%q is no address and no network; write "192.0.2.7" or "192.0.2.0/24"`, text)
	case p.Masked() != p:
		return p, fmt.Errorf("%q has bits beyond its length; did you mean %q?", text, p.Masked())
	}
	return p, nil
}

// checkToken returns an error for a text that no robots.txt can name.
func checkToken(token string) error {
	if agent := rules.Declare(token); len(agent.Tokens) != 1 || strings.ContainsAny(token, "/*") {
		return fmt.Errorf(`%q is no product token; write the name alone, as robots.txt has it: "NewsBot"`, token)
	}
	return nil
}

// checkListener returns an error for what no connection is ever made to: an entry
// that fits nobody would hold for nobody.
func checkListener(listener string) error {
	a, err := netip.ParseAddrPort(listener)
	if listener == "" || err == nil && !a.Addr().IsUnspecified() && a.Port() != 0 && a.String() == listener {
		return nil
	}
	return fmt.Errorf(`%q is no address that a client connects to; write the address and port of heed's as it does, such as "127.0.0.1:3128"`, listener)
}

// checkField returns an error for what cannot be sent as the value of a field.
func checkField(value string) error {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) || value != strings.TrimSpace(value) {
		return fmt.Errorf("%q cannot be sent: it may hold printable ASCII only, and no blanks around it", value)
	}
	return nil
}

// client returns the entry as the proxy takes it.
func (cl *ClientConfig) client() terms.Client {
	c := terms.Client{
		Name: cl.Name, User: cl.User, Listener: cl.Listener, UserAgent: terms.NewGlob(cl.UserAgent),
		SendUserAgent: cl.SendUserAgent, SendFrom: cl.SendFrom,
		RefuseUnnamed: cl.NoUserAgent == "refuse", AllowParts: cl.Parts == "allow", MaxWait: cl.MaxWait,
	}
	for _, from := range cl.From {
		c.From = append(c.From, netip.MustParsePrefix(from)) // checked
	}
	if len(cl.Agent) > 0 {
		c.Agent = rules.Declare(cl.Agent...)
	}
	if cl.Mode != "" {
		c.Mode, _ = terms.ParseMode(cl.Mode) // checked
		c.ModeSet = true
	}
	return c
}

// clientNotices says what an operator should know of [[client]] at every start.
func (c *Config) clientNotices() []string {
	var out []string
	for _, cl := range c.Clients {
		if deaf := c.deafListener(&cl); deaf != "" {
			out = append(out, deaf)
		}
		if len(cl.Agent) > 0 && !showsAll(cl.SendUserAgent, cl.Agent) {
			out = append(out, fmt.Sprintf("client %q is judged as %s, which the site does not see: its own User-Agent's rules hold as well; set send_user_agent to be seen under that name",
				cl.Name, strings.Join(cl.Agent, ", ")))
		}
		if cl.Mode == "exempt" {
			out = append(out, fmt.Sprintf("client %q is EXEMPT: nothing it asks for is judged", cl.Name))
		}
		if cl.Mode == "observe" {
			out = append(out, fmt.Sprintf("client %q is only observed: nothing is refused to it", cl.Name))
		}
	}
	return out
}

// showsAll reports whether a site that reads the User-Agent finds all tokens.
func showsAll(userAgent string, tokens []string) bool {
	seen := rules.Identify(userAgent).Tokens
	return !slices.ContainsFunc(rules.Declare(tokens...).Tokens, func(t rules.Token) bool {
		return !slices.ContainsFunc(seen, func(s rules.Token) bool { return s.Name == t.Name })
	})
}
