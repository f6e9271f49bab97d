package counts

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func entry(at time.Time, host string, change func(*audit.Entry)) *audit.Entry {
	e := &audit.Entry{Time: at, Scheme: "http", Host: host, Decision: rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonNoRule}}
	e.Outcome.FromSite, e.Outcome.Status = true, 200
	if change != nil {
		change(e)
	}
	return e
}

func dead(e *audit.Entry) {
	e.Decision = rules.Decision{Verdict: rules.Refuse, Reason: rules.ReasonOriginUnreachable}
	e.Outcome.FromSite, e.Outcome.Status = false, 502
}

func broken(e *audit.Entry) {
	e.Outcome.FromSite, e.Outcome.Status = false, 502
	e.Outcome.End(audit.BySite, "connection_refused: no")
}

func refused(e *audit.Entry) {
	e.Decision = rules.Decision{Verdict: rules.Refuse, Reason: rules.ReasonRule}
	e.Outcome.FromSite, e.Outcome.Status = false, 403
}

func TestReach_ManySitesFailOnlyWhenMoreThanHalfOfFiveDo(t *testing.T) {
	start := time.Now()
	for _, c := range []struct {
		well, dead, broken, refused int
		ill                         bool
	}{
		{well: 4, dead: 1}, {dead: 1}, {dead: 4}, {dead: 5, ill: true}, {well: 3, dead: 3}, {well: 3, dead: 2, broken: 2, ill: true},
		{refused: 20, dead: 4}, {well: 2, refused: 9, broken: 3, ill: true},
	} {
		tracker := New(nil)
		i := 0
		add := func(n int, change func(*audit.Entry)) {
			for range n {
				i++
				tracker.Ended(entry(start, fmt.Sprintf("s%d.test", i), change))
				tracker.Ended(entry(start, fmt.Sprintf("s%d.test", i), change))
			}
		}
		add(c.well, nil)
		add(c.dead, dead)
		add(c.broken, broken)
		add(c.refused, refused)
		s := tracker.Reach(start.Add(ReachWindow / 2))
		if s.ManyFail() != c.ill || s.Failed != c.dead+c.broken || s.Asked != c.well+c.dead+c.broken || len(s.Sites) != s.Failed {
			t.Errorf("%+v: %+v", c, s)
		}
		s = tracker.Reach(start.Add(ReachWindow + time.Second))
		must.True(t, s.Asked == 0 && !s.ManyFail(), "%+v, later: %+v", c, s)
	}
}

func TestReach_ASiteThatIsBackCountsAsReached(t *testing.T) {
	tracker := New(nil)
	now := time.Now()
	tracker.Ended(entry(now, "s.test", dead))
	tracker.Ended(entry(now, "s.test", nil))
	s := tracker.Reach(now)
	must.True(t, s.Asked == 1 && s.Failed == 0, "%+v", s)
}

func TestReach_AProxyFailsUntilItWorks(t *testing.T) {
	tracker := New(nil)
	tracker.ProxyUsed("p.test:1", errors.New("first"))
	tracker.ProxyUsed("p.test:1", errors.New("last"))
	tracker.ProxyUsed("q.test:1", nil)
	s := tracker.Reach(time.Now())
	must.Need(t, len(s.Proxies) == 1 && s.Proxies[0].Failed == 2 && s.Proxies[0].Err == "last", "%+v", s)
	tracker.ProxyUsed("p.test:1", nil)
	s = tracker.Reach(time.Now())
	must.True(t, len(s.Proxies) == 0, "%+v", s)
	tracker.ProxyUsed("p.test:1", errors.New("again"))
	tracker.ForgetReach()
	s = tracker.Reach(time.Now())
	must.True(t, len(s.Proxies) == 0, "after other settings: %+v", s)
}

func TestReach_SitesAreBounded(t *testing.T) {
	tracker := New(nil)
	now := time.Now()
	for i := range 10000 {
		tracker.Ended(entry(now, fmt.Sprintf("s%d.test", i), dead))
	}
	s := tracker.Reach(now)
	must.True(t, s.Asked <= 5000 && len(s.Sites) == 20, "%d sites, %d listed", s.Asked, len(s.Sites))
	later := now.Add(ReachWindow + time.Minute)
	tracker.Ended(entry(later, "new.test", dead))
	s = tracker.Reach(later)
	must.True(t, s.Asked == 1 && len(s.Sites) == 1, "later: %d sites, %d listed", s.Asked, len(s.Sites))
}
