package pace

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"heed/internal/base/memo"
	"heed/rules"
)

// Shared coordinates turns with the other heeds of a fleet; *fleet.Lanes
// implements it. It is safe for concurrent use, and its methods return when ctx
// ends. While its store is unreachable it answers for itself. An error means that
// the other heeds do not learn of the call; the Scheduler continues without them.
type Shared interface {
	// Ask asks for a turn in all lanes of an origin ("https://example.org"), or in
	// none of them. ticket identifies the request among those of this heed, and
	// keeps its position while it asks again. A turn that is given belongs to the
	// ticket until Started or Leave.
	Ask(ctx context.Context, origin, ticket string, lanes []Lane) SharedAnswer
	// Started starts the delays of a turn, ago before now. It may be called more
	// than once for one ticket.
	Started(ctx context.Context, origin, ticket string, lanes []Lane, ago time.Duration) error
	// Leave gives back a turn that was given and not started, or a position among
	// those who ask.
	Leave(ctx context.Context, origin, ticket string, lanes []Lane) error
	// Moved reports a request that did not wait: the delays of all lanes restart.
	Moved(ctx context.Context, origin string) error
	// Hold stops all heeds from starting requests at the origin for d.
	Hold(ctx context.Context, origin string, d time.Duration) error
	// Release ends a Hold.
	Release(ctx context.Context, origin string) error
}

// Lane is one queue of turns of an origin: at most one request of it starts per
// delay, of all heeds together.
type Lane struct {
	Name  string        // of the lane, within its origin
	Delay time.Duration // between two starts
}

// SharedAnswer is what Shared answers to a request for a turn.
type SharedAnswer struct {
	Now    bool          // it is given: the request may start
	Until  time.Time     // it must have started by then; zero: it may start whenever it can
	Again  time.Duration // otherwise when to ask again
	Wait   time.Duration // until the turn comes, if all before it are taken
	Pause  time.Duration // the rest of the pause of the site
	Others int           // how many others wait for one of the turns
	Away   bool          // the store is unreachable, and this heed answers alone
	// Unreached is the store, when it was never reached: no turn is given until it was.
	Unreached string
}

// fleetTimeout bounds calls to the fleet that no request waits for.
const fleetTimeout = 5 * time.Second

// maxAskInterval is the longest interval between two questions to the fleet: another
// heed may have ended the cause of a wait.
const maxAskInterval = 5 * time.Second

// fleetTicket is the position, among the other heeds, of the requests of a site that
// take turns in the same lanes. The turn belongs to the one that is first when it is
// given. It is guarded by the site's lock.
type fleetTicket struct {
	key      string
	ticket   string
	lanes    []Lane
	asking   bool          // the fleet has not answered yet
	given    bool          // the turn
	until    time.Time     // see SharedAnswer.Until
	again    time.Time     // not to be asked before
	due      time.Time     // estimated time of the turn
	pauseEnd time.Time     // end of the site's pause; zero: none
	store    string        // of the fleet, when it was never reached; see Position.Store
	answered chan struct{} // closed at the first answer
}

// admitted reports whether the fleet has given k, which is first in its lanes, a
// turn. If not, it is asked when it is time to.
func (s *site) admitted(k *ticket, now time.Time) bool {
	if s.scheduler.Shared == nil || len(k.steps) == 0 {
		return true
	}
	ft := s.fleetTicketOf(k)
	switch {
	case ft.given:
		delete(s.fleetTickets, ft.key)
		k.fleetTicket = ft
		return true
	case !ft.asking && !now.Before(ft.again):
		ft.asking = true
		go s.ask(ft)
	}
	k.answered = ft.answered
	return false
}

// fleetTicketOf returns the fleetTicket of k, which it creates if there is none.
func (s *site) fleetTicketOf(k *ticket) *fleetTicket {
	if ft := s.fleetTickets[k.lanes]; ft != nil {
		return ft
	}
	ft := &fleetTicket{key: k.lanes, ticket: strconv.FormatUint(s.scheduler.tickets.Add(1), 36), answered: make(chan struct{})}
	for _, st := range k.steps {
		ft.lanes = append(ft.lanes, Lane{Name: st.name, Delay: st.delay})
	}
	memo.Set(&s.fleetTickets, k.lanes, ft)
	return ft
}

