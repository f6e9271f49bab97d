package pace

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// fakeFleet is a Shared of which every heed of a test knows.
type fakeFleet struct {
	mu    sync.Mutex
	next  map[string]time.Time // of a lane: no request starts before
	held  map[string]string    // of a lane: the ticket that may start
	line  []string             // tickets that wait
	until time.Time            // the site is to be left alone
	store string               // that was never reached; empty: it was
	told  []string             // what else it heard
}

func newFleet() *fakeFleet {
	return &fakeFleet{next: map[string]time.Time{}, held: map[string]string{}}
}

func (f *fakeFleet) Ask(_ context.Context, _, ticket string, lanes []Lane) SharedAnswer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.store != "" {
		return SharedAnswer{Again: time.Second, Wait: time.Second, Unreached: f.store}
	}
	now := time.Now()
	at, longest := later(now, f.until), time.Duration(0)
	for _, l := range lanes {
		longest = max(longest, l.Delay)
		at = later(at, f.next[l.Name])
		if f.held[l.Name] != "" {
			at = later(at, now.Add(l.Delay))
		}
	}
	place := slices.Index(f.line, ticket)
	if place < 0 {
		place = len(f.line)
		f.line = append(f.line, ticket)
	}
	if place == 0 && !at.After(now) {
		f.line = f.line[1:]
		for _, l := range lanes {
			f.held[l.Name] = ticket
		}
		return SharedAnswer{Now: true, Others: len(f.line)}
	}
	wait := max(time.Millisecond, at.Sub(now))
	return SharedAnswer{
		Again: wait, Wait: wait + time.Duration(place)*longest, Pause: max(0, f.until.Sub(now)), Others: len(f.line) - 1,
	}
}

func (f *fakeFleet) Started(_ context.Context, _, ticket string, lanes []Lane, ago time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range lanes {
		f.next[l.Name] = later(f.next[l.Name], time.Now().Add(l.Delay-ago))
		if f.held[l.Name] == ticket {
			delete(f.held, l.Name)
		}
	}
	return nil
}

func (f *fakeFleet) Leave(_ context.Context, _, ticket string, lanes []Lane) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.line = slices.DeleteFunc(f.line, func(t string) bool { return t == ticket })
	for _, l := range lanes {
		if f.held[l.Name] == ticket {
			delete(f.held, l.Name)
		}
	}
	return nil
}

func (f *fakeFleet) Moved(_ context.Context, origin string) error { return f.hear("moved " + origin) }

func (f *fakeFleet) Hold(_ context.Context, origin string, d time.Duration) error {
	return f.hear(fmt.Sprintf("hold %s %v", origin, d))
}

func (f *fakeFleet) Release(_ context.Context, origin string) error {
	return f.hear("release " + origin)
}

func (f *fakeFleet) hear(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, what)
	return nil
}

// left is what is open with the fleet still: turns that were given, and places.
func (f *fakeFleet) left() int {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.held) + len(f.line)
}

// seat is where one heed of a fleet is.
type seat struct {
	*fakeFleet
	name string
}

func (s seat) Ask(ctx context.Context, origin, ticket string, lanes []Lane) SharedAnswer {
	return s.fakeFleet.Ask(ctx, origin, s.name+ticket, lanes)
}

func (s seat) Started(ctx context.Context, origin, ticket string, lanes []Lane, ago time.Duration) error {
	return s.fakeFleet.Started(ctx, origin, s.name+ticket, lanes, ago)
}

func (s seat) Leave(ctx context.Context, origin, ticket string, lanes []Lane) error {
	return s.fakeFleet.Leave(ctx, origin, s.name+ticket, lanes)
}

// ally is a heed whose clients take turns with those of others.
func ally(t *testing.T, f *fakeFleet, name string) *crowd {
	c := newCrowd(t)
	c.Scheduler = New(Config{Shared: seat{f, name}})
	c.settings.MaxWait = time.Minute
	return c
}

