package counts

import (
	"strings"
	"sync"
	"time"

	"heed/internal/audit"
	"heed/internal/base/memo"
	"heed/internal/judge/reason"
	"heed/rules"
)

// Bounds of a Tally. Names beyond a bound are counted under audit.Other, so that the
// sums remain correct and no client can fill the memory with names.
const (
	maxHosts   = 1000 // hosts counted by name
	maxRefusal = 1000 // pairs of host and rule counted by name
	maxSites   = 1000 // pairs of host and status counted by name
	maxText    = 200  // octets kept of one text from a site
)

// Tally counts the requests of a run for its Summary. It keeps no Entry, uses a bounded
// amount of memory, and does not allocate for a host and rule counted before. The zero
// value is ready; it is safe for concurrent use.
type Tally struct {
	mu       sync.Mutex
	total    Counts
	waits    Waits
	signed   uint64 // requests that were signed for their sites
	hosts    memo.Bounded[string, Counts]
	refusals memo.Bounded[RuleCount, uint64] // these and the next by all but their counts
	unjudged memo.Bounded[ReasonCount, uint64]
	rejected map[ReasonCount]uint64 // of unjudged, before the last https request that was judged
	sites    memo.Bounded[SiteCount, uint64]
	failed   memo.Bounded[SiteCount, uint64]
	answers  memo.Bounded[AnswerCount, uint64]
	turns    memo.Bounded[string, PaceCount]
	pages    audit.Pages
	silent   uint64 // connections of clients that left without having sent anything
}

// Waits are the requests that had to wait for a policy or a turn.
type Waits struct {
	Requests uint64        `json:"requests"`
	Total    time.Duration `json:"total_ns"`
	Longest  time.Duration `json:"longest_ns"`
}

// Silent counts a connection of a client that left without having sent anything.
func (t *Tally) Silent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.silent++
}

// Ended counts e, whose exchange has ended.
func (t *Tally) Ended(e *audit.Entry) {
	q, counted := requestOf(e)
	if !counted {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total.add(&q)
	t.hosts.At(q.host, audit.Other, maxHosts, strings.Clone).add(&q)
	if e.Part != "" && !e.Exempt() {
		t.pages.Add(e, q.at)
	}
	if e.SignedKey != "" {
		t.signed++
	}
	t.reasonLocked(&q)
	t.waitLocked(&q)
	if answer := e.Outcome.SiteAnswer; answer != "" {
		*t.answers.At(AnswerCount{Host: q.host, Answer: answer}, AnswerCount{Host: audit.Other}, maxSites, AnswerCount.clone)++
	}
	status := SiteCount{Host: q.host, Status: e.Outcome.Status}
	if q.failed {
		*t.failed.At(status, SiteCount{Host: audit.Other}, maxSites, SiteCount.clone)++
	}
	if q.refused {
		*t.sites.At(status, SiteCount{Host: audit.Other}, maxSites, SiteCount.clone)++
	}
}

// reasonLocked counts the reason why q was not judged, or not allowed.
func (t *Tally) reasonLocked(q *request) {
	d := q.decision
	if q.judged == audit.ByPath && q.Scheme == "https" {
		k := unjudged(q.host, rules.Refuse, rules.ReasonUntrusted)
		if n := t.unjudged[k]; n != nil {
			memo.Set(&t.rejected, k.clone(), *n)
		}
	}
	switch {
	case q.judged == audit.NotJudged:
		k := unjudged(q.host, d.Verdict, d.Reason)
		switch {
		case d.Reason == rules.ReasonMalformed:
			k.Detail = clip(q.detail) // these requests have nothing else in common
		case d.Reason == rules.ReasonUntrusted && strings.Contains(q.detail, audit.WrongClock):
			k.Detail = audit.WrongClock
		}
		*t.unjudged.At(k, ReasonCount{Host: audit.Other, Verdict: rules.Refuse.String()}, maxRefusal, ReasonCount.clone)++
	case d.Verdict != rules.Allow:
		k := RuleCount{q.host, d.Reason, clip(d.Group), clip(d.Rule), d.Line, 0, d.Verdict == rules.WouldRefuse, q.wouldBe.String()}
		*t.refusals.At(k, RuleCount{Host: audit.Other}, maxRefusal, RuleCount.clone)++
	}
}

// unjudged returns what requests to a host with a reason are counted as.
func unjudged(host string, v rules.Verdict, r rules.Reason) ReasonCount {
	return ReasonCount{Host: host, Reason: r, Verdict: v.String(), Class: reason.ClassOf(v, r, false).String()}
}

// waitLocked counts the wait of q, and that for its turn by host.
func (t *Tally) waitLocked(q *request) {
	t.waits.add(q.Outcome.Waited)
	if q.TurnWaited < waitedFrom && q.Owed == 0 {
		return
	}
	c := t.turns.At(q.host, audit.Other, maxHosts, strings.Clone)
	c.add(q.TurnWaited)
	switch q.Decision.Reason {
	case rules.ReasonPaced:
		c.Refused++
	case rules.ReasonClientLeft:
		c.Left++
		c.Owed = max(c.Owed, q.Owed)
	}
}

// add counts a wait that is felt.
func (w *Waits) add(wait time.Duration) {
	if wait >= waitedFrom {
		w.Requests++
		w.Total += wait
		w.Longest = max(w.Longest, wait)
	}
}

func (c RuleCount) clone() RuleCount {
	c.Host, c.Group, c.Rule = strings.Clone(c.Host), strings.Clone(c.Group), strings.Clone(c.Rule)
	return c
}

func (c ReasonCount) clone() ReasonCount {
	c.Host, c.Detail = strings.Clone(c.Host), strings.Clone(c.Detail)
	return c
}

func (c AnswerCount) clone() AnswerCount { c.Host = strings.Clone(c.Host); return c }

func (c SiteCount) clone() SiteCount { c.Host = strings.Clone(c.Host); return c }

func clip(s string) string { return s[:min(len(s), maxText)] }
