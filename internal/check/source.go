package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"heed/cache"
	"heed/internal/base/memo"
	"heed/internal/base/state"
	"heed/internal/check/why"
	"heed/internal/config"
	"heed/internal/config/route"
	"heed/internal/control"
	"heed/internal/judge/acl"
	"heed/internal/output/console"
	"heed/rules"
)

// prepare returns the source of rules for judging in this process: the file named by
// --robots, otherwise fresh stored copies and the sites. It gives j the settings, what heed may
// reach, and the purposes, and sites the route to the sites; nil: it is not needed.
func (c *CheckCmd) prepare(a *console.App, j *Judge, sites *Sites) (policyOf, error) {
	if c.Robots != "" {
		text, err := readRobots(a, c.Robots)
		if err != nil {
			return nil, err
		}
		if err := rules.CheckFile([]byte(text)); err != nil {
			return nil, fmt.Errorf("--robots %s: %w", console.Printable(c.Robots), err)
		}
		profile, _ := rules.ParseProfile(c.Profile) // it was checked
		policy := newParsed(profile).of(text)
		j.ForPurposes(c.Page, nil, nil, "", nil)
		return func(_ context.Context, o rules.Origin, _ string) (*rules.Policy, string, string) {
			return policy(o), c.Robots, why.ByFile
		}, nil
	}
	cfg, err := c.Load(a)
	if err != nil {
		return nil, err
	}
	cfg.Profile = cmp.Or(c.Profile, cfg.Profile)
	options := route.Options{Self: Listens(cfg)}
	if !c.Fresh {
		options.Stored = route.FindStored(cfg)
	}
	out, err := route.Open(cfg, a.Environ, options)
	if err != nil {
		return nil, err
	}
	policy := policiesOf(a, out)
	if sites != nil {
		sites.Fetcher = out.Policies
		sites.Robots = func(ctx context.Context, by string, o rules.Origin) *rules.Policy {
			return out.Documents.Robots(ctx, by, o, cfg.RulesProfile())
		}
		policy = storedOrAsked(a, out) // of many sites some are slow: none is reported
	}
	client := &http.Client{Transport: out.Transport.GuardRedirects()(), CheckRedirect: noDowngrade} // there is one page at most
	j.ForPurposes(c.Page, out.Documents, client, cache.DefaultUserAgent(cfg.Contact), policy)
	j.Held, j.Self = out.Policies.Held, options.Self
	j.Pacing, j.Destinations = cfg.Pacing.Settings, cfg.Destinations()
	settled, err := c.rules(a, *cfg)
	j.Rules = settled.ForRun(j.Rules.Flags)
	return policy, err
}

// policiesOf returns the rules of sites as out has or fetches them. Slow fetches are reported.
func policiesOf(a *console.App, out *route.Route) policyOf {
	policy := storedOrAsked(a, out)
	return func(ctx context.Context, o rules.Origin, userAgent string) (*rules.Policy, string, string) {
		slow := time.AfterFunc(time.Second, func() { a.Progress("waiting for " + o.RobotsURL()) })
		defer slow.Stop()
		return policy(ctx, o, userAgent)
	}
}

// storedOrAsked is policiesOf without reports.
func storedOrAsked(a *console.App, out *route.Route) policyOf {
	start := a.Now()
	return func(ctx context.Context, o rules.Origin, userAgent string) (*rules.Policy, string, string) {
		p := out.Policies.Policy(ctx, o, userAgent)
		if at := p.Source().FetchedAt; at.Before(start) {
			return p, o.RobotsURL(), why.ByStore
		}
		return p, o.RobotsURL(), why.BySite
	}
}

// noDowngrade follows redirects as the proxy does: ten of them, and none from
// https to http.
func noDowngrade(req *http.Request, via []*http.Request) error {
	if len(via) > 10 {
		return errors.New("more than 10 redirects")
	}
	if req.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https" {
		return errors.New("a redirect from https to http is not followed")
	}
	return nil
}

// Listens returns the addresses that a heed with the settings listens on.
func Listens(cfg *config.Config) *acl.Addrs {
	all := &acl.Addrs{}
	addresses := slices.Clone(cfg.Listen)
	for _, l := range cfg.Listeners {
		addresses = append(addresses, l.Address)
	}
	for _, address := range addresses {
		if at, err := netip.ParseAddrPort(address); err == nil {
			all.Add(net.TCPAddrFromAddrPort(at))
		}
	}
	return all
}

