package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"heed/internal/audit"
	"heed/internal/base/memo"
	"heed/internal/judge/reason"
	"heed/internal/output/figures"
	"heed/rules"
)

// finish makes the lists of a report out of what was counted.
func (b *builder) finish(rep *Report) error {
	rep.Window, rep.By = b.query.Words(), b.query.by()
	rep.Agents, rep.Sites = []AgentPart{}, []SitePart{} // in JSON a list is never null
	rep.Refusals, rep.NotJudged, rep.Exceptions, rep.Trouble = []Deciding{}, []Deciding{}, []Deciding{}, []Unreachable{}
	agents, sites, pairs := make([]Counts, len(b.agents.keys)), make([]Counts, len(b.origins.keys)), map[pair]*Counts{}
	for p, counts := range b.cells {
		rep.Total.add(counts)
		agents[p.agent].add(counts)
		sites[p.origin].add(counts)
		memo.At(pairs, pair{p.agent, p.origin}).add(counts)
		b.sort(rep, row{b.deciding(p, counts), *counts})
	}
	b.parts(rep, agents, sites, pairs)
	rep.Reasons = b.reasons()
	for k, u := range b.trouble {
		u.Site, u.State = b.siteName(k.origin), k.state
		rep.Trouble = append(rep.Trouble, *u)
	}
	rep.Periods, rep.PeriodSeconds, rep.ClockBack = b.line.periods, Seconds(b.line.width).float(), b.back
	rep.Exempt, rep.Unrecorded, rep.Asked, rep.Gaps = b.sums["exempt"], b.sums["unrecorded"], b.sums["robots_asked_as_clients"], b.gaps
	rep.Conduct, rep.Use = b.conduct(pairs), b.use.finish(b.siteName)
	var err error
	rep.Changes, err = b.changes()
	rep.order()
	return err
}

func (b *builder) deciding(p place, c *Counts) Deciding {
	return Deciding{b.agents.keys[p.agent].String(), b.siteName(p.origin), b.ways.keys[p.way], c.Requests, c.First, c.Last}
}

// sort puts a cell into the lists that it belongs to.
func (b *builder) sort(rep *Report, c row) {
	rep.cube = append(rep.cube, c)
	d := c.deciding
	if d.Settled != "" {
		rep.Exceptions = append(rep.Exceptions, d)
	}
	switch {
	case d.Judged == judgedNo:
		rep.NotJudged = append(rep.NotJudged, d)
	case d.Verdict != allow:
		rep.Refusals = append(rep.Refusals, d)
	}
}

// reasons counts what decided over all sites.
func (b *builder) reasons() []Reason {
	type counted struct {
		sites, agents map[int]bool
		classes       reason.Counts
	}
	counts := map[Reason]*counted{}
	for p, c := range b.cells {
		w := &b.ways.keys[p.way]
		sum := memo.At(counts, Reason{Way: Way{Judged: w.Judged, Verdict: w.Verdict, Reason: w.Reason}})
		if sum.sites == nil {
			sum.sites, sum.agents = map[int]bool{}, map[int]bool{}
		}
		sum.classes.Add(&c.Classes)
		sum.sites[p.origin], sum.agents[p.agent] = true, true
	}
	list := make([]Reason, 0, len(counts))
	for k, c := range counts {
		k.Requests, k.Sites, k.Agents, k.Classes = c.classes.Sum(), len(c.sites), len(c.agents), c.classes
		list = append(list, k)
	}
	byMost(list, func(r *Reason) (int64, string) { return r.Requests, r.Verdict + r.Reason + r.Judged })
	return list
}

// parts lists agents and sites.
func (b *builder) parts(rep *Report, agents, sites []Counts, pairs map[pair]*Counts) {
	asked, by := make([]int, len(agents)), make([][]AgentCount, len(sites))
	for p, c := range pairs {
		asked[p.agent]++
		by[p.origin] = append(by[p.origin], AgentCount{b.agents.keys[p.agent].String(), *c})
	}
	clients := make([][]Client, len(agents))
	for k, n := range b.clients {
		clients[k.agent] = append(clients[k.agent], Client{k.address, n})
	}
	for i, c := range agents {
		if c.Requests > 0 {
			byMost(clients[i], func(c *Client) (int64, string) { return c.Requests, c.Address })
			agent := b.agents.keys[i]
			rep.Agents = append(rep.Agents, AgentPart{agent.agent(), agent.String(), c, slices.Sorted(maps.Keys(b.obeyed[i])), asked[i], clients[i]})
		}
	}
	for i, c := range sites {
		if c.Requests > 0 {
			byMost(by[i], func(a *AgentCount) (int64, string) { return a.Requests, a.Agent })
			rep.Sites = append(rep.Sites, SitePart{b.siteName(i), c, by[i]})
		}
	}
}

// key returns a key that orders decidings and differs between them.
func (d *Deciding) key() string {
	return strings.Join([]string{d.Site, d.Agent, d.Verdict, d.Reason, d.Group, d.Rule, d.Settled}, "\x00")
}

// byMost sorts the largest number first, names in order among equals. It calls of
// once for each, since making a name takes longer than the rest.
func byMost[T any](list []T, of func(*T) (int64, string)) {
	type ranked struct {
		n    int64
		name string
		what T
	}
	all := make([]ranked, len(list))
	for i := range list {
		n, name := of(&list[i])
		all[i] = ranked{n, name, list[i]}
	}
	slices.SortFunc(all, func(x, y ranked) int {
		return cmp.Or(cmp.Compare(y.n, x.n), strings.Compare(x.name, y.name))
	})
	for i := range all {
		list[i] = all[i].what
	}
}

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
		k, observed := reason.WouldBe(rules.ParseVerdict(d.Verdict), rules.Reason(d.Reason))
		switch {
		case observed:
			list = append(list, Listed{d, "would be " + k.String(), false})
		case d.Verdict != allow && c.Classes[reason.NotJudged] == 0:
			list = append(list, Listed{d, reason.ClassOf(rules.ParseVerdict(d.Verdict), rules.Reason(d.Reason), false).String(), false})
		}
		if n := c.Classes[reason.Failed]; n > 0 && rules.ParseVerdict(d.Verdict) != rules.Refuse {
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
		list = append(list, Listed{d, reason.ClassOf(rules.ParseVerdict(d.Verdict), rules.Reason(d.Reason), false).String(), false})
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