// lanesKey distinguishes requests that take turns in different lanes, or with
// different delays.
func (k *ticket) lanesKey() string {
	var key strings.Builder
	for _, st := range k.steps {
		key.WriteString(st.name)
		key.WriteByte('\n')
		key.WriteString(strconv.FormatInt(int64(st.delay), 36))
		key.WriteByte('\n')
	}
	return key.String()
}

// ask asks the fleet for a turn, and applies its answer.
func (s *site) ask(ft *fleetTicket) {
	answer := s.scheduler.Shared.Ask(context.Background(), s.origin.String(), ft.ticket, ft.lanes)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	ft.asking, ft.given, ft.until, ft.pauseEnd = false, answer.Now, answer.Until, time.Time{}
	ft.store = answer.Unreached
	ft.again, ft.due = now.Add(min(answer.Again, maxAskInterval)), now.Add(answer.Wait)
	if answer.Pause > 0 {
		ft.pauseEnd = now.Add(answer.Pause)
	}
	for _, lane := range ft.lanes {
		if l := s.lanes[lane.Name]; l != nil {
			l.others = answer.Others
		}
	}
	s.advance(now)
	select {
	case <-ft.answered:
	default:
		close(ft.answered)
	}
}

// leaveFleet gives up the positions among other heeds for which no request waits any
// more.
func (s *site) leaveFleet() {
	for key, ft := range s.fleetTickets {
		wanted := func(k *ticket) bool { return k.lanes == key }
		if !ft.asking && !slices.ContainsFunc(s.queue, wanted) {
			delete(s.fleetTickets, key)
			ft.giveBack(s)
		}
	}
}

// maxCalls is how many calls to the fleet that no request waits for are under way at a
// time: a store that answers slowly gets no more of them, as one that is unreachable.
const maxCalls = 1024

// callFleet calls the fleet about an origin, in the background.
func (t *Scheduler) callFleet(o rules.Origin, call func(ctx context.Context, f Shared, origin string) error) {
	if t.Shared == nil {
		return
	}
	if t.calls.Add(1) > maxCalls {
		t.calls.Add(-1)
		return
	}
	go func() {
		defer t.calls.Add(-1)
		ctx, cancel := context.WithTimeout(context.Background(), fleetTimeout)
		defer cancel()
		_ = call(ctx, t.Shared, o.String()) // the store logs that it is unreachable
	}()
}

// moved reports to the fleet a request that did not wait.
func (t *Scheduler) moved(o rules.Origin) {
	t.callFleet(o, func(ctx context.Context, f Shared, origin string) error { return f.Moved(ctx, origin) })
}

// retryUnreached is when asking again may help while the fleet's store was never reached.
const retryUnreached = 10 * time.Second

// unreached returns the fleet's store, when it was never reached; otherwise "".
func (s *site) unreached(k *ticket) string {
	if ft := s.fleetTickets[k.lanes]; ft != nil {
		return ft.store
	}
	return ""
}

// unanswered reports whether the fleet was asked and has not answered yet.
func (k *ticket) unanswered() bool {
	if k.answered == nil {
		return false
	}
	select {
	case <-k.answered:
		return false
	default:
		return true
	}
}

// awaitPosition waits until the fleet has answered, if it was asked, and
// adds k's place to p.
func (s *site) awaitPosition(ctx context.Context, k *ticket, heard <-chan struct{}, p *Position) (refused bool) {
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
		k.position = s.positionOf(k, time.Now())
	}
	p.place(&k.position)
	return k.refused
}

// tooLate reports whether it is too late to start with the turn.
func (ft *fleetTicket) tooLate(now time.Time) bool {
	return ft != nil && !ft.until.IsZero() && now.After(ft.until)
}

// started reports to the fleet that the turn has started.
func (ft *fleetTicket) started(s *site, at time.Time) {
	if ft != nil {
		s.scheduler.callFleet(s.origin, func(ctx context.Context, f Shared, origin string) error {
			return f.Started(ctx, origin, ft.ticket, ft.lanes, time.Since(at))
		})
	}
}

// giveBack gives the turn back to the fleet, or the position.
func (ft *fleetTicket) giveBack(s *site) {
	if ft != nil {
		s.scheduler.callFleet(s.origin, func(ctx context.Context, f Shared, origin string) error {
			return f.Leave(ctx, origin, ft.ticket, ft.lanes)
		})
	}
}
