package plan

import (
	"cmp"
	"slices"

	"heed/internal/control"
	"heed/internal/judge/reason"
	"heed/rules"
)

// Column is what one agent will get from one site.
type Column struct {
	Agent  string
	Counts reason.Counts // of pages, as if no client were only observed
	// Observed is set when refusals have no effect, since the client is only observed.
	Observed bool
	// First is the judgement on the first page, with what is the same for all of them; nil:
	// none was judged.
	First *control.Judgement
	// Unavailable is why the rules could not be had; empty: they could, or were not needed.
	Unavailable string

	causes map[Cause]int64 // by what they are, without Pages
	others int64           // pages refused for causes beyond maxCauses
}

// Cause is why pages are refused.
type Cause struct {
	Reason rules.Reason `json:"reason"`
	Rule   string       `json:"rule,omitempty"`
	Line   int          `json:"line,omitempty"` // of Rule; 0: it is in the settings, or no rule decided
	Group  string       `json:"group,omitempty"`
	Detail string       `json:"detail,omitempty"`
	Pages  int64        `json:"pages"`
}

// maxCauses bounds the causes that are kept of a site for an agent; pages of others are counted
// together.
const maxCauses = 64

// Pages returns the number of pages.
func (c *Column) Pages() int64 { return c.Counts.Sum() }

// Refused returns how many pages are not allowed.
func (c *Column) Refused() int64 {
	return c.Counts.Sum() - c.Counts[reason.Allowed] - c.Counts[reason.NotJudged]
}

// Requested returns how many pages will be requested from the site.
func (c *Column) Requested() int64 {
	if c.Observed {
		return c.Pages()
	}
	return c.Pages() - c.Refused()
}

// Delay returns the time between two requests that is kept, in seconds.
func (c *Column) Delay() float64 {
	if c.First == nil || c.First.Delay == nil || c.First.Delay.Unkept {
		return 0
	}
	return c.First.Delay.Seconds
}

// Seconds returns the least time that the requests take: each of them waits for the delay
// after the one before, the first one after that for robots.txt. The time of the transfers is
// not known.
func (c *Column) Seconds() float64 {
	s := float64(c.Requested()) * c.Delay()
	if d := c.First; d != nil && d.Delay != nil && d.Delay.Open > 0 {
		s /= d.Delay.Open
	}
	return s
}

// add counts a judgement.
func (c *Column) add(a *control.Judgement) {
	v := rules.Refuse
	if a.Allowed {
		v = rules.Allow
	}
	class := reason.ClassOf(v, a.Reason, false)
	c.Counts[class]++
	c.Observed = c.Observed || a.Mode != ""
	if a.Allowed {
		return
	}
	if class == reason.RulesUnavailable || class == reason.Failed {
		c.Unavailable = cmp.Or(c.Unavailable, a.Detail, reason.Of(a.Reason).Words)
	}
	key := Cause{Reason: a.Reason, Rule: a.Rule, Line: a.Line, Group: a.Group, Detail: cmp.Or(a.Settled, a.Detail)}
	if a.Reason == rules.ReasonRule {
		key.Detail = ""
	}
	if _, known := c.causes[key]; !known && len(c.causes) >= maxCauses {
		c.others++
		return
	}
	if c.causes == nil {
		c.causes = map[Cause]int64{}
	}
	c.causes[key]++
}

// Causes returns why pages are refused, those of most pages first. others is how many pages
// are refused for further causes.
func (c *Column) Causes() (list []Cause, others int64) {
	for cause, n := range c.causes {
		cause.Pages = n
		list = append(list, cause)
	}
	slices.SortFunc(list, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Pages, a.Pages), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Detail, b.Detail))
	})
	return list, c.others
}

// Long is a site whose pages take long.
type Long struct {
	Site    string  `json:"site"`
	Pages   int64   `json:"pages"` // that are requested
	Delay   float64 `json:"delay"` // in seconds
	Seconds float64 `json:"seconds"`
}

// maxLong is how many of the longest sites a Total has.
const maxLong = 5

// Total is what one agent will get from all sites.
type Total struct {
	Agent       string        `json:"agent"`
	Names       []string      `json:"names,omitempty"` // in Agent, whose rules count; nil: none
	Counts      reason.Counts `json:"counts"`
	Refused     int64         `json:"refused"`       // pages
	Observed    int64         `json:"observed"`      // sites where refusals have no effect
	Refusing    int64         `json:"refusing"`      // sites that refuse pages
	Unavailable int64         `json:"unavailable"`   // sites whose rules could not be had
	Delayed     int64         `json:"delayed"`       // sites with a delay
	Seconds     float64       `json:"seconds"`       // of the longest site
	InTurn      float64       `json:"all_in_turn"`   // seconds of all sites, one after the other
	Longest     []Long        `json:"longest"`       // sites, the longest first
	Rejecting   int64         `json:"over_max_wait"` // sites whose delay is longer than max_wait
}

// add adds what the agent gets from a site.
func (t *Total) add(site string, c *Column) {
	if c.First != nil && t.Names == nil {
		t.Names = c.First.Names
	}
	t.Counts.Add(&c.Counts)
	t.Refused += c.Refused()
	count := func(n *int64, is bool) {
		if is {
			*n++
		}
	}
	count(&t.Observed, c.Observed)
	count(&t.Refusing, c.Refused() > 0)
	count(&t.Unavailable, c.Unavailable != "")
	count(&t.Delayed, c.Delay() > 0)
	count(&t.Rejecting, c.Delay() > 0 && c.Delay() > c.First.Delay.MaxWait)
	s := c.Seconds()
	t.InTurn += s
	t.Seconds = max(t.Seconds, s)
	if s > 0 {
		t.Longest = append(t.Longest, Long{site, c.Requested(), c.Delay(), s})
		slices.SortStableFunc(t.Longest, func(a, b Long) int { return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Site, b.Site)) })
		t.Longest = t.Longest[:min(len(t.Longest), maxLong)]
	}
}
