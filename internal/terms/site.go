package terms

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heed/rules"
)

// Host is one [[host]] entry: which hosts are meant, and what was settled about
// them.
type Host struct {
	Match      []HostPattern // any of them
	Mode       Mode
	ModeSet    bool // Mode was written; otherwise the client's or the default counts
	Exceptions []*Exception
	Robots     func(rules.Origin) *rules.Policy // the policy in place of the site's own; nil: the site's own
	Service    string                           // why the host is called and not crawled; empty: it is crawled
	NeverAllow bool                             // no exception may allow what the site refuses
	HTTPS      HTTPS
	HTTPSSet   bool     // HTTPS was written; otherwise the default counts
	Ports      []uint16 // that tunnels which are not intercepted may go to; empty: the default's
}

// Fits reports whether the entry speaks of o.
func (h *Host) Fits(o rules.Origin) bool {
	return slices.ContainsFunc(h.Match, func(p HostPattern) bool { return p.Fits(o) })
}

// Site is all that the [[host]] entries say of one origin: each setting from the
// first entry that has it, the exceptions of all in their order. The zero Site
// is an origin that nobody speaks of.
type Site struct {
	Mode       Mode
	ModeSet    bool
	Exceptions []*Exception
	Robots     *rules.Policy // in place of the site's own; nil: the site's own
	Service    string        // why it is called and not crawled; empty: it is crawled
	NeverAllow bool
	HTTPS      HTTPS
	HTTPSSet   bool
	Ports      []uint16 // that tunnels which are not intercepted may go to; empty: 443
}

// site puts together what hosts say of o.
func site(hosts []Host, o rules.Origin) *Site {
	s := &Site{}
	for i := range hosts {
		h := &hosts[i]
		if !h.Fits(o) {
			continue
		}
		if !s.ModeSet && h.ModeSet {
			s.Mode, s.ModeSet = h.Mode, true
		}
		if !s.HTTPSSet && h.HTTPSSet {
			s.HTTPS, s.HTTPSSet = h.HTTPS, true
		}
		if s.Ports == nil {
			s.Ports = h.Ports
		}
		if s.Robots == nil && h.Robots != nil {
			s.Robots = h.Robots(o)
		}
		if s.Service == "" {
			s.Service = h.Service
		}
		s.NeverAllow = s.NeverAllow || h.NeverAllow
		s.Exceptions = append(s.Exceptions, h.Exceptions...)
	}
	return s
}

// Exception is an agreement about part of a site: what its patterns match is
// allowed, or refused, whatever robots.txt says.
type Exception struct {
	Patterns []string  // as in robots.txt: a path prefix, with "*" and a final "$"
	Refuse   bool      // refuse what they match; otherwise allow it
	Reason   string    // who agreed to it, or why; never empty
	Expires  time.Time // it no longer holds from then on; zero: it does not end
	Clients  []string  // the names of the clients it is for; empty: all
	Granted  bool      // added while heed ran, not by the configuration

	policy *rules.Policy
}

// Stop reports whether e was added while heed ran to refuse something at once.
func (e *Exception) Stop() bool { return e.Refuse && e.Granted }

// NewException returns e ready for use. It returns an error for a pattern that
// could never match a target.
func NewException(e Exception) (*Exception, error) {
	text, verdict := "User-agent: *\nDisallow: /\n", "Allow: "
	if e.Refuse {
		text, verdict = "User-agent: *\n", "Disallow: "
	}
	for _, p := range e.Patterns {
		if err := checkPattern(p); err != nil {
			return nil, err
		}
		text += verdict + p + "\n"
	}
	// As rules of a robots.txt they are judged by the one engine: an exception
	// that allows fits only when every reading of a target does, one that
	// refuses when any does.
	e.policy = rules.New(rules.Source{State: rules.Available}, []byte(text))
	return &e, nil
}

// anyone has no name, so that the star group governs.
var anyone = &rules.Agent{}

// match returns the pattern that fits the target, and whether one does.
func (e *Exception) match(target string) (string, bool) {
	d := e.policy.Decide(anyone, target)
	if e.Refuse {
		return d.Rule, d.Verdict == rules.Refuse
	}
	return d.Rule, d.Verdict == rules.Allow && d.Reason == rules.ReasonRule
}

// holds reports whether the exception is for the client of that name now.
func (e *Exception) holds(client string, now time.Time) bool {
	return (e.Expires.IsZero() || now.Before(e.Expires)) && (len(e.Clients) == 0 || slices.Contains(e.Clients, client))
}

// checkPattern says what is wrong with a pattern of an exception.
func checkPattern(p string) error {
	switch {
	case p == "" || p[0] != '/' && p[0] != '*':
		return fmt.Errorf("%q is no path pattern: it begins with a slash, or with a star", p)
	case strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r == '#' || r == 0x7f }):
		return fmt.Errorf("%q is no path pattern: write a blank as %%20 and a # as %%23", p)
	}
	return nil
}
