package store_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/counts"
	"heed/internal/audit/store"
	"heed/internal/base/memo"
	"heed/internal/judge/reason"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// crawled returns a reader of a made-up record, and all its decisions.
func crawled(t *testing.T, entries int) (*store.Reader, []*store.Entry) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.db")
	must.OK(t, (audittest.Crawl{Entries: entries, Sites: 40, PerSecond: 5}).Write(path, store.Options{}))
	r := reader(t, path)
	var all []*store.Entry
	must.OK(t, r.Entries(&store.Filter{}, func(e *store.Entry) error { all = append(all, e); return nil }))
	return r, all
}

func TestSearch_LatestAreTheLastOnesThatMatch(t *testing.T) {
	t.Parallel()
	r, all := crawled(t, 3_000)
	bases, sites := map[int64]*store.Basis{}, map[int64]rules.Origin{}
	must.OK(t, r.Bases(1, 1<<40, func(b *store.Basis) { bases[b.ID] = b }))
	must.OK(t, r.Sites(&store.Filter{}, func(id int64, o rules.Origin, _ bool) { sites[id] = o }))
	classOf := func(e *store.Entry) reason.Class {
		b := bases[e.Basis]
		if e.Late != 0 {
			b = bases[e.Late]
		}
		v := map[string]rules.Verdict{"allow": rules.Allow, "refuse": rules.Refuse, "would-refuse": rules.WouldRefuse}[b.Verdict.Verdict]
		return reason.ClassOf(v, rules.Reason(b.Reason), e.Outcome != nil && !e.Outcome.FromSite && reason.FailedStatus(e.Outcome.Status))
	}
	part := all[slices.IndexFunc(all, func(e *store.Entry) bool { return len(e.Target) > 4 })].Target[:4]
	searches := []struct {
		name string
		s    store.Search
		want func(e *store.Entry) bool
	}{
		{"all", store.Search{}, func(*store.Entry) bool { return true }},
		{"reason", store.Search{Reason: "rule"}, func(e *store.Entry) bool { return bases[e.Basis].Reason == "rule" }},
		{"path", store.Search{Text: part}, func(e *store.Entry) bool { return strings.Contains(e.Target, part) }},
		{"host", store.Search{Text: sites[all[9].Site].Host}, func(e *store.Entry) bool { return strings.Contains(sites[e.Site].Host, sites[all[9].Site].Host) }},
		{"quotes", store.Search{Text: "' OR 1=1 --"}, func(*store.Entry) bool { return false }},
	}
	for _, class := range reason.Classes() {
		searches = append(searches, struct {
			name string
			s    store.Search
			want func(e *store.Entry) bool
		}{"class " + class.String(), store.Search{Class: class, ByClass: true}, func(e *store.Entry) bool { return classOf(e) == class }})
	}
	for _, x := range searches {
		var want, got []int64
		for i := len(all) - 1; i >= 0 && len(want) < 300; i-- {
			if x.want(all[i]) {
				want = append(want, all[i].Seq)
			}
		}
		must.OK(t, r.Latest(&x.s, 300, func(e *store.Entry) error { got = append(got, e.Seq); return nil }), x.name)
		must.Equal(t, fmt.Sprint(got), fmt.Sprint(want), "%s: found %d decisions, %d match", x.name, len(got), len(want))
	}
}

func TestSearch_SeqAtLeavesNoLaterDecisionOut(t *testing.T) {
	t.Parallel()
	r, all := crawled(t, 2_000)
	for i := 0; i < len(all); i += 97 {
		at := time.UnixMicro(all[i].Time)
		seq := must.Get(r.SeqAt(at))(t)
		must.True(t, seq <= all[i].Seq, "decisions from %v on begin with %d, and %d is one of them", at, seq, all[i].Seq)
		if early := all[i].Seq - seq; early > 5*70 && seq > 1 { // five requests a second
			t.Errorf("the decision %d is %d before those from %v on", seq, early, at)
		}
	}
	for at, want := range map[time.Time]int64{{}: all[0].Seq, time.UnixMicro(all[len(all)-1].Time).Add(time.Hour): all[len(all)-1].Seq + 1} {
		seq, err := r.SeqAt(at)
		must.True(t, err == nil && seq == want, "SeqAt(%v) = %d, %v, want %d", at, seq, err, want)
	}
}

