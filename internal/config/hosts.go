package config

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"heed/internal/base/ownfile"
	"heed/internal/judge/acl"
	"heed/internal/output/console"
	"heed/rules"
)

// checkHosts reports the problems of [[host]] to d.
func (c *Config) checkHosts(d *decoder) {
	defer func() { d.scope = "" }()
	for i := range c.Hosts {
		d.scope = entry(i)
		h := &c.Hosts[i]
		if len(h.Match) == 0 {
			d.problem("host.match", `this [[host]] matches no host; set match = ["www.example.org", "*.example.com"]`)
		}
		for _, pattern := range h.Match {
			d.note("host.match", errorOf(acl.ParseHostPattern(pattern)))
		}
		c.checkTerms(d, &h.HostRules)
		c.checkHostUpstream(d, &h.HostUpstream, h.Reason)
		d.oneOfOrNone("host.https", h.HTTPS, acl.HTTPSNames...)
		mode := cmp.Or(h.HTTPS, c.HTTPS.Mode)
		if len(h.Ports) > 0 && !d.isWrong("host.https") && (mode == "intercept" || mode == "refuse") {
			d.problem("host.ports", "host.ports applies to tunnels, but https = %q allows none; remove ports", mode)
		}
		for _, port := range h.Ports {
			if port < 1 || port > 65535 {
				d.problem("host.ports", "host.ports: %d is not a port; write 1 to 65535", port)
			}
		}
	}
}

// Unjudged returns one line for each set of hosts whose traffic is not judged, or judged
// by host only. It is empty when every request is judged by its path.
func (c *Config) Unjudged() []string {
	out := unjudgedLine(c.HTTPS.Mode, []string{"every host without a matching [[host]]"}, nil)
	for _, h := range c.Hosts {
		out = append(out, unjudgedLine(cmp.Or(h.HTTPS, c.HTTPS.Mode), h.Match, h.Ports)...)
	}
	if c.HTTPS.Pinned != "" && c.HTTPS.Pinned != c.HTTPS.Mode {
		out = append(out, unjudgedLine(c.HTTPS.Pinned, []string{"hosts that are known to pin certificates (heed config pinned)"}, nil)...)
	}
	return append(out, c.unjudgedListeners()...)
}

func unjudgedLine(mode string, hosts []string, ports []int64) []string {
	if len(ports) == 0 {
		ports = []int64{443}
	}
	names := strings.Join(hosts, ", ")
	to := strings.Trim(strings.ReplaceAll(fmt.Sprint(slices.Sorted(slices.Values(ports))), " ", ", "), "[]")
	switch mode {
	case "tunnel":
		return []string{fmt.Sprintf("https to %s is NOT JUDGED: tunnels to port %s pass as they are", names, to)}
	case "host-only":
		return []string{fmt.Sprintf("https to %s is judged by its host alone: tunnels to port %s pass unless robots.txt bars the agent from everything", names, to)}
	}
	return nil
}

// DefaultMode describes the mode and the handling of https in a few words.
func (c *Config) DefaultMode() string {
	text := "enforce"
	if c.Observe {
		text = "observe"
	}
	text += ", https " + map[string]string{
		"intercept": "intercepted", "host-only": "judged by host only", "tunnel": "tunnelled unjudged", "refuse": "refused",
	}[c.HTTPS.Mode]
	if len(c.Hosts) > 0 {
		text += ", unless [[host]] says otherwise"
	}
	return text
}

// PinnedText is the list of hosts that are known to pin certificates, one pattern a line,
// with comments.
//
//go:embed pinned.txt
var PinnedText string

// pinnedPatterns returns the patterns of PinnedText.
func pinnedPatterns() (out []acl.HostPattern) {
	for line := range strings.Lines(PinnedText) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, checked(acl.ParseHostPattern(line)))
		}
	}
	return out
}

// HostRules holds the keys of [[host]] that change how requests are judged.
type HostRules struct {
	Mode       string   `toml:"mode"`        // enforce or observe; empty: the general mode
	Allow      []string `toml:"allow"`       // path patterns; override robots.txt
	Refuse     []string `toml:"refuse"`      // path patterns; override robots.txt
	Clients    []string `toml:"clients"`     // names of [[client]] that Allow and Refuse apply to; empty: all
	Licence    string   `toml:"licence"`     // reference to a contract with the site; empty: there is none
	Reason     string   `toml:"reason"`      // of allow, refuse, licence, robots_file, crawl, upstream_tls and old_tls
	Expires    Date     `toml:"expires"`     // of allow, refuse and licence; zero: never
	RobotsFile string   `toml:"robots_file"` // replaces the robots.txt of the site
	Crawl      *bool    `toml:"crawl"`       // false: a service that is not crawled; nil: true
	NeverAllow bool     `toml:"never_allow"` // no exception may allow what robots.txt disallows
}

