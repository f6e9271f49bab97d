package replay_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/judge/acl"
	"heed/internal/judge/reason"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit/must"
)

func TestSearch_PagesFollowOneAnotherToTheBeginning(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	must.OK(t, (audittest.Crawl{Entries: 25_000, Sites: 50}).Write(path, store.Options{}))
	record := must.Get(store.OpenRecord(path))(t)
	var want []int64
	all := store.Search{Class: reason.Failed, ByClass: true}
	must.OK(t, replay.List(t.Context(), []*store.Record{record}, all.Filter, func(d *replay.Decision) error {
		if o := d.Outcome; d.Verdict.Verdict != "refuse" && d.Judged != "no" && o != nil && !o.FromSite && reason.FailedStatus(o.Status) {
			want = append([]int64{d.Seq}, want...)
		}
		return nil
	}))
	// A search of all, which is read in several steps, and searches of one step each.
	for limit, most := range map[int]int64{40: 25_000, 400: 0} {
		var got []int64
		cut, pages := false, 0
		for s := (replay.Search{Search: all, Limit: limit, Most: most}); ; pages++ {
			f := must.Get(replay.Latest(t.Context(), record, s))(t)
			for _, d := range f.Decisions {
				got = append(got, d.Seq)
			}
			cut = cut || f.Cut
			must.Need(t, len(f.Decisions) <= limit && f.Looked > 0 && !f.Since.IsZero(),
				"a page has %d decisions of %d, back to %v", len(f.Decisions), f.Looked, f.Since)
			if s.Before = f.Next; s.Before == 0 {
				break
			}
		}
		must.True(t, len(want) >= 100 && fmt.Sprint(got) == fmt.Sprint(want),
			"most %d: %d decisions in %d pages, want %d", most, len(got), pages, len(want))
		must.Equal(t, cut, most == 0, "most %d: cut", most)
	}
	found, err := replay.ExplainID(t.Context(), record, func(string) (*acl.Rules, error) { return nil, nil }, idOf(t, record, want[len(want)-1]))
	must.True(t, err == nil && found.Seq == want[len(want)-1], "the first of them is explained as %+v, %v", found, err)
	last, err := replay.Latest(t.Context(), record, replay.Search{Limit: 5})
	must.True(t, err == nil && len(last.Decisions) == 5 && last.Decisions[0].Seq == 25_000 && last.Decisions[4].Seq == 24_996,
		"the last ones are %+v, %v", last, err)
}

// idOf returns the id of a decision.
func idOf(t *testing.T, record *store.Record, seq int64) (id string) {
	t.Helper()
	err := replay.List(t.Context(), []*store.Record{record}, store.Filter{First: seq, Last: seq}, func(d *replay.Decision) error { id = d.ID; return nil })
	must.Need(t, err == nil && id != "", "there is no decision %d: %v", seq, err)
	return id
}
