package pace

import (
	"cmp"
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

// add counts the result of a request that took its turn.
func (c *counters) add(a *Answer) {
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
	Holds   uint64        `json:"holds"`     // answers that paused a site
	Clamped uint64        `json:"clamped"`   // delays longer than is kept

	Sites   int `json:"sites"` // at which something is known of the last start, or holds
	Waiting int `json:"waiting"`
	Paused  int `json:"paused"` // sites at which no request may start now
}

// SiteStatus is the state of one site, for display.
type SiteStatus struct {
	Origin   string        `json:"origin"`
	Address  string        `json:"address,omitempty"` // whose names take these turns together, with pacing.min_delay_per; empty: it is a site
	Lanes    []LaneStatus  `json:"lanes"`
	Waiting  int           `json:"waiting"`
	Running  int           `json:"running"`        // turns that have not ended
	Pause    time.Duration `json:"held_ns"`        // for how long no request may start; 0: it is not paused
	Asked    bool          `json:"asked"`          // with Pause: it was asked for with Retry-After; otherwise the site only failed
	Reserved int           `json:"told_to_return"` // requests with a reserved time to return
	Waiters  []Waiter      `json:"waiters"`        // the first of those that wait, in their order
}

// LaneStatus is the state of one of its lanes. Group is text from the site.
type LaneStatus struct {
	Group   string        `json:"group"` // empty: the operator's own floor, or none
	Delay   time.Duration `json:"delay_ns"`
	Next    time.Duration `json:"next_ns"` // until the next start is possible
	Waiting int           `json:"waiting"`
}

// Counts returns the counts.
func (t *Scheduler) Counts() Counts {
	c := &t.count
	n := Counts{
		Turns: c.turns.Load(), Waits: c.waits.Load(), Waited: time.Duration(c.waited.Load()), Refused: c.refused.Load(),
		Left: c.left.Load(), Holds: c.holds.Load(), Clamped: c.clamped.Load(),
	}
	now := time.Now()
	for _, s := range t.all() {
		s.mu.Lock()
		n.Waiting += len(s.queue)
		if s.pause.holds(now) {
			n.Paused++
		}
		s.mu.Unlock()
		n.Sites++
	}
	return n
}

// all returns the sites at which something matters now.
func (t *Scheduler) all() []*site {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweepLocked(time.Now())
	all := make([]*site, 0, len(t.sites))
	for _, s := range t.sites {
		all = append(all, s)
	}
	return all
}

// List returns the state of all sites where requests take turns, those with the most waiting
// requests first.
func (t *Scheduler) List() []SiteStatus {
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
		Origin: s.origin.String(), Address: sharedAddress(s.origin), Lanes: []LaneStatus{}, Waiting: len(s.queue), Running: s.running,
		Pause: max(0, s.pause.until.Sub(now)), Asked: s.pause.asked, Reserved: len(s.reservations.live(now)),
		Waiters: waiters(s.queue, now),
	}
	for _, l := range s.lanes {
		group, _, _ := strings.Cut(l.name, "\x00")
		status.Lanes = append(status.Lanes, LaneStatus{group, l.delay, max(0, s.free(l).Sub(now)), l.waiting})
	}
	slices.SortFunc(status.Lanes, func(a, b LaneStatus) int { return cmp.Compare(a.Group, b.Group) })
	return status
}

// Checkpoint is kept across a restart, so that it causes no burst: when a lane may be used
// again, or an origin whose pause ends.
type Checkpoint struct {
	Scheme    string    `json:"scheme"` // of the origin, and its authority
	Authority string    `json:"authority"`
	Lane      []byte    `json:"lane,omitempty"`     // any octets, which JSON has in base64; empty with Hold
	Delay     int64     `json:"delay_ms,omitempty"` // of the lane; 0 with Hold
	Next      time.Time `json:"next"`               // by the wall clock
	Hold      bool      `json:"hold,omitempty"`     // no request may start at the origin before Next
}

