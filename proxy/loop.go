package proxy

import (
	"fmt"
	"hash/maphash"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"heed/rules"
)

// How a client is slowed that goes on asking for what it is refused.
const (
	refusalsSaved = 10 * time.Minute       // a client may have at once what it has not had of its share for so long
	targetShare   = 1000                   // of one client's share, one address has this part,
	leastTarget   = 6                      // or so many a minute
	lateEvery     = 200 * time.Millisecond // a client's answers beyond its share are so far apart,
	maxLateAnswer = 30 * time.Second       // and none waits longer: what comes beyond is not answered
	loopClients   = 4096                   // clients remembered
	loopTargets   = 1 << 15                // addresses remembered, of all clients
)

// loops counts the refusals of clients, so that one that loops on them cannot
// fill the record. The zero value is ready; it is safe for concurrent use.
type loops struct {
	mu      sync.Mutex
	seed    maphash.Seed
	clients map[netip.Prefix]*loopClient
	targets []loopTarget // by their hash; a later one takes the place of another
}

// loopClient is what one client had. Its share is spent until full: each refusal
// moves that by what it costs.
type loopClient struct {
	full       time.Time
	late       time.Time // when the last of its late answers is due
	unanswered uint64    // requests since its last late answer
}

type loopTarget struct {
	hash uint64
	full time.Time
}

// lateness is what a refusal gets that is beyond its client's share.
type lateness struct {
	pause      time.Duration // before it is recorded and answered
	retry      time.Duration // from then on, until another has its turn
	unanswered uint64        // requests of the client that were dropped before it
	drop       bool          // it gets no answer
}

// take counts a refusal to a client, about target; "" is about none. It returns
// nil while the client keeps to its share, which is perMinute.
func (l *loops) take(client netip.Prefix, target string, perMinute int, now time.Time) *lateness {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.clientLocked(client, now)
	all := spend(c.full, perMinute, now)
	own, at := time.Time{}, (*loopTarget)(nil)
	if target != "" {
		own, at = l.targetLocked(client, target, perMinute, now)
	}
	wait := max(all.Sub(now), own.Sub(now)) - refusalsSaved
	if wait <= 0 {
		if c.full = all; at != nil {
			at.full = own
		}
		return nil
	}
	due := c.late.Add(lateEvery)
	if due.Before(now) {
		due = now.Add(lateEvery)
	}
	if due.Sub(now) > maxLateAnswer {
		c.unanswered++
		return &lateness{drop: true}
	}
	late := &lateness{pause: due.Sub(now), retry: max(time.Second, wait-due.Sub(now)), unanswered: c.unanswered}
	c.late, c.unanswered = due, 0
	return late
}

// dropped counts a request that left before its late answer was due.
func (l *loops) dropped(client netip.Prefix, n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.clients[client]; c != nil {
		c.unanswered += n
	}
}

// spend returns until when a share is spent after one more of perMinute.
func spend(full time.Time, perMinute int, now time.Time) time.Time {
	if full.Before(now) {
		full = now
	}
	return full.Add(time.Minute / time.Duration(perMinute))
}

// targetLocked returns until when the share of client's target is spent after one
// more, and where that is kept.
func (l *loops) targetLocked(client netip.Prefix, target string, perMinute int, now time.Time) (time.Time, *loopTarget) {
	if l.targets == nil {
		l.targets, l.seed = make([]loopTarget, loopTargets), maphash.MakeSeed()
	}
	hash := maphash.Comparable(l.seed, struct {
		netip.Prefix
		string
	}{client, target})
	at := &l.targets[hash%loopTargets]
	if at.hash != hash {
		*at = loopTarget{hash: hash}
	}
	return spend(at.full, max(leastTarget, perMinute/targetShare), now), at
}

// clientLocked returns what client had. One that is forgotten for another has its
// share anew: those that have most of theirs left go first.
func (l *loops) clientLocked(client netip.Prefix, now time.Time) *loopClient {
	if c := l.clients[client]; c != nil {
		return c
	}
	if l.clients == nil {
		l.clients = map[netip.Prefix]*loopClient{}
	}
	if len(l.clients) >= loopClients {
		l.forgetLocked()
	}
	c := &loopClient{full: now}
	l.clients[client] = c
	return c
}

// forgetLocked makes room: of a few it forgets the one that has had least.
func (l *loops) forgetLocked() {
	var least netip.Prefix
	looked := 0
	for k, c := range l.clients {
		if looked == 0 || c.full.Before(l.clients[least].full) {
			least = k
		}
		if looked++; looked == 16 {
			break
		}
	}
	delete(l.clients, least)
}

// slow holds a refusal back whose client has had more of them than is its share,
// and makes it one for that if it has an answer. It reports whether there is to
// be a record and an answer at all. What takes back another decision, or is
// heed's own fault, is told at once.
func (x *exchange) slow() bool {
	e, p := &x.entry, x.proxy
	if e.Decision.Verdict != rules.Refuse || e.Revises != nil || e.Decision.Reason == rules.ReasonInternal {
		return true
	}
	at, _ := netip.ParseAddrPort(e.Client)
	client := clientKey(at.Addr())
	late := p.Load.loops.take(client, x.loopTarget(), p.limits().RefusalsPerClient, time.Now())
	if late == nil {
		return true
	}
	over := p.reach(limitRefusalsPerClient)
	if late.drop || !x.pause(late.pause) {
		if !late.drop {
			p.Load.loops.dropped(client, late.unanswered+1)
		}
		return false
	}
	if refused := e.Decision.Reason; x.refusal != nil {
		due := x.refusal.retryAfter - late.pause // when what refuses it may be over
		x.refuseLimit(over)
		x.refusal.retryAfter = max(due, late.retry)
		e.Detail = fmt.Sprintf("%s; without it, it would have been refused as well: %s", over.Error(), refused)
	}
	if late.unanswered > 0 {
		e.Detail += fmt.Sprintf("; %d before it got no answer", late.unanswered)
	}
	return true
}

// pause waits for d, or until the proxy stops; it reports whether x is still
// waited for.
func (x *exchange) pause(d time.Duration) bool {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-x.proxy.lasting.Done():
	case <-x.Context.Done():
	}
	return x.Context.Err() == nil
}

// loopTarget is the address that a client may be looping on. Tunnels are opened
// anew for every address inside them, and credentials asked for with each.
func (x *exchange) loopTarget() string {
	e := &x.entry
	if e.Method == http.MethodConnect || e.Target == "" || e.Decision.Reason == rules.ReasonCredentials {
		return ""
	}
	return e.URL()
}
