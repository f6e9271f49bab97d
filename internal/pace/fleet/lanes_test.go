package fleet_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/pace"
	"heed/internal/pace/fleet"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

const delay = 500 * time.Millisecond

// member takes turns at one host with a ticket of its own.
type member struct {
	t      *testing.T
	lanes  *fleet.Lanes
	host   string
	ticket string
}

// lineUp opens the store for some heeds.
func lineUp(t *testing.T, url string, heeds int) (all []*member) {
	t.Helper()
	for range heeds {
		s, _ := open(t, url)
		all = append(all, &member{t, s.Lanes(), tag, "ticket"})
	}
	return all
}

func of(names ...string) (lanes []pace.Lane) {
	for _, name := range names {
		lanes = append(lanes, pace.Lane{Name: name, Delay: delay})
	}
	return lanes
}

func (m *member) at(host string) *member { return &member{m.t, m.lanes, host, m.ticket} }

// away reports whether it does without the store.
func (m *member) away() bool { return m.ask(of("any")).Away }

func (m *member) ask(lanes []pace.Lane) pace.SharedAnswer {
	m.t.Helper()
	return m.lanes.Ask(m.t.Context(), m.host, m.ticket, lanes)
}

// take waits for its turn.
func (m *member) take(lanes []pace.Lane) {
	m.t.Helper()
	late := time.After(testkit.Patience)
	for {
		answer := m.ask(lanes)
		if answer.Now {
			return
		}
		select {
		case <-time.After(answer.Again):
		case <-late:
			m.t.Errorf("no turn within %v; the last answer was %+v", testkit.Patience, answer)
			return
		}
	}
}

func (m *member) start(lanes []pace.Lane) {
	m.t.Helper()
	must.OK(m.t, m.lanes.Started(m.t.Context(), m.host, m.ticket, lanes, 0))
}

func (m *member) leave(lanes []pace.Lane) {
	m.t.Helper()
	must.OK(m.t, m.lanes.Leave(m.t.Context(), m.host, m.ticket, lanes))
}

// startsOf has each heed start n requests, one after the other, at one site, and returns when
// they did, and which. reported gets what became of the report of each start.
func startsOf(all []*member, n int, reported func(error)) (starts []time.Time, who []int) {
	var mu sync.Mutex
	var running sync.WaitGroup
	for i, m := range all {
		running.Go(func() {
			for range n {
				m.take(of("group"))
				mu.Lock()
				starts, who = append(starts, time.Now()), append(who, i)
				mu.Unlock()
				reported(m.lanes.Started(m.t.Context(), m.host, m.ticket, of("group"), 0))
			}
		})
	}
	running.Wait()
	return starts, who
}

// apart fails the test where a start came sooner than least after the one before it.
func apart(t *testing.T, starts []time.Time, least time.Duration) {
	t.Helper()
	for i := 1; i < len(starts); i++ {
		gap := starts[i].Sub(starts[i-1])
		must.True(t, gap >= least, "start %d of %d came %v after the one before it", i, len(starts), gap)
	}
}

// settled waits until a store that has just started has no past that might
// count.
func settled(m *member) {
	m.t.Helper()
	other, past := m.at("https://settled.test"), []pace.Lane{{Name: "settled", Delay: 3 * time.Second}}
	other.take(past)
	other.leave(past)
}

func TestHeed_TurnsOfThreeHeedsAreADelayApartAndFair(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	all := lineUp(t, "redis://"+server.Addr, 3)
	for _, m := range all {
		settled(m)
	}
	starts, who := startsOf(all, 5, func(err error) { must.True(t, err == nil, "%v", err) })
	apart(t, starts, delay-5*time.Millisecond)
	for i := 3; i+3 < len(who); i += 3 { // the first may come before others have asked
		if who[i] == who[i+1] || who[i+1] == who[i+2] || who[i] == who[i+2] {
			t.Errorf("one passed another: %v", who)
			break
		}
	}
	left := server.Count("pttl", "heed:1:{"+tag+"}:turns")
	must.True(t, left >= 0 && left <= int(2*time.Hour.Milliseconds()), "the turns lie there for %d ms", left)
}

