package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"heed/internal/acl"
	"heed/internal/check"
	"heed/internal/config"
	"heed/internal/console"
	"heed/internal/control"
	"heed/internal/judge"
	"heed/internal/passport"
	"heed/internal/route"
	"heed/rules"
)

// showFor prints the settings in force for one client and one URL, and their origin.
func (c *ConfigShowCmd) showFor(a *console.App, cfg *config.Config) error {
	if c.For == "" || c.URL == "" {
		return errors.New("--for needs a client and a URL\nWrite: heed config show --for newsbot https://example.org/page")
	}
	if c.JSON {
		return errors.New("--for is for people, --json for programs\nLeave one of them out")
	}
	origin, target, err := rules.ParseURL(c.URL)
	if err != nil {
		return err
	}
	clients := *cfg
	clients.Access = config.AccessConfig{} // access to the proxy is not shown
	settled, err := clients.Rules(a.Now)
	if err != nil {
		return err
	}
	s := &shownFor{out: a.Stdout, cfg: cfg, origin: origin, target: target, now: a.Now()}
	client := s.client(settled, c.For)
	s.Effective = settled.For(client, origin, s.now)
	s.names()
	s.mode()
	s.rules()
	s.exceptions()
	s.use()
	s.row("reached", "%s", s.upstream())
	return s.verdict(a)
}

// shownFor writes the settings in force, one row each.
type shownFor struct {
	acl.Effective
	out       io.Writer
	cfg       *config.Config
	origin    rules.Origin
	target    string
	userAgent string // that the client is assumed to send; empty: not known
	now       time.Time
}

func (s *shownFor) row(name, format string, values ...any) {
	fmt.Fprintf(s.out, "%-11s %s\n", name, fmt.Sprintf(format, values...))
}

// client identifies the client: by the name of an entry, an address, or a
// User-Agent.
func (s *shownFor) client(r *acl.Rules, who string) *acl.Client {
	if c := r.ClientNamed(who); c != nil {
		s.row("client", "%s, by its name", c.Name)
		return c
	}
	asks, by := acl.ClientInfo{UserAgent: who}, "by its User-Agent"
	if addr, err := netip.ParseAddr(who); err == nil {
		asks, by = acl.ClientInfo{Addr: addr.Unmap()}, "by its address"
	}
	s.userAgent = asks.UserAgent
	c := r.ClientOf(asks)
	if c == nil {
		s.row("client", "no [[client]] fits %s", console.Quoted(who))
	} else {
		s.row("client", "%s, %s: the first [[client]] that fits", c.Name, by)
	}
	return c
}

func (s *shownFor) names() {
	id := s.Identity(s.userAgent, rules.Identify)
	switch c := s.Client; {
	case c != nil && c.Agent != nil:
		s.row("judged as", "%s (agent)", tokenNames(c.Agent))
		if id.Seen != nil {
			s.row("", "and as what its own User-Agent names, since the site does not see that name")
		}
	case s.userAgent == "" && id.Shown == "":
		s.row("judged as", "what its User-Agent names")
	default:
		s.row("judged as", "%s (from its User-Agent)", tokenNames(id.Own))
	}
	if c := s.Client; c != nil && c.SendUserAgent != "" {
		s.row("sends", "User-Agent: %s", console.Quoted(c.SendUserAgent))
	}
	if id.From != "" {
		s.row("sends", "From: %s", console.Quoted(id.From))
	}
	s.signature()
}

// signature prints whether requests are signed, where the client has a key.
func (s *shownFor) signature() {
	by := s.Signer
	form, signed := s.Site.Signing(s.origin)
	switch {
	case by == nil:
	case s.origin.Scheme == "https" && s.HTTPS() != acl.Intercept:
		s.row("signature", "none: https to this host is not intercepted")
	case !signed:
		s.row("signature", "none: requests over http are signed only with sign_http")
	case !by.Key().Valid(s.now):
		s.row("signature", "none: the key %s is not valid now (nbf, exp)", by.Key().Thumbprint)
	default:
		older := ""
		if form == passport.String {
			older = ", in the older form (sign_form)"
		}
		s.row("signature", "as %s with the key %s%s", console.Quoted(by.Agent()), by.Key().Thumbprint, older)
	}
}

