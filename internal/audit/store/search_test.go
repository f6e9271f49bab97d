package store_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/audit/audittest"
	"heed/internal/audit/store"
	"heed/internal/counts"
	"heed/internal/reason"
	"heed/rules"
)

// crawled returns a reader of a made-up record, and all its decisions.
func crawled(t *testing.T, entries int) (*store.Reader, []*store.Entry) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.db")
	if err := (audittest.Crawl{Entries: entries, Sites: 40, PerSecond: 5}).Write(path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	record, err := store.OpenRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	var all []*store.Entry
	if err := r.Entries(&store.Filter{}, func(e *store.Entry) error { all = append(all, e); return nil }); err != nil {
		t.Fatal(err)
	}
	return r, all
}

func TestSearch_LatestAreTheLastOnesThatMatch(t *testing.T) {
	t.Parallel()
	r, all := crawled(t, 3_000)
	bases, sites := map[int64]*store.Basis{}, map[int64]rules.Origin{}
	if err := r.Bases(1, 1<<40, func(b *store.Basis) { bases[b.ID] = b }); err != nil {
		t.Fatal(err)
	}
	if err := r.Sites(&store.Filter{}, func(id int64, o rules.Origin, _ bool) { sites[id] = o }); err != nil {
		t.Fatal(err)
	}
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
		if err := r.Latest(&x.s, 300, func(e *store.Entry) error { got = append(got, e.Seq); return nil }); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: found %d decisions, %d match", x.name, len(got), len(want))
		}
	}
}

func TestSearch_SeqAtLeavesNoLaterDecisionOut(t *testing.T) {
	t.Parallel()
	r, all := crawled(t, 2_000)
	for i := 0; i < len(all); i += 97 {
		at := time.UnixMicro(all[i].Time)
		seq, err := r.SeqAt(at)
		if err != nil {
			t.Fatal(err)
		}
		if seq > all[i].Seq {
			t.Errorf("decisions from %v on begin with %d, and %d is one of them", at, seq, all[i].Seq)
		}
		if early := all[i].Seq - seq; early > 5*70 && seq > 1 { // five requests a second
			t.Errorf("the decision %d is %d before those from %v on", seq, early, at)
		}
	}
	for at, want := range map[time.Time]int64{{}: all[0].Seq, time.UnixMicro(all[len(all)-1].Time).Add(time.Hour): all[len(all)-1].Seq + 1} {
		if seq, err := r.SeqAt(at); err != nil || seq != want {
			t.Errorf("SeqAt(%v) = %d, %v, want %d", at, seq, err, want)
		}
	}
}

// The totals are those of the requests that reports count.
func TestSearch_TotalsAreThoseOfTheRequests(t *testing.T) {
	t.Parallel()
	r, all := crawled(t, 12_000)
	bases := map[int64]*store.Basis{}
	if err := r.Bases(1, 1<<40, func(b *store.Basis) { bases[b.ID] = b }); err != nil {
		t.Fatal(err)
	}
	from := time.UnixMicro(all[4_000].Time).UTC()
	begin := from.Truncate(counts.PeriodLength)
	want, got, requests := map[string]int64{}, map[string]int64{}, int64(0)
	err := r.Requests(&store.Filter{From: begin}, false, func(q *store.Request) error {
		b := bases[q.Basis]
		want[fmt.Sprint(q.Client, q.Site, b.Verdict.Verdict, b.Reason, b.Rule, b.Line, q.Failed)]++
		requests++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	count := func(n *store.Total) {
		v := n.Verdict
		if last = max(last, n.Last); n.Requests > 0 {
			got[fmt.Sprint(n.Client, n.Site, v.Verdict, v.Reason, v.Rule, v.Line, n.Failed)] += n.Requests
		}
	}
	since, whole, err := r.Totals(from, 1<<20, count)
	if err != nil || !whole || !since.Equal(begin) || len(want) < 3 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%d totals since %v (%v, %v) are not those of the %d kinds of requests", len(got), since, whole, err, len(want))
	}
	if want := all[len(all)-1].Time; last != want-want%1e6 {
		t.Errorf("the last request was at %d, want %d", last, want)
	}
	clear(got)
	since, whole, err = r.Totals(from, 10, count)
	if err != nil || whole || !since.After(begin) || since.Truncate(counts.PeriodLength) != since || len(got) == 0 || len(got) >= len(want) {
		t.Errorf("of ten rows: %d totals since %v, %v, %v", len(got), since, whole, err)
	}
	before := int64(0)
	if err := r.TotalsBefore(from, func(n *store.Total) { before += n.Requests }); err != nil || before != 0 {
		t.Errorf("%d requests before the only run, %v", before, err)
	}
	path := filepath.Join(t.TempDir(), "audit.db")
	if err := (audittest.Crawl{Entries: 500, Sites: 40, PerSecond: 5}).Write(path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	w := open(t, path, store.Options{})
	for n := range 3 { // without a decision of its own, and with some
		if err := w.Complete(); err != nil {
			t.Fatal(err)
		}
		record, err := store.OpenRecord(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := record.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before, requests = 0, 0
		if err := r.TotalsBefore(time.Time{}, func(n *store.Total) { before += n.Requests }); err != nil {
			t.Fatal(err)
		}
		if err := r.Requests(&store.Filter{}, false, func(*store.Request) error { requests++; return nil }); err != nil || before == 0 || before+int64(n) != requests {
			t.Errorf("%d requests before the last run, of %d: %v", before, requests, err)
		}
		r.Close()
		if err := w.Decided(asked(policy("site.test"), "/")); err != nil {
			t.Fatal(err)
		}
	}
}
