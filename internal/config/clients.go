package config

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/rules"
)

// ClientConfig holds one [[client]]. A request matches it when all conditions that are
// set hold; the first matching entry applies.
type ClientConfig struct {
	Name string `toml:"name"` // unique

	From      []string `toml:"from"` // addresses and networks; empty: any
	User      string   `toml:"user"`
	Listener  string   `toml:"listener"`   // host:port that heed listens on
	UserAgent string   `toml:"user_agent"` // "*" matches any sequence of characters

	Agent         []string `toml:"agent"` // product tokens; empty: those of the User-Agent
	SendUserAgent string   `toml:"send_user_agent"`
	SendFrom      string   `toml:"send_from"`
	Mode          string   `toml:"mode"`          // enforce, observe or exempt; empty: the general mode
	NoUserAgent   string   `toml:"no_user_agent"` // star or refuse; empty: star
	Parts         string   `toml:"parts"`         // allow subresources; empty: judged like pages

	acl.Terms

	MaxWait *time.Duration `toml:"max_wait"` // until a request may start; nil: pacing.max_wait

	Sign *SignConfig `toml:"sign" json:",omitempty"` // nil: its requests are not signed
}

// checkClients reports the problems of [[client]] to d.
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
			d.problem("client.name", "client.name = %q is used twice; each client needs a separate name", cl.Name)
		case cl.Name == acl.RunName:
			d.problem("client.name", "client.name = %q is the name of what heed run declares; take another", cl.Name)
		}
		names[cl.Name] = true
		d.networks("client.from", cl.From)
		d.note("client.listener", c.checkListener(cl))
		d.oneOfOrNone("client.mode", cl.Mode, "enforce", "observe", "exempt")
		d.oneOfOrNone("client.no_user_agent", cl.NoUserAgent, "star", "refuse")
		d.oneOfOrNone("client.parts", cl.Parts, "allow")
		if cl.MaxWait != nil && *cl.MaxWait > maxWait {
			d.problem("client.max_wait", "client.max_wait = %q is too long; write %q or less", shortDuration(*cl.MaxWait), shortDuration(maxWait))
		}
		for _, token := range cl.Agent {
			d.note("client.agent", rules.CheckToken(token))
		}
		cl.Check(func(key string, i int, err error) {
			at := element("client."+key, i)
			if _, listed := d.lines[d.scope+at]; !listed {
				at = "client." + key
			}
			d.problem(at, "client.%s: %v", key, err)
		})
		d.note("client.send_user_agent", checkField(cl.SendUserAgent))
		d.note("client.send_from", checkField(cl.SendFrom))
		checkSign(d, "client.sign", &cl.Sign)
		if not := cl.ofRobots(); cl.Mode == "exempt" && len(not) > 0 {
			d.problem("client.mode", `client.mode = "exempt" means people, who are not judged; leave out %s`, strings.Join(not, ", "))
		}
	}
}

// ofRobots returns the keys that are set and that only robots have.
func (cl *ClientConfig) ofRobots() []string {
	keys := cl.Keys()
	for key, set := range map[string]bool{"agent": len(cl.Agent) > 0, "parts": cl.Parts != "", "sign": cl.Sign != nil} {
		if set {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
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
		return p, fmt.Errorf(`%q is neither an address nor a network; write "192.0.2.7" or "192.0.2.0/24"`, text)
	case p.Masked() != p:
		return p, fmt.Errorf("%q has bits beyond its length; did you mean %q?", text, p.Masked())
	}
	return p, nil
}

// checkListener returns an error unless the listener of cl is empty, an address and port
// that a client can connect to, or the address of a [[listener]] for tproxy, whose clients
// connect to addresses of sites. Other values would never match.
func (c *Config) checkListener(cl *ClientConfig) error {
	if at := everyAddress(cl.Listener); c.hasTProxy(at) {
		cl.Listener = at
		return nil
	}
	listener := cl.Listener
	a, err := netip.ParseAddrPort(listener)
	if listener == "" || err == nil && !a.Addr().IsUnspecified() && a.Port() != 0 && a.String() == listener {
		return nil
	}
	return fmt.Errorf(`%q is not an address that a client can connect to; write an address and port of heed, such as "127.0.0.1:3128"`, listener)
}

// checkField returns an error unless value can be sent as a header field value.
func checkField(value string) error {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) || value != strings.TrimSpace(value) {
		return fmt.Errorf("%q cannot be sent: write printable ASCII, without blanks around it", value)
	}
	return nil
}

