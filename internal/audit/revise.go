package audit

import (
	"time"

	"github.com/google/uuid"

	"heed/rules"
)

// Revised is a decision that was taken back.
type Revised struct {
	ID       uuid.UUID
	Time     time.Time
	Decision rules.Decision
}

// reviseLocked counts a tunnel by its second decision in place of its first: it
// is one request, and stays judged by what was seen of it.
func (t *Tally) reviseLocked(e *Entry) {
	was := &e.Revises.Decision
	if e.Judged == NotJudged {
		uncount(t.unjudged, unjudgedKey{e.countedHost(), was.Reason, was.Verdict}, unjudgedKey{host: Other})
	} else {
		for _, c := range []*Counts{&t.total, t.hour.at(e.Revises.Time), t.hostLocked(e.countedHost())} {
			c.revise(was.Verdict, e.Decision.Verdict)
		}
		if was.Verdict != rules.Allow {
			uncount(t.refusals, keyOf(e.Host, was), refusalKey{host: Other})
		}
	}
	t.whyLocked(e)
}

// revise moves a judged request from one verdict to another. An hour that has
// forgotten the request has nothing to move.
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
