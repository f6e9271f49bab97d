package counts

import (
	"cmp"
	"slices"
	"time"

	"heed/internal/audit"
	"heed/internal/memo"
	"heed/rules"
)

// Summary is a snapshot of a Tally. Lists are ordered by number, largest first,
// then by name. Texts from sites are cut to 200 bytes and not escaped.
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
	s := Summary{Counts: t.total, Signed: t.signed, Waited: t.waits, Pages: t.pages.Refused(), Paced: paceCounts(t.turns)}
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
func siteCounts(counts memo.Bounded[statusKey, uint64]) []SiteCount {
	list := make([]SiteCount, 0, len(counts))
	for k, n := range counts {
		list = append(list, SiteCount{k.host, k.status, *n})
	}
	slices.SortFunc(list, func(a, b SiteCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Status, b.Status))
	})
	return list
}

// answerCounts returns the counts, the largest first.
func answerCounts(counts memo.Bounded[answerKey, uint64]) []AnswerCount {
	list := make([]AnswerCount, 0, len(counts))
	for k, n := range counts {
		list = append(list, AnswerCount{k.host, k.answer, *n})
	}
	slices.SortFunc(list, func(a, b AnswerCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Answer, b.Answer))
	})
	return list
}

// paceCounts returns the counts, the longest total wait first.
func paceCounts(turns memo.Bounded[string, PaceCount]) []PaceCount {
	all := make([]PaceCount, 0, len(turns))
	for host, c := range turns {
		c.Host = host
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b PaceCount) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Host, b.Host))
	})
	return all
}
