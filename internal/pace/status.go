package pace

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// counters count since the process began.
type counters struct {
	turns, waits, refused, left, holds, clamped atomic.Uint64
	waited                                      atomic.Int64
}

// tell counts what became of a request that took its turn.
func (c *counters) tell(a *Answer) {
	switch {
	case a.Left:
		c.left.Add(1)
	case a.Refused:
		c.refused.Add(1)
	default:
		c.turns.Add(1)
	}
	if a.Asked > a.Delay {
		c.clamped.Add(1)
	}
	c.waited.Add(int64(a.Waited))
}

// Counts are what has happened since the process began, and what is at the moment.
type Counts struct {
	Turns   uint64        `json:"turns"`     // that were given
	Waits   uint64        `json:"waits"`     // of requests that had to wait, or were refused
	Waited  time.Duration `json:"waited_ns"` // by all of them together
	Refused uint64        `json:"refused"`   // since their turn was too far off
	Left    uint64        `json:"left"`      // before their turn came
	Holds   uint64        `json:"holds"`     // answers that held a site back
	Clamped uint64        `json:"clamped"`   // wishes longer than is kept

	Sites   int `json:"sites"` // at which something is known of the last start, or holds
	Waiting int `json:"waiting"`
}

// SiteStatus is how things are at one site.
type SiteStatus struct {
	Origin  string        `json:"origin"`
	Lanes   []LaneStatus  `json:"lanes"`
	Waiting int           `json:"waiting"`
	Running int           `json:"running"`        // turns that have not ended
	Held    time.Duration `json:"held_ns"`        // for how long nobody may start; 0: it is not held
	Asked   bool          `json:"asked"`          // with Held: by Retry-After; otherwise the site only failed
	Booked  int           `json:"told_to_return"` // requests that were told when to come back
}

// LaneStatus is how things are in one of its lanes. Group is text from the site.
type LaneStatus struct {
	Group   string        `json:"group"` // empty: the operator's own floor, or none
	Delay   time.Duration `json:"delay_ns"`
	Next    time.Duration `json:"next_ns"` // until the next start is possible
	Waiting int           `json:"waiting"`
}

// Counts returns the counts.
func (t *Turns) Counts() Counts {
	c := &t.count
	n := Counts{
		Turns: c.turns.Load(), Waits: c.waits.Load(), Waited: time.Duration(c.waited.Load()), Refused: c.refused.Load(),
		Left: c.left.Load(), Holds: c.holds.Load(), Clamped: c.clamped.Load(),
	}
	for _, s := range t.all() {
		s.mu.Lock()
		n.Waiting += len(s.queue)
		s.mu.Unlock()
		n.Sites++
	}
	return n
}

// all returns the sites at which something matters now.
func (t *Turns) all() []*site {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweepLocked(time.Now())
	all := make([]*site, 0, len(t.sites))
	for _, s := range t.sites {
		all = append(all, s)
	}
	return all
}

// List returns how things are at all sites where requests take turns, those first
// at which most wait.
func (t *Turns) List() []SiteStatus {
	now := time.Now()
	list := []SiteStatus{}
	for _, s := range t.all() {
		list = append(list, s.status(now))
	}
	slices.SortFunc(list, func(a, b SiteStatus) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Origin, b.Origin))
	})
	return list
}

func (s *site) status(now time.Time) SiteStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := SiteStatus{
		Origin: s.origin.String(), Lanes: []LaneStatus{}, Waiting: len(s.queue), Running: s.running,
		Held: max(0, s.pause.until.Sub(now)), Asked: s.pause.asked, Booked: len(s.live(now)),
	}
	for _, l := range s.lanes {
		status.Lanes = append(status.Lanes, LaneStatus{groupOf(l.name), l.delay, max(0, l.next.Sub(now)), l.waiting})
	}
	slices.SortFunc(status.Lanes, func(a, b LaneStatus) int { return cmp.Compare(a.Group, b.Group) })
	return status
}

// Release ends what holds a host: pauses that it asked for, or brought about by
// failing. The delays that its robots.txt asks for stay. host is a host, with its
// port or without, or an origin. It returns the origins that were held.
func (t *Turns) Release(host string) []string {
	now := time.Now()
	released := []string{}
	for _, s := range t.all() {
		o := s.origin
		if host != o.Host && host != o.Authority() && host != o.String() {
			continue
		}
		s.mu.Lock()
		if s.pause.holds(now) {
			released = append(released, o.String())
		}
		s.release(now)
		s.share(func(ctx context.Context, f Shared, origin string) { f.Release(ctx, origin) })
		s.turn(now)
		s.mu.Unlock()
	}
	slices.Sort(released)
	t.changed()
	return released
}

// release ends what holds the site; the fleet is to be asked anew.
func (s *site) release(now time.Time) {
	s.pause = pause{}
	for _, sh := range s.shares {
		sh.again, sh.due, sh.held = now, now, time.Time{}
	}
}

// groupOf returns the group that a lane is named after.
func groupOf(name string) string {
	group, _, _ := strings.Cut(name, "\x00")
	return group
}