// The delay begins when the start is reported, not when the turn is given.
func TestHeed_ATurnBeginsWithItsStart(t *testing.T) {
	t.Parallel()
	all := lineUp(t, "redis://"+testkit.NewRedis(t).Addr, 2)
	slow, next := all[0], all[1]
	slow.take(of("group"))
	must.Need(t, !next.ask(of("group")).Now, "two may start at once")
	begun := time.Now()
	got := make(chan time.Time)
	go func() {
		next.take(of("group"))
		got <- time.Now()
	}()
	testkit.Until(t, "more than a delay passes", func() bool { return time.Since(begun) > 3*delay/2 })
	started := time.Now()
	slow.start(of("group"))
	after := (<-got).Sub(started)
	must.True(t, after >= delay-5*time.Millisecond, "the next came %v after the start", after)
}

func TestHeed_ATurnThatIsGivenBackIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	all := lineUp(t, "redis://"+testkit.NewRedis(t).Addr, 2)
	all[0].take(of("group"))
	all[0].leave(of("group"))
	a := all[1].ask(of("group"))
	must.True(t, a.Now, "%+v", a)
}

func TestHeed_AHeedThatDiesWithATurnLetsGoAfterItsLease(t *testing.T) {
	t.Parallel()
	url := "redis://" + testkit.NewRedis(t).Addr
	dying, _ := open(t, url)
	long := []pace.Lane{{Name: "group", Delay: 3 * time.Second}}
	(&member{t, dying.Lanes(), tag, "ticket"}).take(long)
	other := lineUp(t, url, 1)[0]
	dying.Close()
	began := time.Now()
	other.take(long) // the other may have started at any moment before its end
	after := time.Since(began)
	must.True(t, after >= 6*time.Second, "the next had its turn after %v, want the lease of 4 s and the delay of 3 s", after)
}

// A connection to the site may take long to be made.
func TestHeed_ATurnThatIsHeldLongIsKept(t *testing.T) {
	t.Parallel()
	all := lineUp(t, "redis://"+testkit.NewRedis(t).Addr, 2)
	all[0].take(of("group"))
	held := time.Now()
	testkit.Until(t, "more than a lease passes", func() bool { return time.Since(held) > 5*time.Second })
	must.True(t, !all[1].ask(of("group")).Now, "a turn was taken for dead while its heed lives")
}

// A request that needs two turns gets both or none, whatever others need.
func TestHeed_TurnsInSeveralLinesDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	all := lineUp(t, "redis://"+testkit.NewRedis(t).Addr, 3)
	var running sync.WaitGroup
	for i, names := range [][]string{{"a", "b"}, {"b", "a"}, {"b", "c"}} {
		running.Go(func() {
			for range 3 {
				all[i].take(of(names...))
				all[i].start(of(names...))
			}
		})
	}
	running.Wait()
}

func TestHeed_LinesOfTheirOwnDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	m := lineUp(t, "redis://"+testkit.NewRedis(t).Addr, 1)[0]
	settled(m)
	m.take(of("a"))
	m.start(of("a"))
	a := m.ask(of("b"))
	must.True(t, a.Now, "another line: %+v", a)
	a = m.at("https://other.test").ask(of("a"))
	must.True(t, a.Now, "another host: %+v", a)
}

func TestHeed_WhatASiteAsksForHoldsAllHeeds(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	all := lineUp(t, "redis://"+server.Addr, 2)
	settled(all[0])
	heard := make(chan string, 2)
	all[1].lanes.Watch(func(host string, pause time.Duration) { heard <- fmt.Sprint(host, " ", pause.Round(time.Second)) })
	testkit.Until(t, "the other listens", func() bool { return server.Count("publish", "heed:1:pauses", "no message") == 1 })
	must.OK(t, all[0].lanes.Hold(t.Context(), tag, time.Hour))
	must.Equal(t, <-heard, tag+" 1h0m0s", "heard of")
	a := all[1].ask(of("group"))
	must.True(t, a.Pause >= 59*time.Minute && a.Wait >= a.Pause && a.Again >= a.Pause, "%+v", a)
	all[0].lanes.Watch(func(host string, pause time.Duration) { heard <- fmt.Sprint(host, " ", pause) })
	testkit.Until(t, "both listen", func() bool { return server.Count("publish", "heed:1:pauses", "no message") == 2 })
	must.OK(t, all[1].lanes.Release(t.Context(), tag))
	must.Equal(t, <-heard, tag+" 0s", "heard of")
	all[0].ask(of("group")) // what it knows is old
	a = all[1].ask(of("group"))
	must.True(t, a.Pause <= 0, "after the release: %+v", a)
}

