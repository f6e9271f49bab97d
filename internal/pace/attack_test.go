package pace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// Whatever clients do, turns of a lane do not start closer than its delay, no request
// waits for ever, and nothing is left: clients of several groups that come, leave,
// fail before they start, start late, and come back, at a site that holds them.
func TestHeed_WhateverClientsDoTheDelayIsKept(t *testing.T) {
	t.Parallel()
	seeds := uint64(3)
	if testkit.Full {
		seeds = 30
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { riot(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

// riotFile is the robots.txt of a riot, and riotDelays what its groups ask for.
var (
	riotFile   = []string{"User-agent: slowbot", "Crawl-delay: 20", "Disallow:", "User-agent: quickbot", "Crawl-delay: 0.5", "Disallow:", "User-agent: otherbot", "Request-rate: 20/1m"}
	riotDelays = map[string]time.Duration{"slowbot/1": 20 * time.Second, "quickbot/1": 500 * time.Millisecond, "otherbot/1": 3 * time.Second}
)

// mob is the clients of a riot.
type mob struct {
	*crowd
	r     *rand.Rand
	lanes map[string][]time.Duration // when requests started in each
	held  time.Duration              // until when the site wants to be left alone
}

// riot is an hour of it.
func riot(t *testing.T, r *rand.Rand) {
	m := &mob{crowd: newCrowd(t), r: r, lanes: map[string][]time.Duration{}}
	names := []string{"slowbot/1", "quickbot/1", "otherbot/1", "slowbot/1 quickbot/1", "quickbot/1 otherbot/1 slowbot/1", "otherbot/1 quickbot/1"}
	for n := range 1500 {
		testkit.Advance(time.Duration(r.ExpFloat64() * float64(2*time.Second)))
		if r.IntN(100) == 0 {
			m.hold(time.Duration(1+r.IntN(20)) * time.Second)
		}
		agent := names[r.IntN(len(names))]
		wishes := robots(agent, riotFile...)
		must.Need(t, len(wishes) == len(strings.Fields(agent)), "%q is under %d groups", agent, len(wishes))
		m.one(&Ask{Settings: &defaults, Origin: site1, Hints: wishes, Client: fmt.Sprint(r.IntN(5)), Name: agent, Target: fmt.Sprint(n % 50)})
	}
	m.wg.Wait()
	for lane, all := range m.lanes {
		for i := 1; i < len(all); i++ {
			gap := all[i] - all[i-1]
			must.True(t, gap >= riotDelays[lane], "%s: %v between two starts", lane, gap)
		}
		t.Logf("%s: %d starts", lane, len(all))
	}
	if s := m.find(site1); s != nil && (s.timer != nil || len(s.queue) > 0 || s.running > 0) {
		t.Errorf("left over: timer %v, queue %d, running %d", s.timer, len(s.queue), s.running)
	}
	testkit.Advance(3 * time.Hour)
	must.Same(t, m.List(), nil, "not forgotten")
}

// hold makes the site ask all clients to wait.
func (m *mob) hold(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Answered(site1, http.StatusServiceUnavailable, http.Header{"Retry-After": {fmt.Sprint(d.Seconds())}}, time.Now())
	m.held = max(m.held, time.Since(m.begun)+d)
}

// one sends a request, whose client may leave, or which may fail before it starts,
// or start late.
func (m *mob) one(ask *Ask) {
	leaves, fails := m.r.IntN(4) == 0, m.r.IntN(8) == 0
	late, patience := time.Duration(m.r.ExpFloat64()*float64(100*time.Millisecond)), time.Duration(m.r.Int64N(int64(10*time.Second)))
	if !leaves {
		patience = time.Hour
	}
	m.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		answer := m.Take(ctx, ask)
		defer end(answer)
		m.mu.Lock()
		until, given := m.held, time.Since(m.begun)
		m.mu.Unlock()
		must.True(m.t, answer.Waited <= 70*time.Second, "a request waited %v", answer.Waited)
		if answer.Refused || answer.Left {
			return
		}
		must.True(m.t, given >= until, "a turn was given at %v, the site is held until %v", given, until)
		testkit.Delay(late)
		if fails {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, lane := range strings.Fields(ask.Name) {
			m.lanes[lane] = append(m.lanes[lane], time.Since(m.begun))
		}
		answer.Turn.Started()
	})
}

// A client that waits in two groups, one of them slow, does not keep those from
// their turns that are in the quick one alone.
func TestHeed_TheSlowGroupDoesNotSlowDownTheQuickOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		file := []string{"User-agent: slowbot", "Crawl-delay: 25", "Disallow:", "User-agent: quickbot", "Crawl-delay: 0.5"}
		both, quick := robots("slowbot/1 quickbot/1", file...), robots("quickbot/1", file...)
		must.Need(t, len(both) == 2 && len(quick) == 1, "%d and %d groups", len(both), len(quick))
		ctx, stop := context.WithCancel(t.Context())
		for range 3 {
			c.wg.Go(func() {
				for ctx.Err() == nil {
					answer := c.Take(ctx, &Ask{Settings: &defaults, Origin: site1, Hints: both, Client: "attacker"})
					served(answer)
					if answer.Refused {
						testkit.Delay(time.Second)
					}
				}
			})
		}
		synctest.Wait()
		for n := range 40 {
			answer := c.Take(t.Context(), &Ask{Settings: &defaults, Origin: site1, Hints: quick, Client: "quiet"})
			must.True(t, !answer.Refused && answer.Waited <= 1500*time.Millisecond,
				"request %d in the quick group waited %v (refused: %v)", n, answer.Waited, answer.Refused)
			served(answer)
		}
		stop()
		c.wg.Wait()
	})
}