// service reports whether the host is a service that is not crawled.
func (t *HostRules) service() bool { return t.Crawl != nil && !*t.Crawl }

// agreed reports whether t has an agreement about the site.
func (t *HostRules) agreed() bool { return len(t.Allow)+len(t.Refuse) > 0 || t.Licence != "" }

// checkTerms reports the problems of one [[host]]'s terms to d.
func (c *Config) checkTerms(d *decoder, t *HostRules) {
	d.oneOfOrNone("host.mode", t.Mode, "enforce", "observe")
	for key, patterns := range map[string][]string{"host.allow": t.Allow, "host.refuse": t.Refuse} {
		d.note(key, errorOf(acl.NewException(acl.Exception{Patterns: patterns})))
	}
	exception := t.agreed() || d.isWrong("host.allow", "host.refuse", "host.licence")
	for key, set := range map[string]bool{"host.allow": len(t.Allow) > 0, "host.refuse": len(t.Refuse) > 0, "host.robots_file": t.RobotsFile != "", "host.crawl": t.service(), "host.licence": t.Licence != ""} {
		if set && t.Reason == "" && !d.isWrong("host.reason") {
			d.problem(key, `%s needs a reason beside it, which the record will quote: reason = "written permission of 2026-03-14"`, key)
		}
	}
	if !exception && len(t.Clients) > 0 {
		d.problem("host.clients", "host.clients restricts allow, refuse and licence, but none is set")
	}
	if !exception && !t.Expires.IsZero() {
		d.problem("host.expires", "host.expires ends allow, refuse and licence, but none is set")
	}
	if t.Licence != "" && t.Expires.IsZero() && !d.isWrong("host.expires") {
		d.problem("host.licence", "host.licence needs the end of the contract beside it, such as expires = 2027-01-31")
	}
	d.note("host.licence", checkField(t.Licence))
	if t.NeverAllow && len(t.Allow) > 0 {
		d.problem("host.never_allow", "host.never_allow = true and host.allow contradict each other; remove one of them")
	}
	for _, name := range t.Clients {
		known := slices.ContainsFunc(c.Clients, func(cl ClientConfig) bool { return cl.Name == name })
		if !known && !namesUnknown(d) {
			d.problem("host.clients", "host.clients: there is no [[client]] called %q", name)
		}
	}
}

// namesUnknown reports whether the name of a [[client]] could not be decoded.
func namesUnknown(d *decoder) bool {
	for _, wrong := range d.wrong {
		if wrong["client"] || wrong["client.name"] {
			return true
		}
	}
	return false
}

// host converts the entry for package acl, without robots_file.
func (h *HostConfig) host() acl.Host {
	t := acl.Host{NeverAllow: h.NeverAllow, Via: h.Via, SignHTTP: h.SignHTTP}
	if form, ok := signForms[h.SignForm]; ok {
		t.SignForm = &form
	}
	if h.HTTPS != "" {
		https, _ := acl.ParseHTTPS(h.HTTPS) // checked
		t.HTTPS = &https
	}
	for _, port := range h.Ports {
		t.Ports = append(t.Ports, uint16(port))
	}
	t.Match = h.patterns()
	if h.Mode != "" {
		mode, _ := acl.ParseMode(h.Mode) // checked
		t.Mode = &mode
	}
	if h.service() {
		t.Service = h.Reason
	}
	if h.Licence != "" {
		t.Licence = &acl.Licence{Reference: h.Licence, Expires: h.Expires.Time, Clients: h.Clients}
	}
	for _, e := range []acl.Exception{{Refuse: true, Patterns: h.Refuse}, {Patterns: h.Allow}} {
		if e.Reason, e.Expires, e.Clients = h.Reason, h.Expires.Time, h.Clients; len(e.Patterns) > 0 {
			t.Exceptions = append(t.Exceptions, checked(acl.NewException(e)))
		}
	}
	return t
}

// patterns returns Match for package acl.
func (h *HostConfig) patterns() (all []acl.HostPattern) {
	for _, text := range h.Match {
		all = append(all, checked(acl.ParseHostPattern(text)))
	}
	return all
}