// The totals are those of the requests that reports count.
func TestSearch_TotalsAreThoseOfTheRequests(t *testing.T) {
	t.Parallel()
	r, all := crawled(t, 12_000)
	bases := map[int64]*store.Basis{}
	must.OK(t, r.Bases(1, 1<<40, func(b *store.Basis) { bases[b.ID] = b }))
	from := time.UnixMicro(all[4_000].Time).UTC()
	begin := from.Truncate(counts.PeriodLength)
	sites, clients := map[int64]rules.Origin{}, map[int64]*store.Client{}
	must.OK(t, errors.Join(r.Sites(&store.Filter{}, func(id int64, o rules.Origin, _ bool) { sites[id] = o }), r.Clients(&store.Filter{}, func(c *store.Client) { clients[c.ID] = c })))
	want, got, requests := map[string]*reason.Counts{}, map[string]*reason.Counts{}, int64(0)
	err := r.Requests(&store.Filter{From: begin}, false, func(q *store.Request) error {
		b, c := bases[q.Basis], clients[q.Client]
		v := map[string]rules.Verdict{"allow": rules.Allow, "refuse": rules.Refuse, "would-refuse": rules.WouldRefuse}[b.Verdict.Verdict]
		class := reason.ClassOf(v, rules.Reason(b.Reason), q.Failed)
		memo.At(want, sites[q.Site].String())[class]++
		memo.At(want, store.AgentName(c.Configured(), c.Tokens))[class]++
		memo.At(want, cmp.Or(c.Configured(), c.Address))[class]++
		if b.Rule != "" || class != reason.Allowed {
			memo.At(want, fmt.Sprint(sites[q.Site], b.Reason, b.Rule, b.Line, class))[class]++
		}
		requests++
		return nil
	})
	must.OK(t, err)
	since, whole, all24, err := r.Recent(from, 1<<20)
	rank := func(by store.Ranking, name func(*store.Ranked) string) {
		last := int64(1 << 60)
		err = cmp.Or(err, r.Ranked(by, 1<<20, func(n *store.Ranked) {
			memo.At(got, name(n)).Add(&n.Classes)
			if n.Classes.Sum() > last {
				t.Errorf("%s is not in order", name(n))
			}
			last = n.Classes.Sum()
		}))
	}
	rank(store.BySite, func(n *store.Ranked) string { return n.Site.String() })
	rank(store.ByAgent, func(n *store.Ranked) string { return n.Agent })
	rank(store.ByClient, func(n *store.Ranked) string { return cmp.Or(clients[n.Client].Configured(), clients[n.Client].Address) })
	rank(store.ByRule, func(n *store.Ranked) string {
		i := slices.IndexFunc(n.Classes[:], func(k int64) bool { return k > 0 })
		return fmt.Sprint(n.Site, n.Reason, n.Rule, n.Line, reason.Class(i))
	})
	if err != nil || !whole || !since.Equal(begin) || all24 != requests || len(want) < 9 || !maps.EqualFunc(got, want, func(x, y *reason.Counts) bool { return *x == *y }) {
		t.Errorf("%d totals since %v (%v, %v) are not those of the %d kinds of requests", len(got), since, whole, err, len(want))
	}
	least := 0
	since, whole, part, err := r.Recent(from, 10)
	err = cmp.Or(err, r.Ranked(store.BySite, 2, func(n *store.Ranked) {
		if least++; n.All < 2 || n.Last.Unix() > all[len(all)-1].Time/1e6 {
			t.Errorf("%+v", n)
		}
	}))
	if err != nil || whole || !since.After(begin) || since.Truncate(counts.PeriodLength) != since || part == 0 || part >= requests || least != 2 {
		t.Errorf("of ten rows: %d requests since %v, %v, %v", part, since, whole, err)
	}
	before := int64(0)
	count := func(_ int64, n reason.Counts) { before += n.Sum() }
	if err := r.CountsBefore(from, count); err != nil || before != 0 {
		t.Errorf("%d requests before the only run, %v", before, err)
	}
	path := filepath.Join(t.TempDir(), "audit.db")
	must.OK(t, (audittest.Crawl{Entries: 500, Sites: 40, PerSecond: 5}).Write(path, store.Options{}))
	w := open(t, path, store.Options{})
	for n := range 3 { // without a decision of its own, and with some
		must.OK(t, w.Complete())
		r := reader(t, path)
		before, requests = 0, 0
		must.OK(t, r.CountsBefore(time.Time{}, count))
		if err := r.Requests(&store.Filter{}, false, func(*store.Request) error { requests++; return nil }); err != nil || before == 0 || before+int64(n) != requests {
			t.Errorf("%d requests before the last run, of %d: %v", before, requests, err)
		}
		r.Close()
		must.OK(t, w.Decided(asked(policy("site.test"), "/")))
	}
}