// At a site whose delay is longer than max_wait, a client that comes back after its
// Retry-After is served, however many others ignore theirs.
func TestHeed_ClientsThatKeepTheirRetryAfterAreNotStarved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		ctx, stop := context.WithCancel(t.Context())
		for rude := range 5 {
			c.wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					answer := c.Take(ctx, &Ask{Settings: &defaults, Origin: site1, Hints: delay("60"), Client: fmt.Sprint("rude", rude), Target: fmt.Sprint(n)})
					served(answer)
					testkit.Delay(5 * time.Second)
				}
			})
		}
		testkit.Advance(10 * time.Second)
		count := 0
		for n := range 10 {
			polite := &Ask{Settings: &defaults, Origin: site1, Hints: delay("60"), Client: "polite", Target: fmt.Sprint(n)}
			begun := time.Now()
			for try := 0; ; try++ {
				answer := c.Take(t.Context(), polite)
				if !answer.Refused {
					served(answer)
					count++
					break
				}
				if try == 2 {
					t.Errorf("request %d was refused three times, in %v", n, time.Since(begun))
					break
				}
				testkit.Advance(answer.RetryAfter)
			}
		}
		stop()
		c.wg.Wait()
		t.Logf("%d of 10 requests were served", count)
	})
}

// A client that walks through any number of sites neither makes heed forget when
// it was at another, nor takes more than a bounded memory.
func TestHeed_ManySitesDoNotMakeItForget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.bounds.sites = 2000
		c.ask("a", delay("3600"))
		refused := 0
		for n := range c.bounds.sites + 100 {
			o := rules.Origin{Scheme: "http", Host: fmt.Sprintf("n%d.test", n), Port: 80}
			answer := c.Take(t.Context(), &Ask{Settings: &defaults, Origin: o, Hints: delay("3600"), Client: "walker"})
			served(answer)
			if answer.Refused {
				refused++
			}
		}
		sites := c.Counts().Sites
		must.True(t, sites <= c.bounds.sites && refused >= 100, "%d sites are known, %d requests were refused", sites, refused)
		again := c.Take(t.Context(), &Ask{Settings: &defaults, Origin: site1, Hints: delay("3600"), Client: "a"})
		must.True(t, again.Refused, "the first site has been forgotten")
		c.wg.Wait()
	})
}

