package fleet

import (
	"testing"
	"time"

	"heed/internal/pace"
	"heed/internal/tools/testkit/must"
)

// theirClock is a store's clock that is far from ours.
var theirClock = time.Unix(1_000_000_000, 0)

// placesOf are those of some heeds that read the store's clock at a time.
func placesOf(size int, at time.Time) (all []member) {
	for i := range size {
		all = append(all, member{}.with(i, size, size, theirClock, at, at))
	}
	return all
}

// Each heed has as much to do as it may: for minutes they start what they can.
func TestHeed_HeedsByThemselvesDoNotMeet(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 10 * time.Second, time.Minute} {
		begun := time.Now()
		away := begun.Add(time.Minute)
		last, lastOf := away, make([]time.Time, 3)
		counts := make([]int, 3)
		places := placesOf(3, begun)
		for now := away; now.Before(away.Add(100 * delay)); now = now.Add(5 * time.Millisecond) {
			for i := range places {
				a := localState{lanes: []pace.Lane{{Delay: delay}}, starts: lastOf[i : i+1], since: away}
				if places[i].waitAlone(&a, now) > 0 {
					continue
				}
				gap := now.Sub(last)
				must.Need(t, gap >= delay, "delay %v: two started %v apart", delay, gap)
				gap = now.Sub(lastOf[i])
				must.Need(t, lastOf[i].IsZero() || gap >= 3*delay, "delay %v: one started two %v apart", delay, gap)
				last, lastOf[i] = now, now
				counts[i]++
			}
		}
		for i, n := range counts {
			must.True(t, n >= 20, "delay %v: heed %d started %d in a hundred delays", delay, i, n)
		}
	}
}

func TestHeed_TheWaitOfAHeedByItselfIsTrue(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	places := placesOf(4, begun)
	for i := range places {
		a := localState{
			lanes: []pace.Lane{{Delay: 3 * time.Second}, {Delay: time.Second}}, starts: []time.Time{{}, begun},
			hold: begun.Add(time.Minute), since: begun,
		}
		wait := places[i].waitAlone(&a, begun)
		must.True(t, wait >= time.Minute, "place %d: %v, in which the site wants to be left alone", i, wait)
		must.Equal(t, places[i].waitAlone(&a, begun.Add(wait)), 0, "place %d: told to come after %v, and then to wait", i, wait)
		early := places[i].waitAlone(&a, begun.Add(wait-time.Millisecond))
		must.True(t, early != 0, "place %d: a millisecond earlier would have done", i)
	}
}

func TestHeed_AHeedThatNeverSawTheStoreKeepsTheDelay(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	p := member{Membership: Membership{Size: 1}}
	a := localState{lanes: []pace.Lane{{Delay: 10 * time.Second}}, starts: []time.Time{begun}, since: begun.Add(-time.Hour)}
	must.Equal(t, p.waitAlone(&a, begun.Add(time.Second)), 9*time.Second, "wait")
	a.starts[0], a.since = time.Time{}, begun
	wait := p.waitAlone(&a, begun)
	must.True(t, wait >= noticeTime, "a start %v after the store was lost", wait)
}

// While a node of a Cluster is unreachable, heeds that use another node come and go: what
// one starts by the old count is a delay away from what another starts by the new one.
func TestHeed_AChangedCountCostsAPause(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	p := placesOf(2, begun)[0]
	later := begun.Add(time.Minute)
	p = p.with(0, 3, 3, theirClock.Add(time.Minute), later, later)
	a := localState{lanes: []pace.Lane{{Delay: time.Second}}, starts: []time.Time{{}}, since: begun}
	wait := p.waitAlone(&a, later)
	must.True(t, wait >= noticeTime+time.Second, "wait %v", wait)
}

func TestHeed_TheBestReadingOfTheStoresClockCounts(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	p := member{}.with(0, 2, 2, theirClock, begun, begun.Add(10*time.Millisecond))
	q := p.with(1, 3, 3, theirClock.Add(time.Hour), begun.Add(time.Second), begun.Add(2*time.Second))
	must.True(t, q.clock.Equal(p.clock) && q.Place == 1 && q.Size == 3, "a slow answer counts: %+v", q)
	q = q.with(1, 3, 3, theirClock, begun.Add(time.Second), begun.Add(time.Second))
	must.True(t, q.uncertainty == 0, "a fast answer does not count: %+v", q)
	q = p.with(0, 2, 2, theirClock, begun.Add(time.Hour), begun.Add(time.Hour+time.Second))
	must.True(t, q.uncertainty == time.Second/2, "an old reading replaces a better new one: %+v", q)
}

// A request that starts as late in its slot as it may keeps its distance from the next
// heed's, and more by what the clocks may differ.
func TestHeed_AStartWithoutTheStoreIsNotTooLate(t *testing.T) {
	t.Parallel()
	for delay, clocks := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 25 * time.Millisecond, 400 * time.Millisecond: 25 * time.Millisecond,
		4 * time.Second: 250 * time.Millisecond, time.Minute: 500 * time.Millisecond,
	} {
		begun, lanes := time.Now(), []pace.Lane{{Delay: delay}}
		places := placesOf(2, begun)
		start := func(p *member, now time.Time) time.Time {
			a := localState{lanes: lanes, starts: []time.Time{{}}, since: begun}
			return now.Add(p.waitAlone(&a, now))
		}
		given := start(&places[0], begun.Add(10*time.Minute)) // into its slot, or at its beginning
		for {
			until := places[0].lastStart(lanes, given)
			must.True(t, !until.Before(given), "delay %v: the turn is over %v before it is given", delay, given.Sub(until))
			if gap := start(&places[1], until).Sub(until) - delay; gap < clocks || gap > clocks+2*time.Millisecond {
				t.Errorf("delay %v: the last start in a slot leaves %v, want %v", delay, gap, clocks)
			}
			next := given.Add(time.Millisecond)
			if !start(&places[0], next).Equal(next) {
				break
			}
			given = next
		}
	}
	alone := placesOf(1, time.Now())[0]
	until := alone.lastStart([]pace.Lane{{Delay: time.Second}}, time.Now())
	must.True(t, until.IsZero(), "the only heed may start until %v", until)
}
