package counts

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/base/memo"
	"heed/rules"
)

// recent holds what was last seen of names, the newest of each. The zero value is empty.
type recent[K comparable, V any] struct {
	seen    map[K]*sight[V] // pointers: an assignment to a known key would keep the text of the new one
	expired time.Time       // when it was last full and old ones were looked for
}

type sight[V any] struct {
	at   time.Time
	what V
}

// put notes what was seen of key at a time. A new key, which clone keeps apart from the
// request that it came with, has no place in a recent with most of them, until what is older
// than age is removed: that is looked for once a second, since it takes as long as many
// requests.
func (r *recent[K, V]) put(key K, clone func(K) K, at time.Time, what V, age time.Duration, most int) {
	if s := r.seen[key]; s != nil {
		*s = sight[V]{at, what}
		return
	}
	if len(r.seen) >= most && at.Sub(r.expired) > time.Second {
		r.expired = at
		r.expire(at, age)
	}
	if len(r.seen) < most {
		memo.Set(&r.seen, clone(key), &sight[V]{at, what})
	}
}

// expire removes what was last seen longer than age before now.
func (r *recent[K, V]) expire(now time.Time, age time.Duration) {
	for k, s := range r.seen {
		if now.Sub(s.at) > age {
			delete(r.seen, k)
		}
	}
}

// dropAfter removes what was seen after now.
func (r *recent[K, V]) dropAfter(now time.Time) {
	for k, s := range r.seen {
		if s.at.After(now) {
			delete(r.seen, k)
		}
	}
	r.expired = time.Time{}
}

// maxFailing bounds the origins listed by Troubles, and troubleAge is for how long one is.
const (
	maxFailing = 100
	troubleAge = time.Hour
)

// Trouble is an origin whose robots.txt could not be fetched when a request
// last needed it, so that requests are refused or judged by a stale copy. A site
// that is unreachable is not listed: it would fail without heed as well.
type Trouble struct {
	Origin string    `json:"origin"`
	State  string    `json:"state"` // "unreachable" or "stale"
	Err    string    `json:"error"`
	Seen   time.Time `json:"seen"`     // when a request last needed the file
	Retry  time.Time `json:"retry_at"` // when the file is fetched again; zero: not known
}

// noteRobotsLocked notes whether the robots.txt that q needed could be fetched.
func (c *Counter) noteRobotsLocked(q *request) {
	if q.Policy == nil {
		return
	}
	if s := q.Policy.Source(); s.Stale || s.State == rules.Unreachable && !s.NoConnection {
		c.robots.put(s.Origin, func(o rules.Origin) rules.Origin { return o }, q.Time, s, troubleAge, maxFailing)
	} else {
		delete(c.robots.seen, s.Origin)
	}
}

// Troubles returns the origins whose robots.txt could not be fetched and that a
// request needed in the hour before now, ordered by name.
func (c *Counter) Troubles(now time.Time) []Trouble {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.robots.expire(now, troubleAge)
	list := make([]Trouble, 0, len(c.robots.seen))
	for origin, k := range c.robots.seen {
		x := Trouble{Origin: origin.String(), State: "unreachable", Seen: k.at, Retry: k.what.RetryAt}
		if k.what.Stale {
			x.State = "stale"
		}
		if k.what.Err != nil {
			x.Err = clip(k.what.Err.Error())
		}
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b Trouble) int { return cmp.Compare(a.Origin, b.Origin) })
	return list
}

const (
	// ReachWindow is for how long a request to a site counts in Reach.
	ReachWindow = 10 * time.Minute
	// minAsked is of how many sites more than half must have failed before they count as
	// a failure of heed or its network.
	minAsked = 5
	// maxReached bounds the sites that are counted, maxListed those that are listed.
	maxReached = 4096
	maxListed  = 20
)

// FailingProxy is an upstream proxy whose last use has failed.
type FailingProxy struct {
	Name   string    `json:"name"` // host:port
	Since  time.Time `json:"since"`
	Failed uint64    `json:"failed"` // uses since then
	Err    string    `json:"error"`  // of the last use
}