// What one heed knows counts, though the store has lost it: it comes with the
// next question.
func TestHeed_WhatTheStoreHasLostIsSentAgain(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	all := lineUp(t, "redis://"+server.Addr, 2)
	settled(all[0])
	long := []pace.Lane{{Name: "group", Delay: time.Hour}}
	must.OK(t, all[0].lanes.Hold(t.Context(), tag, time.Hour))
	all[0].at("https://other.test").start(long) // it did not ask
	a := all[1].at("https://other.test").ask(long)
	must.True(t, !a.Now && a.Wait >= 59*time.Minute, "a start is known to all: %+v", a)
	server.Kill()
	testkit.Until(t, "it is missed", func() bool { all[0].ask(long); return all[0].away() })
	server.Restart()
	testkit.Until(t, "it is back", func() bool { return !all[0].away() })
	a = all[0].at("https://other.test").ask(long)
	must.True(t, !a.Now && a.Wait >= 59*time.Minute, "its own start: %+v", a)
	all[0].ask(long)
	a = all[1].ask(long)
	must.True(t, a.Pause >= 59*time.Minute, "the pause that the other has told again: %+v", a)
}

// A store whose clock was set back does not keep everybody waiting until it has
// caught up.
func TestHeed_AClockThatWasSetBackCostsADelay(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	m := lineUp(t, "redis://"+server.Addr, 1)[0]
	settled(m)
	later := fmt.Sprint(time.Now().Add(24 * time.Hour).UnixMilli())
	m.ask(of("group"))
	key := "heed:1:{" + tag + "}:turns"
	for line := range strings.FieldsSeq(server.CLI("hkeys", key)) {
		if strings.HasPrefix(line, "l:") {
			server.CLI("hset", key, "s:"+line[2:], later, "moved", later, "floor", later)
		}
	}
	m.start(of("group"))
	m.take(of("group"))
	a := m.ask([]pace.Lane{{Name: "group", Delay: time.Hour}})
	must.True(t, a.Wait <= 2*time.Hour, "%+v", a)
}

// A robots.txt is fetched for all, and counts for all.
func TestHeed_AFetchMovesTheClockOfAllLines(t *testing.T) {
	t.Parallel()
	all := lineUp(t, "redis://"+testkit.NewRedis(t).Addr, 2)
	settled(all[0])
	must.OK(t, all[0].lanes.Moved(t.Context(), tag))
	for _, line := range []string{"a", "b"} {
		a := all[1].ask([]pace.Lane{{Name: line, Delay: time.Hour}})
		must.True(t, !a.Now && a.Wait >= 59*time.Minute, "%+v", a)
	}
}

func TestHeed_AClientThatLeavesDelaysNoOther(t *testing.T) {
	t.Parallel()
	all := lineUp(t, "redis://"+testkit.NewRedis(t).Addr, 3)
	settled(all[0])
	all[0].take(of("group"))
	all[1].ask(of("group"))
	a := all[2].ask(of("group"))
	must.True(t, a.Others == 1 && a.Wait > 0, "with one before it: %+v", a)
	all[1].leave(of("group"))
	a = all[2].ask(of("group"))
	must.True(t, a.Others == 0, "when that has left: %+v", a)
}

