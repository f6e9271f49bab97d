package replay

import (
	"cmp"
	"slices"

	"heed/internal/terms"
	"heed/rules"
)

// If is what is taken to have been otherwise. The zero value changes nothing.
type If struct {
	Profile *rules.Profile // that files are read under; nil: the recorded one
	Agent   string         // the User-Agent that all clients show; empty: their own
	// Policies returns the file in place of a site's own; nil or ok false: none.
	Policies func(rules.Origin) (body []byte, ok bool, err error)
}

// Changes is what would have been otherwise.
type Changes struct {
	Judged int64 `json:"judged"` // entries that could be judged otherwise
	// Allowed and Refused are how many would have been allowed that were refused,
	// and the other way round; Otherwise, how many had the same verdict for
	// another reason or by another rule. A refusal that is only observed counts
	// as one.
	Allowed   int64 `json:"would_be_allowed"`
	Refused   int64 `json:"would_be_refused"`
	Otherwise int64 `json:"for_another_reason"`
	// Sites are those with another verdict, the most first, at most maxSites;
	// Further is how many more there are.
	Sites    []SiteChange `json:"sites"`
	Further  int          `json:"further_sites"`
	Examples []Example    `json:"examples"` // the first with another verdict, at most maxExamples

	bySite map[rules.Origin]*SiteChange
}

// SiteChange is how many entries of a site would have been decided otherwise.
type SiteChange struct {
	Site    string `json:"site"`
	Allowed int64  `json:"would_be_allowed"`
	Refused int64  `json:"would_be_refused"`
}

// maxSites is how many sites Changes tell of by themselves.
const maxSites = 100

func newChanges() *Changes {
	return &Changes{Sites: []SiteChange{}, Examples: []Example{}, bySite: map[rules.Origin]*SiteChange{}}
}

// judge judges an entry as it would have been, and counts what differs.
func (f *If) judge(l *library, c *Changes, a *again) error {
	if a.class != Same && a.class != Different && a.class != OtherEngine || a.late {
		return nil // it rests on something else
	}
	then, p, err := f.otherwise(l, a)
	if err != nil {
		return err
	}
	o, ok := then.opinion(p)
	if !ok {
		return nil
	}
	c.Judged++
	then.verdict = verdictOf(&o)
	was, is := a.ground.verdict.Verdict == "allow", then.verdict.Verdict == "allow"
	if was == is {
		if then.verdict != a.ground.verdict {
			c.Otherwise++
		}
		return nil
	}
	c.count(&then, is)
	return nil
}

// otherwise returns the entry and its policy as they would have been.
func (f *If) otherwise(l *library, a *again) (then again, p *rules.Policy, err error) {
	then = *a
	then.question.Now = timeOf(a)
	if f.Agent != "" {
		agent := l.agent(f.Agent)
		then.question.Names = terms.Identity{Judged: agent, Shown: f.Agent}
	}
	if a.policy == nil {
		return then, nil, nil
	}
	p = a.policy.Policy
	profile := p.Profile()
	if f.Profile != nil {
		if profile = *f.Profile; profile != p.Profile() {
			p, err = l.variant(a.ground.policy, a.origin, "", func() (*rules.Policy, error) { return a.policy.under(profile), nil })
		}
	}
	if f.Policies == nil || err != nil {
		return then, p, err
	}
	other, err := l.variant(0, a.origin, profile.String(), func() (*rules.Policy, error) {
		body, ok, err := f.Policies(a.origin)
		if err != nil || !ok {
			return nil, err
		}
		return rules.NewAs(profile, rules.Source{Origin: a.origin, State: rules.Available}, body), nil
	})
	return then, cmp.Or(other, p), err
}

// count counts an entry with another verdict.
func (c *Changes) count(a *again, allowed bool) {
	s := c.bySite[a.origin]
	if s == nil {
		s = &SiteChange{Site: a.origin.String()}
		c.bySite[a.origin] = s
	}
	if allowed {
		c.Allowed++
		s.Allowed++
	} else {
		c.Refused++
		s.Refused++
	}
	if len(c.Examples) < maxExamples {
		c.Examples = append(c.Examples, a.example())
	}
}

// add adds what a part came to.
func (c *Changes) add(p *Changes) {
	c.Judged += p.Judged
	c.Allowed += p.Allowed
	c.Refused += p.Refused
	c.Otherwise += p.Otherwise
	for o, s := range p.bySite {
		if known := c.bySite[o]; known != nil {
			known.Allowed += s.Allowed
			known.Refused += s.Refused
		} else {
			c.bySite[o] = s
		}
	}
	c.Examples = append(c.Examples, p.Examples...)
	slices.SortStableFunc(c.Examples, func(a, b Example) int { return cmp.Compare(a.Seq, b.Seq) })
	c.Examples = c.Examples[:min(len(c.Examples), maxExamples)]
}

// finish lists the sites.
func (c *Changes) finish() {
	for _, s := range c.bySite {
		c.Sites = append(c.Sites, *s)
	}
	slices.SortFunc(c.Sites, func(a, b SiteChange) int {
		return cmp.Or(cmp.Compare(b.Allowed+b.Refused, a.Allowed+a.Refused), cmp.Compare(a.Site, b.Site))
	})
	c.Further = max(0, len(c.Sites)-maxSites)
	c.Sites = c.Sites[:len(c.Sites)-c.Further]
}