// FailingSite is a site that could not be reached, or whose robots.txt could not be read,
// when it was last asked.
type FailingSite struct {
	Origin string    `json:"origin"`
	Seen   time.Time `json:"seen"`
	Err    string    `json:"error"`
}

// Reach is whether sites and upstream proxies can be reached. The zero value is healthy.
type Reach struct {
	Proxies []FailingProxy `json:"proxies"`
	Asked   int            `json:"sites_asked"`  // within ReachWindow
	Failed  int            `json:"sites_failed"` // of these
	Sites   []FailingSite  `json:"sites"`        // that failed, the latest first; at most 20
}

// ManyFail reports whether so many sites fail that the cause is hardly theirs.
func (s *Reach) ManyFail() bool { return s.Asked >= minAsked && 2*s.Failed > s.Asked }

// reach collects a Reach.
type reach struct {
	proxies map[string]*FailingProxy
	sites   recent[site, string] // the failure; empty: reached
}

// site is a site as requests name it.
type site struct{ scheme, host string }

func (s site) clone() site { return site{strings.Clone(s.scheme), strings.Clone(s.host)} }

// ProxyUsed notes the use of an upstream proxy at host:port, which failed with err or, when
// that is nil, did not.
func (c *Counter) ProxyUsed(proxy string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.reach.proxies, proxy)
		return
	}
	if c.reach.proxies == nil {
		c.reach.proxies = map[string]*FailingProxy{}
	}
	p := memo.At(c.reach.proxies, proxy)
	if p.Failed == 0 {
		p.Name, p.Since = proxy, time.Now()
	}
	p.Failed++
	p.Err = err.Error()
}

// add notes whether the site of q was reached.
func (r *reach) add(q *request) {
	if failure, asked := failureOf(q); asked && q.Host != "" {
		r.sites.put(site{q.Scheme, q.Host}, site.clone, q.at, failure, ReachWindow, maxReached)
	}
}

// failureOf returns why the site of q failed, empty when it did not, and whether it
// was asked at all.
func failureOf(q *request) (failure string, asked bool) {
	switch r := q.Decision.Reason; {
	case r == rules.ReasonOriginUnreachable, r == rules.ReasonRobotsUnreachable:
		failure = string(r)
		if q.Policy != nil && q.Policy.Source().Err != nil {
			failure = q.Policy.Source().Err.Error()
		}
		return failure, true
	case q.Outcome.FromSite:
		return "", true
	case q.Decision.Verdict != rules.Refuse && (q.Outcome.EndedBy == audit.BySite || q.Outcome.EndedBy == audit.ByUpstream):
		return q.Outcome.Err, true
	}
	return "", false
}

// ForgetReach drops what was observed for Reach, since the settings that led to it have
// changed.
func (c *Counter) ForgetReach() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reach = reach{}
}

// Reach returns whether sites and upstream proxies could be reached in the time of
// ReachWindow before now.
func (c *Counter) Reach(now time.Time) Reach {
	c.mu.Lock()
	defer c.mu.Unlock()
	sites := &c.reach.sites
	sites.expire(now, ReachWindow)
	s := Reach{Proxies: []FailingProxy{}, Asked: len(sites.seen), Sites: []FailingSite{}}
	for _, p := range c.reach.proxies {
		s.Proxies = append(s.Proxies, *p)
	}
	slices.SortFunc(s.Proxies, func(a, b FailingProxy) int { return cmp.Compare(a.Name, b.Name) })
	for name, seen := range sites.seen {
		if seen.what != "" {
			s.Sites = append(s.Sites, FailingSite{name.scheme + "://" + name.host, seen.at, seen.what})
		}
	}
	s.Failed = len(s.Sites)
	slices.SortFunc(s.Sites, func(a, b FailingSite) int { return cmp.Or(b.Seen.Compare(a.Seen), cmp.Compare(a.Origin, b.Origin)) })
	s.Sites = s.Sites[:min(len(s.Sites), maxListed)]
	return s
}