// A store that starts again may have lost the last starts, so a delay passes before the
// first start; the same holds when another store takes over.
func TestHeed_NoBurstAfterAStoreHasStartedAgain(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	m := lineUp(t, "redis://"+server.Addr, 1)[0]
	settled(m)
	m.take(of("group"))
	m.start(of("group"))
	server.Kill()
	restarted := time.Now()
	server.Restart()
	lineUp(t, "redis://"+server.Addr, 1)[0].take(of("group")) // a heed that knows nothing itself
	after := time.Since(restarted)
	must.True(t, after >= delay, "the first start came %v after the server's", after)
	other := m.at("https://other.test")
	other.take(of("group"))
	other.leave(of("group"))
	server.CLI("hset", "heed:1:{https://other.test}:turns", "run", "that-has-died")
	must.True(t, !other.ask(of("group")).Now, "a start without a pause after another server took over")
	other.take(of("group"))
}

func TestHeed_TurnsHaveABound(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	m := lineUp(t, "redis://"+server.Addr, 1)[0]
	must.OK(t, m.lanes.Hold(t.Context(), tag, time.Hour))
	for i := range 1100 {
		m.ticket = fmt.Sprint("ticket ", i)
		a := m.ask(of("group"))
		must.Need(t, !a.Now, "%+v", a)
	}
	n := server.Count("hlen", "heed:1:{"+tag+"}:turns")
	must.True(t, n <= 1030, "%d fields", n)
}

func TestHeed_WithoutTheStoreEachHeedKeepsTheDelayForAll(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	url := "redis://" + server.Addr
	one, log := open(t, url)
	other, _ := open(t, url)
	all := []*member{{t, one.Lanes(), tag, "ticket"}, {t, other.Lanes(), tag, "ticket"}}
	testkit.Until(t, "both are counted", func() bool { return one.Health().Heeds == 2 && other.Health().Heeds == 2 })
	server.Kill()
	starts, _ := startsOf(all, 3, func(err error) { must.Equal(t, err, fleet.ErrAway) })
	apart(t, starts, delay-20*time.Millisecond)
	must.True(t, log.count("turns are not shared") == 1 && log.count("heeds=2") == 1, "the log says:\n%s", log.text.String())
	back := time.Now()
	server.Restart()
	testkit.Until(t, "turns are shared again", func() bool { return log.count("turns are shared again") == 1 })
	all[0].take(of("group"))
	after := time.Since(back)
	must.True(t, after >= delay, "the first start came %v after the return", after)
}

// A heed that ends is not counted any more; one that is killed is, for a while.
func TestHeed_HeedsAreCountedWhileTheyAreThere(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	url := "redis://" + server.Addr
	ending, _ := open(t, url)
	ending.Lanes()
	other, _ := open(t, url)
	other.Lanes()
	testkit.Until(t, "both are counted", func() bool { return ending.Health().Heeds == 2 && other.Health().Heeds == 2 })
	ending.Close()
	must.Equal(t, server.Count("hlen", "heed:1:heeds"), 1, "heeds in the store after the end of one of two")
	testkit.Until(t, "one is counted", func() bool { return other.Health().Heeds == 1 })
}

// A heed that starts while the store is away goes by what it knew before.
func TestHeed_AHeedThatStartsWithoutTheStoreKeepsTheDelayForAll(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	server.Kill()
	store, _ := open(t, "redis://"+server.Addr)
	m := &member{t, store.Lanes(), tag, "ticket"}
	m.lanes.Expect(fleet.Membership{Store: server.Addr, Place: 1, Size: 3, Heeds: 3, Ahead: time.Hour})
	s := m.lanes.Membership()
	must.True(t, s.Place == 1 && s.Size == 3 && s.Heeds == 3 && (s.Ahead-time.Hour).Abs() <= time.Millisecond, "%+v", s)
	m.take(of("group"))
	started := time.Now()
	_ = m.lanes.Started(t.Context(), tag, m.ticket, of("group"), 0) // it is away
	a := m.ask(of("group"))
	must.True(t, a.Wait >= 3*delay-time.Since(started) && a.Wait <= 4*delay, "the next turn: %+v", a)
	server.Restart()
	testkit.Until(t, "it sees the store", func() bool { return m.lanes.Membership().Heeds == 1 })
	m.lanes.Expect(fleet.Membership{Store: server.Addr, Size: 3, Heeds: 3}) // too late
	s = m.lanes.Membership()
	must.True(t, s.Heeds == 1 && s.Ahead.Abs() <= time.Minute, "%+v", s)
}