// ACLClients converts every [[client]] for package acl, in order.
func (c *Config) ACLClients() []acl.Client {
	var all []acl.Client
	for i := range c.Clients {
		all = append(all, c.Clients[i].client())
	}
	return all
}

// client converts the entry for package acl.
func (cl *ClientConfig) client() acl.Client {
	c := acl.Client{
		Name: cl.Name, User: cl.User, Listener: cl.Listener, UserAgent: acl.NewGlob(cl.UserAgent),
		SendUserAgent: cl.SendUserAgent, SendFrom: cl.SendFrom,
		RefuseUnnamed: cl.NoUserAgent == "refuse", AllowSubresources: cl.Parts == "allow", MaxWait: cl.MaxWait,
		Terms: cl.Terms,
	}
	for _, from := range cl.From {
		c.From = append(c.From, netip.MustParsePrefix(from)) // checked
	}
	if len(cl.Agent) > 0 {
		c.Agent = rules.Declare(cl.Agent...)
	}
	if cl.Mode != "" {
		mode, _ := acl.ParseMode(cl.Mode) // checked
		c.Mode = &mode
	}
	return c
}

// clientNotices returns the remarks on [[client]] that every start prints.
func (c *Config) clientNotices() []string {
	var out []string
	for _, cl := range c.Clients {
		if deaf := c.unmatchedListener(&cl); deaf != "" {
			out = append(out, deaf)
		}
		if len(cl.Agent) > 0 && !acl.HasTokens(rules.Identify(cl.SendUserAgent), rules.Declare(cl.Agent...)) {
			out = append(out, fmt.Sprintf("client %q is judged as %s, which the site does not see: its own User-Agent's rules hold as well; set send_user_agent to be seen under that name",
				cl.Name, strings.Join(cl.Agent, ", ")))
		}
		if entry := cl.client(); cl.Sign != nil && entry.ByNameAlone() {
			out = append(out, fmt.Sprintf("client %q is recognised by its user_agent alone, which any client can send, and is signed as %s; add from, user or listener", cl.Name, cl.Sign.Agent))
		}
		if blind := c.unsignedHosts(); cl.Sign != nil && blind != "" {
			out = append(out, fmt.Sprintf("client %q is not signed at %s: heed does not see the requests in tunnels", cl.Name, blind))
		}
		if cl.Mode == "exempt" {
			out = append(out, fmt.Sprintf("client %q is EXEMPT: nothing it asks for is judged", cl.Name))
		}
		if cl.Mode == "observe" {
			out = append(out, fmt.Sprintf("client %q is only observed: nothing is refused to it", cl.Name))
			if entry := cl.client(); c.HTTPS.Mode == "intercept" && entry.ByNameAlone() {
				out = append(out, fmt.Sprintf("client %q is recognised by its user_agent alone, which any client can send: its https is intercepted also when it rejects heed's CA; add from, user or listener to let such tunnels pass unseen", cl.Name))
			}
		}
	}
	return out
}

// tokens decodes lists of product tokens by purpose.
func (d *decoder) tokens(value any, full string) acl.PurposeTokens {
	tree, ok := typed[map[string]any](d, value, full, `a table, written { training = ["CCBot"] }`)
	if !ok {
		return nil
	}
	out := acl.PurposeTokens{}
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		at := dotted(full, name)
		if !slices.Contains(signal.Purposes(), signal.Purpose(name)) {
			d.problem(at, "%s: %q is not a purpose; write one of %s", full, name, purposeNames())
			continue
		}
		names := listOf[string]("texts", `["CCBot"]`, "a text in quotes")(d, tree[name], at)
		out[signal.Purpose(name)] = names
		d.note(at, acl.CheckAlsoObey(names))
	}
	return out
}

// purposeNames returns the names of all purposes for messages.
func purposeNames() string {
	var names []string
	for _, p := range signal.Purposes() {
		names = append(names, fmt.Sprintf("%q", p))
	}
	return strings.Join(names, ", ")
}
