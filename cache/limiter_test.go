package cache

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// stay is a fetch in a fetchLimiter that lasts as long as told, or until told to end.
type stay struct {
	began, ended chan struct{}
	err          error // why it never began, or was told to end
}

func enter(t *testing.T, l *fetchLimiter, site string, lasts time.Duration) *stay {
	s := &stay{began: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		ctx, end := context.WithCancelCause(t.Context())
		wait, cancel := context.WithTimeout(ctx, 15*time.Second)
		defer cancel()
		p, err := l.enter(wait, site, end)
		if err != nil {
			s.err = err
			return
		}
		defer p.leave()
		close(s.began)
		select {
		case <-ctx.Done():
			s.err = context.Cause(ctx)
		case <-time.After(lasts):
		}
	}()
	synctest.Wait()
	return s
}

func (s *stay) running() bool {
	select {
	case <-s.ended:
		return false
	default:
	}
	select {
	case <-s.began:
		return true
	default:
		return false
	}
}

func newLane() *fetchLimiter {
	return &fetchLimiter{most: 4, mostOfSite: 2, mostWaiting: 6, mostWaitingSite: 3, slowAfter: 5 * time.Second}
}

// empty fails the test unless nothing is left of what went through l.
func (l *fetchLimiter) empty(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if l.running+l.ending+len(l.sites)+len(l.slow)+len(l.waiting) != 0 {
		t.Errorf("left behind: running %d, ending %d, sites %v, slow %d, waiting %d",
			l.running, l.ending, l.sites, len(l.slow), len(l.waiting))
	}
}

func TestLane_ASiteHasNoMoreThanItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane()
		slow := []*stay{}
		for range 3 {
			slow = append(slow, enter(t, l, "slow.test", 10*time.Second))
		}
		must.True(t, slow[0].running() && slow[1].running() && !slow[2].running(),
			"the third of a site runs beside the two it may have")
		other := enter(t, l, "other.test", time.Second)
		must.True(t, other.running(), "another site waits behind a slow one")
		<-slow[2].ended
		must.True(t, slow[0].err == nil && slow[2].err == nil, "%v, %v", slow[0].err, slow[2].err)
		l.empty(t)
	})
}

func TestLane_ThoseWhoWaitAreLetInInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane()
		for n := range 4 {
			enter(t, l, fmt.Sprint(n), time.Second)
		}
		var waiting []*stay
		for n := range 3 {
			waiting = append(waiting, enter(t, l, fmt.Sprint("later", n), time.Second))
		}
		for n, s := range waiting {
			must.True(t, !s.running(), "%d runs in a full lane", n)
		}
		<-waiting[0].began
		<-waiting[2].ended
		l.empty(t)
	})
}

// However many slow sites there are, another waits for them no longer than the
// patience of the fetchLimiter.
func TestLane_TheSlowGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane()
		var slow []*stay
		for n := range 4 {
			slow = append(slow, enter(t, l, fmt.Sprint("slow", n), 14*time.Second))
			testkit.Advance(time.Millisecond)
		}
		begun := time.Now()
		first := enter(t, l, "quick.test", time.Millisecond)
		<-first.ended
		took := time.Since(begun)
		must.True(t, first.err == nil && took <= 5*time.Second+time.Millisecond, "a quick site waited %s: %v", took, first.err)
		<-slow[0].ended
		must.True(t, errors.Is(slow[0].err, errTooSlow), "the slowest: %v", slow[0].err)
		for n, s := range slow[1:] {
			must.True(t, s.running(), "slow site %d was ended although no fetch waited for its slot", n+1)
		}
		must.True(t, enter(t, l, "quick.test", time.Millisecond).running(),
			"a slot is free, and the fetch that waits for it does not start")
		<-slow[3].ended
		l.empty(t)
	})
}

// Who waits for its own site has no right to the ticket of another.
func TestLane_NoFetchGivesWayToASiteThatHasItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane()
		steady := []*stay{enter(t, l, "a.test", 9*time.Second), enter(t, l, "b.test", 9*time.Second)}
		for range 4 {
			enter(t, l, "greedy.test", 9*time.Second)
		}
		for _, s := range steady {
			if <-s.ended; s.err != nil {
				t.Errorf("a steady one: %v", s.err)
			}
		}
		testkit.Advance(time.Minute)
		l.empty(t)
	})
}

func TestLane_TheQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane()
		for range 5 {
			enter(t, l, "a.test", time.Second)
		}
		s := enter(t, l, "a.test", time.Second)
		must.True(t, errors.Is(s.err, errFull), "the fourth of a site to wait: %v", s.err)
		enter(t, l, "b.test", time.Second)
		enter(t, l, "c.test", time.Second)
		for n := range 3 {
			enter(t, l, fmt.Sprint("more", n), time.Second)
		}
		s = enter(t, l, "last.test", time.Second)
		must.True(t, errors.Is(s.err, errFull), "the seventh to wait: %v", s.err)
		testkit.Advance(time.Minute)
		l.empty(t)
	})
}

func TestLane_WhoWaitsTooLongLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane()
		l.slowAfter = time.Hour
		for n := range 4 {
			enter(t, l, fmt.Sprint(n), 20*time.Second)
		}
		s := enter(t, l, "late.test", time.Second)
		if <-s.ended; !errors.Is(s.err, context.DeadlineExceeded) {
			t.Errorf("%v", s.err)
		}
		must.Equal(t, len(l.waiting), 0, "it still waits")
		testkit.Advance(time.Minute)
		l.empty(t)
	})
}

func TestLane_LetInWhileGivingUpIsLetOutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane()
		_, end := context.WithCancelCause(t.Context())
		p := &ticket{by: l, site: "a.test", end: end, in: make(chan struct{})}
		err := l.queue(p)
		must.Need(t, err == nil && l.running == 1, "%v", err)
		l.withdraw(p)
		l.empty(t)
	})
}

func TestHeed_SitesByWhoIsBehindThem(t *testing.T) {
	for host, want := range map[string]string{
		"a.b.example.com": "example.com", "example.com": "example.com", "x.example.co.uk": "example.co.uk",
		"me.github.io": "me.github.io", "localhost": "localhost", "com": "com",
		"192.0.2.77": "192.0.2.0/24", "2001:db8:1:2::3": "2001:db8:1::/48",
	} {
		must.Equal(t, siteOf(host), want, host)
	}
}
