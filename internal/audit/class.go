package audit

import (
	"time"

	"heed/internal/reason"
	"heed/rules"
)

// class is where a decision is counted in Counts.
type class struct {
	reason.Class
	wouldBe  reason.Class
	observed bool // it counts in WouldBe too
}

// classOf returns the class of d. Failed is as for reason.ClassOf.
func classOf(d *rules.Decision, failed bool) class {
	c := class{Class: reason.ClassOf(d.Verdict, d.Reason, failed)}
	c.wouldBe, c.observed = reason.WouldBe(d.Verdict, d.Reason)
	return c
}

// class adds n requests to a class.
func (c *Counts) class(k class, n int64) {
	c.Classes[k.Class] += n
	if k.observed {
		c.WouldBe[k.wouldBe] += n
	}
}

// reclassLocked moves e, which was decided on at a time, from one class to another.
// It leaves out an hour that no longer counts the request.
func (t *Tally) reclassLocked(e *Entry, decided time.Time, from, to class) {
	for _, c := range t.countsLocked(e, decided) {
		if c.Classes[from.Class] > 0 {
			c.class(from, -1)
			c.class(to, 1)
		}
	}
}

// countsLocked returns all counts that have e, which was decided on at a time.
func (t *Tally) countsLocked(e *Entry, decided time.Time) [spans + 2]*Counts {
	all := [spans + 2]*Counts{&t.total, t.hostLocked(e.countedHost())}
	for s := range t.rings {
		all[s+2] = t.rings[s].past(span(s), decided)
	}
	return all
}

// reasonLocked counts the reason why e was not judged, or not allowed.
func (t *Tally) reasonLocked(e *Entry) {
	if e.Judged == ByPath && e.Scheme == "https" {
		k := unjudgedKey{host: e.countedHost(), reason: rules.ReasonUntrusted}
		if n := t.unjudged[k]; n != nil {
			if t.rejected == nil {
				t.rejected = map[unjudgedKey]uint64{}
			}
			t.rejected[k.clone()] = *n
		}
	}
	switch d := &e.Decision; {
	case e.Judged == NotJudged:
		*t.unjudged.at(unjudgedKeyOf(e.countedHost(), e.Detail, d), unjudgedKey{host: Other}, maxRefusal, unjudgedKey.clone)++
	case d.Verdict != rules.Allow:
		*t.refusals.at(keyOf(e.Host, d), refusalKey{host: Other}, maxRefusal, refusalKey.clone)++
	}
}
