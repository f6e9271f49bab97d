package pace

import (
	"cmp"
	"context"
	"slices"
	"time"

	"heed/internal/fleet"
	"heed/rules"
)

// Requests for /robots.txt start before all others, whose rules it may contain: they
// do not wait, and the delays of all lanes restart with them. So that they cannot
// block all other requests to a site, they do so at most every other turn. Further
// ones take turns like other requests.

// robotsLanes returns the lanes of the site and own, that with the longest delay
// first: a request for robots.txt takes a turn in each.
func (s *site) robotsLanes(own []fleet.Lane, p *Position) []fleet.Lane {
	all := own
	for _, l := range s.lanes {
		if !slices.ContainsFunc(own, func(o fleet.Lane) bool { return o.Name == l.name }) {
			all = append(all, fleet.Lane{Name: l.name, Delay: l.delay})
		}
	}
	slices.SortFunc(all, func(a, b fleet.Lane) int { return cmp.Or(cmp.Compare(b.Delay, a.Delay), cmp.Compare(a.Name, b.Name)) })
	all = all[:min(len(all), maxSteps)]
	if len(all) > 0 {
		p.Asked, p.Delay, p.RobotsTxt = all[0].Delay, all[0].Delay, true
	}
	return all
}

// maxSteps bounds the lanes in which a request for robots.txt takes turns.
const maxSteps = 16

// goesFirst reports whether a request for robots.txt, which takes turns in these
// lanes, may go before all others now.
func (s *site) goesFirst(now time.Time, lanes []fleet.Lane) bool {
	return s.robotsFirst.IsZero() || len(lanes) == 0 || now.Sub(s.robotsFirst) >= 2*lanes[0].Delay
}

// fetchedBefore reports whether o was asked for its robots.txt a short while ago and
// nothing is known yet of what it asks for.
func (t *Scheduler) fetchedBefore(o rules.Origin) (again bool) {
	s := t.find(o)
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lanes) == 0 && !s.robotsFirst.IsZero() && time.Since(s.robotsFirst) < restartMemory
}

// restartDelays restarts the delays of all lanes.
func (s *site) restartDelays(now time.Time) {
	s.robotsFirst, s.robotsSent = later(s.robotsFirst, now), later(s.robotsSent, now)
	s.scheduler.callFleet(s.origin, func(ctx context.Context, f Shared, origin string) error { return f.Moved(ctx, origin) })
}

// Fetches records that heed's own request for o's robots.txt starts. For an origin
// without a client so far, Ask.Fetched contains that time later.
func (t *Scheduler) Fetches(o rules.Origin) {
	if t.known.Load() == 0 || t.find(o) == nil {
		t.callFleet(o, func(ctx context.Context, f Shared, origin string) error { return f.Moved(ctx, origin) }) // another heed may have the first client
		return
	}
	now := time.Now()
	t.at(o, func(s *site) {
		if s.goesFirst(now, s.robotsLanes(nil, &Position{})) {
			s.restartDelays(now)
			s.advance(now)
		}
	})
}