// maxOwnRobots is the greatest size of a robots_file in octets, as of a site's.
const maxOwnRobots = 4 << 20

// robots reads robots_file and returns a function that returns its policy for an origin;
// nil when robots_file is not set.
func (h *HostConfig) robots(profile rules.Profile) (func(rules.Origin) *rules.Policy, error) {
	if h.RobotsFile == "" {
		return nil, nil
	}
	file, err := ownfile.Read(h.RobotsFile, maxOwnRobots)
	if err != nil {
		return nil, err
	}
	return ownRobots(profile, file.Modified, file.Data), nil
}

// ownRobots returns a function that returns the policy of the operator's file for an
// origin.
func ownRobots(profile rules.Profile, modified time.Time, text []byte) func(rules.Origin) *rules.Policy {
	file := rules.Snapshot{FetchedAt: modified}
	file.Pack(text)
	return func(o rules.Origin) *rules.Policy {
		snapshot := file
		snapshot.Origin = o
		return rules.NewAs(profile, rules.Source{
			Origin: o, State: rules.Available, Own: true, FetchedAt: modified, Note: "a file of the operator's", Snapshot: &snapshot,
		}, text)
	}
}

// Rules converts the settings for package acl. It reads the files that they name and
// joins all their errors. now is the clock.
func (c *Config) Rules(now func() time.Time) (*acl.Rules, error) {
	r := c.baseRules()
	wrong := []error{c.Access.addAccess(r, now)}
	for i := range c.Hosts {
		var err error
		if r.Hosts[i].Robots, err = c.Hosts[i].robots(c.RulesProfile()); err != nil {
			wrong = append(wrong, fmt.Errorf("host.robots_file: %w", err))
		}
	}
	if err := errors.Join(append(wrong, c.addSigners(r))...); err != nil {
		return nil, err
	}
	r.Hash, r.Text = c.Hash(), string(console.MustJSON(c.recordedSettings()))
	return r, nil
}

// baseRules converts the settings that need no file: [[client]], [[host]] and https. The entry
// of https.pinned is the last host, so that those of [[host]] have precedence over it.
func (c *Config) baseRules() *acl.Rules {
	r := &acl.Rules{Observe: c.Observe, Profile: c.RulesProfile(), NoVia: !c.Upstream.Via, Clients: c.ACLClients(), AlsoObey: c.Signals.AlsoObey}
	r.HTTPS, _ = acl.ParseHTTPS(c.HTTPS.Mode) // checked
	for i := range c.Hosts {
		r.Hosts = append(r.Hosts, c.Hosts[i].host())
	}
	if c.HTTPS.Pinned != "" {
		https, _ := acl.ParseHTTPS(c.HTTPS.Pinned) // checked
		r.Hosts = append(r.Hosts, acl.Host{Match: pinnedPatterns(), HTTPS: &https})
	}
	return r
}

// hostNotices returns the remarks on [[host]] that every start prints.
func (c *Config) hostNotices(now time.Time) []string {
	var out []string
	for i := range c.Hosts {
		h := &c.Hosts[i]
		names := strings.Join(h.Match, ", ")
		exception := h.agreed()
		switch {
		case exception && h.Expires.IsZero():
			out = append(out, fmt.Sprintf("the exception for %s never ends (%s); give it an end with expires", names, h.Reason))
		case exception && !now.Before(h.Expires.Time):
			out = append(out, fmt.Sprintf("the exception for %s was last in force on %s (UTC) and holds no more (%s)", names, h.Expires.Add(-time.Nanosecond).UTC().Format(time.DateOnly), h.Reason))
		}
		if h.Mode == "observe" {
			out = append(out, fmt.Sprintf("%s is only observed: nothing is refused there", names))
		}
		if h.service() {
			out = append(out, fmt.Sprintf("%s is a service and not crawled: nothing is judged there (%s)", names, h.Reason))
		}
	}
	return out
}

// Notices returns the remarks on the settings that every start prints: what is not
// enforced, and which exceptions have expired or never do.
func (c *Config) Notices(now time.Time) []string {
	var observed []string
	if c.Observe {
		observed = append(observed, "everything is only observed (--observe): nothing is refused")
	}
	return slices.Concat(observed, c.clientNotices(), c.hostNotices(now), c.upstreamNotices(), c.Audit.notices(), c.Admin.notices())
}
