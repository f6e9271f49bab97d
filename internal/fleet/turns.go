package fleet

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// turnLease is how long a right to start lasts that nobody renews: by so much
	// the others are delayed when the heed that has it is killed.
	turnLease = 4 * time.Second
	// ticketGrace is by how much a place in the line outlasts its wait.
	ticketGrace = 2 * time.Second
	// turnsKept is how long a host is kept that nobody asks for, beside its delay.
	turnsKept = time.Hour
	// maxTurnFields bounds the hash of one host; who does not fit in waits.
	maxTurnFields = 1024
	// maxPause is the longest pause that a site is given, whatever others say.
	maxPause = time.Hour
)

// Turn is one of the lines of a host: at most one request of it starts per
// delay, of all heeds together.
type Turn struct {
	Name  string        // which line: whoever gives the same name stands in the same one
	Delay time.Duration // between two starts
}

// Answer is what came of asking for a turn.
type Answer struct {
	Now    bool          // it is given: the request may start
	Again  time.Duration // else: after which to ask again
	Wait   time.Duration // until the turn comes, if all before it are taken
	Held   time.Duration // for how long the site is to be left alone
	Others int           // how many others wait for one of the turns
	Away   bool          // the store was not asked: see Turns
}

// Turns are what heeds take to start requests. The store's clock alone counts.
//
// While it is away, each heed keeps every delay as many times as there were
// heeds when it was last seen, in a part of the time that is its own. Before and
// after that no request starts until all heeds have noticed. It is safe for
// concurrent use.
type Turns struct {
	store *Store
	known memory // of our own starts, and of pauses

	mu     sync.Mutex
	place  place          // when the store was last seen
	leases map[lent][]any // that we have; the names of their turns
	told   bool           // that turns are not shared
}

// lent is a right to start that has not been used yet.
type lent struct{ key, token string }

// Turns returns the turns that all heeds share who know the store; from the
// first call on this one counts as one of them. There is one Turns.
func (s *Store) Turns() *Turns {
	s.mu.Lock()
	first := s.turns == nil
	if first {
		s.turns = &Turns{store: s, leases: map[lent][]any{}, place: place{Size: 1, Heeds: 1}}
	}
	t := s.turns
	s.mu.Unlock()
	if first {
		s.spawn(t.beat)
	}
	return t
}

// Ask asks once for a turn in several lines of a host, to be had in all or none,
// and waits for the store's answer, not for the turn. Whoever asks again with its
// ticket, after the time that it was told, keeps its place. Who has been given a
// turn has it until Started or Leave, or until its heed has died.
func (t *Turns) Ask(ctx context.Context, host, ticket string, turns []Turn) Answer {
	key, token := turnsKey(host), t.token(ticket)
	unsure := t.unsure()
	hold, starts := t.known.of(key, turns)
	if hold.heard.After(unsure) { // the store knows
		hold.till = time.Time{}
	}
	args := []any{token, turnLease.Milliseconds(), maxTurnFields, max(0, ceilMillis(time.Until(hold.till))),
		ticketGrace.Milliseconds(), keepTurns(turns)}
	for i, turn := range turns {
		args = append(args, short(turn.Name), ceilMillis(turn.Delay), sinceStart(starts[i], unsure))
	}
	var reply []int64
	ok := t.store.do(ctx, key, func(ctx context.Context) (err error) {
		reply, err = askScript.Run(ctx, t.store.client, []string{key}, args...).Int64Slice()
		return err
	})
	switch {
	case !ok && ctx.Err() != nil:
		return Answer{Again: time.Millisecond}
	case !ok || len(reply) != 5:
		return t.alone(key, turns)
	case reply[0] == 1:
		t.lend(lent{key, token}, turns)
		return Answer{Now: true, Others: int(reply[4])}
	}
	a := Answer{Again: millis(reply[1]), Wait: millis(reply[2]), Others: int(reply[4])}
	if reply[3] > 0 {
		a.Held = millis(reply[3])
		t.known.leave(key, time.Now().Add(a.Held))
	}
	return a
}

// Started tells that a request has started, so long ago: the delays of its turns
// begin then. It may not have asked, and it may be told more than once.
func (t *Turns) Started(ctx context.Context, host, ticket string, turns []Turn, ago time.Duration) error {
	key, token, at := turnsKey(host), t.token(ticket), time.Now().Add(-ago)
	t.known.started(key, turns, at)
	t.takeBack(lent{key, token})
	return t.tell(ctx, key, func(ctx context.Context) error {
		args := append([]any{token, time.Since(at).Milliseconds(), keepTurns(turns)}, names(turns)...)
		return startedScript.Run(ctx, t.store.client, []string{key}, args...).Err()
	})
}

// Leave gives back a turn that did not start, or a place in the line.
func (t *Turns) Leave(ctx context.Context, host, ticket string, turns []Turn) error {
	key, token := turnsKey(host), t.token(ticket)
	t.takeBack(lent{key, token})
	return t.tell(ctx, key, func(ctx context.Context) error { return t.extend(ctx, lent{key, token}, names(turns), 0) })
}

