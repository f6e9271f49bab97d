package replay

import (
	"cmp"
	"slices"

	"heed/internal/audit/store"
	"heed/internal/audit/uses"
	"heed/internal/base/memo"
	"heed/internal/judge/signal"
	"heed/rules"
)

// Uses is what would have become of the requests of a record if its clients had stated
// other purposes. Only requests that the robots.txt of their sites allows are judged.
type Uses struct {
	Purposes []signal.Purpose `json:"purposes"`
	UseCounts
	// Others counts the entries that are not judged: those that robots.txt refuses or that
	// it does not count for, and tunnels.
	Others int64 `json:"others"`
	// Categories are the counts for each of the purposes alone, in their order.
	Categories []CategoryUse `json:"categories"`
	// Unknowns are the reasons of Unknown, most first.
	Unknowns []UnknownUse `json:"unknown_why"`
	// Sites are the sites that would have refused requests, most first, at most maxSites;
	// Further is the number of the others.
	Sites   []SiteUse `json:"sites"`
	Further int       `json:"further_sites"`

	bySite map[rules.Origin]*SiteUse
	why    map[string]int64
}

// UseCounts are requests by what would have become of them.
type UseCounts struct {
	Judged  int64 `json:"judged"`           // the sum of the others
	Refused int64 `json:"would_be_refused"` // by a statement of the site
	Allowed int64 `json:"would_be_allowed"` // all that could refuse them was read
	// Silent counts the requests of which all was read and whose site states nothing, Unknown
	// those of which something was not read, such as the head of the page, and NotRecorded
	// those whose answer was no page, without any recorded statement.
	Silent      int64 `json:"silent"`
	Unknown     int64 `json:"unknown"`
	NotRecorded int64 `json:"not_recorded"`
}

// CategoryUse counts the requests for one purpose.
type CategoryUse struct {
	Purpose  signal.Purpose  `json:"purpose"`
	Category signal.Category `json:"category"`
	UseCounts
}

// UnknownUse counts the requests whose use is unknown for one reason.
type UnknownUse struct {
	Why   string `json:"why"`
	Count int64  `json:"count"`
}

// SiteUse counts the requests to one site.
type SiteUse struct {
	Site string `json:"site"`
	UseCounts
	// Statements are those that would have refused, most requests first, at most
	// maxStatements; OtherStatements counts the requests that others would have refused.
	Statements      []StatementUse `json:"statements"`
	OtherStatements int64          `json:"other_statements,omitempty"`
}

// StatementUse counts the requests that one statement would have refused. URL is the place
// of the first one, where pages make the same statement.
type StatementUse struct {
	Category signal.Category `json:"category"`
	Reason   rules.Reason    `json:"reason"`
	Source   signal.Source   `json:"source,omitempty"`
	URL      string          `json:"url,omitempty"`
	Line     int             `json:"line,omitempty"`
	Name     string          `json:"name,omitempty"`
	Text     string          `json:"text,omitempty"`
	Detail   string          `json:"detail"`
	Count    int64           `json:"count"`
}

// maxStatements bounds SiteUse.Statements.
const maxStatements = 50

func newUses(purposes []signal.Purpose) *Uses {
	u := &Uses{
		Purposes: purposes, Categories: []CategoryUse{}, Unknowns: []UnknownUse{}, Sites: []SiteUse{},
		bySite: map[rules.Origin]*SiteUse{}, why: map[string]int64{},
	}
	for _, p := range purposes {
		u.Categories = append(u.Categories, CategoryUse{Purpose: p, Category: p.Category()})
	}
	return u
}

// usedAs is an entry judged for the purposes together, and for each of them alone.
type usedAs struct {
	origin rules.Origin
	all    uses.Result
	each   []uses.Result
}

// judgeUse judges an entry for purposes, under the profile of f if that has one; nil when
// its use is not judged.
func (l *library) judgeUse(r *store.Reader, a *assessment, purposes []signal.Purpose, f *If) (*usedAs, error) {
	q, err := a.use(l, r)
	if q == nil || err != nil {
		return nil, err
	}
	if f != nil {
		q.Profile = f.Profile
	}
	judge := func(purposes ...signal.Purpose) uses.Result {
		if a.excepted() {
			return uses.Result{Answer: uses.Allowed}
		}
		return q.Judge(purposes...)
	}
	u := &usedAs{origin: a.origin, all: judge(purposes...)}
	for _, p := range purposes {
		u.each = append(u.each, judge(p))
	}
	return u, nil
}

// excepted reports whether an exception of the operator allows the target, whatever the
// site states.
func (a *assessment) excepted() bool {
	if a.basis.Reason == string(rules.ReasonOverride) {
		return true
	}
	if a.query.Effective.Site == nil || a.doubt {
		return false
	}
	d, _ := a.query.Except(rules.Decision{Reason: rules.ReasonSignal})
	return d.Verdict == rules.Allow
}

// add counts one request.
func (c *UseCounts) add(r *uses.Result) {
	c.Judged++
	switch r.Answer {
	case uses.Refused:
		c.Refused++
	case uses.Allowed:
		c.Allowed++
	case uses.Silent:
		c.Silent++
	case uses.Unknown:
		c.Unknown++
	case uses.NotRecorded:
		c.NotRecorded++
	}
}

// count counts an entry; x is nil when its use is not judged.
func (u *Uses) count(x *usedAs) {
	if x == nil {
		u.Others++
		return
	}
	u.add(&x.all)
	for i := range u.Categories {
		u.Categories[i].add(&x.each[i])
	}
	if x.all.Answer == uses.Unknown {
		u.why[x.all.Why]++
	}
	s := memo.At(u.bySite, x.origin)
	if s.add(&x.all); x.all.Answer == uses.Refused {
		s.refused(&x.all.Refusal)
	}
}

// refused counts a request that a statement would have refused.
func (s *SiteUse) refused(r *signal.Refusal) {
	x := StatementUse{Category: r.Category, Reason: r.Reason, Detail: r.Detail, Count: 1}
	if t := r.Statement; t != nil {
		x.Source, x.URL, x.Line, x.Name, x.Text = t.Source, t.URL, t.Line, t.Name, t.Text
	}
	perPage := x.Source == signal.SourceHeader || x.Source == signal.SourceMeta
	i := slices.IndexFunc(s.Statements, func(y StatementUse) bool {
		return y.Category == x.Category && y.Reason == x.Reason && y.Source == x.Source && y.Name == x.Name && y.Text == x.Text && y.Detail == x.Detail &&
			(perPage || y.Line == x.Line && y.URL == x.URL)
	})
	switch {
	case i >= 0:
		s.Statements[i].Count++
	case len(s.Statements) < maxStatements:
		s.Statements = append(s.Statements, x)
	default:
		s.OtherStatements++
	}
}

// finish sets the lists that are made of counts.
func (u *Uses) finish() {
	for why, n := range u.why {
		u.Unknowns = append(u.Unknowns, UnknownUse{why, n})
	}
	slices.SortFunc(u.Unknowns, func(a, b UnknownUse) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Why, b.Why)) })
	for origin, s := range u.bySite {
		if s.Refused == 0 {
			continue
		}
		s.Site = origin.String()
		slices.SortStableFunc(s.Statements, func(a, b StatementUse) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Line, b.Line))
		})
		u.Sites = append(u.Sites, *s)
	}
	slices.SortFunc(u.Sites, func(a, b SiteUse) int { return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Site, b.Site)) })
	u.Further = max(0, len(u.Sites)-maxSites)
	u.Sites = u.Sites[:len(u.Sites)-u.Further]
}
