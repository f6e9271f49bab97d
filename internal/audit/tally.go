package audit

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"heed/rules"
)

// Bounds of a Tally. What comes beyond a bound is counted under Other, so that
// the sums stay true while one client cannot fill the memory with names.
const (
	maxHosts   = 1000 // hosts counted by name
	maxRefusal = 1000 // pairs of host and rule counted by name
	maxSites   = 1000 // pairs of host and status counted by name
	maxText    = 200  // bytes kept of one text from a site

	// Other stands for all names beyond a bound.
	Other = "(others)"

	// waitedFrom is the shortest wait that is told: less is not felt.
	waitedFrom = 10 * time.Millisecond
)

// Tally is a Recorder that counts. It keeps no Entry, holds a bounded amount of
// memory, and allocates nothing for a host and rule it has met before. The zero
// value is ready; it is safe for concurrent use.
type Tally struct {
	mu       sync.Mutex
	total    Counts
	waits    Waits
	hosts    map[string]*Counts
	refusals map[refusalKey]*uint64
	unjudged map[unjudgedKey]*uint64
	sites    map[siteKey]*uint64
	turns    map[string]*PaceCount
	pages    pages
	hour     hour
	trouble  troubles
}

// Counts are requests by what became of them. Requests is the sum of the other
// four: a request counts as NotJudged whatever its verdict, since a verdict on
// what was not seen says nothing about the rules.
type Counts struct {
	Requests    uint64 `json:"requests"`
	Allowed     uint64 `json:"allowed"`
	Refused     uint64 `json:"refused"`
	WouldRefuse uint64 `json:"would_refuse"`
	NotJudged   uint64 `json:"not_judged"`

	// SiteRefused are those of the allowed that the site itself then refused.
	SiteRefused uint64 `json:"site_refused"`

	// ByPath and ByHost divide the judged ones by what was seen of them.
	ByPath uint64 `json:"by_path"`
	ByHost uint64 `json:"by_host"`
}

// Waits are the requests that had to wait for a policy or a turn.
type Waits struct {
	Requests uint64        `json:"requests"`
	Total    time.Duration `json:"total_ns"`
	Longest  time.Duration `json:"longest_ns"`
}

type refusalKey struct {
	host   string
	reason rules.Reason
	group  string
	rule   string
	line   int

	observed bool
}

type unjudgedKey struct {
	host    string
	reason  rules.Reason
	verdict rules.Verdict
}

type siteKey struct {
	host   string
	status int
}

// Decided counts e. It never fails.
func (t *Tally) Decided(e *Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Revises != nil {
		t.reviseLocked(e)
		return nil
	}
	t.total.add(e)
	t.hour.at(e.Time).add(e)
	t.hostLocked(e.countedHost()).add(e)
	t.trouble.see(e)
	if e.Part != "" && !e.exempt() {
		t.pages.at(e, Other).decided(e)
	}
	t.whyLocked(e)
	return nil
}

// whyLocked counts why e was not judged, or not allowed.
func (t *Tally) whyLocked(e *Entry) {
	switch d := &e.Decision; {
	case e.Judged == NotJudged:
		t.unjudged = count(t.unjudged, unjudgedKey{e.countedHost(), d.Reason, d.Verdict}, maxRefusal, unjudgedKey.keep, unjudgedKey{host: Other})
	case d.Verdict != rules.Allow:
		t.refusals = count(t.refusals, keyOf(e.Host, d), maxRefusal, refusalKey.keep, refusalKey{host: Other})
	}
}

func keyOf(host string, d *rules.Decision) refusalKey {
	return refusalKey{host, d.Reason, clip(d.Group), clip(d.Rule), d.Line, d.Verdict == rules.WouldRefuse}
}

