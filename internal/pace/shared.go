package pace

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SharedLane is a lane as a fleet knows it.
type SharedLane struct {
	Name  string        // tells it from the other lanes of its origin
	Delay time.Duration // between two starts
}

// SharedAnswer is what a fleet says to who asks for a turn.
type SharedAnswer struct {
	Now    bool          // it is given
	Again  time.Duration // else: after which to ask again
	Wait   time.Duration // until the turn, as far as can be told
	Held   time.Duration // of it, what the site asks everybody for
	Others int           // how many others ask for one of the lanes
}

// Shared is where the heeds of a fleet take turns together. It is safe for
// concurrent use, and its methods return when ctx ends. While its store is away
// it answers for itself: what is told to it then, the others do not learn.
type Shared interface {
	// Ask asks for a turn in all lanes of an origin ("https://example.org"), or in
	// none of them. ticket names who of this heed asks, and keeps its place among the heeds
	// while it asks again. A turn that is given is the ticket's until Started or
	// Leave.
	Ask(ctx context.Context, origin, ticket string, lanes []SharedLane) SharedAnswer
	// Started has the delays of a turn begin, ago before now. It may be called
	// more than once for one ticket.
	Started(ctx context.Context, origin, ticket string, lanes []SharedLane, ago time.Duration)
	// Leave gives back a turn that was given and not started, or a place among
	// those who ask.
	Leave(ctx context.Context, origin, ticket string, lanes []SharedLane)
	// Moved tells that a request which waits for nobody goes out: the delays of
	// all lanes begin anew.
	Moved(ctx context.Context, origin string)
	// Hold keeps everybody from the origin for d.
	Hold(ctx context.Context, origin string, d time.Duration)
	// Release ends that.
	Release(ctx context.Context, origin string)
}

// sharePatience bounds what is told to the fleet without anybody waiting.
const sharePatience = 5 * time.Second

// mostUnheard is after how long a fleet is asked again at the latest: what keeps
// a request waiting may have been ended elsewhere.
const mostUnheard = 5 * time.Second

// share is where the requests of a site that take turns in the same lanes stand
// among those of other heeds. Whoever is their first when the turn is given has
// it. It is guarded by the site's lock.
type share struct {
	key    string
	ticket string
	lanes  []SharedLane
	asking bool          // the fleet has not answered yet
	given  bool          // the turn
	again  time.Time     // not to be asked before
	due    time.Time     // when the turn will be, as far as can be told
	held   time.Time     // until when the site holds everybody back; zero: it does not
	heard  chan struct{} // closed at the first answer
}

// admitted reports whether the fleet has given k, which is first in its lanes, a
// turn. If not, it is asked when it is time to.
func (s *site) admitted(k *ticket, now time.Time) bool {
	if s.turns.Shared == nil || len(k.steps) == 0 {
		return true
	}
	sh := s.shareOf(k)
	switch {
	case sh.given:
		delete(s.shares, sh.key)
		k.share = sh
		return true
	case !sh.asking && !now.Before(sh.again):
		sh.asking = true
		go s.ask(sh)
	}
	k.heard = sh.heard
	return false
}

// shareOf returns the share of k, new or not.
func (s *site) shareOf(k *ticket) *share {
	if sh := s.shares[k.lanes]; sh != nil {
		return sh
	}
	sh := &share{key: k.lanes, ticket: strconv.FormatUint(s.turns.tickets.Add(1), 36), heard: make(chan struct{})}
	for _, st := range k.steps {
		sh.lanes = append(sh.lanes, SharedLane{st.name, st.delay})
	}
	if s.shares == nil {
		s.shares = map[string]*share{}
	}
	s.shares[k.lanes] = sh
	return sh
}

// shareKey tells requests apart that take turns in different lanes, or with
// different delays.
func (k *ticket) shareKey() string {
	var key strings.Builder
	for _, st := range k.steps {
		key.WriteString(st.name)
		key.WriteByte('\n')
		key.WriteString(strconv.FormatInt(int64(st.delay), 36))
		key.WriteByte('\n')
	}
	return key.String()
}

// ask asks the fleet, and takes note of what it says.
func (s *site) ask(sh *share) {
	answer := s.turns.Shared.Ask(context.Background(), s.origin.String(), sh.ticket, sh.lanes)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	sh.asking, sh.given, sh.held = false, answer.Now, time.Time{}
	sh.again, sh.due = now.Add(min(answer.Again, mostUnheard)), now.Add(answer.Wait)
	if answer.Held > 0 {
		sh.held = now.Add(answer.Held)
	}
	for _, lane := range sh.lanes {
		if l := s.lanes[lane.Name]; l != nil {
			l.others = answer.Others
		}
	}
	s.turn(now)
	select {
	case <-sh.heard:
	default:
		close(sh.heard)
	}
}

// leaveShares gives up the places among other heeds that nobody here waits for
// any more.
func (s *site) leaveShares() {
	for key, sh := range s.shares {
		wanted := func(k *ticket) bool { return k.lanes == key }
		if !sh.asking && !slices.ContainsFunc(s.queue, wanted) {
			delete(s.shares, key)
			s.share(func(ctx context.Context, f Shared, origin string) { f.Leave(ctx, origin, sh.ticket, sh.lanes) })
		}
	}
}

// share tells the fleet something, without anybody waiting for it.
func (s *site) share(tell func(ctx context.Context, f Shared, origin string)) {
	s.turns.share(func(ctx context.Context, f Shared) { tell(ctx, f, s.origin.String()) })
}

func (t *Turns) share(tell func(context.Context, Shared)) {
	if t.Shared == nil {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), sharePatience)
		defer cancel()
		tell(ctx, t.Shared)
	}()
}

// unheard reports whether the fleet was asked and has not said yet where k stands.
func (k *ticket) unheard() bool {
	if k.heard == nil {
		return false
	}
	select {
	case <-k.heard:
		return false
	default:
		return true
	}
}

// heardOf waits until the fleet has said where k stands, if it was asked, and
// returns k's place.
func (s *site) heardOf(ctx context.Context, k *ticket, heard <-chan struct{}) (p Place, refused bool) {
	if heard != nil {
		select {
		case <-heard:
		case <-k.ready:
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if heard != nil && k.turn == nil && !k.refused {
		k.place = s.placeOf(k, time.Now())
	}
	return k.place, k.refused
}

// started tells the fleet that the turn has.
func (sh *share) started(s *site, at time.Time) {
	if sh != nil {
		s.share(func(ctx context.Context, f Shared, origin string) {
			f.Started(ctx, origin, sh.ticket, sh.lanes, time.Since(at))
		})
	}
}

// back gives the turn back to the fleet.
func (sh *share) back(s *site) {
	if sh != nil {
		s.share(func(ctx context.Context, f Shared, origin string) { f.Leave(ctx, origin, sh.ticket, sh.lanes) })
	}
}
