package audit

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"heed/internal/reason"
	"heed/rules"
)

// Bounds of a Tally. Names beyond a bound are counted under Other, so that the
// sums remain correct and no client can fill the memory with names.
const (
	maxHosts   = 1000 // hosts counted by name
	maxRefusal = 1000 // pairs of host and rule counted by name
	maxSites   = 1000 // pairs of host and status counted by name
	maxText    = 200  // bytes kept of one text from a site

	// Other replaces all names beyond a bound.
	Other = "(others)"

	// waitedFrom is the shortest wait that is counted.
	waitedFrom = 10 * time.Millisecond
)

// Tally is a Recorder that counts. It keeps no Entry, uses a bounded amount of
// memory, and does not allocate for a host and rule counted before. The zero
// value is ready; it is safe for concurrent use.
type Tally struct {
	mu       sync.Mutex
	total    Counts
	waits    Waits
	signed   uint64 // requests that were signed for their sites
	hosts    boundedMap[string, Counts]
	refusals boundedMap[refusalKey, uint64]
	unjudged boundedMap[unjudgedKey, uint64]
	rejected map[unjudgedKey]uint64 // of unjudged, before the last https request that was judged
	sites    boundedMap[siteKey, uint64]
	failed   boundedMap[siteKey, uint64]
	answers  boundedMap[answerKey, uint64]
	turns    boundedMap[string, PaceCount]
	pages    pages
	rings    [spans]ring
	failing  failingOrigins
}

// Counts are requests by result. Requests is the sum of Classes, and of the next
// four: there a request of which nothing was seen that could be judged counts as
// NotJudged whatever its verdict.
type Counts struct {
	Requests    uint64 `json:"requests"`
	Allowed     uint64 `json:"allowed"`
	Refused     uint64 `json:"refused"`
	WouldRefuse uint64 `json:"would_refuse"`
	NotJudged   uint64 `json:"not_judged"`

	// SiteRefused are the allowed requests that the site refused.
	SiteRefused uint64 `json:"site_refused"`

	// ByPath and ByHost are the judged requests by how they were judged.
	ByPath uint64 `json:"by_path"`
	ByHost uint64 `json:"by_host"`

	// Classes are the requests by class, and WouldBe those that were only observed
	// by the class of their refusal; Classes has these as allowed or failed.
	Classes reason.Counts `json:"classes"`
	WouldBe reason.Counts `json:"would_be"`
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
	detail  string // of rules.ReasonMalformed, whose requests have nothing else in common
}

func unjudgedKeyOf(host, detail string, d *rules.Decision) unjudgedKey {
	k := unjudgedKey{host, d.Reason, d.Verdict, ""}
	if d.Reason == rules.ReasonMalformed {
		k.detail = clip(detail)
	}
	return k
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
	for s := range t.rings {
		t.rings[s].at(span(s), e.Time).add(e)
	}
	t.hostLocked(e.countedHost()).add(e)
	t.failing.update(e)
	if e.Part != "" && !e.exempt() {
		t.pages.of(e).decided(e)
	}
	t.reasonLocked(e)
	if e.SignedKey != "" {
		t.signed++
	}
	return nil
}

func keyOf(host string, d *rules.Decision) refusalKey {
	return refusalKey{host, d.Reason, clip(d.Group), clip(d.Rule), d.Line, d.Verdict == rules.WouldRefuse}
}

