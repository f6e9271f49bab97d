package pace

import (
	"cmp"
	"context"
	"slices"
	"time"

	"heed/rules"
)

// Requests for /robots.txt go before all others, which may wait for what it says:
// they wait for nobody, and the delays of all lanes begin anew with them. So that
// they cannot keep everybody else from a site, they do so no more often than every
// other turn. More of them take turns as all do.

// stridesOfAll returns the lanes that are known of the site, and own: who asks for
// its robots.txt takes a turn in each.
func (s *site) stridesOfAll(own []stride, p *Place) []stride {
	all := own
	for _, l := range s.lanes {
		if !slices.ContainsFunc(own, func(o stride) bool { return o.name == l.name }) {
			all = append(all, stride{l.name, l.delay})
		}
	}
	slices.SortFunc(all, func(a, b stride) int { return cmp.Or(cmp.Compare(b.delay, a.delay), cmp.Compare(a.name, b.name)) })
	all = all[:min(len(all), maxSteps)]
	if len(all) > 0 {
		p.Asked, p.Delay, p.RobotsTxt = all[0].delay, all[0].delay, true
	}
	return all
}

// maxSteps bounds the lanes in which a request for robots.txt takes turns.
const maxSteps = 16

// goesFirst reports whether a request for robots.txt may go before all others now,
// where the longest delay is as given.
func (s *site) goesFirst(now time.Time, longest time.Duration) bool {
	return s.robots.IsZero() || now.Sub(s.robots) >= 2*longest
}

// longest returns the longest delay of all lanes.
func longest(all []stride) (d time.Duration) {
	for _, st := range all {
		d = max(d, st.delay)
	}
	return d
}

// robotsAgain reports whether o was asked for its robots.txt a short while ago and
// nothing is known yet of what it asks for.
func (t *Turns) robotsAgain(o rules.Origin) (again bool) {
	s := t.find(o)
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lanes) == 0 && !s.robots.IsZero() && time.Since(s.robots) < movedMatters
}

// move has the delays of all lanes begin anew.
func (s *site) move(now time.Time) {
	s.robots, s.moved = later(s.robots, now), later(s.moved, now)
	s.share(func(ctx context.Context, f Shared, origin string) { f.Moved(ctx, origin) })
}

// Fetches notes that heed's own request for o's robots.txt goes out. What of it
// is not known yet when the first client comes is told by Ask.Fetched.
func (t *Turns) Fetches(o rules.Origin) {
	if t.known.Load() == 0 || t.find(o) == nil {
		t.share(func(ctx context.Context, f Shared) { f.Moved(ctx, o.String()) }) // another heed may have the first client
		return
	}
	now := time.Now()
	t.at(o, func(s *site) {
		if s.goesFirst(now, longest(s.stridesOfAll(nil, &Place{}))) {
			s.move(now)
			s.turn(now)
		}
	})
}
