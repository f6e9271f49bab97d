package pace

import (
	"cmp"
	"slices"
	"time"

	"heed/rules"
)

// Requests for /robots.txt start before all others, whose rules it may contain: they
// do not wait, and the delays of all lanes restart with them. So that they cannot
// block all other requests to a site, they do so at most every other turn. Further
// ones take turns like other requests.

// robotsRequests is when requests for robots.txt were last sent to a site. It is guarded
// by the site's lock.
type robotsRequests struct {
	sent  time.Time // without waiting, by a client or by heed
	first time.Time // before all other requests
}

// goesFirst reports whether a request for robots.txt, which takes turns in these
// lanes, may go before all others now.
func (r *robotsRequests) goesFirst(now time.Time, lanes []Lane) bool {
	return r.first.IsZero() || len(lanes) == 0 || now.Sub(r.first) >= 2*lanes[0].Delay
}

// started records a request that did not wait.
func (r *robotsRequests) started(now time.Time) {
	r.first, r.sent = later(r.first, now), later(r.sent, now)
}

// fetched records when heed asked the site for its robots.txt, by the wall clock.
func (r *robotsRequests) fetched(at, now time.Time) {
	if age := now.Round(0).Sub(at); !at.IsZero() && age >= 0 && age < maxPause {
		r.sent = later(r.sent, now.Add(-age))
	}
}

// robotsLanes returns the lanes of a site and own, that with the longest delay
// first: a request for robots.txt takes a turn in each.
func robotsLanes(lanes map[string]*lane, own []Lane, p *Position) []Lane {
	all := own
	for _, l := range lanes {
		if !slices.ContainsFunc(own, func(o Lane) bool { return o.Name == l.name }) {
			all = append(all, Lane{Name: l.name, Delay: l.delay})
		}
	}
	slices.SortFunc(all, func(a, b Lane) int { return cmp.Or(cmp.Compare(b.Delay, a.Delay), cmp.Compare(a.Name, b.Name)) })
	if all = all[:min(len(all), maxSteps)]; len(all) > 0 {
		p.Asked, p.Delay, p.RobotsTxt = all[0].Delay, all[0].Delay, true
	}
	return all
}

// maxSteps bounds the lanes in which a request for robots.txt takes turns.
const maxSteps = 16

// fetchedBefore reports whether o was asked for its robots.txt a short while ago and
// nothing is known yet of what it asks for.
func (t *Scheduler) fetchedBefore(o rules.Origin) (again bool) {
	s := t.find(o)
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lanes) == 0 && !s.robots.first.IsZero() && time.Since(s.robots.first) < robotsMemory
}

// robotsMemory is how long a request for robots.txt is remembered at a site of which
// nothing else is known.
const robotsMemory = time.Minute

// Fetches records that heed's own request for o's robots.txt starts. For an origin
// without a client so far, Ask.Fetched contains that time later.
func (t *Scheduler) Fetches(o rules.Origin) {
	if t.known.Load() == 0 || t.find(o) == nil {
		t.moved(o) // another heed may have the first client
		return
	}
	now := time.Now()
	t.at(o, func(s *site) {
		if s.robots.goesFirst(now, robotsLanes(s.lanes, nil, &Position{})) {
			s.robots.started(now)
			t.moved(o)
			s.advance(now)
		}
	})
}
