package fleet

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"heed/internal/pace"
)

const (
	// grantTime is how long a right to start lasts that is not renewed: by so much
	// the others are delayed when the heed that has it is killed.
	grantTime = 4 * time.Second
	// ticketGrace is by how much a place in the line outlasts its wait.
	ticketGrace = 2 * time.Second
	// hostTTL is how long a host is kept that is not asked for, beside its delay.
	hostTTL = time.Hour
	// maxHostFields bounds the hash of one host; who does not fit in waits.
	maxHostFields = 1024
	// maxPause is the longest pause that a site is given, whatever others say.
	maxPause = time.Hour
)

// Lanes are what heeds take to start requests. The store's clock alone counts.
//
// While it is unreachable, each heed keeps every delay as many times as there were
// heeds when it was last seen, in a part of the time that is its own. Before and
// after that no request starts until all heeds have noticed. A heed that has never
// reached the store knows neither of the others nor of its share: it starts none. It is
// safe for concurrent use.
type Lanes struct {
	store   *Store
	history history // of our own starts, and of pauses

	mu     sync.Mutex
	member member          // when the store was last seen
	grants map[grant][]any // that we have; the names of their turns
	alone  string          // where turns are not shared, as last logged; empty: nowhere
}

// grant is a right to start that has not been used yet.
type grant struct{ key, token string }

// Lanes returns the turns that all heeds share who know the store; from the
// first call on this one counts as one of them. There is one Turns.
func (s *Store) Lanes() *Lanes {
	s.mu.Lock()
	first := s.turns == nil
	if first {
		s.turns = &Lanes{store: s, grants: map[grant][]any{}, member: member{Membership: Membership{Size: 1, Heeds: 1}}}
	}
	t := s.turns
	s.mu.Unlock()
	if first {
		s.spawn(t.heartbeats)
	}
	return t
}

// Ask asks once for a turn in several lines of a host, to be had in all or none,
// and waits for the store's answer, not for the turn. A request that asks
// again with its ticket, after SharedAnswer.Again, keeps its position. A turn that is given
// is valid until Started or Leave, or until its heed has died.
func (t *Lanes) Ask(ctx context.Context, host, ticket string, turns []pace.Lane) pace.SharedAnswer {
	key, token := hostKey(host), t.token(ticket)
	unsure := t.unsure(key)
	hold, starts := t.history.of(key, turns)
	if hold.heard.After(unsure) { // the store knows
		hold.till = time.Time{}
	}
	args := []any{token, grantTime.Milliseconds(), maxHostFields, max(0, ceilMillis(time.Until(hold.till))),
		ticketGrace.Milliseconds(), ttlMillis(turns)}
	for i, turn := range turns {
		args = append(args, short(turn.Name), ceilMillis(turn.Delay), sinceStart(starts[i], unsure))
	}
	reply, err := t.store.run(ctx, askScript, []string{key}, args...).Int64Slice()
	switch {
	case err != nil && ctx.Err() != nil:
		return pace.SharedAnswer{Again: time.Millisecond}
	case err == nil && !credible(reply, turns, starts, hold.till):
		t.store.markAway(nil, key, fmt.Errorf("%w: %v to a request for a turn", errNonsense, reply))
		return t.askAlone(key, turns)
	case err != nil:
		return t.askAlone(key, turns)
	case reply[0] == 1:
		t.mu.Lock()
		t.grants[grant{key, token}] = names(turns) // to be renewed
		t.mu.Unlock()
		return pace.SharedAnswer{Now: true, Others: int(reply[4])}
	}
	a := pace.SharedAnswer{Again: millis(reply[1]), Wait: millis(reply[2]), Others: int(reply[4])}
	if reply[3] > 0 {
		a.Pause = millis(reply[3])
		t.history.hold(key, time.Now().Add(a.Pause))
	}
	return a
}

// Started reports that a request has started, ago before now: the delays of its
// turns begin then. It may be called without Ask, and more than once.
func (t *Lanes) Started(ctx context.Context, host, ticket string, turns []pace.Lane, ago time.Duration) error {
	key, token, at := hostKey(host), t.token(ticket), time.Now().Add(-ago)
	t.history.started(key, turns, at)
	t.dropGrant(grant{key, token})
	args := append([]any{token, time.Since(at).Milliseconds(), ttlMillis(turns)}, names(turns)...)
	return t.store.run(ctx, startedScript, []string{key}, args...).Err()
}