// Ended counts e's wait, its late verdict and a refusal by the site.
func (t *Tally) Ended(e *Entry) {
	o := &e.Outcome
	refused, failed := e.SiteRefused(), e.Failed()
	if o.Waited < waitedFrom && !refused && !failed && o.Late == nil && e.Owed == 0 && o.SiteAnswer == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.Late != nil {
		t.lateVerdictLocked(e)
	}
	if o.Late != nil || failed {
		final := &e.Decision
		if o.Late != nil {
			final = o.Late
		}
		t.reclassLocked(e, e.Time, classOf(&e.Decision, false), classOf(final, failed))
	}
	t.paceLocked(e)
	if o.Waited >= waitedFrom {
		t.waits.Requests++
		t.waits.Total += o.Waited
		t.waits.Longest = max(t.waits.Longest, o.Waited)
	}
	if o.SiteAnswer != "" {
		*t.answers.at(answerKey{e.countedHost(), o.SiteAnswer}, answerKey{host: Other}, maxSites, answerKey.clone)++
	}
	if failed {
		*t.failed.at(siteKey{e.countedHost(), o.Status}, siteKey{host: Other}, maxSites, siteKey.clone)++
	}
	if refused {
		t.total.SiteRefused++
		t.hostLocked(e.countedHost()).SiteRefused++
		for s := range t.rings {
			t.rings[s].at(span(s), e.Time.Add(o.Duration)).SiteRefused++
		}
		if e.Part != "" && !e.exempt() {
			t.pages.of(e).SiteRefused++
		}
		*t.sites.at(siteKey{e.countedHost(), o.Status}, siteKey{host: Other}, maxSites, siteKey.clone)++
	}
}

// lateVerdictLocked counts a request whose verdict followed it as judged.
func (t *Tally) lateVerdictLocked(e *Entry) {
	d := e.Outcome.Late
	for _, c := range t.countsLocked(e, e.Time) {
		if e.Judged == NotJudged {
			c.lateVerdict(d.Verdict, IsTunnel(e.Method, e.Target))
		} else if before := c.of(e.Decision.Verdict); *before > 0 { // withheld by its page
			*before--
			*c.of(d.Verdict)++
		}
	}
	if e.Judged == NotJudged {
		uncount(t.unjudged, unjudgedKeyOf(e.Host, e.Detail, &e.Decision), unjudgedKey{host: Other})
	}
	if d.Verdict != rules.Allow {
		*t.refusals.at(keyOf(e.Host, d), refusalKey{host: Other}, maxRefusal, refusalKey.clone)++
	}
}

