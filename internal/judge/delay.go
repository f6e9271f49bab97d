package judge

import (
	"slices"
	"time"

	"heed/internal/acl"
	"heed/rules"
)

// Delay is the time that is kept between two requests to a site, and what it rests on.
type Delay struct {
	Kept  time.Duration // 0: none
	Asked time.Duration // by By or by the operator; longer than Kept when that is the operator's longest
	By    rules.Field   // the line that asks; zero: the operator does, or nothing
	Group string        // of By, as in rules.RateHint
	// Ignored are the lines about speed for the client that have no effect, since their values
	// cannot be understood.
	Ignored []rules.Field
}

// DelayOf returns the delay at a time that a policy and the operator ask of a client with
// some names. least and longest are the operator's bounds; longest 0: none.
func DelayOf(p *rules.Policy, names acl.Identity, least, longest time.Duration, now time.Time) Delay {
	d := Delay{Asked: least}
	for _, hint := range names.RateHints(p) {
		if asked, by := hint.Delay(now); asked > 0 && asked >= d.Asked {
			d.Asked, d.By, d.Group = asked, by, hint.Group
		}
	}
	if d.Kept = d.Asked; longest > 0 {
		d.Kept = min(d.Asked, longest)
	}
	for _, agent := range []*rules.Agent{names.Judged, names.Visible} {
		for _, f := range p.Fields(agent, rules.CrawlDelay, rules.RequestRate, rules.VisitTime) {
			known := slices.ContainsFunc(d.Ignored, func(o rules.Field) bool { return o.Line == f.Line })
			if f.Scope != rules.ScopeOther && !f.Understood() && !known && (agent != nil || names.Judged == nil) {
				d.Ignored = append(d.Ignored, f)
			}
		}
	}
	return d
}