// When heed is to end, requests that wait are refused immediately, and new ones do not
// wait.
func TestHeed_NoRequestDelaysTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		for range 3 {
			c.ask("a", delay("10"))
		}
		c.EndWaits()
		c.ask("b", delay("10"))
		c.expect("a 0s")
		must.True(t, len(c.refused) == 3 && time.Since(c.begun) == 0,
			"after %v %d were told: %+v", time.Since(c.begun), len(c.refused), c.refused)
		for _, a := range c.refused {
			must.True(t, a.Ended && a.RetryAfter >= time.Second, "%+v", a)
		}
	})
}

// A flood of requests for robots.txt before the first page is one that it waits
// for no longer than for any other.
func TestHeed_AFloodOfRobotsTxtBeforeTheFirstPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		ctx, stop := context.WithCancel(t.Context())
		c.wg.Go(func() {
			for ctx.Err() == nil {
				a := c.Take(ctx, &Ask{Settings: &defaults, Origin: site1, Client: "flood", RobotsTxt: true})
				served(a)
				testkit.Delay(time.Millisecond)
			}
		})
		testkit.Advance(time.Second)
		answer := c.Take(t.Context(), &Ask{Settings: &defaults, Origin: site1, Hints: delay("1"), Client: "a"})
		must.True(t, !answer.Refused && answer.Waited <= 3*time.Second,
			"a page waited %v (refused: %v)", answer.Waited, answer.Refused)
		end(answer)
		stop()
		c.wg.Wait()
	})
}

// However many groups a site has, and however a client goes from one to the next,
// each of them keeps its delay, and what is known of them is bounded.
func TestHeed_MoreGroupsThanAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.settings.MaxWait, c.bounds.lanes = time.Hour, 32
		r := rand.New(rand.NewPCG(1, 2))
		wishes := make([][]*rules.RateHint, 4*26)
		for n := range wishes {
			agent := fmt.Sprintf("bot-%c%c", 'a'+n/26, 'a'+n%26)
			wishes[n] = robots(agent+"/1", "User-agent: "+agent, fmt.Sprintf("Crawl-delay: %d", 5+5*(n%7)), "Disallow: /private")
		}
		last, most := map[int]time.Time{}, 0
		for range 300 {
			testkit.Advance(time.Duration(r.ExpFloat64() * float64(100*time.Millisecond)))
			n := r.IntN(len(wishes))
			c.wg.Go(func() {
				answer := c.Take(t.Context(), &Ask{Settings: &c.settings, Origin: site1, Hints: wishes[n], Client: fmt.Sprint(n)})
				defer end(answer)
				if answer.Refused {
					return
				}
				answer.Turn.Started()
				c.mu.Lock()
				defer c.mu.Unlock()
				gap := time.Since(last[n])
				must.True(t, gap >= time.Duration(5+5*(n%7))*time.Second, "group %d: %v between two starts", n, gap)
				last[n] = time.Now()
				s := c.find(site1)
				s.mu.Lock()
				defer s.mu.Unlock()
				most = max(most, len(s.lanes))
			})
		}
		c.wg.Wait()
		must.True(t, most == c.bounds.lanes || most == c.bounds.lanes+1, "%d lanes were known at a time", most)
	})
}

// A request that is on its way when its client leaves has had its turn, and one
// that waits for a place on its connection does not let others go first.
func TestHeed_WhatIsOnItsWayIsNotGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		left := c.Take(t.Context(), &Ask{Settings: &defaults, Origin: site1, Hints: delay("10"), Client: "a"})
		c.ask("b", delay("10"))
		testkit.Advance(2 * time.Second)
		left.Turn.Going()
		testkit.Advance(time.Second)
		end(left)
		c.expect("b 13s")

		slow := c.Take(t.Context(), &Ask{Settings: &defaults, Origin: site1, Hints: delay("10"), Client: "a"})
		c.ask("c", delay("10"))
		slow.Turn.Going() // at 23s
		testkit.Advance(15 * time.Second)
		served(slow)
		c.expect("b 13s, c 48s")
	})
}