func tokenNames(a *rules.Agent) string {
	names := a.Names()
	if len(names) == 0 {
		return "no product token: the rules for all robots (*) apply"
	}
	return console.Quoted(strings.Join(names, ", "))
}

func (s *shownFor) mode() {
	by := "by default"
	switch {
	case s.Client != nil && s.Client.Mode != nil && *s.Client.Mode == s.Mode:
		by = "as its [[client]] says"
	case s.Site.Mode != nil && *s.Site.Mode == s.Mode:
		by = "as a [[host]] says"
	case s.cfg.Observe:
		by = "as --observe says"
	}
	s.row("mode", "%s, %s", s.Mode, by)
	https := s.HTTPS()
	by = "as [https] says"
	switch {
	case s.Mode == acl.Exempt && https == acl.Tunnel:
		by = "since the client is exempt"
	case s.Site.HTTPS != nil:
		by = "as a [[host]] says"
	}
	s.row("https", "%s, %s", https, by)
}

// rules prints the rules that decide, if any do.
func (s *shownFor) rules() {
	d, reason, ok := s.DecideWithoutRules(rules.NewTarget(s.target), "known")
	switch {
	case ok && reason != "":
		s.row("rules", "none count: %s (%s)", console.ReasonText(d.Reason), console.Quoted(reason))
	case ok && d.Reason == rules.ReasonRobotsTxt:
		s.row("rules", "none count: robots.txt may always be asked for")
	case ok:
		s.row("rules", "none count: %s", console.ReasonText(d.Reason))
	case s.Site.Robots != nil:
		s.row("rules", "those of the robots_file of a [[host]], read as the profile %s has it", s.cfg.Profile)
	default:
		s.row("rules", "%s, read as the profile %s has it", s.origin.RobotsURL(), s.cfg.Profile)
	}
	if s.Site.NeverAllow {
		s.row("", "and no exception may allow what they refuse (never_allow)")
	}
}

// exceptions prints the exceptions for the origin, and marks the one that applies.
func (s *shownFor) exceptions() {
	counts, _ := s.Exception(rules.NewTarget(s.target), true, s.now)
	for _, e := range s.Site.Exceptions {
		if !s.matches(e) {
			continue
		}
		verb := "allow"
		if e.Refuse {
			verb = "refuse"
		}
		text := fmt.Sprintf("%s %s (%s)", verb, console.Quoted(strings.Join(e.Patterns, " ")), console.Quoted(e.Reason))
		if len(e.Clients) > 0 {
			text += ", for " + strings.Join(e.Clients, ", ")
		}
		switch {
		case !e.Expires.IsZero() && !s.now.Before(e.Expires):
			text += ", ENDED on " + e.Expires.Format(time.RFC3339)
		case !e.Expires.IsZero():
			text += ", until " + e.Expires.Format(time.RFC3339)
		}
		if e == counts {
			text += " <- counts here"
			if !e.Refuse {
				text += " where the rules refuse"
			}
		}
		s.row("exception", "%s", text)
	}
}

// matches reports whether e is for the client and the target, or was until it ended.
func (s *shownFor) matches(e *acl.Exception) bool {
	alone, at := s.Effective, s.now
	alone.Site = &acl.Site{Exceptions: []*acl.Exception{e}}
	if !e.Expires.IsZero() && !at.Before(e.Expires) {
		at = e.Expires.Add(-1)
	}
	found, _ := alone.Exception(rules.NewTarget(s.target), true, at)
	return found != nil
}