// Ended counts how e ended: waits, and refusals by the site itself.
func (t *Tally) Ended(e *Entry) {
	o := &e.Outcome
	refused := e.SiteRefused()
	if o.Waited < waitedFrom && !refused && o.Late == nil && e.Owed == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.Late != nil {
		t.lateLocked(e)
	}
	t.turnLocked(e)
	if o.Waited >= waitedFrom {
		t.waits.Requests++
		t.waits.Total += o.Waited
		t.waits.Longest = max(t.waits.Longest, o.Waited)
	}
	if refused {
		t.total.SiteRefused++
		t.hostLocked(e.countedHost()).SiteRefused++
		t.hour.at(e.Time.Add(o.Duration)).SiteRefused++
		if e.Part != "" && !e.exempt() {
			t.pages.at(e, Other).SiteRefused++
		}
		t.sites = count(t.sites, siteKey{e.countedHost(), o.Status}, maxSites, siteKey.keep, siteKey{host: Other})
	}
}

// lateLocked counts a request anew whose verdict came after it: it was judged
// after all.
func (t *Tally) lateLocked(e *Entry) {
	d := e.Outcome.Late
	for _, c := range []*Counts{&t.total, t.hour.at(e.Time), t.hostLocked(e.countedHost())} {
		c.late(d.Verdict, e.Method == http.MethodConnect)
	}
	uncount(t.unjudged, unjudgedKey{e.Host, e.Decision.Reason, e.Decision.Verdict}, unjudgedKey{host: Other})
	if d.Verdict != rules.Allow {
		t.refusals = count(t.refusals, keyOf(e.Host, d), maxRefusal, refusalKey.keep, refusalKey{host: Other})
	}
}

// late moves a request from those not judged to where its verdict belongs. An
// hour that has forgotten the request has nothing to move.
func (c *Counts) late(v rules.Verdict, byHost bool) {
	if c.NotJudged == 0 {
		return
	}
	if c.NotJudged--; byHost {
		c.ByHost++
	} else {
		c.ByPath++
	}
	if v == rules.Allow {
		c.Allowed++
	} else {
		c.WouldRefuse++
	}
}

// SiteRefused reports whether a site's answer means "not you" or "not now":
// 401, 403, 429, 451 and 503. Other errors are failures, not refusals.
func SiteRefused(status int) bool {
	switch status {
	case 401, 403, 429, 451, 503:
		return true
	}
	return false
}

func (t *Tally) hostLocked(host string) *Counts {
	if c := t.hosts[host]; c != nil {
		return c
	}
	if t.hosts == nil {
		t.hosts = map[string]*Counts{}
	}
	if len(t.hosts) >= maxHosts {
		host = Other
	}
	c := t.hosts[host]
	if c == nil {
		c = &Counts{}
		t.hosts[strings.Clone(host)] = c
	}
	return c
}

func (c *Counts) add(e *Entry) {
	c.Requests++
	switch e.Judged {
	case NotJudged:
		c.NotJudged++
		return
	case ByPath:
		c.ByPath++
	case ByHost:
		c.ByHost++
	}
	*c.of(e.Decision.Verdict)++
}

func (c *Counts) plus(o *Counts) {
	c.Requests += o.Requests
	c.Allowed += o.Allowed
	c.Refused += o.Refused
	c.WouldRefuse += o.WouldRefuse
	c.NotJudged += o.NotJudged
	c.ByPath += o.ByPath
	c.ByHost += o.ByHost
	c.SiteRefused += o.SiteRefused
}

// count adds one to k's number in m, made when nil. A new key is stored as
// keep returns it, so that it holds on to no request's memory; beyond limit,
// other is counted instead.
func count[K comparable](m map[K]*uint64, k K, limit int, keep func(K) K, other K) map[K]*uint64 {
	if n := m[k]; n != nil {
		*n++
		return m
	}
	if m == nil {
		m = map[K]*uint64{}
	}
	if len(m) >= limit {
		k = other
	}
	n := m[k]
	if n == nil {
		n = new(uint64)
		m[keep(k)] = n
	}
	*n++
	return m
}

