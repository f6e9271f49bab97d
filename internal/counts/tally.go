package counts

import (
	"strings"
	"sync"
	"time"

	"heed/internal/audit"
	"heed/internal/memo"
	"heed/internal/reason"
	"heed/rules"
)

// Bounds of a Tally. Names beyond a bound are counted under audit.Other, so that the
// sums remain correct and no client can fill the memory with names.
const (
	maxHosts   = 1000 // hosts counted by name
	maxRefusal = 1000 // pairs of host and rule counted by name
	maxSites   = 1000 // pairs of host and status counted by name
	maxText    = 200  // bytes kept of one text from a site
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
	refusals memo.Bounded[refusalKey, uint64]
	unjudged memo.Bounded[unjudgedKey, uint64]
	rejected map[unjudgedKey]uint64 // of unjudged, before the last https request that was judged
	sites    memo.Bounded[statusKey, uint64]
	failed   memo.Bounded[statusKey, uint64]
	answers  memo.Bounded[answerKey, uint64]
	turns    memo.Bounded[string, PaceCount]
	pages    audit.Pages
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

type statusKey struct {
	host   string
	status int
}

type answerKey struct{ host, answer string }

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
		*t.answers.At(answerKey{q.host, answer}, answerKey{host: audit.Other}, maxSites, answerKey.clone)++
	}
	if q.failed {
		*t.failed.At(statusKey{q.host, e.Outcome.Status}, statusKey{host: audit.Other}, maxSites, statusKey.clone)++
	}
	if q.refused {
		*t.sites.At(statusKey{q.host, e.Outcome.Status}, statusKey{host: audit.Other}, maxSites, statusKey.clone)++
	}
}

// reasonLocked counts the reason why q was not judged, or not allowed.
func (t *Tally) reasonLocked(q *request) {
	d := q.decision
	if q.judged == audit.ByPath && q.Scheme == "https" {
		k := unjudgedKey{host: q.host, reason: rules.ReasonUntrusted}
		if n := t.unjudged[k]; n != nil {
			if t.rejected == nil {
				t.rejected = map[unjudgedKey]uint64{}
			}
			t.rejected[k.clone()] = *n
		}
	}
	switch {
	case q.judged == audit.NotJudged:
		k := unjudgedKey{q.host, d.Reason, d.Verdict, ""}
		if d.Reason == rules.ReasonMalformed {
			k.detail = clip(q.detail)
		}
		*t.unjudged.At(k, unjudgedKey{host: audit.Other}, maxRefusal, unjudgedKey.clone)++
	case d.Verdict != rules.Allow:
		k := refusalKey{q.host, d.Reason, clip(d.Group), clip(d.Rule), d.Line, d.Verdict == rules.WouldRefuse}
		*t.refusals.At(k, refusalKey{host: audit.Other}, maxRefusal, refusalKey.clone)++
	}
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

func (k refusalKey) clone() refusalKey {
	k.host, k.group, k.rule = strings.Clone(k.host), strings.Clone(k.group), strings.Clone(k.rule)
	return k
}

func (k unjudgedKey) clone() unjudgedKey {
	k.host, k.detail = strings.Clone(k.host), strings.Clone(k.detail)
	return k
}

// class returns the name of the class of a refusal; empty for audit.Other.
func (k refusalKey) class() string { return className(k.host, rules.Refuse, k.reason) }

func (k unjudgedKey) class() string { return className(k.host, k.verdict, k.reason) }

func className(host string, v rules.Verdict, r rules.Reason) string {
	if host == audit.Other {
		return ""
	}
	return reason.ClassOf(v, r, false).String()
}

func (k answerKey) clone() answerKey { k.host = strings.Clone(k.host); return k }

func (k statusKey) clone() statusKey { k.host = strings.Clone(k.host); return k }

func clip(s string) string { return s[:min(len(s), maxText)] }