func TestHeed_HeedsOfAFleetTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		one, other := ally(t, f, "one"), ally(t, f, "other")
		for range 3 {
			one.ask("a", delay("2"))
		}
		for range 3 {
			other.ask("b", delay("2"))
		}
		one.wg.Wait()
		other.wg.Wait()
		all := slices.Concat(one.starts, other.starts)
		slices.SortFunc(all, func(a, b start) int { return int(a.at - b.at) })
		for i := 1; i < len(all); i++ {
			gap := all[i].at - all[i-1].at
			must.True(t, gap >= 2*time.Second && gap <= 2200*time.Millisecond, "%v between the starts %v", gap, all)
			must.True(t, i <= 1 || i >= 5 || all[i].who != all[i-1].who, "one heed came twice: %v", all)
		}
		must.Equal(t, f.left(), 0, "turns and places left")
	})
}

// How long others keep a site busy is known once the fleet has answered; a request that
// would wait too long is refused immediately all the same.
func TestHeed_WaitsOfAFleetAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		f.next["*"] = time.Now().Add(40 * time.Second)
		c := ally(t, f, "one")
		wishes := robots("TestBot/1.0", "User-agent: *", "Crawl-delay: 10")
		f.next[wishes[0].Group] = time.Now().Add(40 * time.Second)
		var told Position
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan Answer)
		go func() {
			done <- c.Take(ctx, &Ask{Settings: &c.settings, Origin: site1, Hints: wishes, Waiting: func(p Position) { told = p }})
		}()
		synctest.Wait()
		must.Equal(t, told.Wait, 40*time.Second, "told of %+v", told)
		c.settings.MaxWait = 20 * time.Second
		a := c.Take(t.Context(), &Ask{Settings: &c.settings, Origin: site1, Hints: wishes, Client: "b"})
		must.True(t, a.Refused && a.RetryAfter >= 40*time.Second && a.Waited <= 0, "%+v", a)
		leave()
		a = <-done
		must.True(t, a.Left, "%+v", a)
		must.Equal(t, f.left(), 0, "turns and places left")
	})
}

func TestHeed_ThePauseOfAFleetIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		f.until = time.Now().Add(10 * time.Minute)
		c := ally(t, f, "one")
		ask := Ask{Settings: &c.settings, Origin: site1, Hints: delay("1")}
		a := c.Take(t.Context(), &ask)
		must.True(t, a.Refused && a.Pause == 10*time.Minute && a.RetryAfter == 10*time.Minute, "%+v", a)
		f.mu.Lock()
		f.until = time.Time{} // another heed's operator has ended it
		f.mu.Unlock()
		if a := c.Take(t.Context(), &ask); a.Refused {
			t.Errorf("%+v", a)
		} else {
			end(a)
		}
		c.Answered(site1, http.StatusTooManyRequests, http.Header{"Retry-After": {"5"}}, time.Now())
		c.Fetches(site1)
		c.Release("site.test")
		c.Hold(site1, 2*time.Minute) // another heed was told
		a = c.Take(t.Context(), &ask)
		must.True(t, a.Refused && a.Pause == 2*time.Minute, "%+v", a)
		c.Hold(site1, 0)
		if a := c.Take(t.Context(), &ask); a.Refused {
			t.Errorf("%+v", a)
		} else {
			end(a)
		}
		must.Equal(t, f.left(), 0, "turns and places left")
		slices.Sort(f.told)
		must.Equal(t, strings.Join(f.told, "; "), "hold http://site.test 5s; moved http://site.test; release http://site.test", "told")
	})
}

// Requests wait for a store that was never reached as long as they may, and are then
// refused with its name; those without a delay do not wait.
func TestHeed_RequestsWaitForAStoreThatWasNeverReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		f.store = "store.test:6379"
		c := ally(t, f, "one")
		ask := Ask{Settings: &c.settings, Origin: site1, Hints: delay("1")}
		c.settings.MaxWait = 5 * time.Second
		if a := c.Take(t.Context(), &ask); !a.Refused || a.Store != f.store || !strings.Contains(a.Note, f.store) || a.Waited < 5*time.Second || a.RetryAfter < retryUnreached {
			t.Errorf("%+v", a)
		}
		a := c.Take(t.Context(), &Ask{Settings: &c.settings, Origin: site1})
		must.True(t, !a.Refused && a.Waited <= 0, "without a delay: %+v", a)
		time.AfterFunc(3*time.Second, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.store = ""
		})
		if a := c.Take(t.Context(), &ask); a.Refused || a.Waited < 3*time.Second || a.Waited > 5*time.Second {
			t.Errorf("when it was reached: %+v", a)
		} else {
			end(a)
		}
		c.wg.Wait()
	})
}