// A client is one row by its name, whatever its addresses and User-Agents.
func TestSearch_RankedClientsByName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := open(t, path, store.Options{})
	for _, c := range []struct{ address, user, name, agent string }{
		{"192.0.2.1", "", "newsbot", "newsbot"}, {"192.0.2.1", "", "newsbot", "newsbot"}, {"192.0.2.2", "", "newsbot", "other"}, {"192.0.2.9", "", "", "curl"},
		{"192.0.2.9", "", "", "wget"}, {"192.0.2.3", "ann", "", "curl"}, {"192.0.2.4", "ann", "", "curl"},
	} {
		e := asked(policy("site.test"), "/")
		e.Client, e.User, e.ClientName, e.UserAgent, e.Agent = c.address+":1", c.user, c.name, c.agent, rules.Identify(c.agent)
		must.OK(t, w.Decided(e))
	}
	must.OK(t, w.Complete())
	r := reader(t, path)
	var all []string
	_, _, _, err := r.Recent(time.Time{}, 1000)
	err = cmp.Or(err, r.Ranked(store.ByClient, 2, func(n *store.Ranked) {
		c := must.Get(r.Client(n.Client))(t)
		all = append(all, fmt.Sprint(c.Address, " ", c.User, c.Name, " ", n.Classes.Sum(), " ", n.Others, " ", n.All))
	}))
	want := []string{"192.0.2.1 newsbot 3 1 4", "192.0.2.3 ann 2 1 4"}
	must.True(t, err == nil && slices.Equal(all, want), "%q, want %q, %v", all, want, err)
}

// A clock that was set back makes commits of one time: none of the decisions after it is left out.
func TestSearch_DecisionsAfterTheClockWasSetBackAreSelected(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	begin := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	for _, at := range []time.Duration{2 * time.Hour, 0, time.Hour, 3 * time.Hour} {
		must.OK(t, (audittest.Crawl{Entries: 300, Sites: 4, PerSecond: 1, Begin: begin.Add(at)}).Write(path, store.Options{}))
	}
	r := reader(t, path)
	for from, want := range map[time.Duration]int{0: 1200, time.Hour: 900, 2 * time.Hour: 600, 3 * time.Hour: 300, 4 * time.Hour: 0} {
		n := 0
		err := r.Entries(&store.Filter{From: begin.Add(from)}, func(*store.Entry) error { n++; return nil })
		must.True(t, err == nil && n == want, "from %v on there are %d, %v; want %d", from, n, err, want)
	}
	seq, err := r.SeqAt(begin.Add(3 * time.Hour))
	must.True(t, err == nil && seq >= 901-120, "%v: of 300 decisions the last of 1200 begin with %d", err, seq)
}

// A site that a heed met before and after a restart is one in each list.
func TestSearch_ASiteOfTwoRunsIsOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	for range 2 {
		w := must.Get(store.Open(path, store.Options{Heed: "test"}))(t)
		e := &audit.Entry{ID: audit.NewID(), Time: time.Now(), Client: "192.0.2.7:1", Scheme: "http", Host: "shop.test", Decision: rules.Decision{Verdict: rules.Refuse, Reason: rules.ReasonRule, Rule: "Disallow: /", Line: 2}}
		must.OK(t, w.Decided(e))
		w.Ended(e)
		must.OK(t, w.Close(""))
	}
	r := must.Get(must.Get(store.OpenRecord(path))(t).Read(t.Context()))(t)
	defer r.Close()
	_, _, _, err := r.Recent(time.Now().Add(-time.Hour), 1<<20)
	must.OK(t, err)
	for _, by := range []store.Ranking{store.BySite, store.ByRule} {
		var all []int64
		must.OK(t, r.Ranked(by, 10, func(n *store.Ranked) { all = append(all, n.Classes.Sum()) }))
		must.Same(t, all, []int64{2}, "the requests of each row by %s", by)
	}
}