func readRobots(a *console.App, path string) (text string, err error) {
	data, err := a.Input(path, rules.MaxBytes)
	switch {
	case errors.Is(err, syscall.EISDIR):
		err = fmt.Errorf("%s is a directory\nName the file in it, such as %s", console.Printable(path), console.Printable(filepath.Join(path, "robots.txt")))
	case err != nil:
		err = fmt.Errorf("the robots.txt cannot be read: %w", err)
	}
	return string(data), err
}

// heedHere returns a client for the heed that serves this user's state
// directory; nil when none runs or it belongs to another user.
func heedHere(ctx context.Context, a *console.App) (*control.Client, error) {
	stateDir, err := state.Find(a.Stderr)
	if err != nil {
		return nil, nil
	}
	if status, err := control.Serving(ctx, stateDir); status == nil {
		return nil, err
	}
	return control.NewClient(stateDir), nil
}

// judgeFunc judges one URL for one agent.
type judgeFunc func(ctx context.Context, agent, address string) (*control.Judgement, error)

// judgeFunc returns the function that judges: by the running heed, with its settings
// and stored files, or in this process when none runs or the flags require it.
func (c *CheckCmd) judgeFunc(a *console.App) (judgeFunc, error) {
	m, err := c.newSites(a)
	if err != nil {
		return nil, err
	}
	m.judge.Explain, m.judge.Delays = c.Explain, c.Explain || c.JSON
	if m.client, err = c.running(a); err == nil && m.client == nil {
		m.policy, err = c.prepare(a, m.judge, nil)
	}
	return func(ctx context.Context, agent, address string) (*control.Judgement, error) {
		all, err := m.Site().Check(ctx, agent, []string{address}, true)
		if err != nil {
			return nil, err
		}
		all[0].URL = address // byte for byte, also from the running heed
		return all[0], nil
	}, err
}

// rules returns what cfg settles about clients and hosts.
func (c *CheckCmd) rules(a *console.App, cfg config.Config) (*acl.Rules, error) {
	cfg.Access = config.AccessConfig{} // access to the proxy does not matter here
	r, err := cfg.Rules(a.Now)
	if err == nil && c.Client != "" && r.ClientNamed(c.Client) == nil {
		err = fmt.Errorf("--client: there is no [[client]] called %s in %s\n%s", console.Quoted(c.Client), cfg.Source(), cfg.ClientNames())
	}
	return r, err
}

// maxParsed bounds the texts and policies that parsed keeps, in bytes.
const maxParsed = 64 << 20

// parsed remembers the policies of robots.txt texts. It is safe for concurrent use.
type parsed struct {
	profile  rules.Profile
	limit    int // of the octets of the texts and policies
	policies memo.Map[parsedKey, *rules.Policy]
}

type parsedKey struct {
	origin rules.Origin
	text   string
}

func newParsed(profile rules.Profile) *parsed {
	return &parsed{profile: profile, limit: maxParsed}
}

// policy returns the policy of text as the robots.txt of o.
func (p *parsed) policy(o rules.Origin, text string) *rules.Policy {
	if !namesOrigin(text) {
		o = rules.Origin{}
	}
	return p.get(parsedKey{o, text}, text)
}

// of returns a function that returns the policy of text for any origin. The text
// is searched for absolute URLs only once.
func (p *parsed) of(text string) func(rules.Origin) *rules.Policy {
	if !namesOrigin(text) {
		only := p.get(parsedKey{text: text}, text)
		return func(rules.Origin) *rules.Policy { return only }
	}
	return func(o rules.Origin) *rules.Policy { return p.get(parsedKey{origin: o}, text) }
}

// get returns the policy remembered under key, and parses text when there is none.
func (p *parsed) get(key parsedKey, text string) *rules.Policy {
	size := func(made *rules.Policy) int { return len(key.text) + made.Size() }
	made, _ := p.policies.LoadSized(key, size, p.limit, func() (*rules.Policy, error) { // there is no error
		return rules.NewAs(p.profile, rules.Source{Origin: key.origin, State: rules.Available, Status: 200}, []byte(text)), nil
	})
	return made
}

// namesOrigin reports whether a rule of the text may be an absolute URL, which
// counts at the origin it names and at no other. The URLs of Sitemap lines,
// which most files have, do not matter to decisions.
func namesOrigin(text string) bool {
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "://") {
			continue
		}
		field, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if !strings.EqualFold(strings.TrimSpace(field), "sitemap") {
			return true
		}
	}
	return false
}