// A turn that is given for one request goes to the request that is first by then.
func TestHeed_APlaceInAFleetIsOfTheWholeQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		c := ally(t, f, "one")
		wishes := delay("10")
		f.next[wishes[0].Group] = time.Now().Add(10 * time.Second)
		ctx, leave := context.WithCancel(t.Context())
		first := make(chan Answer)
		go func() {
			first <- c.Take(ctx, &Ask{Settings: &c.settings, Origin: site1, Hints: wishes, Client: "a"})
		}()
		synctest.Wait()
		c.ask("b", wishes)
		f.Ask(t.Context(), "", "of another heed", []Lane{{Name: wishes[0].Group, Delay: 10 * time.Second}})
		leave()
		<-first
		c.expect("b 10s")
	})
}

// A Retry-After is true in a fleet, too: a client that comes back then is served,
// however much other heeds ask for.
func TestHeed_RetryAfterIsTrueInAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		one, other := ally(t, f, "one"), ally(t, f, "other")
		for _, c := range []*crowd{one, other} {
			c.settings.MaxWait = 10 * time.Second
			for range 12 {
				c.ask("busy", delay("1"))
			}
		}
		late := Ask{Settings: &one.settings, Origin: site1, Hints: delay("1"), Client: "busy", Target: "/late"}
		refused := one.Take(t.Context(), &late)
		must.Need(t, refused.Refused && refused.RetryAfter >= 10*time.Second, "%+v", refused)
		testkit.Advance(refused.RetryAfter)
		for _, c := range []*crowd{one, other} {
			for range 12 {
				c.ask("busy", delay("1"))
			}
		}
		again := one.Take(t.Context(), &late)
		must.True(t, !again.Refused && again.Waited <= 10*time.Second,
			"refused with Retry-After %v, then: %+v", refused.RetryAfter, again)
		end(again)
		one.wg.Wait()
		other.wg.Wait()
	})
}

// alone is a fleet whose store is away: a turn is over after a tenth of a second.
type alone struct {
	*fakeFleet
	given int
	busy  map[string]bool // an origin whose turn is a second away, once
}

func (f *alone) Ask(_ context.Context, origin, _ string, _ []Lane) SharedAnswer {
	if f.busy[origin] {
		delete(f.busy, origin)
		return SharedAnswer{Again: time.Second, Wait: time.Second, Away: true}
	}
	f.given++
	return SharedAnswer{Now: true, Until: time.Now().Add(100 * time.Millisecond), Away: true}
}

// A turn that other heeds respect for a moment only is over when its request is late, and no
// delay begins with it.
func TestHeed_ATurnMayBeOverBeforeItsRequestGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &alone{fakeFleet: newFleet()}
		c := New(Config{Shared: f})
		ask := &Ask{Settings: &defaults, Origin: site1, Hints: delay("10"), Client: "a"}
		late := c.Take(t.Context(), ask)
		testkit.Advance(101 * time.Millisecond)
		must.True(t, !late.Turn.Going(), "it goes although its turn is over")
		late.Turn.End()
		again := c.Take(t.Context(), ask)
		testkit.Advance(100 * time.Millisecond)
		must.True(t, again.Waited <= 0 && again.Turn.Going() && f.given == 2, "%+v, %d turns were given", again, f.given)
		again.Turn.End()
		testkit.Advance(time.Second)
	})
}

// A turn at a site that is over while the one at its address is waited for is not taken
// again: the next would be over as well.
func TestHeed_ATurnMayBeOverWhileTheOneAtTheAddressIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := netip.MustParseAddr("192.0.2.1")
		f := &alone{fakeFleet: newFleet(), busy: map[string]bool{AddressOrigin(at).String(): true}}
		c := New(Config{Shared: f})
		settings := defaults
		settings.MinDelay = time.Second
		a := c.TakeAt(t.Context(), &Ask{Settings: &settings, Origin: site1, Hints: delay("10"), Client: "a"}, at)
		must.True(t, len(f.busy) == 0 && a.Turn.Going(), "it is too late: %+v", a)
		a.Turn.End()
		testkit.Advance(time.Second)
	})
}
