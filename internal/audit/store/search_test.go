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
	r, all := crawled(t, 3_000)
	window := store.Filter{From: time.UnixMicro(all[500].Time), First: all[300].Seq, Last: all[2500].Seq}
	for _, period := range []time.Duration{0, time.Minute} {
		want, got := map[string]int64{}, map[string]int64{}
		key := func(client, site, basis, at int64, failed bool) string {
			if period > 0 {
				client, site = 0, 0
				at -= at % period.Microseconds()
			} else {
				at = 0
			}
			return fmt.Sprint(client, site, basis, at, failed)
		}
		err := r.Requests(&store.Filter{From: window.From}, false, func(q *store.Request) error {
			if q.Seq >= window.First && q.Seq <= window.Last {
				want[key(q.Client, q.Site, q.Basis, q.Time, q.Failed)]++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		revised, err := r.Revised(window.First, all[len(all)-1].Seq)
		if err != nil {
			t.Fatal(err)
		}
		if period == 0 {
			revised = append([][]byte{}, revised...)
		}
		if err := r.Totals(&window, period, revised, func(n *store.Total) {
			got[key(n.Client, n.Site, n.Basis, n.Period, n.Failed)] += n.Requests
		}); err != nil {
			t.Fatal(err)
		}
		if len(want) < 3 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("by %v: %d totals are not those of the %d kinds of requests", period, len(got), len(want))
		}
	}
}
