package counts

import (
	"cmp"
	"slices"
	"time"

	"heed/internal/audit"
	"heed/internal/base/memo"
	"heed/rules"
)

// Summary is a snapshot of a Tally. Lists are ordered by number, largest first,
// then by name. Texts from sites are cut to 200 octets and not escaped.
type Summary struct {
	Counts
	Signed   uint64            `json:"signed"` // requests that were signed for their sites
	Waited   Waits             `json:"waited"`
	Hosts    []HostCount       `json:"hosts"`
	Refusals []RuleCount       `json:"refusals"`
	Sites    []SiteCount       `json:"refused_by_sites"`
	Failed   []SiteCount       `json:"failed"` // after they were allowed
	Answers  []AnswerCount     `json:"site_answers"`
	Unjudged []ReasonCount     `json:"not_judged_why"`
	Pages    []audit.PageCount `json:"pages"` // with refused subresources
	Paced    []PaceCount       `json:"paced"` // hosts at which requests waited for a turn

	// Silent are the connections on which no request came: the client closed them first.
	Silent uint64 `json:"silent_connections"`
}

// HostCount is the counts of one host; Host is audit.Other for those beyond the bound.
type HostCount struct {
	Host string `json:"host"`
	Counts
}

// RuleCount is how often one rule, or one reason without a rule, refused. Class is
// the name of the class of such a refusal; empty for audit.Other.
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
// their class; empty for audit.Other. Detail is what was wrong with malformed requests.
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

// AnswerCount is how often the answers of a site to allowed requests were refusals, or asked
// for something, of one kind. Answer is empty when Host is audit.Other.
type AnswerCount struct {
	Host   string `json:"host"`
	Answer string `json:"site_answer,omitempty"`
	Count  uint64 `json:"count"`
}

// PaceCount counts the waits for a turn at one host; Host is audit.Other for those
// beyond the bound.
type PaceCount struct {
	Host string `json:"host"`
	Waits
	Refused uint64        `json:"refused"` // because their turn was too far off
	Left    uint64        `json:"left"`    // before their turn came
	Owed    time.Duration `json:"owed_ns"` // the longest remaining wait of those that left
}

// Summary returns the counts so far.
func (t *Tally) Summary() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Summary{Counts: t.total, Signed: t.signed, Waited: t.waits, Silent: t.silent, Pages: t.pages.Refused()}
	s.Hosts = listed(t.hosts, func(host string, c *Counts) HostCount { return HostCount{host, *c} }, func(a, b HostCount) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Host, b.Host))
	})
	s.Refusals = listed(t.refusals, func(c RuleCount, n *uint64) RuleCount { c.Count = *n; return c }, func(a, b RuleCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Host, b.Host),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Group, b.Group))
	})
	s.Sites, s.Failed = siteCounts(t.sites), siteCounts(t.failed)
	s.Answers = listed(t.answers, func(c AnswerCount, n *uint64) AnswerCount { c.Count = *n; return c }, func(a, b AnswerCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Answer, b.Answer))
	})
	s.Unjudged = listed(t.unjudged, func(c ReasonCount, n *uint64) ReasonCount {
		c.Count, c.Before = *n, t.rejected[c]
		return c
	}, func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Host, b.Host),
			cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Detail, b.Detail))
	})
	s.Paced = listed(t.turns, func(host string, c *PaceCount) PaceCount { c.Host = host; return *c }, func(a, b PaceCount) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Host, b.Host))
	})
	return s
}

func siteCounts(counts memo.Bounded[SiteCount, uint64]) []SiteCount {
	return listed(counts, func(c SiteCount, n *uint64) SiteCount { c.Count = *n; return c }, func(a, b SiteCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Status, b.Status))
	})
}

// listed returns the rows that row makes of counts, in order.
func listed[K comparable, V, R any](counts memo.Bounded[K, V], row func(K, *V) R, order func(a, b R) int) []R {
	list := make([]R, 0, len(counts))
	for k, v := range counts {
		list = append(list, row(k, v))
	}
	slices.SortFunc(list, order)
	return list
}
