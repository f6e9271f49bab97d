// Package reach observes whether sites and upstream proxies can be reached.
package reach

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"heed/internal/audit"
	"heed/rules"
)

const (
	// Window is for how long a request to a site counts.
	Window = 10 * time.Minute
	// minAsked is of how many sites more than half must have failed before they count as
	// a failure of heed or its network.
	minAsked = 5
	// maxSites bounds the sites that are counted, maxListed those that are listed.
	maxSites  = 4096
	maxListed = 20
	// expireEvery is how often expired sites are looked for when there are maxSites: that
	// takes as long as many requests.
	expireEvery = time.Second
)

// Proxy is an upstream proxy whose last use has failed.
type Proxy struct {
	Name   string    `json:"name"` // host:port
	Since  time.Time `json:"since"`
	Failed uint64    `json:"failed"` // uses since then
	Err    string    `json:"error"`  // of the last use
}

// Site is a site that could not be reached, or whose robots.txt could not be read, when
// it was last asked.
type Site struct {
	Origin string    `json:"origin"`
	Seen   time.Time `json:"seen"`
	Err    string    `json:"error"`
}

// Status is what was observed. The zero value is healthy.
type Status struct {
	Proxies []Proxy `json:"proxies"`      // that fail
	Asked   int     `json:"sites_asked"`  // within Window
	Failed  int     `json:"sites_failed"` // of these
	Sites   []Site  `json:"sites"`        // that failed, the latest first; at most 20
}

// ManyFail reports whether so many sites fail that the cause is hardly theirs.
func (s *Status) ManyFail() bool { return s.Asked >= minAsked && 2*s.Failed > s.Asked }

// Tracker collects a Status. It is a recorder of decisions. The zero value is ready; it
// is safe for concurrent use.
type Tracker struct {
	mu      sync.Mutex
	proxies map[string]*Proxy
	sites   map[string]Site // by origin; without Err: reached
	expired time.Time       // when sites was last full and expired ones were looked for
}

// ProxyUsed notes the use of an upstream proxy at host:port, which failed with err or, when
// that is nil, did not.
func (t *Tracker) ProxyUsed(proxy string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.proxies[proxy]
	switch {
	case err == nil && p != nil:
		delete(t.proxies, proxy)
	case err == nil:
	case p == nil:
		if t.proxies == nil {
			t.proxies = map[string]*Proxy{}
		}
		t.proxies[proxy] = &Proxy{Name: proxy, Since: time.Now(), Failed: 1, Err: err.Error()}
	default:
		p.Failed++
		p.Err = err.Error()
	}
}

// Decided implements the recorder; it notes nothing.
func (t *Tracker) Decided(*audit.Entry) error { return nil }

// Ended notes what became of a request.
func (t *Tracker) Ended(e *audit.Entry) {
	failure, asked := failureOf(e)
	if e.Host == "" || !asked {
		return
	}
	origin := e.Scheme + "://" + e.Host
	now := e.Time.Add(e.Outcome.Duration)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sites == nil {
		t.sites = map[string]Site{}
	}
	if _, known := t.sites[origin]; !known && len(t.sites) >= maxSites {
		if now.Sub(t.expired) > expireEvery {
			t.expired = now
			t.expireLocked(now)
		}
		if len(t.sites) >= maxSites {
			return
		}
	}
	t.sites[origin] = Site{Origin: origin, Seen: now, Err: failure}
}

// failureOf returns why the site of e failed, empty when it did not, and whether it
// was asked at all.
func failureOf(e *audit.Entry) (failure string, asked bool) {
	switch r := e.Decision.Reason; {
	case r == rules.ReasonOriginUnreachable, r == rules.ReasonRobotsUnreachable:
		failure = string(r)
		if e.Policy != nil && e.Policy.Source().Err != nil {
			failure = e.Policy.Source().Err.Error()
		}
		return failure, true
	case e.Outcome.FromSite:
		return "", true
	case e.Decision.Verdict != rules.Refuse && (strings.HasPrefix(e.Outcome.Err, "site: ") || strings.HasPrefix(e.Outcome.Err, "upstream proxy: ")):
		return e.Outcome.Err, true
	}
	return "", false
}

func (t *Tracker) expireLocked(now time.Time) {
	for o, s := range t.sites {
		if now.Sub(s.Seen) > Window {
			delete(t.sites, o)
		}
	}
}

// Forget drops what was observed, since the settings that led to it have changed.
func (t *Tracker) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.proxies)
	clear(t.sites)
}

// Status returns what was observed in the time of Window before now.
func (t *Tracker) Status(now time.Time) Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLocked(now)
	s := Status{Proxies: []Proxy{}, Asked: len(t.sites), Sites: []Site{}}
	for _, p := range t.proxies {
		s.Proxies = append(s.Proxies, *p)
	}
	slices.SortFunc(s.Proxies, func(a, b Proxy) int { return cmp.Compare(a.Name, b.Name) })
	for _, site := range t.sites {
		if site.Err != "" {
			s.Sites = append(s.Sites, site)
		}
	}
	s.Failed = len(s.Sites)
	slices.SortFunc(s.Sites, func(a, b Site) int { return cmp.Or(b.Seen.Compare(a.Seen), cmp.Compare(a.Origin, b.Origin)) })
	s.Sites = s.Sites[:min(len(s.Sites), maxListed)]
	return s
}
