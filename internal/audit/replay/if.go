package replay

import (
	"cmp"
	"slices"

	"heed/internal/audit/store"
	"heed/internal/base/memo"
	"heed/internal/judge/acl"
	"heed/rules"
)

// If is a set of hypothetical changes. The zero value changes nothing.
type If struct {
	Profile *rules.Profile // that files are parsed under; nil: the recorded one
	// Agent is the User-Agent that all clients send; empty: their own. A site that was asked
	// for its file under several names is judged by the one in force for Agent.
	Agent string
	// Policies returns the file that replaces a site's own. With ok false, or a
	// nil func, the site's own file is used.
	Policies func(rules.Origin) (body []byte, ok bool, err error)
}

// Changes counts the verdicts that If would have changed.
type Changes struct {
	Judged int64 `json:"judged"` // entries that could be judged by If
	// Allowed counts refused entries that would have been allowed, and Refused
	// allowed ones that would have been refused, in observe mode too; Otherwise
	// counts entries with the same verdict for another reason or by another rule.
	Allowed   int64 `json:"would_be_allowed"`
	Refused   int64 `json:"would_be_refused"`
	Otherwise int64 `json:"for_another_reason"`
	// Sites are the sites with another verdict, most entries first, at most
	// maxSites; Further is the number of the others.
	Sites    []SiteChange `json:"sites"`
	Further  int          `json:"further_sites"`
	Examples []Example    `json:"examples"` // the first with another verdict, at most maxExamples

	bySite map[rules.Origin]*SiteChange
}

// SiteChange counts the changed verdicts of a site.
type SiteChange struct {
	Site    string `json:"site"`
	Allowed int64  `json:"would_be_allowed"`
	Refused int64  `json:"would_be_refused"`
}

// maxSites bounds Changes.Sites.
const maxSites = 100

// judge returns the entry judged with the changes of f; nil when f does not apply
// to it, or the record has not all that it needs.
func (f *If) judge(l *library, r *store.Reader, a *assessment) (then *assessment, err error) {
	if a.class != Same && a.class != Different && a.class != OtherEngine || a.query.Target == nil || a.late || a.bySignal {
		return nil, nil
	}
	then, p, err := f.otherwise(l, r, a)
	if then == nil || err != nil {
		return nil, err
	}
	v, ok := then.evaluate(p)
	if !ok || a.doubt { // by what is redacted
		return nil, nil
	}
	then.verdict = verdictOf(&v.Result)
	return then, nil
}

// otherwise returns the entry and its policy with the changes of f; nil when the record
// has no policy for them.
func (f *If) otherwise(l *library, r *store.Reader, a *assessment) (then *assessment, p *rules.Policy, err error) {
	changed := *a
	then = &changed
	then.query.Now = a.time()
	if ok, err := f.named(l, r, then); !ok {
		return nil, nil, err
	}
	a = then
	if f.Agent != "" {
		then.query.Names = acl.Identity{Own: l.agent(f.Agent), Shown: f.Agent, Also: then.query.Names.Also}
	}
	if f.Profile != nil {
		then.query.Effective.Profile = *f.Profile
	}
	if a.policy == nil {
		return then, nil, nil
	}
	p = a.policy.Policy
	profile := p.Profile()
	if f.Profile != nil {
		if profile = *f.Profile; profile != p.Profile() {
			key := variantKey{a.policy.id, a.origin, profile}
			p, err = l.variants.LoadSized(key, sizeOf, maxPolicyBytes, func() (*rules.Policy, error) { return a.policy.under(profile), nil })
		}
	}
	if f.Policies == nil || err != nil {
		return then, p, err
	}
	other, err := l.variants.LoadSized(variantKey{0, a.origin, profile}, sizeOf, maxPolicyBytes, func() (*rules.Policy, error) {
		body, ok, err := f.Policies(a.origin)
		if err != nil || !ok {
			return nil, err
		}
		return rules.NewAs(profile, rules.Source{Origin: a.origin, State: rules.Available}, body), nil
	})
	return then, cmp.Or(other, p), err
}

// named sets the policy of a to the one in force for f.Agent. It returns false when there is
// none.
func (f *If) named(l *library, r *store.Reader, a *assessment) (ok bool, err error) {
	if f.Agent == "" || a.policy == nil || a.policy.Source().Own {
		return true, nil
	}
	site, err := l.answersOf(r, a.origin)
	if err != nil {
		return false, err
	}
	p, _, ok := site.inForce(f.Agent)
	if !ok {
		return false, nil
	}
	if s := a.policy.Source().Snapshot; s == nil && p.askedAs == "" || s != nil && rules.NameKey(s.AskedAs) == rules.NameKey(p.askedAs) {
		return true, nil // that of its time
	}
	a.policy, err = l.policy(r, p.id)
	return err == nil && a.policy.err == nil, err
}

// count counts an entry that is judged otherwise.
func (c *Changes) count(a, then *assessment) {
	c.Judged++
	was, is := a.basis.Verdict.Verdict == "allow", then.verdict.Verdict == "allow"
	if was == is {
		if then.verdict != a.basis.Verdict {
			c.Otherwise++
		}
		return
	}
	s := memo.At(c.bySite, a.origin)
	if is {
		c.Allowed++
		s.Allowed++
	} else {
		c.Refused++
		s.Refused++
	}
	c.Examples = then.addTo(c.Examples, 0)
}

// finish sets Sites and Further.
func (c *Changes) finish() {
	for origin, s := range c.bySite {
		s.Site = origin.String()
		c.Sites = append(c.Sites, *s)
	}
	slices.SortFunc(c.Sites, func(a, b SiteChange) int {
		return cmp.Or(cmp.Compare(b.Allowed+b.Refused, a.Allowed+a.Refused), cmp.Compare(a.Site, b.Site))
	})
	c.Further = max(0, len(c.Sites)-maxSites)
	c.Sites = c.Sites[:len(c.Sites)-c.Further]
}
