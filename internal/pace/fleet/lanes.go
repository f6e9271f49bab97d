package fleet

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"heed/internal/pace"
)

const (
	// grantTime is how long an unused right to start is valid without renewal. When the heed
	// that has it is killed, other heeds wait for so long.
	grantTime = 4 * time.Second
	// ticketGrace is how long a position in the queue is kept beyond its wait.
	ticketGrace = 2 * time.Second
	// hostTTL is how long the state of a host is kept after its last request, in addition to
	// its delay.
	hostTTL = time.Hour
	// maxHostFields is the maximum number of fields in the hash of one host. A request that
	// does not fit in waits.
	maxHostFields = 1024
	// maxPause is the longest pause of a site, whatever other heeds report.
	maxPause = time.Hour
)

// Lanes coordinates the starts of requests between heeds, by the store's clock alone.
//
// While the store is unreachable, each of the N heeds last seen uses N times the delay and its
// own time slot. No request starts until all heeds have noticed that the store has become
// unreachable, or reachable again. A heed that has never reached the store knows neither N nor
// its slot, and starts none. Lanes is safe for concurrent use.
type Lanes struct {
	store   *Store
	history history // of the starts of this heed, and of pauses

	mu     sync.Mutex
	member member          // as of the last answer of the store
	grants map[grant][]any // of this heed, with the names of their turns
	alone  string          // the part of the store without shared turns, as last logged; empty: none
}

// grant is a right to start that has not been used yet.
type grant struct{ key, token string }

// Lanes returns the Lanes of the store, always the same. From the first call on this heed
// counts as a member.
func (s *Store) Lanes() *Lanes {
	s.mu.Lock()
	first := s.lanes == nil
	if first {
		s.lanes = &Lanes{store: s, grants: map[grant][]any{}, member: member{Membership: Membership{Size: 1, Heeds: 1}}}
	}
	t := s.lanes
	s.mu.Unlock()
	if first {
		s.spawn(t.heartbeats)
	}
	return t
}

