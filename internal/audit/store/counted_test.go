package store_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/judge/reason"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// execute changes the record at path, which no heed has open.
func execute(t *testing.T, path, statement string, values ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.Exec(statement, values...)
		err = errors.Join(err, db.Close())
	}
	must.OK(t, err)
}

// hour returns a time on the day of theDecisions.
func hour(h int) time.Time { return time.Date(2026, 5, 1, h, 0, 0, 0, time.UTC) }

// withGap adds a gap from 13:00 to 15:00.
func withGap(t *testing.T, path string) {
	t.Helper()
	g := audit.Gap{From: hour(13), To: hour(15), Refused: 7, Why: "no space left on device"}
	execute(t, path, "INSERT INTO exempt VALUES (1, ?, ?, ?)", g.To.UnixMicro(), g.Refused, g.Text())
}

// gapsIn returns the number of gaps in the records at paths that filter selects.
func gapsIn(t *testing.T, filter store.Filter, paths ...string) (n int) {
	t.Helper()
	records := must.Get(store.Records(paths...))(t)
	for _, record := range records {
		r := must.Get(record.Read(t.Context()))(t)
		must.OK(t, r.Counted(&filter, func(c *store.Counted) {
			if c.Gap != nil {
				n++
			}
		}))
		r.Close()
	}
	return n
}

func TestCounted_AGapIsInEachWindowThatHasAPartOfIt(t *testing.T) {
	t.Parallel()
	path := written(t, theDecisions(2)...)
	withGap(t, path)
	for _, c := range []struct{ from, to, gaps int }{
		{0, 24, 1}, {13, 15, 1}, {12, 14, 1}, {14, 16, 1}, {14, 15, 1}, {10, 13, 0}, {16, 17, 0},
	} {
		got := gapsIn(t, store.Filter{From: hour(c.from), To: hour(c.to)}, path)
		must.True(t, got == c.gaps, "from %d:00 to %d:00 there are %d gaps, want %d", c.from, c.to, got, c.gaps)
	}
}

// A record whose decisions are all in another one may have a gap that the other has not.
func TestRecords_AGapIsNotLeftOut(t *testing.T) {
	t.Parallel()
	all := theDecisions(3)
	own, run := written(t, all...), written(t, all[1])
	withGap(t, run)
	must.Equal(t, gapsIn(t, store.Filter{}, own, run), 1, "gaps")
	got := countedIn(t, own, run)
	must.True(t, got[own] == 3 && got[run] == 0, "read are %v", got)
}

// Of a decision that two records have with different contents, one has been changed: which
// one counts must not depend on the order of the files.
func TestRecords_OneDecisionWithTwoContentsIsAnError(t *testing.T) {
	t.Parallel()
	all := theDecisions(3)
	own, run := written(t, all...), written(t, all[1:]...)
	execute(t, run, "UPDATE ground SET verdict = 'refuse', reason = 'rule'")
	for _, paths := range [][]string{{own, run}, {run, own}} {
		must.Fail(t, must.Err(store.Records(paths...)), "different contents", "it is not reported")
	}
}

// A decision and the one that replaces it are one request, also when they are read from
// two copies of the record, the later of which has lost the first one by its age.
func TestRecords_ARevisionCountsOnceOverCopies(t *testing.T) {
	t.Parallel()
	all := theDecisions(3)
	all[1].Revises = &all[0].ID
	path := written(t, all[:2]...)
	earlier := filepath.Join(t.TempDir(), "copy.db")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(earlier, text, 0o600)
	}
	must.OK(t, err)
	w := open(t, path, store.Options{})
	must.OK(t, errors.Join(w.Decided(all[2]), w.Close("")))
	execute(t, path, "DELETE FROM entry WHERE seq = 1")
	records, err := store.Records(path, earlier)
	must.Need(t, err == nil && len(records) == 2, "%d records, %v", len(records), err)
	requests, hosts := 0, int64(0)
	for _, record := range records {
		r := must.Get(record.Read(t.Context()))(t)
		defer r.Close()
		must.OK(t, r.Requests(&store.Filter{}, false, func(*store.Request) error { requests++; return nil }))
		rows, _ := must.Two(r.Table("record", &store.Filter{}, 1))(t)
		values := must.Get(rows.Next())(t)
		n, _ := values[6].(int64)
		hosts += n
		rows.Close()
	}
	must.True(t, requests == 2 && hosts == 2, "%d requests, and %d in the tables, want 2", requests, hosts)
}

// The record of a heed has a decision that the record of the run could not take: the
// request was refused after all, and must not count as allowed.
func TestRequests_OneRefusedByAnotherRecorderHasFailed(t *testing.T) {
	t.Parallel()
	e := theDecisions(1)[0]
	path := filepath.Join(t.TempDir(), "audit.db")
	w := open(t, path, store.Options{})
	must.OK(t, w.Decided(e))
	e.Decision, e.Detail = rules.Decision{Reason: rules.ReasonRecord}, "no space left on device"
	w.Ended(e)
	must.OK(t, w.Close(""))
	r := reader(t, path)
	must.OK(t, r.Requests(&store.Filter{}, false, func(q *store.Request) error {
		must.True(t, q.Failed && reason.ClassOf(rules.Allow, rules.ReasonNoRule, q.Failed) == reason.Failed,
			"it counts as allowed: %+v", q)
		return nil
	}))
}