// uncount takes one from k's number in m, or from other's where k had no place.
func uncount[K comparable](m map[K]*uint64, k, other K) {
	for _, k := range []K{k, other} {
		if n := m[k]; n != nil {
			if *n--; *n == 0 {
				delete(m, k)
			}
			return
		}
	}
}

func (k refusalKey) keep() refusalKey {
	k.host, k.group, k.rule = strings.Clone(k.host), strings.Clone(k.group), strings.Clone(k.rule)
	return k
}

func (k unjudgedKey) keep() unjudgedKey { k.host = strings.Clone(k.host); return k }

func (k siteKey) keep() siteKey { k.host = strings.Clone(k.host); return k }

func clip(s string) string { return s[:min(len(s), maxText)] }

// Summary is what a Tally counted, as data: largest numbers first, names in
// order among equals. Texts from sites are cut to 200 bytes and otherwise as
// they came: escape them before showing them.
type Summary struct {
	Counts
	Waited   Waits         `json:"waited"`
	Hosts    []HostCount   `json:"hosts"`
	Refusals []RuleCount   `json:"refusals"`
	Sites    []SiteCount   `json:"refused_by_sites"`
	Unjudged []ReasonCount `json:"not_judged_why"`
	Pages    []PageCount   `json:"pages"` // of which a part was refused
	Paced    []PaceCount   `json:"paced"` // hosts at which requests took turns
}

// HostCount is one host's part; Host is Other for those beyond the bound.
type HostCount struct {
	Host string `json:"host"`
	Counts
}

// RuleCount is how often one rule, or one reason without a rule, refused.
type RuleCount struct {
	Host   string       `json:"host"`
	Reason rules.Reason `json:"reason"`
	Group  string       `json:"group"`
	Rule   string       `json:"rule"`
	Line   int          `json:"line"`
	Count  uint64       `json:"count"`

	// Observed says that they were let through all the same.
	Observed bool `json:"observed,omitempty"`
}

// SiteCount is how often a site itself refused, by the status it sent.
type SiteCount struct {
	Host   string `json:"host"`
	Status int    `json:"status"`
	Count  uint64 `json:"count"`
}

// ReasonCount is how often requests to a host could not be judged, why, and
// whether they were let through ("allow") or not ("refuse").
type ReasonCount struct {
	Host    string       `json:"host"`
	Reason  rules.Reason `json:"reason"`
	Verdict string       `json:"verdict"`
	Count   uint64       `json:"count"`
}

// Summary returns what was counted so far.
func (t *Tally) Summary() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Summary{Counts: t.total, Waited: t.waits, Pages: t.pages.refused(), Paced: t.pacedLocked()}
	s.Hosts = make([]HostCount, 0, len(t.hosts))
	for h, c := range t.hosts {
		s.Hosts = append(s.Hosts, HostCount{h, *c})
	}
	s.Refusals = make([]RuleCount, 0, len(t.refusals))
	for k, n := range t.refusals {
		s.Refusals = append(s.Refusals, RuleCount{k.host, k.reason, k.group, k.rule, k.line, *n, k.observed})
	}
	s.Sites = make([]SiteCount, 0, len(t.sites))
	for k, n := range t.sites {
		s.Sites = append(s.Sites, SiteCount{k.host, k.status, *n})
	}
	s.Unjudged = make([]ReasonCount, 0, len(t.unjudged))
	for k, n := range t.unjudged {
		s.Unjudged = append(s.Unjudged, ReasonCount{k.host, k.reason, k.verdict.String(), *n})
	}
	s.sort()
	return s
}

func (s *Summary) sort() {
	slices.SortFunc(s.Hosts, func(a, b HostCount) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Host, b.Host))
	})
	slices.SortFunc(s.Refusals, func(a, b RuleCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Host, b.Host),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Group, b.Group))
	})
	slices.SortFunc(s.Sites, func(a, b SiteCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Status, b.Status))
	})
	slices.SortFunc(s.Unjudged, func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Host, b.Host),
			cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Verdict, b.Verdict))
	})
}