// Moved tells that a request has started that waits for nobody: it counts in all
// lines of the host.
func (t *Turns) Moved(ctx context.Context, host string) error {
	key, at := turnsKey(host), time.Now()
	return t.tell(ctx, key, func(ctx context.Context) error {
		return movedScript.Run(ctx, t.store.client, []string{key}, time.Since(at).Milliseconds(), turnsKept.Milliseconds()).Err()
	})
}

// Hold has the site left alone by all heeds for a time, an hour at most.
func (t *Turns) Hold(ctx context.Context, host string, pause time.Duration) error {
	pause = min(pause, maxPause)
	key, till := turnsKey(host), time.Now().Add(pause)
	t.known.leave(key, till)
	return t.tell(ctx, key, func(ctx context.Context) error {
		left := ceilMillis(time.Until(till))
		return holdScript.Run(ctx, t.store.client, []string{key}, left, ceilMillis(turnsKept+2*pause),
			turnsChannel, t.message(host, left)).Err()
	})
}

// Release ends the pause of a host, for all heeds.
func (t *Turns) Release(ctx context.Context, host string) error {
	key := turnsKey(host)
	t.known.release(key)
	return t.tell(ctx, key, func(ctx context.Context) error {
		return holdScript.Run(ctx, t.store.client, []string{key}, 0, turnsKept.Milliseconds(), turnsChannel, t.message(host, 0)).Err()
	})
}

// Watch has hear called whenever another heed has a host left alone for a time,
// or releases it (0). What is said while the store is away is not heard. It is
// called by one goroutine; Watch is called once.
func (t *Turns) Watch(hear func(host string, pause time.Duration)) {
	t.store.spawn(func() {
		t.store.listen(turnsChannel, func(message string, missed bool) {
			parts := strings.Split(message, "\n")
			if missed || len(parts) != 3 || parts[0] == t.store.sender {
				return
			}
			left, err := strconv.ParseInt(parts[2], 10, 32)
			switch key := turnsKey(parts[1]); {
			case err != nil:
				return
			case left > 0:
				t.known.leave(key, time.Now().Add(millis(left)))
			default:
				t.known.release(key)
			}
			hear(parts[1], max(0, time.Duration(left)*time.Millisecond))
		})
	})
}

// turnsChannel is where pauses are told: sender, host and milliseconds.
const turnsChannel = keyPrefix + "pauses"

func (t *Turns) message(host string, left int64) string {
	return t.store.sender + "\n" + host + "\n" + strconv.FormatInt(left, 10)
}

// tell tells the store something. The error is ErrAway, or the context's.
func (t *Turns) tell(ctx context.Context, key string, what func(context.Context) error) error {
	switch ok := t.store.do(ctx, key, what); {
	case ok:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return ErrAway
}

// Heeds is how many heeds take turns, this one among them, as far as it was last
// seen.
func (t *Turns) Heeds() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.place.Heeds
}

// lend notes a lease that is to be renewed.
func (t *Turns) lend(l lent, turns []Turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leases[l] = names(turns)
}

// takeBack ends its renewal.
func (t *Turns) takeBack(l lent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.leases, l)
}

// renew makes the leases last that are in use.
func (t *Turns) renew() {
	t.mu.Lock()
	leases := make(map[lent][]any, len(t.leases))
	for l, names := range t.leases {
		leases[l] = names
	}
	t.mu.Unlock()
	for l, names := range leases {
		t.store.do(t.store.ctx, l.key, func(ctx context.Context) error { return t.extend(ctx, l, names, turnLease) })
	}
}

// extend makes a lease last so long from now; 0: not at all.
func (t *Turns) extend(ctx context.Context, l lent, names []any, lease time.Duration) error {
	args := append([]any{l.token, lease.Milliseconds()}, names...)
	return heldScript.Run(ctx, t.store.client, []string{l.key}, args...).Err()
}

// token is a ticket of this process, among those of all.
func (t *Turns) token(ticket string) string { return short(t.store.sender + "\n" + ticket) }

// turnsKey is where the turns of a host lie: of all spaces, since the host is one.
func turnsKey(host string) string { return keyPrefix + "{" + tagWriter.Replace(host) + "}:turns" }

func names(turns []Turn) (all []any) {
	for _, turn := range turns {
		all = append(all, short(turn.Name))
	}
	return all
}

// keepTurns is for how many milliseconds the last starts of turns are of use.
func keepTurns(turns []Turn) int64 {
	longest := time.Duration(0)
	for _, turn := range turns {
		longest = max(longest, turn.Delay)
	}
	return ceilMillis(turnsKept + 2*longest)
}

// sinceStart is how many milliseconds ago the last start was that may count: the
// one that is known, or one that may have been until we were sure of the store.
// It may be negative.
func sinceStart(last, unsure time.Time) int64 {
	if unsure.After(last) {
		last = unsure
	}
	if last.IsZero() {
		return (100 * 365 * 24 * time.Hour).Milliseconds()
	}
	return time.Since(last).Milliseconds()
}

// millis reads what the store says, which may be anything: from 1 ms to 30 days.
func millis(n int64) time.Duration {
	return time.Duration(min(max(n, 1), 30*24*3600*1000)) * time.Millisecond
}

func ceilMillis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
