package report

import (
	"slices"

	"heed/internal/audit"
	"heed/internal/figures"
	"heed/internal/reason"
	"heed/rules"
)

// Listed is a Deciding in a list for people. Class names where Count requests are
// counted, which may be only some of those of the Deciding.
type Listed struct {
	Deciding
	Class  string
	failed bool // after they were allowed
}

// Why is Deciding.Why, and for a request that failed how it did.
func (l *Listed) Why() string {
	if l.failed {
		return "allowed, and answered by heed with an error, since the site did not answer or heed failed"
	}
	return l.Deciding.Why()
}

// order puts all lists in order.
func (r *Report) order() {
	slices.SortFunc(r.Gaps, func(a, b audit.Gap) int { return a.From.Compare(b.From) })
	byMost(r.Agents, func(a *AgentPart) (int64, string) { return a.Requests, a.Name })
	byMost(r.Sites, func(s *SitePart) (int64, string) { return s.Requests, s.Site })
	for _, list := range [][]Deciding{r.Refusals, r.NotJudged, r.Exceptions} {
		byMost(list, func(d *Deciding) (int64, string) { return d.Count, d.key() })
	}
	byMost(r.cube, func(c *row) (int64, string) { return c.deciding.Count, c.deciding.key() })
	byMost(r.Trouble, func(u *Unreachable) (int64, string) { return u.Requests, u.Site + u.State })
	byMost(r.Conduct, func(c *Conduct) (int64, string) { return c.Requests, c.Agent + "\x00" + c.Site })
}

// NotAllowed returns what was refused, postponed or failed, and what would have been
// if it were not only observed, the most first. The rows of one class that were not
// only observed make up its number.
func (r *Report) NotAllowed() (list []Listed) {
	for i := range r.cube {
		d, c := r.cube[i].deciding, &r.cube[i].counts
		k, observed := reason.WouldBe(verdict(d.Verdict), rules.Reason(d.Reason))
		switch {
		case observed:
			list = append(list, Listed{d, "would be " + k.String(), false})
		case d.Verdict != allow && c.Classes[reason.NotJudged] == 0:
			list = append(list, Listed{d, reason.ClassOf(verdict(d.Verdict), rules.Reason(d.Reason), false).String(), false})
		}
		if n := c.Classes[reason.Failed]; n > 0 && verdict(d.Verdict) != rules.Refuse {
			d.Count = n
			list = append(list, Listed{d, reason.Failed.String(), true})
		}
	}
	byMost(list, func(l *Listed) (int64, string) { return l.Count, l.Class + l.key() })
	return list
}

// Unjudged returns what was not judged, the most first.
func (r *Report) Unjudged() (list []Listed) {
	for i := range r.cube {
		if r.cube[i].counts.Classes[reason.NotJudged] > 0 {
			list = append(list, Listed{r.cube[i].deciding, reason.NotJudged.String(), false})
		}
	}
	return list
}

// ByException returns what exceptions of the operator decided, the most first.
func (r *Report) ByException() (list []Listed) {
	for _, d := range r.Exceptions {
		list = append(list, Listed{d, reason.ClassOf(verdict(d.Verdict), rules.Reason(d.Reason), false).String(), false})
	}
	return list
}

// Class returns the class of the requests, or their numbers by class when there are
// several.
func (r *Reason) Class() string {
	for _, c := range reason.Classes() {
		if r.Classes[c] == r.Requests {
			return c.String()
		}
	}
	return r.Classes.OnlyWords(figures.Commas)
}
