package audit

import (
	"time"

	"github.com/google/uuid"

	"heed/rules"
)

// Revised is a decision that was replaced by a later one.
type Revised struct {
	ID       uuid.UUID
	Time     time.Time
	Decision rules.Decision
}

// reviseLocked counts a tunnel by its second decision in place of its first: it
// remains one request, judged by path or host as before.
func (t *Tally) reviseLocked(e *Entry) {
	was := &e.Revises.Decision
	t.reclassLocked(e, e.Revises.Time, classOf(was, false), classOf(&e.Decision, false))
	if e.Judged == NotJudged {
		uncount(t.unjudged, unjudgedKeyOf(e.countedHost(), e.Detail, was), unjudgedKey{host: Other})
	} else {
		for _, c := range t.countsLocked(e, e.Revises.Time) {
			c.revise(was.Verdict, e.Decision.Verdict)
		}
		if was.Verdict != rules.Allow {
			uncount(t.refusals, keyOf(e.Host, was), refusalKey{host: Other})
		}
	}
	t.reasonLocked(e)
}

// revise moves a judged request from one verdict to another. It does nothing
// when c, of an earlier hour, no longer counts the request.
func (c *Counts) revise(from, to rules.Verdict) {
	if n := c.of(from); *n > 0 {
		*n--
		*c.of(to)++
	}
}

// of returns the number of judged requests with a verdict.
func (c *Counts) of(v rules.Verdict) *uint64 {
	switch v {
	case rules.Allow:
		return &c.Allowed
	case rules.WouldRefuse:
		return &c.WouldRefuse
	default:
		return &c.Refused
	}
}
