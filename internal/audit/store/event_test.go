package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// What the record has beside a decision and its outcome is read back as it was written: the
// tokens that were obeyed for a client, the wait for turns, an answer that another proxy has
// seen, and events.
func TestRecord_WhatIsBesideADecision(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/audit.db"
	w := open(t, path, store.Options{})
	source := policy("site.test").Source()
	source.RetriedAs = "OneBot/1 (+https://bot.example/)"
	source.FetchedAt = time.Now().Add(time.Second)
	e := asked(rules.New(source, []byte("User-agent: *\nDisallow: /private\n")), "/")
	e.AlsoObey = []string{"Other-Bot", "Third"}
	e.TurnWaited, e.Outcome.Waited = 3*time.Second, 5*time.Second
	must.OK(t, w.Decided(e))
	e.Outcome = audit.Outcome{Elsewhere: true}
	w.Ended(e)
	at := time.Now().UTC().Truncate(time.Microsecond)
	events := []audit.Event{
		{Time: source.FetchedAt.UTC().Truncate(time.Microsecond), Kind: audit.RulesAsked, Site: source.Origin, Name: source.RetriedAs, Count: 1, Status: source.Status},
		{Time: at, Kind: audit.Healed, Count: 7, Detail: "audit.db-wal was removed"},
		{Time: at, Kind: audit.Bypassed, Name: "ruby", Count: 3, Detail: "to 192.0.2.1:443"},
	}
	for _, e := range events[1:] {
		w.Note(e)
	}
	must.OK(t, w.Close(""))
	w.Note(events[1]) // has no effect

	r := reader(t, path)
	err := r.Entries(&store.Filter{}, func(d *store.Entry) error {
		c, err := r.Client(d.Client)
		must.True(t, err == nil && slices.Equal(c.AlsoObey, e.AlsoObey), "obeys %v, %v", c.AlsoObey, err)
		if d.Turn != 3_000_000 || d.Waited != 5_000_000 || !d.Outcome.Elsewhere || d.Outcome.FromSite || d.Outcome.Status != 0 {
			t.Errorf("%+v %+v", d, d.Outcome)
		}
		return nil
	})
	must.OK(t, err)
	proof, err := store.Verify(t.Context(), path, nil, nil)
	must.True(t, err == nil && proof.Whole && proof.Rows["event"] == 3, "%+v, %v", proof, err)
	db := view(t, path)
	for i, e := range events {
		where := fmt.Sprintf("id = %d AND (time, kind, coalesce(name, ''), count, coalesce(status, 0), coalesce(detail, '')) = (%d, '%s', '%s', %d, %d, '%s')", i+1, e.Time.UnixMicro(), e.Kind, e.Name, e.Count, e.Status, e.Detail)
		must.Equal(t, count(t, db, "SELECT count(*) FROM event WHERE "+where), 1, "no event has %s", where)
	}
	n := count(t, db, "SELECT count(*) FROM decisions WHERE also_obey = 'Other-Bot Third' AND turn_s = 3 AND waited_s = 5 AND status = 0 AND from_site IS NULL")
	must.True(t, n == 1, "the view has %d", n)
}
