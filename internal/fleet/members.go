package fleet

import (
	"context"
	"time"
)

const (
	// beatEvery is how often a heed says that it is there.
	beatEvery = time.Second
	// beatCounts is for how long it counts as there.
	beatCounts = 10 * time.Second
	// goneTime is how long the end of a heed waits for the store to hear of it.
	goneTime = 200 * time.Millisecond
	// clockKept is for how long a good reading of the store's clock stands over
	// worse ones.
	clockKept = time.Minute
)

// place is where a heed stands among those of the store, and what it knows of
// the store's clock.
type place struct {
	Mine  int // from 0
	Size  int // one more than the highest
	Heeds int // how many there are

	seen  bool          // the store, by this process
	read  time.Time     // here
	clock time.Time     // there, at the same moment; zero: never read
	blur  time.Duration // the two may be so far apart
}

// now is the time of the store's clock at a time here.
func (p *place) now(at time.Time) time.Time { return p.clock.Add(at.Sub(p.read)) }

// with returns p after a beat that was sent and answered at these times.
func (p place) with(mine, size, heeds int, clock, sent, answered time.Time) place {
	p.Mine, p.Size, p.Heeds, p.seen = mine, size, heeds, true
	blur := answered.Sub(sent) / 2
	if p.clock.IsZero() || blur <= p.blur || answered.Sub(p.read) > clockKept {
		p.read, p.clock, p.blur = sent.Add(blur), clock, blur
	}
	return p
}

// Standing is what a heed knows of its fleet. The zero value is nothing.
type Standing struct {
	Place int           `json:"place"` // of its own, from 0
	Size  int           `json:"size"`  // one more than the highest place
	Heeds int           `json:"heeds"`
	Ahead time.Duration `json:"ahead_ns"` // the store's clock, of this machine's
}

// Standing returns what is known.
func (t *Turns) Standing() Standing {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := &t.place; !p.clock.IsZero() {
		return Standing{p.Mine, p.Size, p.Heeds, p.clock.Sub(p.read.Round(0))}
	}
	return Standing{}
}

// Expect has a heed that has not seen the store yet go by what an earlier one,
// which has ended, knew: it has that one's place.
func (t *Turns) Expect(s Standing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.place.seen || s.Place < 0 || s.Size <= s.Place || s.Heeds < 1 {
		return
	}
	now := time.Now()
	t.place = place{Mine: s.Place, Size: s.Size, Heeds: s.Heeds, read: now, clock: now.Round(0).Add(s.Ahead), blur: clockKept}
}

// beat says that this heed is there, until the store is closed.
func (t *Turns) beat() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		t.sayHere()
		t.renew()
		select {
		case <-t.store.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sayHere says so once, unless the store is away, and learns who else is there.
func (t *Turns) sayHere() {
	away, _ := t.store.times()
	t.sayShared(away.IsZero())
	if !away.IsZero() {
		return
	}
	var reply []int64
	sent := time.Now()
	ok := t.store.do(t.store.ctx, heedsKey, func(ctx context.Context) (err error) {
		reply, err = beatScript.Run(ctx, t.store.client, []string{heedsKey}, t.store.sender, beatCounts.Milliseconds()).Int64Slice()
		return err
	})
	if !ok || len(reply) != 4 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.place = t.place.with(int(reply[1]), int(reply[2]), int(reply[3]), time.UnixMilli(reply[0]), sent, time.Now())
}

// sayGone says that this heed is there no more, if that takes no time.
func (t *Turns) sayGone() {
	ctx, cancel := context.WithTimeout(t.store.ctx, goneTime)
	defer cancel()
	t.store.do(ctx, heedsKey, func(ctx context.Context) error {
		return t.store.client.HDel(ctx, heedsKey, t.store.sender).Err()
	})
}

// sayShared says once when turns are not shared any more, and once when they
// are.
func (t *Turns) sayShared(shared bool) {
	t.mu.Lock()
	changed, p := shared == t.told, t.place
	t.told = !shared
	t.mu.Unlock()
	switch {
	case changed && !shared:
		t.store.log.Warn("turns are not shared for now: this heed keeps each delay as many times as there were heeds", "heeds", p.Size)
	case changed:
		t.store.log.Info("turns are shared again")
	}
}

// heedsKey is where heeds say that they are there.
const heedsKey = keyPrefix + "heeds"