// Checkpoints returns the checkpoints of now.
func (t *Scheduler) Checkpoints() []Checkpoint {
	now := time.Now()
	all := []Checkpoint{}
	for _, s := range t.all() {
		add := func(c Checkpoint, next time.Time) {
			c.Scheme, c.Authority, c.Next = s.origin.Scheme, s.origin.Authority(), now.Round(0).Add(next.Sub(now))
			all = append(all, c)
		}
		s.mu.Lock()
		if s.pause.holds(now) {
			add(Checkpoint{Hold: true}, s.pause.until)
		}
		for _, l := range s.lanes {
			if free := s.free(l); free.After(now) {
				add(Checkpoint{Lane: []byte(l.name), Delay: (l.delay + time.Millisecond - 1).Milliseconds()}, free)
			}
		}
		s.mu.Unlock()
	}
	return all
}

// Restore continues from the checkpoints of an earlier process. A pause of more than an
// hour, and a next start that is more than a delay away, are shortened to that: the
// clock was changed. If the earlier process may have started requests after the
// checkpoints were written, since is the start of this one, and every lane keeps its
// delay once from there. Checkpoints without a valid origin are left out. It is for a
// Scheduler that is not used yet.
func (t *Scheduler) Restore(checkpoints []Checkpoint, since time.Time) {
	now := time.Now()
	t.since = since
	for _, c := range checkpoints {
		left, delay := c.Next.Sub(now.Round(0)), time.Duration(c.Delay)*time.Millisecond
		origin, err := parsePlace(c.Scheme, c.Authority)
		if err != nil || left <= 0 {
			continue
		}
		t.at(origin, func(s *site) {
			if c.Hold {
				s.pause.extend(min(left, maxPause), true, now)
				s.advance(now)
			} else if len(s.lanes) < t.bounds.lanes {
				l := &lane{name: string(c.Lane), delay: delay, next: now.Add(min(left, delay))}
				if !since.IsZero() { // the last start may have been after the checkpoint
					l.next = later(l.next, since.Add(delay))
				}
				s.addLane(l)
			}
		})
	}
}

// Limits of the requests that List describes.
const (
	maxWaiters = 20  // at one origin
	maxRequest = 200 // octets of one request
)

// Who is the client of an Ask, for display.
type Who struct {
	Address  string `json:"address"`
	User     string `json:"user,omitempty"`   // whose credentials it showed; empty: none
	Name     string `json:"client,omitempty"` // of its [[client]]; empty: none
	Listener string `json:"listener"`         // that it connected to; each run has its own
}

// String returns the address, and in parentheses the name and the user.
func (w Who) String() string {
	var more []string
	if w.Name != "" {
		more = append(more, w.Name)
	}
	if w.User != "" && w.User != w.Name {
		more = append(more, "user "+w.User)
	}
	if len(more) == 0 {
		return w.Address
	}
	return w.Address + " (" + strings.Join(more, ", ") + ")"
}

// Waiter is a request that waits for its turn.
type Waiter struct {
	Who
	Run     bool          `json:"run,omitempty"` // Listener is that of a run
	Request string        `json:"request"`       // method and path; text of the client
	Since   time.Time     `json:"since"`
	Waited  time.Duration `json:"waited_ns"`
	Next    time.Duration `json:"next_ns"` // until its turn, estimated
}

// waiters describes the first requests of a site's queue.
func waiters(queue []*ticket, now time.Time) []Waiter {
	list := []Waiter{}
	for _, k := range queue[:min(maxWaiters, len(queue))] {
		path, _, _ := strings.Cut(k.ask.Target, "?") // a query may contain secrets
		list = append(list, Waiter{
			Who: k.ask.Who, Request: strings.Clone(path[:min(maxRequest, len(path))]), Since: k.came.Round(0),
			Waited: now.Sub(k.came), Next: max(0, k.due.Sub(now)),
		})
	}
	return list
}
