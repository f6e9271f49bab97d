package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"heed/internal/control"
	"heed/internal/judge/reason"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// judge refuses URLs with /no, by line 2, for agent "a", and allows all to others.
type judge struct {
	hang func(url string) // before a first judgement; nil: it does not
}

func (j *judge) Check(ctx context.Context, agent string, urls []string, first bool) (list []*control.Judgement, err error) {
	if first && j.hang != nil {
		j.hang(urls[0])
	}
	octets := 0
	for i, url := range urls {
		octets += len(url)
		a := &control.Judgement{Allowed: true, Reason: rules.ReasonNoRule}
		if agent == "a" && strings.Contains(url, "/no") {
			a = &control.Judgement{Reason: rules.ReasonRule, Line: 2, Rule: "Disallow: /no", Group: "*"}
		}
		if first && i == 0 {
			a.Delay = &control.Delay{Seconds: 2, MaxWait: 30}
		}
		list = append(list, a)
	}
	if octets > MaxURL {
		err = fmt.Errorf("%d octets together", octets)
	}
	return list, err
}

// made is what a plan found.
type made struct {
	sites map[string][]int64 // pages and refused pages of the first agent
	pages map[string][]string
	order []string

	partial int // sites
}

// making returns a plan that collects what it finds.
func making(ctx context.Context, o Options) (*Plan, *made) {
	m := &made{sites: map[string][]int64{}, pages: map[string][]string{}}
	o.Done = func(s *Site) error {
		c := &s.Columns[0]
		m.sites[s.Origin] = []int64{c.Pages(), c.Refused()}
		m.order = append(m.order, s.Origin)
		if s.Partial {
			m.partial++
		}
		return nil
	}
	o.Page = func(url string, allowed bool) error {
		site := strings.Join(strings.SplitN(url, "/", 4)[:3], "/")
		m.pages[site] = append(m.pages[site], fmt.Sprint(url, " ", allowed))
		return nil
	}
	return New(ctx, o), m
}

// Whatever waits where, each page is judged once, in the order of the list within its site.
func TestPlan_EveryPageCountsOnce(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"in memory":     {},
		"in a file":     {Recent: 500},
		"one at a time": {AtOnce: 1, Recent: 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			opened := 0
			o.Agents = []string{"a", "b"}
			o.Open = func() Judge { mu.Lock(); defer mu.Unlock(); opened++; return &judge{} }
			p, got := making(t.Context(), o)
			want, refused := map[string][]string{}, int64(0)
			for i := range 4000 {
				site := fmt.Sprintf("http://s%d.test", i%17)
				path := fmt.Sprintf("/yes/%d", i)
				if i%5 == 0 {
					path = fmt.Sprintf("/no/%d", i)
					refused++
				}
				must.OK(t, p.Add(site+path))
				want[site] = append(want[site], fmt.Sprint(site+path, " ", i%5 != 0))
			}
			totals, left, err := p.Finish()
			must.Need(t, err == nil && left == 0, "%d left, %v", left, err)
			must.True(t, maps.EqualFunc(got.pages, want, slices.Equal), "the pages are %v", got.pages)
			must.True(t, opened == 17 && len(got.sites) == 17 && len(got.order) == 17,
				"%d sites were begun, %d done", opened, len(got.order))
			a, b := totals[0], totals[1]
			if a.Refused != refused || a.Counts[reason.RefusedByRule] != refused || a.Counts.Sum() != 4000 || b.Refused != 0 || b.Counts[reason.Allowed] != 4000 || a.Refusing != 17 {
				t.Errorf("%+v", totals)
			}
			if len(b.Longest) != maxLong || b.Longest[0].Seconds != 472 || b.Seconds != 472 || b.InTurn != 8000 || a.InTurn != float64(2*(4000-refused)) {
				t.Errorf("%+v", totals)
			}
		})
	}
}

func TestPlan_AnEndInTheMiddle(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	added := make(chan struct{})
	o := Options{Agents: []string{"a"}, AtOnce: 2}
	o.Open = func() Judge {
		return &judge{hang: func(url string) {
			switch {
			case strings.Contains(url, "s3."):
				<-added
				end()
			case strings.Contains(url, "s9."): // which another worker may reach before that
				<-ctx.Done()
			}
		}}
	}
	p, got := making(ctx, o)
	for i := range 500 {
		must.OK(t, p.Add(fmt.Sprintf("http://s%d.test/", i/50)))
	}
	close(added)
	totals, left, err := p.Finish()
	for _, site := range []string{"http://s3.test", "http://s9.test"} {
		n := got.sites[site]
		must.True(t, n == nil || n[0] != 50, "%s is complete: %v", site, n)
	}
	done := p.Progress().Done
	must.True(t, done != 10 && int(done) >= len(got.sites)-got.partial, "%d sites are done, %d are partial", done, got.partial)
	must.True(t, err == nil && left != 0 && totals[0].Counts.Sum()+left == 500 && len(got.pages["http://s3.test"]) == 0,
		"%+v, %d left, %v", totals, left, err)
	failed := errors.New("the disk is full")
	o.Open = func() Judge { return &judge{} }
	p, _ = making(t.Context(), o)
	p.o.Page = func(string, bool) error { return failed }
	must.OK(t, p.Add("http://s.test/"))
	_, _, err = p.Finish()
	must.True(t, err == failed, "the error is %v", err)
}

func TestPlan_WhatIsNoPage(t *testing.T) {
	t.Parallel()
	p, _ := making(t.Context(), Options{Agents: []string{"a"}, Open: func() Judge { return &judge{} }})
	for _, address := range []string{"x", "ftp://h.test/", "http:///a", "http://h.test/a\nb", "http://h.test/#\nhttp://g.test/", "http://h.test/" + strings.Repeat("a", MaxURL), "http://[::1"} {
		must.True(t, p.Add(address) != nil, "%.40q was taken", address)
	}
	_, left, err := p.Finish()
	must.True(t, left == 0 && err == nil, "%d left, %v", left, err)
}

func TestColumn_Causes(t *testing.T) {
	t.Parallel()
	c := &Column{}
	for i := range 100 {
		c.add(&control.Judgement{Reason: rules.ReasonRule, Line: i, Rule: "Disallow: /"})
		c.add(&control.Judgement{Reason: rules.ReasonRule, Line: 7, Rule: "Disallow: /", Detail: fmt.Sprint(i)})
	}
	list, others := c.Causes()
	must.True(t, len(list) == maxCauses && list[0].Line == 7 && list[0].Pages == 101 && others == 100-maxCauses,
		"%d causes, the first %+v, %d others", len(list), list[0], others)
}