// use prints the purposes of the client, and the contract with the site.
func (s *shownFor) use() {
	if len(s.Purposes) == 0 {
		return
	}
	s.row("purpose", "%s: what the site does not allow for it is refused", strings.Join(s.PurposeNames(), ", "))
	if reference := s.Licence(s.now); reference != "" {
		s.row("licence", "%s: what the licences of the site ask for counts as met", console.Quoted(reference))
	}
}

// upstream returns how the host is reached.
func (s *shownFor) upstream() string {
	proxy, by := s.cfg.Upstream.Proxy, "as [upstream] says"
	for i := range s.cfg.Hosts {
		if h := &s.cfg.Hosts[i]; h.Upstream != "" && s.fits(h) {
			proxy, by = h.Upstream, "as a [[host]] says"
			break
		}
	}
	switch proxy {
	case "", config.Direct:
		return "directly"
	case "env":
		return "through the proxy that the environment names"
	}
	return "through " + config.RedactURL(proxy) + ", " + by
}

// verdict prints what becomes of a request for the page: the verdict of package judge, by
// the stored robots.txt while it is fresh, else by a fetched one. What the site states of the
// use of its pages does not count.
func (s *shownFor) verdict(a *console.App) error {
	q := judge.Question{Query: acl.Query{Effective: s.Effective, Names: s.Identity(s.userAgent, rules.Identify), Target: rules.NewTarget(s.target), Now: s.now}}
	if q.Effective.Purposes = nil; s.origin.Scheme == "https" {
		q.HTTPS = s.HTTPS()
	}
	if q.HTTPS == acl.NoHTTPS {
		s.row("verdict", "refuse: the operator lets no https through")
		return nil
	}
	unnamed := q.Names.Shown == ""
	if unnamed { // as a client with a name that no group is for
		q.Names = s.Identity("*", rules.Identify)
	}
	j := check.Judge{Self: check.Listens(s.cfg), Destinations: s.cfg.Destinations()}
	q.Barred, _ = j.Barred(s.origin, s.target)
	way, err := route.Open(s.cfg, a.Environ, route.Options{Self: j.Self, Stored: route.FindStored(s.cfg)})
	if err != nil {
		return err
	}
	j.Held = way.Policies.Held
	v, err := j.Decide(context.Background(), &control.Judgement{}, &q, s.origin, func(ctx context.Context, o rules.Origin, userAgent string) (*rules.Policy, string, string) {
		return way.Policies.Policy(ctx, o, userAgent), "", ""
	})
	if err != nil {
		return err
	}
	s.row("verdict", "%s", verdictText(v, unnamed))
	if len(s.Purposes) > 0 && v.Verdict == rules.Allow && v.Policy != nil {
		s.row("", "unless the site states otherwise of its purpose: heed check --purpose %s", strings.Join(s.PurposeNames(), ","))
	}
	return nil
}

// verdictText returns a verdict and its reason in words.
func verdictText(v judge.Verdict, unnamed bool) string {
	text := v.Verdict.String() + ": " + console.ReasonText(v.Reason)
	if v.Rule != "" {
		text += ": " + console.Quoted(v.Rule)
	}
	if v.Line > 0 {
		text += fmt.Sprintf(" (line %d, group %s)", v.Line, console.Quoted(v.Group))
	}
	if v.OperatorReason != "" {
		text += " (" + console.Quoted(v.OperatorReason) + ")"
	}
	unreachable := v.Reason == rules.ReasonRobotsUnreachable || v.Reason == rules.ReasonOriginUnreachable
	if unreachable && v.Policy != nil && v.Policy.Source().Err != nil {
		text += " (" + console.Printable(v.Policy.Source().Err.Error()) + ")"
	}
	if unnamed && v.Policy != nil && v.Reason != rules.ReasonOverride {
		text += ", for a User-Agent that no group is for"
	}
	return text
}

func (s *shownFor) fits(h *config.HostConfig) bool {
	return slices.ContainsFunc(h.Match, func(text string) bool {
		p, err := acl.ParseHostPattern(text)
		return err == nil && p.Matches(s.origin)
	})
}