// Ask requests a turn in several lanes of a host, in all of them or none, and waits for the
// answer of the store, not for the turn. A request that asks again with its ticket, after
// SharedAnswer.Again, keeps its position. A granted turn is valid until Started or Leave, or
// until grantTime after its heed has ended.
func (t *Lanes) Ask(ctx context.Context, host, ticket string, lanes []pace.Lane) pace.SharedAnswer {
	key, token := hostKey(host), t.token(ticket)
	unsure := t.unsure(key)
	hold, starts := t.history.of(key, lanes)
	if hold.heard.After(unsure) { // the store has the pause
		hold.till = time.Time{}
	}
	args := []any{token, grantTime.Milliseconds(), maxHostFields, max(0, ceilMillis(time.Until(hold.till))),
		ticketGrace.Milliseconds(), ttlMillis(lanes), t.registered()}
	for i, lane := range lanes {
		args = append(args, short(lane.Name), ceilMillis(lane.Delay), sinceStart(starts[i], unsure))
	}
	keys := []string{key}
	if !t.store.cluster {
		keys = append(keys, heedsKey)
	}
	reply, err := t.store.numbers(ctx, askScript, keys, func(reply []int64) bool { return credible(reply, lanes, starts, hold.till) }, args...)
	switch {
	case err != nil && ctx.Err() != nil:
		return pace.SharedAnswer{Again: time.Millisecond}
	case err != nil:
		return t.askAlone(key, lanes)
	case reply[0] == 1:
		t.mu.Lock()
		t.grants[grant{key, token}] = names(lanes) // to be renewed
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

// Started reports that a request started ago before now: the delays of its turns begin then.
// It may be called without Ask, and more than once.
func (t *Lanes) Started(ctx context.Context, host, ticket string, lanes []pace.Lane, ago time.Duration) error {
	key, token, at := hostKey(host), t.token(ticket), time.Now().Add(-ago)
	t.history.started(key, lanes, at)
	t.dropGrant(grant{key, token})
	args := append([]any{token, time.Since(at).Milliseconds(), ttlMillis(lanes)}, names(lanes)...)
	return t.store.run(ctx, startedScript, []string{key}, args...).Err()
}

// Leave returns an unused turn, or a position in the queue.
func (t *Lanes) Leave(ctx context.Context, host, ticket string, lanes []pace.Lane) error {
	key, token := hostKey(host), t.token(ticket)
	t.dropGrant(grant{key, token})
	return t.extend(ctx, grant{key, token}, names(lanes), 0)
}

// Moved reports that a request has started without a turn: it counts in all lanes of the host.
func (t *Lanes) Moved(ctx context.Context, host string) error {
	return t.store.run(ctx, movedScript, []string{hostKey(host)}, 0, hostTTL.Milliseconds()).Err()
}

// Hold pauses a site for all heeds, for an hour at most.
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

// sendPause stores the pause of a host, 0 to end it, and reports it to all heeds.
func (t *Lanes) sendPause(ctx context.Context, host string, pause time.Duration) error {
	left := ceilMillis(pause)
	message := t.store.sender + "\n" + host + "\n" + strconv.FormatInt(left, 10)
	return t.store.run(ctx, holdScript, []string{hostKey(host)}, left, ceilMillis(hostTTL+2*pause), turnsChannel, message).Err()
}

// Watch calls hear, from one goroutine, when another heed pauses a host, or ends its pause
// (0). Messages that are sent while the store is unreachable are lost. Watch is called once.
func (t *Lanes) Watch(hear func(host string, pause time.Duration)) {
	t.store.spawn(func() {
		t.store.listen(turnsChannel, func(message string, missed bool) {
			parts := strings.Split(message, "\n")
			if missed || len(parts) != 3 || parts[0] == t.store.sender {
				return
			}
			left, err := strconv.ParseInt(parts[2], 10, 64)
			left = min(left, maxPause.Milliseconds())
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

// known returns the number of heeds that take turns, and whether the store has never been
// reached.
func (t *Lanes) known() (heeds int, unreached bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.member.Heeds, !t.member.known()
}

// registered returns the name of this heed in the list of heeds once the list has it; empty:
// not yet.
func (t *Lanes) registered() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.member.seen {
		return ""
	}
	return t.store.sender
}

// dropGrant ends the renewal of l.
func (t *Lanes) dropGrant(l grant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.grants, l)
}

// renew extends the grants of this heed.
func (t *Lanes) renew() {
	t.mu.Lock()
	leases := maps.Clone(t.grants)
	t.mu.Unlock()
	for l, names := range leases {
		_ = t.extend(t.store.ctx, l, names, grantTime) // markAway logs errors
	}
}

// extend makes a grant valid for lease from now; 0 ends it.
func (t *Lanes) extend(ctx context.Context, l grant, names []any, lease time.Duration) error {
	args := append([]any{l.token, lease.Milliseconds()}, names...)
	return t.store.run(ctx, heldScript, []string{l.key}, args...).Err()
}

// token returns the name of a ticket of this process among those of all heeds.
func (t *Lanes) token(ticket string) string { return short(t.store.sender + "\n" + ticket) }

// hostKey returns the key of the turns of a host, which all spaces share.
func hostKey(host string) string { return keyPrefix + "{" + tagWriter.Replace(host) + "}:turns" }

func names(lanes []pace.Lane) (all []any) {
	for _, lane := range lanes {
		all = append(all, short(lane.Name))
	}
	return all
}

// ttlMillis returns how long the last starts of turns are needed, in milliseconds.
func ttlMillis(lanes []pace.Lane) int64 {
	longest := time.Duration(0)
	for _, lane := range lanes {
		longest = max(longest, lane.Delay)
	}
	return ceilMillis(hostTTL + 2*longest)
}

// sinceStart returns the milliseconds since the last start that may count: the known one, or
// an unknown one before the time unsure. It may be negative.
func sinceStart(last, unsure time.Time) int64 {
	if unsure.After(last) {
		last = unsure
	}
	if last.IsZero() {
		return (100 * 365 * 24 * time.Hour).Milliseconds()
	}
	return time.Since(last).Milliseconds()
}

// millis converts a number from the store, which may be invalid, to a duration from 1 ms to 30
// days.
func millis(n int64) time.Duration {
	return time.Duration(min(max(n, 1), 30*24*3600*1000)) * time.Millisecond
}

func ceilMillis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
