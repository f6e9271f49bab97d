package store

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/counts"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func TestHeed_APeriodOfCountsIsOneOfTheRunningHeed(t *testing.T) {
	t.Parallel()
	must.Equal(t, countPeriod, counts.PeriodLength.Microseconds(), "and %v", counts.PeriodLength)
}

// mixed makes decisions of all kinds that counts has to follow: of several clients and sites
// and periods, that fail, that have a late verdict, that another decision takes back, in the
// same commit or in a later one, and whose exchange goes on when heed is stopped or killed.
type mixed struct {
	t      testing.TB
	random *rand.Rand
	open   []*audit.Entry
	past   []*audit.Entry
}

func (m *mixed) decide(w *Writer, n int, from time.Time) {
	m.t.Helper()
	for i := range n {
		e := request(i % 7)
		e.ID, e.Time, e.Host = audit.NewID(), from.Add(time.Duration(i)*time.Second), fmt.Sprintf("s%d.test", m.random.IntN(4))
		if e.Client = fmt.Sprintf("192.0.2.%d:1", m.random.IntN(3)); m.random.IntN(9) == 0 {
			e.Host = ""
		}
		if len(m.past) > 0 && m.random.IntN(4) == 0 {
			by := m.past[m.random.IntN(len(m.past))]
			e.Revises = &by.ID
		}
		must.OK(m.t, w.Decided(e))
		m.open, m.past = append(m.open, e), append(m.past, e)
		if m.random.IntN(40) == 0 {
			must.OK(m.t, w.Complete())
		}
		if m.random.IntN(3) > 0 {
			continue
		}
		at := m.random.IntN(len(m.open))
		e = m.open[at]
		m.open = append(m.open[:at], m.open[at+1:]...)
		switch m.random.IntN(3) {
		case 0:
			e.Outcome = audit.Outcome{Status: 502, Err: "no route"}
		case 1:
			e.Outcome = audit.Outcome{Status: 200, FromSite: true, Late: &rules.Decision{Verdict: rules.WouldRefuse, Reason: rules.ReasonRule, Rule: "Disallow: /", Line: 2}}
		default:
			e.Outcome = audit.Outcome{Status: 503, FromSite: true}
		}
		w.Ended(e)
	}
}

// killed returns a copy of the record as a kill leaves it.
func (m *mixed) killed(w *Writer) string {
	w.completing.Lock()
	defer w.completing.Unlock()
	return killed(m.t.(*testing.T), w.path)
}

// mustConnect connects to a record that no heed has open.
func mustConnect(t *testing.T, path string) *conn {
	t.Helper()
	c := must.Get(connect(path, "rwc"))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// The numbers in counts are those of the decisions after each commit, after a kill and
// between the steps in which a record is pruned.
func TestCounts_AreThoseOfTheDecisions(t *testing.T) {
	t.Parallel()
	m := &mixed{t: t, random: rand.New(rand.NewPCG(3, 4))}
	path := filepath.Join(t.TempDir(), "audit.db")
	begin := time.Now().Add(-2 * time.Hour).Truncate(time.Hour)
	whole := func(when string) {
		t.Helper()
		proof := prove(t, path)
		must.Need(t, proof.Whole, "%s: %v", when, proof.Damage)
	}
	for part := range 4 {
		w := mustOpen(t, path, Options{})
		m.decide(w, 300, begin.Add(time.Duration(part)*5*time.Minute))
		switch part {
		case 0:
			path = m.killed(w)
		default:
			must.OK(t, w.Close("it is stopping"))
			m.open = nil
		}
		whole(fmt.Sprintf("part %d", part))
	}
	whole("at the end")
	db := mustConnect(t, path)
	for what, query := range map[string]string{
		"rows":       "SELECT count(*) FROM counts WHERE requests > 0",
		"failures":   "SELECT count(*) FROM counts WHERE failed AND requests > 0",
		"periods":    "SELECT count(DISTINCT period) - 1 FROM counts WHERE requests > 0",
		"rows of 0":  "SELECT count(*) FROM counts WHERE requests = 0",
		"as many":    "SELECT (SELECT sum(requests) FROM counts) = (SELECT count(*) FROM standing)",
		"with class": "SELECT count(*) FROM counts JOIN ground ON id = ground WHERE verdict = 'would-refuse' AND requests > 0",
	} {
		n, err := db.integer(query)
		must.True(t, n >= 1 && err == nil, "%s: %d, %v", what, n, err)
	}
	db.Close()
	b, err := openDatabase(path, begin, "", "")
	must.OK(t, err)
	defer b.close()
	p := &pruner{db: b, limits: limits{keep: time.Minute}, tail: func() int64 { return 0 }, newPart: func() {}}
	for more := true; more; {
		more, err = p.step(time.Now().Add(time.Hour))
		must.Need(t, err == nil, "%v", err)
		whole("while it is pruned")
	}
	n, err := b.integer("SELECT count(*) FROM entry")
	must.True(t, n != 0 && n <= 400 && err == nil, "%d decisions are left, %v", n, err)
	n, err = b.integer("SELECT count(*) FROM counts WHERE period < (SELECT min(time) FROM entry) / " + fmt.Sprint(countPeriod))
	must.True(t, n == 0 && err == nil, "%d rows are left of removed decisions, %v", n, err)
}

// Whatever is changed in counts is found.
func TestVerify_CountsThatWereChanged(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(300)
	for _, change := range []string{
		"UPDATE counts SET requests = requests + 1 WHERE rowid_of", "DELETE FROM counts WHERE rowid_of", "UPDATE counts SET failed = 1 WHERE rowid_of",
		"UPDATE counts SET last = last - 900 WHERE rowid_of", "UPDATE counts SET last = last + 900 WHERE rowid_of",
		"INSERT INTO counts VALUES (0, 1, 1, 1, 0, 1, 1)", "UPDATE counts SET last = 1 + (SELECT max(time) % 900000000 / 1000000 FROM entry) WHERE rowid_of",
		"INSERT INTO counts SELECT period, 999, site, ground, 0, 0, last FROM counts LIMIT 1", "UPDATE counts SET requests = 'many' WHERE rowid_of", "DROP INDEX revised", "DROP TABLE counts",
	} {
		path := m.copy()
		c := mustConnect(t, path)
		query := strings.Replace(change, "rowid_of", "(period, asker, site, ground, failed) = (SELECT period, asker, site, ground, failed FROM counts WHERE requests > 0 LIMIT 1)", 1)
		must.Get(c.Exec(query))(t)
		c.Close()
		proof := prove(t, path)
		must.True(t, !proof.Whole, "%s is not found", change)
	}
}
