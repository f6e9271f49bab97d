package limit

import (
	"hash/maphash"
	"net/netip"
	"slices"
	"sync"
	"time"

	"heed/internal/base/memo"
)

// How a client is slowed down that keeps requesting what it is refused.
const (
	savedTime   = 10 * time.Minute       // unused allowance of this time can be used in a burst
	targetShare = 1000                   // one target may use this part of its client's allowance,
	leastTarget = 6                      // or so many refusals a minute
	answerEvery = 200 * time.Millisecond // the pause between two answers beyond the allowance,
	maxPause    = 30 * time.Second       // and the longest one: what comes beyond is not answered
	maxClients  = 4096                   // clients remembered
	maxTargets  = 1 << 15                // targets remembered, of all clients,
	targetRoom  = 4                      // each in one of so many places
)

// refusalLimiter counts the refusals of clients, so that one that keeps requesting
// disallowed pages cannot fill the record. The zero value is ready; it is safe for
// concurrent use.
type refusalLimiter struct {
	mu      sync.Mutex
	seed    maphash.Seed
	clients map[netip.Prefix]*refusedClient
	targets []refusedTarget // by their hash
}

// refusedClient is what one client was refused. Its allowance is used up until
// full: each refusal moves that by what it costs.
type refusedClient struct {
	full       time.Time
	answerAt   time.Time // when the last of its delayed answers is due
	unanswered uint64    // requests since its last delayed answer
}

type refusedTarget struct {
	hash uint64
	full time.Time
}

// Penalty is how a refusal beyond its client's allowance is handled.
type Penalty struct {
	Exceeded   *Exceeded     // the limit that was reached
	Drop       bool          // it gets no answer, and the other fields are zero
	Pause      time.Duration // before it is recorded and answered
	RetryAfter time.Duration // from then on, until another is within the allowance
	Unanswered uint64        // requests of the client that were dropped before it
}

// ClientKey returns what a client is counted by: its IPv4 address, or the /64 of its
// IPv6 address, since a client that has one address of it has them all.
func ClientKey(a netip.Addr) netip.Prefix {
	a = a.WithZone("").Unmap()
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // no address: the zero prefix, one client too
	return p
}

// Target is what a client requested: a URL in its parts.
type Target struct{ Scheme, Host, Path string }

// CountRefusal counts a refusal to the client at addr. target is what was requested; it
// is zero where the client asks for no target or for a different one each time. It
// returns nil while the client keeps to its allowance.
func (g *Gate) CountRefusal(addr netip.Addr, target Target, of *Limits, now time.Time) *Penalty {
	p := g.load.refusals.take(ClientKey(addr), target, of.RefusalsPerClient, now)
	if p != nil {
		p.Exceeded = g.exceeded(RefusalsPerClient, of)
	}
	return p
}

// CountUnanswered counts n refusals to the client at addr that got no answer after all,
// for the next Penalty.
func (g *Gate) CountUnanswered(addr netip.Addr, n uint64) {
	g.load.refusals.dropped(ClientKey(addr), n)
}

// take counts a refusal to a client; target is what was requested, or zero. It
// returns nil while the client keeps to its allowance, which is perMinute.
func (l *refusalLimiter) take(client netip.Prefix, target Target, perMinute int, now time.Time) *Penalty {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.clientLocked(client, now)
	all := spend(c.full, perMinute, now)
	own, t := time.Time{}, (*refusedTarget)(nil)
	if target != (Target{}) {
		own, t = l.targetLocked(client, target, perMinute, now)
	}
	wait := max(all.Sub(now), own.Sub(now)) - savedTime
	if wait <= 0 {
		if c.full = all; t != nil {
			t.full = own
		}
		return nil
	}
	due := c.answerAt.Add(answerEvery)
	if due.Before(now) {
		due = now.Add(answerEvery)
	}
	if due.Sub(now) > maxPause {
		c.unanswered++
		return &Penalty{Drop: true}
	}
	p := &Penalty{Pause: due.Sub(now), RetryAfter: max(time.Second, wait-due.Sub(now)), Unanswered: c.unanswered}
	c.answerAt, c.unanswered = due, 0
	return p
}

// dropped counts n requests without an answer.
func (l *refusalLimiter) dropped(client netip.Prefix, n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.clients[client]; c != nil {
		c.unanswered += n
	}
}

// spend returns until when an allowance is used up after one more of perMinute.
func spend(full time.Time, perMinute int, now time.Time) time.Time {
	if full.Before(now) {
		full = now
	}
	return full.Add(time.Minute / time.Duration(perMinute))
}

// targetLocked returns until when the allowance of client's target is used up after
// one more refusal, and the target that it is stored in. A target whose places are taken
// replaces the one with most of its allowance left.
func (l *refusalLimiter) targetLocked(client netip.Prefix, target Target, perMinute int, now time.Time) (time.Time, *refusedTarget) {
	if l.targets == nil {
		l.targets, l.seed = make([]refusedTarget, maxTargets), maphash.MakeSeed()
	}
	hash := maphash.Comparable(l.seed, struct {
		netip.Prefix
		Target
	}{client, target})
	first := int(hash % (maxTargets / targetRoom) * targetRoom)
	places := l.targets[first : first+targetRoom]
	at := slices.IndexFunc(places, func(t refusedTarget) bool { return t.hash == hash })
	if at < 0 {
		at = 0
		for i, t := range places {
			if t.full.Before(places[at].full) {
				at = i
			}
		}
		places[at] = refusedTarget{hash: hash}
	}
	t := &places[at]
	return spend(t.full, max(leastTarget, perMinute/targetShare), now), t
}

// clientLocked returns what client was refused. A client that is forgotten for
// another has its whole allowance again: those with most of it left go first.
func (l *refusalLimiter) clientLocked(client netip.Prefix, now time.Time) *refusedClient {
	if c := l.clients[client]; c != nil {
		return c
	}
	memo.MakeRoom(l.clients, maxClients, func(a, b *refusedClient) bool { return a.full.Before(b.full) })
	c := &refusedClient{full: now}
	memo.Set(&l.clients, client, c)
	return c
}
