package report

import (
	"encoding/json"
	"time"

	"heed/internal/audit/store"
	"heed/internal/audit/uses"
	"heed/internal/judge/reason"
	"heed/rules"
)

// Counts are requests by what became of them. Requests is the sum of Classes, and
// of the four that follow: there one of which nothing was seen that could be judged
// counts as NotJudged whatever its verdict.
type Counts struct {
	Requests    int64 `json:"requests"`
	Allowed     int64 `json:"allowed"`
	Refused     int64 `json:"refused"`
	WouldRefuse int64 `json:"would_refuse"` // refused by the rules, let through by the operator (observe)
	NotJudged   int64 `json:"not_judged"`

	ByHost      int64 `json:"by_host"`      // of the judged: by the host alone, the path was not seen
	SiteRefused int64 `json:"site_refused"` // of those let through: the site itself refused (401, 403, 429, 451, 503)
	Unknown     int64 `json:"unknown"`      // how they ended is not recorded: still open, or heed was killed
	Bytes       int64 `json:"bytes"`        // of the answers' bodies, as clients received them
	BytesIn     int64 `json:"bytes_in"`     // of the requests' bodies, as clients sent them

	Waited      int64   `json:"waited"`           // had to wait for rules or a turn, 10 ms or longer
	WaitedTotal Seconds `json:"waited_s"`         // all of them together
	TurnsTotal  Seconds `json:"turns_s"`          // the part of WaitedTotal that was for turns; 0 in records that do not have it
	WaitedMost  Seconds `json:"waited_longest_s"` // the longest

	First time.Time `json:"first"`
	Last  time.Time `json:"last"`

	// Classes are the requests by class, and WouldBe those that were only observed
	// by the class of their refusal; Classes has these as allowed or failed.
	Classes reason.Counts `json:"classes"`
	WouldBe reason.Counts `json:"would_be"`
}

// add adds o to c.
func (c *Counts) add(o *Counts) {
	if o.Requests == 0 {
		return
	}
	extend(&c.First, &c.Last, o.First)
	extend(&c.First, &c.Last, o.Last)
	c.Requests += o.Requests
	c.Allowed += o.Allowed
	c.Refused += o.Refused
	c.WouldRefuse += o.WouldRefuse
	c.NotJudged += o.NotJudged
	c.ByHost += o.ByHost
	c.SiteRefused += o.SiteRefused
	c.Unknown += o.Unknown
	c.Bytes += o.Bytes
	c.BytesIn += o.BytesIn
	c.Waited += o.Waited
	c.WaitedTotal += o.WaitedTotal
	c.TurnsTotal += o.TurnsTotal
	c.WaitedMost = max(c.WaitedMost, o.WaitedMost)
	c.Classes.Add(&o.Classes)
	c.WouldBe.Add(&o.WouldBe)
}

// The names that a record has for how a request was judged, and for verdicts.
const (
	judgedNo    = "no"
	judgedHost  = "host"
	allow       = "allow"
	refuse      = "refuse"
	wouldRefuse = "would-refuse"
)

// kind is where decisions that came about in one way are counted.
type kind struct {
	result   int             // the index of Allowed, Refused, WouldRefuse or NotJudged
	class    [2]reason.Class // of a request that did not fail, and of one that did
	wouldBe  reason.Class
	observed bool // it counts in WouldBe too
	byRules  bool // the rules of the site decided
	breach   bool // and did not allow it
}

func (w *Way) kind() kind {
	v, r := rules.ParseVerdict(w.Verdict), rules.Reason(w.Reason)
	k := kind{class: [2]reason.Class{reason.ClassOf(v, r, false), reason.ClassOf(v, r, true)}}
	k.wouldBe, k.observed = reason.WouldBe(v, r)
	switch {
	case w.Judged == judgedNo:
		k.result = 3
	case v == rules.WouldRefuse:
		k.result = 2
	case v == rules.Refuse:
		k.result = 1
	}
	bySignal := uses.BySignal(w.Reason) // the rules allow it
	k.breach = k.class[0] == reason.RefusedByRule || k.observed && k.wouldBe == reason.RefusedByRule
	k.byRules = k.breach || bySignal || k.observed && k.wouldBe == reason.Postponed ||
		k.class[0] == reason.Allowed && !k.observed && r != rules.ReasonOverride && r != rules.ReasonSubresource
	return k
}

// of returns the class of a request.
func (k *kind) of(q *store.Request) reason.Class {
	if q.Failed {
		return k.class[1]
	}
	return k.class[0]
}

// waitedFrom is the shortest wait that is counted, in microseconds.
const waitedFrom = 10_000

// count counts a request that was decided on as k describes.
func (c *Counts) count(q *store.Request, k *kind, byHost bool) {
	extend(&c.First, &c.Last, moment(q.Time))
	c.Requests++
	*[...]*int64{&c.Allowed, &c.Refused, &c.WouldRefuse, &c.NotJudged}[k.result]++
	c.Classes[k.of(q)]++
	if k.observed {
		c.WouldBe[k.wouldBe]++
	}
	if byHost {
		c.ByHost++
	}
	c.Bytes += q.BytesOut
	c.BytesIn += q.BytesIn
	if q.Waited >= waitedFrom {
		c.Waited++
		c.WaitedTotal += Seconds(q.Waited)
		c.TurnsTotal += Seconds(q.Turn)
		c.WaitedMost = max(c.WaitedMost, Seconds(q.Waited))
	}
	switch {
	case !q.Ended:
		c.Unknown++
	case q.SiteRefused:
		c.SiteRefused++
	}
}

// Seconds is a duration in microseconds, which is seconds in JSON.
type Seconds int64

func (s Seconds) float() float64 { return float64(s) / 1e6 }

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(s.float()) }

// extend makes the time from first to last, zero before the first call, contain at.
func extend(first, last *time.Time, at time.Time) {
	if first.IsZero() || at.Before(*first) {
		*first = at
	}
	if at.After(*last) {
		*last = at
	}
}

// moment returns the time of a number of microseconds since 1970.
func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
