package command

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"heed/internal/terms"
	"heed/rules"
)

// HostTerms is the part of [[host]] that was agreed with the site, or about it.
type HostTerms struct {
	Mode       string   `toml:"mode"`        // enforce or observe; empty: as elsewhere
	Allow      []string `toml:"allow"`       // path patterns, whatever robots.txt says
	Refuse     []string `toml:"refuse"`      // path patterns, whatever robots.txt says
	Clients    []string `toml:"clients"`     // names of [[client]] that allow and refuse are for; empty: all
	Reason     string   `toml:"reason"`      // of allow, refuse, robots_file, crawl and upstream_tls
	Expires    Date     `toml:"expires"`     // of allow and refuse; zero: never
	RobotsFile string   `toml:"robots_file"` // read in place of the site's own
	Crawl      *bool    `toml:"crawl"`       // false: a service that programs call; nil: true
	NeverAllow bool     `toml:"never_allow"` // no exception may allow what the site refuses
}

// service reports whether the host is called and not crawled.
func (t *HostTerms) service() bool { return t.Crawl != nil && !*t.Crawl }

// checkTerms notes what cannot be meant in one [[host]]'s terms.
func (c *Config) checkTerms(d *decoder, t *HostTerms) {
	if t.Mode != "" {
		d.oneOf("host.mode", t.Mode, "enforce", "observe")
	}
	for key, patterns := range map[string][]string{"host.allow": t.Allow, "host.refuse": t.Refuse} {
		if _, err := terms.NewException(terms.Exception{Patterns: patterns}); err != nil {
			d.note(key, err)
		}
	}
	exception := len(t.Allow)+len(t.Refuse) > 0
	for key, set := range map[string]bool{"host.allow": len(t.Allow) > 0, "host.refuse": len(t.Refuse) > 0, "host.robots_file": t.RobotsFile != "", "host.crawl": t.service()} {
		if set && t.Reason == "" {
			d.problem(key, `%s needs a reason beside it, which the record will quote: reason = "written permission of 2026-03-14"`, key)
		}
	}
	if !exception && len(t.Clients) > 0 {
		d.problem("host.clients", "host.clients says whom allow and refuse are for, but there is neither")
	}
	if !exception && !t.Expires.IsZero() {
		d.problem("host.expires", "host.expires says when allow and refuse end, but there is neither")
	}
	if t.NeverAllow && len(t.Allow) > 0 {
		d.problem("host.never_allow", "host.never_allow = true and host.allow contradict each other; leave one of them out")
	}
	for _, name := range t.Clients {
		known := slices.ContainsFunc(c.Clients, func(cl ClientConfig) bool { return cl.Name == name })
		if !known {
			d.problem("host.clients", "host.clients: there is no [[client]] called %q", name)
		}
	}
	t.RobotsFile = beside(c.File, t.RobotsFile)
}

// host returns the entry as the proxy takes it, but for robots_file.
func (h *HostConfig) host() (terms.Host, error) {
	t := terms.Host{NeverAllow: h.NeverAllow, HTTPSSet: h.HTTPS != ""}
	t.HTTPS, _ = terms.ParseHTTPS(h.HTTPS) // checked
	for _, port := range h.Ports {
		t.Ports = append(t.Ports, uint16(port))
	}
	for _, text := range h.Match {
		p, err := terms.ParseHostPattern(text)
		if err != nil {
			return t, fmt.Errorf("host.match: %w", err)
		}
		t.Match = append(t.Match, p)
	}
	if h.Mode != "" {
		t.Mode, _ = terms.ParseMode(h.Mode) // checked
		t.ModeSet = true
	}
	if h.service() {
		t.Service = h.Reason
	}
	agreed := terms.Exception{Reason: h.Reason, Expires: h.Expires.Time, Clients: h.Clients}
	for _, refuse := range []bool{true, false} {
		agreed.Refuse, agreed.Patterns = refuse, h.Allow
		if refuse {
			agreed.Patterns = h.Refuse
		}
		if len(agreed.Patterns) == 0 {
			continue
		}
		e, err := terms.NewException(agreed)
		if err != nil {
			return t, err
		}
		t.Exceptions = append(t.Exceptions, e)
	}
	return t, nil
}

// robots reads robots_file and returns the policies that it makes; nil when
// there is none.
func (h *HostConfig) robots(profile rules.Profile) (func(rules.Origin) *rules.Policy, error) {
	if h.RobotsFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(h.RobotsFile)
	if err != nil {
		return nil, fmt.Errorf("host.robots_file: %w", err)
	}
	info, err := os.Stat(h.RobotsFile)
	if err != nil {
		return nil, fmt.Errorf("host.robots_file: %w", err)
	}
	return ownRobots(profile, info.ModTime(), text), nil
}

// ownRobots returns the policies that an operator's own file makes, for any origin.
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

// book returns the settings as the proxy takes them.
// It reads the files that they name, and says of all of them what is wrong; now is
// the clock.
func (c *Config) book(now func() time.Time) (*terms.Book, error) {
	b, err := c.agreed()
	wrong := []error{c.Access.admitted(b, now), err}
	for i := range c.Hosts {
		var err error
		b.Hosts[i].Robots, err = c.Hosts[i].robots(c.profile())
		wrong = append(wrong, err)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	b.Hash, b.Text = c.Hash(), c.inForce().text()
	return b, nil
}

// agreed returns the part of the settings that needs no file: what was settled
// with clients and sites.
func (c *Config) agreed() (*terms.Book, error) {
	b := &terms.Book{Observe: c.Observe}
	b.HTTPS, _ = terms.ParseHTTPS(c.HTTPS.Mode) // checked
	var wrong []error
	for i := range c.Clients {
		b.Clients = append(b.Clients, c.Clients[i].client())
	}
	for i := range c.Hosts {
		h, err := c.Hosts[i].host()
		wrong = append(wrong, err)
		b.Hosts = append(b.Hosts, h)
	}
	return b, errors.Join(append(wrong, c.HTTPS.pinned(b))...)
}

// hostNotices says what an operator should know of [[host]] at every start.
func (c *Config) hostNotices(now time.Time) []string {
	var out []string
	for i := range c.Hosts {
		h := &c.Hosts[i]
		names := strings.Join(h.Match, ", ")
		exception := len(h.Allow)+len(h.Refuse) > 0
		switch {
		case exception && h.Expires.IsZero():
			out = append(out, fmt.Sprintf("the exception for %s never ends (%s); give it an end with expires", names, h.Reason))
		case exception && !now.Before(h.Expires.Time):
			out = append(out, fmt.Sprintf("the exception for %s has ended on %s and holds no more (%s)", names, h.Expires.Format(time.DateOnly), h.Reason))
		}
		if h.Mode == "observe" {
			out = append(out, fmt.Sprintf("%s is only observed: nothing is refused there", names))
		}
		if h.service() {
			out = append(out, fmt.Sprintf("%s is called and not crawled: nothing is judged there (%s)", names, h.Reason))
		}
	}
	return out
}

// notices says what an operator should know of the settings at every start:
// what is not enforced, and what has ended or never will.
func (c *Config) notices(now time.Time) []string {
	var observed []string
	if c.Observe {
		observed = append(observed, "everything is only observed (--observe): nothing is refused")
	}
	return slices.Concat(observed, c.clientNotices(), c.hostNotices(now), c.upstreamNotices(), c.Audit.notices())
}