// lateVerdict moves a request from NotJudged to the count of its verdict. It does
// nothing when c, of an earlier hour, no longer counts the request.
func (c *Counts) lateVerdict(v rules.Verdict, byHost bool) {
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

// SiteRefused reports whether status is a refusal by the site: 401, 403, 429, 451
// or 503. Other errors are failures, not refusals.
func SiteRefused(status int) bool {
	return slices.Contains([]int{401, 403, 429, 451, 503}, status)
}

func (t *Tally) hostLocked(host string) *Counts {
	return t.hosts.at(host, Other, maxHosts, strings.Clone)
}

func (c *Counts) add(e *Entry) {
	c.Requests++
	c.class(classOf(&e.Decision, false), 1)
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
	c.Classes.Add(&o.Classes)
	c.WouldBe.Add(&o.WouldBe)
}

func (k refusalKey) clone() refusalKey {
	k.host, k.group, k.rule = strings.Clone(k.host), strings.Clone(k.group), strings.Clone(k.rule)
	return k
}

func (k unjudgedKey) clone() unjudgedKey {
	k.host, k.detail = strings.Clone(k.host), strings.Clone(k.detail)
	return k
}

// class returns the name of the class of a refusal; empty for Other.
func (k refusalKey) class() string { return className(k.host, rules.Refuse, k.reason) }

func (k unjudgedKey) class() string { return className(k.host, k.verdict, k.reason) }

func className(host string, v rules.Verdict, r rules.Reason) string {
	if host == Other {
		return ""
	}
	return reason.ClassOf(v, r, false).String()
}

func (k siteKey) clone() siteKey { k.host = strings.Clone(k.host); return k }

func clip(s string) string { return s[:min(len(s), maxText)] }

// Summary is a snapshot of a Tally. Lists are ordered by number, largest first,
// then by name. Texts from sites are cut to 200 bytes and not escaped.
type Summary struct {
	Counts
	Signed   uint64        `json:"signed"` // requests that were signed for their sites
	Waited   Waits         `json:"waited"`
	Hosts    []HostCount   `json:"hosts"`
	Refusals []RuleCount   `json:"refusals"`
	Sites    []SiteCount   `json:"refused_by_sites"`
	Failed   []SiteCount   `json:"failed"` // after they were allowed
	Answers  []AnswerCount `json:"site_answers"`
	Unjudged []ReasonCount `json:"not_judged_why"`
	Pages    []PageCount   `json:"pages"` // with refused subresources
	Paced    []PaceCount   `json:"paced"` // hosts at which requests waited for a turn
}

// HostCount is the counts of one host; Host is Other for those beyond the bound.
type HostCount struct {
	Host string `json:"host"`
	Counts
}

// RuleCount is how often one rule, or one reason without a rule, refused. Class is
// the name of the class of such a refusal; empty for Other.
type RuleCount struct {
	Host   string       `json:"host"`
	Reason rules.Reason `json:"reason"`
	Group  string       `json:"group"`
	Rule   string       `json:"rule"`
	Line   int          `json:"line"`
	Count  uint64       `json:"count"`

	// Observed reports that the requests were let through (observe mode).
	Observed bool   `json:"observed,omitempty"`
	Class    string `json:"class,omitempty"`
}

// SiteCount is how often a site refused requests with a status, or how often heed
// answered requests to it with that status itself.
type SiteCount struct {
	Host   string `json:"host"`
	Status int    `json:"status"`
	Count  uint64 `json:"count"`
}

// ReasonCount is how often requests to a host could not be judged for a reason.
// Verdict is "allow" when they were let through, else "refuse". Class is the name of
// their class; empty for Other. Detail is what was wrong with malformed requests.
type ReasonCount struct {
	Host    string       `json:"host"`
	Reason  rules.Reason `json:"reason"`
	Verdict string       `json:"verdict"`
	Count   uint64       `json:"count"`
	Class   string       `json:"class,omitempty"`
	Detail  string       `json:"detail,omitempty"`
	// Before are the rejected handshakes that a judged request to the host followed.
	Before uint64 `json:"before,omitempty"`
}

// Summary returns the counts so far.
func (t *Tally) Summary() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Summary{Counts: t.total, Signed: t.signed, Waited: t.waits, Pages: t.pages.refused(), Paced: t.pacedLocked()}
	s.Hosts = make([]HostCount, 0, len(t.hosts))
	for h, c := range t.hosts {
		s.Hosts = append(s.Hosts, HostCount{h, *c})
	}
	s.Refusals = make([]RuleCount, 0, len(t.refusals))
	for k, n := range t.refusals {
		s.Refusals = append(s.Refusals, RuleCount{k.host, k.reason, k.group, k.rule, k.line, *n, k.observed, k.class()})
	}
	s.Sites, s.Failed = siteCounts(t.sites), siteCounts(t.failed)
	s.Answers = answerCounts(t.answers)
	s.Unjudged = make([]ReasonCount, 0, len(t.unjudged))
	for k, n := range t.unjudged {
		s.Unjudged = append(s.Unjudged, ReasonCount{k.host, k.reason, k.verdict.String(), *n, k.class(), k.detail, t.rejected[k]})
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
	slices.SortFunc(s.Unjudged, func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Host, b.Host),
			cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Detail, b.Detail))
	})
}

// siteCounts returns the counts, the largest first.
func siteCounts(counts boundedMap[siteKey, uint64]) []SiteCount {
	list := make([]SiteCount, 0, len(counts))
	for k, n := range counts {
		list = append(list, SiteCount{k.host, k.status, *n})
	}
	slices.SortFunc(list, func(a, b SiteCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Status, b.Status))
	})
	return list
}
