package fleet

import (
	"cmp"
	"context"
	"strings"
	"time"
)

const (
	// heartbeatInterval is the interval between a heed's reports that it is running.
	heartbeatInterval = time.Second
	// memberTTL is how long a report is valid.
	memberTTL = 10 * time.Second
	// deregisterTimeout is how long a heed that ends waits to remove itself from the store.
	deregisterTimeout = 200 * time.Millisecond
	// maxHeeds is the highest number of heeds, and of their places, that is believed: each
	// delay is kept so many times without the store.
	maxHeeds = 10_000
	// maxClockApart is the largest believed difference between the store's clock and this
	// machine's.
	maxClockApart = 366 * 24 * time.Hour
	// clockMaxAge is how long an exact reading of the store's clock is preferred to less exact
	// ones.
	clockMaxAge = time.Minute
)

// member is the place of this heed among all heeds of the store, and its reading of the
// store's clock.
type member struct {
	Membership
	seen        bool          // this process has reached the store
	expected    bool          // an earlier process had: see Expect
	read        time.Time     // by this machine's clock
	changed     time.Time     // when the number of heeds changed; zero: not since the first answer
	clock       time.Time     // the store's clock at read; zero: never read
	uncertainty time.Duration // of clock
}

// known reports whether the slot of this heed is known.
func (p *member) known() bool { return p.seen || p.expected }

// now returns the store's time at a time of this machine's clock.
func (p *member) now(at time.Time) time.Time { return p.clock.Add(at.Sub(p.read)) }

// with returns p after a heartbeat that was sent and answered at these times.
func (p member) with(mine, size, heeds int, clock, sent, answered time.Time) member {
	if p.seen && (mine != p.Place || size != p.Size) {
		p.changed = answered
	}
	p.Place, p.Size, p.Heeds, p.seen = mine, size, heeds, true
	blur := answered.Sub(sent) / 2
	if p.clock.IsZero() || blur <= p.uncertainty || answered.Sub(p.read) > clockMaxAge {
		p.read, p.clock, p.uncertainty = sent.Add(blur), clock, blur
	}
	return p
}

// Membership is the last known state of the fleet. The zero value is none.
type Membership struct {
	Store string        `json:"store"` // its hosts
	Place int           `json:"place"` // of this heed, from 0
	Size  int           `json:"size"`  // one more than the highest place
	Heeds int           `json:"heeds"`
	Ahead time.Duration `json:"ahead_ns"` // of the store's clock relative to this machine's
}

// Membership returns the last known state.
func (t *Lanes) Membership() Membership {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.member
	if p.clock.IsZero() {
		return Membership{}
	}
	p.Store, p.Ahead = t.store.hosts, p.clock.Sub(p.read.Round(0))
	return p.Membership
}

// Expect sets the state of an earlier process, which has ended, for a heed that has not
// reached the store yet: it takes the place of that process.
func (t *Lanes) Expect(s Membership) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.member.seen || s.Store != t.store.hosts || !credibleMember([]int64{now.Add(s.Ahead).UnixMilli(), int64(s.Place), int64(s.Size), int64(s.Heeds)}) {
		return
	}
	t.member = member{Membership: s, expected: true, read: now, clock: now.Round(0).Add(s.Ahead), uncertainty: clockMaxAge}
}

// credibleMember reports whether beatScript can have returned numbers: the time, the place of
// this heed, one more than the highest place, and the number of heeds.
func credibleMember(reply []int64) bool {
	clock, place, size, heeds := reply[0], reply[1], reply[2], reply[3]
	ahead := clock/1000 - time.Now().Unix()
	return place < size && size <= maxHeeds && heeds >= 1 && heeds <= maxHeeds &&
		ahead < int64(maxClockApart/time.Second) && ahead > -int64(maxClockApart/time.Second)
}

// heartbeats reports that this heed is running until the store is closed.
func (t *Lanes) heartbeats() {
	tick := time.NewTicker(heartbeatInterval)
	defer tick.Stop()
	for {
		t.heartbeat()
		t.renew()
		select {
		case <-t.store.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// heartbeat registers this heed once, unless the store is unreachable, and reads the others.
func (t *Lanes) heartbeat() {
	t.logShared()
	if away, _ := t.store.times(heedsKey); !away.IsZero() {
		return
	}
	place, size := -1, 0
	t.mu.Lock()
	if t.member.seen {
		place, size = t.member.Place, t.member.Size
	}
	t.mu.Unlock()
	sent := time.Now()
	reply, err := t.store.numbers(t.store.ctx, beatScript, []string{heedsKey}, credibleMember, t.store.sender, memberTTL.Milliseconds(), place, size, maxHeeds)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.member = t.member.with(int(reply[1]), int(reply[2]), int(reply[3]), time.UnixMilli(reply[0]), sent, time.Now())
}

// deregister removes this heed from the members, within deregisterTimeout.
func (t *Lanes) deregister() {
	ctx, cancel := context.WithTimeout(t.store.ctx, deregisterTimeout)
	defer cancel()
	t.store.do(ctx, nil, []string{heedsKey}, func(ctx context.Context) error {
		return t.store.client.HDel(ctx, heedsKey, t.store.sender).Err()
	})
}

// logShared logs when turns are no longer shared, and when they are shared again.
func (t *Lanes) logShared() {
	h := t.store.Health()
	alone := ""
	if h.Away {
		alone = cmp.Or(strings.Join(h.Nodes, ","), "all")
	}
	t.mu.Lock()
	changed := alone != t.alone
	t.alone = alone
	t.mu.Unlock()
	switch log := t.store.log; {
	case !changed:
	case !h.Away:
		log.Info("turns are shared again")
	case h.Unreached:
		log.Warn("turns are not shared for now: the store was never reached, and requests that a delay concerns wait until it was")
	case len(h.Nodes) > 0:
		log.Warn("turns are not shared for now where the keys of a site are on a node that is away: there this heed keeps each delay as many times as there were heeds", "heeds", h.Heeds, "nodes", alone)
	default:
		log.Warn("turns are not shared for now: this heed keeps each delay as many times as there were heeds", "heeds", h.Heeds)
	}
}

// heedsKey is the key of the hash of running heeds.
const heedsKey = keyPrefix + "heeds"
