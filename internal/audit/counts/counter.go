package counts

import (
	"sync"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/reason"
	"heed/rules"
)

// request is an entry whose exchange has ended, with what several counts need of it.
type request struct {
	*audit.Entry
	at       time.Time       // when the exchange ended: the period that it counts in
	host     string          // that it is counted for; which sites exempt clients visit is not counted
	decision *rules.Decision // the last one
	detail   string          // of decision
	judged   audit.Judged    // what decision rests on
	class    reason.Class    // of decision, with failed
	wouldBe  reason.Class    // where observed is set
	observed bool            // it would have been refused
	failed   bool            // as Entry.Failed
	refused  bool            // by the site
	traffic  Traffic
}

// requestOf returns e as it is counted. A decision that revises another is no request: it
// counts with the tunnel that it is about.
func requestOf(e *audit.Entry) (q request, counted bool) {
	if e.Revises != nil {
		return q, false
	}
	o := &e.Outcome
	q = request{
		Entry: e, at: e.Time.Add(o.Duration), host: e.Host, decision: &e.Decision, detail: e.Detail, judged: e.Judged,
		failed: e.Failed(), refused: e.SiteRefused(), traffic: trafficOf(e),
	}
	if e.Exempt() {
		q.host = audit.People
	}
	switch {
	case o.Revision != nil:
		q.decision, q.detail = &o.Revision.Decision, o.Revision.Detail
	case o.Late != nil:
		q.decision = o.Late
		if q.judged == audit.NotJudged {
			q.judged = audit.ByPath
			if audit.IsTunnel(e.Method, e.Target) {
				q.judged = audit.ByHost
			}
		}
	}
	q.class = reason.ClassOf(q.decision.Verdict, q.decision.Reason, q.failed)
	q.wouldBe, q.observed = reason.WouldBe(q.decision.Verdict, q.decision.Reason)
	return q, true
}

// Counter counts all requests of a heed. It keeps no Entry and a bounded amount of memory.
// Make it with New; it is safe for concurrent use.
type Counter struct {
	metrics *Metrics // nil: none
	now     func() time.Time

	mu      sync.Mutex
	latest  time.Time // that the clock has shown
	periods [spans]ring[Counts]
	busiest busiest
	reach   reach
	robots  recent[rules.Origin, rules.Source] // files that could not be fetched
}

// New returns a counter that counts for m as well, unless that is nil.
func New(m *Metrics) *Counter {
	c := &Counter{metrics: m, now: time.Now}
	for s, of := range spanOf {
		c.periods[s] = newRing[Counts](of.length, of.count)
	}
	c.busiest.periods = newRing[busyPeriod](busyLength, busyPeriods)
	return c
}

// stepBack is how far the clock goes back at least when it is set, and not only adjusted.
const stepBack = time.Minute

// clockLocked forgets what was counted at times that are to come: the clock was wrong, and was
// set back to now. It would keep the place of what is counted until then.
func (c *Counter) clockLocked(now time.Time) {
	if !now.Before(c.latest.Add(-stepBack)) {
		if now.After(c.latest) {
			c.latest = now
		}
		return
	}
	c.latest = now
	for s := range c.periods {
		c.periods[s].dropAfter(now)
	}
	c.busiest.periods.dropAfter(now)
	c.robots.dropAfter(now)
	c.reach.sites.dropAfter(now)
}

// Ended counts e, whose exchange has ended.
func (c *Counter) Ended(e *audit.Entry) {
	q, counted := requestOf(e)
	if !counted {
		return
	}
	c.mu.Lock()
	c.clockLocked(c.now())
	for s := range c.periods {
		if p := c.periods[s].at(q.at); p != nil {
			p.add(&q)
		}
	}
	c.busiest.add(&q)
	c.reach.add(&q)
	c.noteRobotsLocked(&q)
	c.mu.Unlock()
	if c.metrics != nil {
		c.metrics.add(&q)
	}
}
