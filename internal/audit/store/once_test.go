package store_test

import (
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// written makes a record of decisions: the same Entry may be in several.
func written(t *testing.T, entries ...*audit.Entry) string {
	t.Helper()
	return audittest.Record(t, store.Options{}, entries...)
}

// reader returns a reader of the record at path.
func reader(t *testing.T, path string) *store.Reader {
	t.Helper()
	record := must.Get(store.OpenRecord(path))(t)
	r := must.Get(record.Read(t.Context()))(t)
	t.Cleanup(r.Close)
	return r
}

// theDecisions returns n decisions, a second apart.
func theDecisions(n int) (all []*audit.Entry) {
	for i := range n {
		e := &audit.Entry{
			ID: audit.NewID(), Time: time.Date(2026, 5, 1, 12, 0, i, 0, time.UTC), Client: "127.0.0.1:40000", Mode: "enforce",
			Method: "GET", Scheme: "http", Host: "site.test", Target: "/", Judged: audit.ByPath,
			Decision: rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonNoRule},
		}
		e.Outcome.Status, e.Outcome.FromSite = 200, true
		all = append(all, e)
	}
	return all
}

// countedIn returns how many decisions of each file are read.
func countedIn(t *testing.T, paths ...string) (counts map[string]int64) {
	t.Helper()
	records := must.Get(store.Records(paths...))(t)
	counts = map[string]int64{}
	for _, record := range records {
		r := must.Get(record.Read(t.Context()))(t)
		f := must.Get(r.File())(t)
		var n int64
		must.OK(t, r.Requests(&store.Filter{}, false, func(*store.Request) error { n++; return nil }))
		r.Close()
		must.True(t, n == f.Decisions && f.Pruned == 0,
			"%s: %d requests are read of %d decisions, and %d are pruned", record.Path, n, f.Decisions, f.Pruned)
		counts[record.Path] = n
	}
	return counts
}

func TestRecords_ADecisionOfSeveralRecordsIsReadOnce(t *testing.T) {
	t.Parallel()
	all := theDecisions(12)
	own := written(t, all...)                                                    // of a heed
	first, second := written(t, all[1], all[4], all[5]), written(t, all[7:9]...) // of two runs that it served
	later := written(t, append(theDecisions(2), all[11])...)                     // of a run, and then of another heed
	for _, c := range []struct {
		name  string
		paths []string
		want  map[string]int64
	}{
		{"a run's record adds nothing", []string{own, first}, map[string]int64{own: 12, first: 0}},
		{"nor when it is named first", []string{first, own}, map[string]int64{first: 3, own: 9}},
		{"runs and their heed", []string{second, own, first}, map[string]int64{second: 2, own: 10, first: 0}},
		{"two runs", []string{first, second}, map[string]int64{first: 3, second: 2}},
		{"some of its decisions", []string{own, later}, map[string]int64{own: 12, later: 2}},
		{"a file twice, and a run", []string{own, own, first}, map[string]int64{own: 12, first: 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := countedIn(t, c.paths...)
			must.Equal(t, len(got), len(c.want), "read are %v, want %v", got, c.want)
			for path, n := range c.want {
				must.Equal(t, got[path], n, "read are %v, want %v", got, c.want)
			}
		})
	}
}