// Leave gives back a turn that did not start, or a place in the line.
func (t *Lanes) Leave(ctx context.Context, host, ticket string, turns []pace.Lane) error {
	key, token := hostKey(host), t.token(ticket)
	t.dropGrant(grant{key, token})
	return t.extend(ctx, grant{key, token}, names(turns), 0)
}

// Moved reports that a request has started without a wait: it counts in all
// lines of the host.
func (t *Lanes) Moved(ctx context.Context, host string) error {
	return t.store.run(ctx, movedScript, []string{hostKey(host)}, 0, hostTTL.Milliseconds()).Err()
}

// Hold has the site left alone by all heeds for a time, an hour at most.
func (t *Lanes) Hold(ctx context.Context, host string, pause time.Duration) error {
	pause = min(pause, maxPause)
	t.history.hold(hostKey(host), time.Now().Add(pause))
	return t.sendPause(ctx, host, pause)
}

// Release ends the pause of a host, for all heeds.
func (t *Lanes) Release(ctx context.Context, host string) error {
	t.history.release(hostKey(host))
	return t.sendPause(ctx, host, 0)
}

// sendPause stores the pause of a host, 0 for its end, and reports it to all heeds.
func (t *Lanes) sendPause(ctx context.Context, host string, pause time.Duration) error {
	left := ceilMillis(pause)
	message := t.store.sender + "\n" + host + "\n" + strconv.FormatInt(left, 10)
	return t.store.run(ctx, holdScript, []string{hostKey(host)}, left, ceilMillis(hostTTL+2*pause), turnsChannel, message).Err()
}

// Watch has hear called whenever another heed has a host left alone for a time,
// or releases it (0). Messages sent while the store is unreachable are lost. It is
// called by one goroutine; Watch is called once.
func (t *Lanes) Watch(hear func(host string, pause time.Duration)) {
	t.store.spawn(func() {
		t.store.listen(turnsChannel, func(message string, missed bool) {
			parts := strings.Split(message, "\n")
			if missed || len(parts) != 3 || parts[0] == t.store.sender {
				return
			}
			left, err := strconv.ParseInt(parts[2], 10, 32)
			switch key := hostKey(parts[1]); {
			case err != nil:
				return
			case left > 0:
				t.history.hold(key, time.Now().Add(millis(left)))
			default:
				t.history.release(key)
			}
			hear(parts[1], max(0, time.Duration(left)*time.Millisecond))
		})
	})
}

// turnsChannel is the channel of pauses: sender, host and milliseconds.
const turnsChannel = keyPrefix + "pauses"

// Heeds is how many heeds take turns, this one among them, as far as it was last
// seen.
func (t *Lanes) Heeds() int {
	n, _ := t.known()
	return n
}

// known returns how many heeds take turns, and whether that is a guess still.
func (t *Lanes) known() (heeds int, unreached bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.member.Heeds, !t.member.known()
}

// dropGrant ends the renewal of l.
func (t *Lanes) dropGrant(l grant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.grants, l)
}

// renew makes the leases last that are in use.
func (t *Lanes) renew() {
	t.mu.Lock()
	leases := maps.Clone(t.grants)
	t.mu.Unlock()
	for l, names := range leases {
		_ = t.extend(t.store.ctx, l, names, grantTime) // the store logs that it is away
	}
}

// extend makes a lease last so long from now; 0: not at all.
func (t *Lanes) extend(ctx context.Context, l grant, names []any, lease time.Duration) error {
	args := append([]any{l.token, lease.Milliseconds()}, names...)
	return t.store.run(ctx, heldScript, []string{l.key}, args...).Err()
}

// token is a ticket of this process, among those of all.
func (t *Lanes) token(ticket string) string { return short(t.store.sender + "\n" + ticket) }

// hostKey is where the turns of a host lie: of all spaces, since the host is one.
func hostKey(host string) string { return keyPrefix + "{" + tagWriter.Replace(host) + "}:turns" }

func names(turns []pace.Lane) (all []any) {
	for _, turn := range turns {
		all = append(all, short(turn.Name))
	}
	return all
}

// ttlMillis is for how many milliseconds the last starts of turns are of use.
func ttlMillis(turns []pace.Lane) int64 {
	longest := time.Duration(0)
	for _, turn := range turns {
		longest = max(longest, turn.Delay)
	}
	return ceilMillis(hostTTL + 2*longest)
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

// millis converts a number from the store, which may be invalid, to a duration from
// 1 ms to 30 days.
func millis(n int64) time.Duration {
	return time.Duration(min(max(n, 1), 30*24*3600*1000)) * time.Millisecond
}

func ceilMillis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
