package store

import (
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

// pruned returns a pruner of m, whose end the test does not write to any more.
func (m *made) pruner(l limits) *pruner {
	m.t.Helper()
	b := must.Get(openDatabase(m.path, moment(m.now()), "", ""))(m.t)
	m.t.Cleanup(func() { b.close() })
	return &pruner{db: b, limits: l, tail: func() int64 { return 0 }, newPart: func() {}}
}

// prune prunes until there is nothing to do, and verifies after most steps.
func (m *made) prune(p *pruner) (steps int) {
	m.t.Helper()
	for more := true; more; steps++ {
		var err error
		more, err = p.step(moment(m.now()))
		must.Need(m.t, err == nil, "%v", err)
		if steps > 5 && steps%20 > 0 && more {
			continue
		}
		proof := prove(m.t, m.path)
		must.Need(m.t, proof.Whole, "after step %d: %v", steps, proof.Damage)
		must.Need(m.t, steps <= 1000, "it does not end")
	}
	return steps
}

func (m *made) count(query string, args ...any) (n int64) {
	m.t.Helper()
	must.OK(m.t, m.db.QueryRow(query, args...).Scan(&n))
	return n
}

// TestHeed_WhatIsTooOldGoesAndTheRestStaysProved: entries, outcomes, and the
// names and robots.txt files that no row refers to any more.
func TestHeed_WhatIsTooOldGoesAndTheRestStaysProved(t *testing.T) {
	t.Parallel()
	all := max(2000, entriesOf(5000))
	m := newMade(t).entries(all) // ten in a second
	seal := &Seal{Hash: m.before.hash.String()}
	bodies := m.count("SELECT count(*) FROM body")
	p := m.pruner(limits{keep: 100 * time.Second})
	m.prune(p)
	left := m.count("SELECT count(*) FROM entry")
	must.True(t, left >= 1000 && left <= 1310, "%d entries are left of those of 100 seconds", left)
	end := m.count("SELECT min(time) FROM entry")
	must.True(t, m.now()-end <= 131e6, "the oldest entry is %v old", time.Duration(m.now()-end)*time.Microsecond)
	proof := prove(t, m.path, seal)
	must.Need(t, proof.Whole && proof.Sealed[0].Found, "%v", proof.Damage)
	r := proof.Pruned
	must.True(t, r != nil && r.Entries+left == int64(all) && r.From == moment(day) && proof.Head.Entries == int64(all),
		"pruned %+v, head %+v, %d left", r, proof.Head, left)
	unused := m.count("SELECT count(*) FROM body WHERE id NOT IN (SELECT body FROM snapshot)")
	if now := m.count("SELECT count(*) FROM body"); unused > 0 || now > bodies {
		t.Errorf("of %d robots.txt files %d are left, %d of them without a reference", bodies, now, unused)
	}
	gone := m.count("SELECT count(*) FROM asker WHERE id NOT IN (SELECT asker FROM entry)")
	must.True(t, gone <= 2, "%d askers are left that no decision names", gone)
	must.Equal(t, m.prune(p), 1, "steps when pruned again at the same time")
}

// TestHeed_OutcomesOfPrunedDecisionsStayUntilTheirCommitGoes: a long exchange
// ends after its decision was removed.
func TestHeed_OutcomesOfPrunedDecisionsStayUntilTheirCommitGoes(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(max(250, entriesOf(500)))
	long := m.open
	m.open = nil
	m.entries(max(750, entriesOf(1500)))
	m.open = long
	m.end(len(long))
	m.commit(nil)
	m.recount()
	m.prune(m.pruner(limits{keep: 20 * time.Second}))
	n := m.count("SELECT count(*) FROM outcome WHERE entry NOT IN (SELECT seq FROM entry)")
	must.True(t, n != 0, "no outcome is left of a decision that was pruned")
}

// TestHeed_ASealProvesWhatPruningLeft: a program that can write to the file can add a
// commit that says that others were pruned, and prove by it names that he changed.
// Of what was sealed before, nothing of that is believed.
func TestHeed_ASealProvesWhatPruningLeft(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(max(1500, entriesOf(3000)))
	seal := &Seal{Hash: m.before.hash.String()}
	p := m.pruner(limits{keep: 100 * time.Second})
	m.prune(p)
	proof := prove(t, m.path, seal)
	must.Need(t, proof.Whole, "pruned as heed does it: %v", proof.Damage)
	s, err := p.db.stub()
	must.Need(t, err == nil && s.Through != 0 && len(s.Kept) == 0, "the stub is %+v: %v", s, err)
	m.exec("UPDATE ground SET detail = 'forged' WHERE id = (SELECT min(id) FROM ground)")
	m.half(p)
	if proof := prove(t, m.path, seal); proof.Whole || !strings.Contains(proof.Damage.What, "proved by commit") {
		t.Errorf("names were changed under a sealed head: %v", proof.Damage)
	}
}

// TestHeed_AHalfRemovedPartIsFinishedByTheNext: heed ended while it pruned.
func TestHeed_AHalfRemovedPartIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(900)
	m.anew()
	m.commit(nil)
	p := m.pruner(limits{keep: time.Second})
	target, _, err := p.db.partEnd(1)
	must.Need(t, err == nil && target >= 3, "the first part ends with commit %d: %v", target, err)
	m.half(p)
	half := m.count("SELECT count(*) FROM ground")
	p.db.close()
	next := m.pruner(limits{keep: 1000 * time.Hour})
	m.prune(next)
	s, err := next.db.stub()
	must.True(t, err == nil && len(s.Kept) == 0 && s.Through == target,
		"the stub is %+v (%v), and the part ends with commit %d", s, err, target)
	now := m.count("SELECT count(*) FROM ground")
	must.True(t, now < half, "%d grounds are left of %d", now, half)
}

// half removes the first two commits there are, and leaves their names.
func (m *made) half(p *pruner) {
	m.t.Helper()
	must.OK(m.t, p.db.InTransaction(func() error {
		s, err := p.db.stub()
		if err != nil {
			return err
		}
		to, err := p.db.oldest(s, s.Through+2)
		if err != nil {
			return err
		}
		if err := p.db.removeCommits(s, to); err != nil {
			return err
		}
		return p.db.addStub(s, moment(m.now()))
	}))
}
