package pace

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// end ends the turn of an answer that has one; served starts it before.
func end(a Answer) {
	if a.Turn != nil {
		a.Turn.End()
	}
}

func served(a Answer) {
	if a.Turn != nil {
		a.Turn.Started()
	}
	end(a)
}

// defaults are the settings of proxy.toml.
var defaults = Settings{MaxDelay: time.Hour, MaxWait: 30 * time.Second}

var site1 = rules.Origin{Scheme: "http", Host: "site.test", Port: 80}

// robots returns the rate hints of a robots.txt for an agent.
func robots(agent string, lines ...string) []*rules.RateHint {
	p := rules.New(rules.Source{Origin: site1, State: rules.Available}, []byte(strings.Join(lines, "\n")))
	return p.RateHints(rules.Identify(agent))
}

// delay returns the rate hints of a site that asks all clients for a delay.
func delay(value string) []*rules.RateHint {
	return robots("TestBot/1.0", "User-agent: *", "Crawl-delay: "+value)
}

// crowd is clients of one Turns, and when they started.
type crowd struct {
	t *testing.T
	*Scheduler
	settings Settings
	begun    time.Time
	wg       sync.WaitGroup
	mu       sync.Mutex
	starts   []start
	refused  []Answer
}

type start struct {
	who string
	at  time.Duration
}

func newCrowd(t *testing.T) *crowd {
	return &crowd{t: t, Scheduler: New(Config{}), settings: defaults, begun: time.Now()}
}

// ask has a client ask for its turn, beside the others.
func (c *crowd) ask(client string, wishes []*rules.RateHint) {
	c.send(&Ask{Settings: &c.settings, Origin: site1, Hints: wishes, Client: client})
}

func (c *crowd) send(a *Ask) {
	c.wg.Go(func() {
		answer := c.Take(context.Background(), a)
		c.mu.Lock()
		defer c.mu.Unlock()
		if answer.Refused || answer.Left {
			c.refused = append(c.refused, answer)
			return
		}
		c.starts = append(c.starts, start{a.Client, time.Since(c.begun)})
		served(answer)
	})
	synctest.Wait() // it waits, or has been served: the order of arrival is certain
}

// told returns who started when, once all have.
func (c *crowd) told() string {
	c.wg.Wait()
	var all []string
	for _, s := range c.starts {
		all = append(all, fmt.Sprintf("%s %v", s.who, s.at))
	}
	return strings.Join(all, ", ")
}

func (c *crowd) expect(want string) {
	c.t.Helper()
	must.Equal(c.t, c.told(), want, "started")
}

// Each request for a page of a site with a Crawl-delay has a separate turn.
func TestConner_OneStartPerDelayInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		for _, who := range []string{"a", "b", "c"} {
			c.ask(who, delay("10"))
		}
		c.expect("a 0s, b 10s, c 20s")
	})
}

// A client that asks for a hundred pages at once does not delay other clients.
func TestHeed_ABusyClientDoesNotStarveAQuietOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		for range 50 {
			c.ask("busy", delay("0.5"))
		}
		testkit.Advance(1200 * time.Millisecond)
		c.ask("quiet", delay("0.5"))
		c.wg.Wait()
		for _, s := range c.starts {
			must.True(t, s.who != "quiet" || s.at <= 2200*time.Millisecond,
				"the quiet client came at 1.2s and started at %v", s.at)
		}
	})
}

// The turn of a request that cannot be sent is the next one's at once.
func TestHeed_ARequestThatWasNeverSentCostsNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		ask := &Ask{Settings: &defaults, Origin: site1, Hints: delay("10"), Client: "a"}
		first := c.Take(t.Context(), ask)
		c.ask("b", delay("10"))
		testkit.Advance(3 * time.Second)
		end(first) // it could not connect
		c.expect("b 3s")
	})
}

// A client that leaves takes its place along.
func TestHeed_WhoLeavesGivesItsTurnBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.ask("a", delay("10"))
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan Answer, 1)
		go func() {
			left <- c.Take(ctx, &Ask{Settings: &defaults, Origin: site1, Hints: delay("10"), Client: "b"})
		}()
		synctest.Wait()
		c.ask("c", delay("10"))
		testkit.Advance(4 * time.Second)
		leave()
		a := <-left
		must.True(t, a.Left && a.Owed == 6*time.Second && a.Waited == 4*time.Second, "%+v", a)
		c.expect("a 0s, c 10s")
	})
}

// A request that would wait too long is refused immediately, with the time to come back;
// then it is served.
func TestRFC9110_RetryAfterIsTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		for range 4 {
			c.ask("a", delay("10"))
		}
		late := Ask{Settings: &defaults, Origin: site1, Hints: delay("10"), Client: "a", Target: "/5"}
		answer := c.Take(t.Context(), &late)
		must.Need(t, answer.Refused && answer.RetryAfter == 40*time.Second && answer.Waited == 0, "%+v", answer)
		testkit.Advance(answer.RetryAfter - 100*time.Millisecond)
		for range 4 { // its client goes on asking
			c.ask("a", delay("10"))
		}
		testkit.Advance(100 * time.Millisecond)
		again := c.Take(t.Context(), &late)
		must.True(t, !again.Refused && again.Waited <= 10*time.Second, "it came back after its Retry-After: %+v", again)
		end(again)
		c.wg.Wait()
	})
}

// Requests that no crawler's delay is for still heed the operator's floor.
func TestHeed_MinDelayHoldsForEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.settings.MinDelay = time.Second
		c.ask("a", nil)
		c.ask("b", robots("B/1", "User-agent: B", "Crawl-delay: 5"))
		c.ask("c", nil)
		c.expect("a 0s, b 1s, c 2s")
	})
}

// Two names that two groups govern take turns of their own; one that both govern
// takes its turn in each.
func TestHeed_ATurnInEachGroupThatGoverns(t *testing.T) {
	lines := []string{"User-agent: a", "Crawl-delay: 4", "Disallow:", "User-agent: b", "Crawl-delay: 6"}
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.ask("a1", robots("A/1", lines...))
		c.ask("b1", robots("B/1", lines...))
		c.ask("ab", robots("A/1 B/1", lines...))
		c.ask("a2", robots("A/1", lines...)) // does not overtake the one that needs both
		c.ask("b2", robots("B/1", lines...))
		c.expect("a1 0s, b1 0s, ab 6s, a2 10s, b2 12s")
	})
}

// With share = "agent" each product token has turns of its own.
func TestHeed_TurnsByAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.settings.ByAgent = true
		for _, name := range []string{"one", "two", "one"} {
			c.send(&Ask{Settings: &c.settings, Origin: site1, Hints: delay("10"), Client: name, Agent: name})
		}
		c.expect("one 0s, two 0s, one 10s")
	})
}

// A site that would have one request per fortnight gets the longest delay that is
// kept, and the record says so.
func TestHeed_HostileDelaysAreClampedAndNoted(t *testing.T) {
	for value, want := range map[string]string{
		"1e9":          "robots.txt line 2 asks for 8760h0m0s between requests; pacing.max_delay makes it 1h0m0s",
		"999999999999": "robots.txt line 2 asks for 8760h0m0s between requests; pacing.max_delay makes it 1h0m0s",
		"3601":         "robots.txt line 2 asks for 1h0m1s between requests; pacing.max_delay makes it 1h0m0s",
		"3600":         "",
	} {
		synctest.Test(t, func(t *testing.T) {
			turns := New(Config{})
			ask := Ask{Settings: &defaults, Origin: site1, Hints: delay(value), Client: "a"}
			first := turns.Take(t.Context(), &ask)
			served(first)
			must.Equal(t, first.Note, want, value)
			next := turns.Take(t.Context(), &ask)
			must.True(t, next.Refused && next.RetryAfter == time.Hour, "%s: %+v", value, next)
		})
	}
}

// heed's own request for robots.txt, and a client's, do not wait, and the next request
// keeps its distance from them.
func TestHeed_RobotsTxtMovesTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.send(&Ask{Settings: &defaults, Origin: site1, Hints: delay("10"), Client: "a", Fetched: time.Now().Round(0).Add(-3 * time.Second)})
		c.ask("b", delay("10"))
		testkit.Advance(12 * time.Second) // a started at 7s; b is due at 17s
		c.Fetches(site1)
		c.expect("a 7s, b 22s")
		c.send(&Ask{Settings: &defaults, Origin: site1, Client: "robots", RobotsTxt: true})
		c.ask("c", delay("10"))
		c.expect("a 7s, b 22s, robots 32s, c 42s")
	})
}

// A client that asks for robots.txt all the time does not block requests for pages.
func TestHeed_AFloodOfRobotsTxtStarvesNoOtherRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.settings.MaxWait = 3 * time.Minute
		for range 4 {
			c.ask("a", delay("10"))
		}
		for range 35 {
			c.send(&Ask{Settings: &c.settings, Origin: site1, Client: "flood", RobotsTxt: true})
			c.Fetches(site1) // as for clients that each have a robots.txt of their own
			testkit.Advance(time.Second)
		}
		c.wg.Wait()
		pages, last := 0, time.Duration(0)
		for _, s := range c.starts {
			if s.who == "a" {
				pages, last = pages+1, s.at
			}
		}
		must.True(t, pages == 4 && last <= 90*time.Second, "%d pages started, the last after %v: %v", pages, last, c.starts)
	})
}

// A client that asks for nothing but robots.txt is held to what that says, too.
func TestHeed_AFloodOfRobotsTxtIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.settings.MaxWait = time.Minute
		for range 4 {
			c.send(&Ask{
				Settings: &c.settings, Origin: site1, Client: "flood", RobotsTxt: true,
				Rules: func() []*rules.RateHint { return delay("10") },
			})
		}
		c.expect("flood 0s, flood 10s, flood 20s, flood 30s")
	})
}

// An agent in no group with a delay does not wait.
func TestHeed_OthersDoNotWaitForASlowGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.ask("slow", delay("10"))
		c.ask("slow", delay("10"))
		c.ask("quick", nil)
		c.ask("quick", nil)
		c.expect("slow 0s, quick 0s, quick 0s, slow 10s")
	})
}

// 429 and 503 hold everybody back until the time that the site names.
func TestRFC9110_RetryAfterHoldsEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		// Its forms are those of package retryafter.
		c.Answered(site1, http.StatusServiceUnavailable, http.Header{"Retry-After": {"20"}}, time.Now())
		c.ask("a", nil)
		testkit.Advance(time.Second)
		c.ask("a", nil) // who was held back does not storm the site either
		c.expect("a 20s, a 20.2s")
		c.ask("b", delay("5"))
		c.expect("a 20s, a 20.2s, b 20.2s")
	})
}

func TestHeed_RetryAfterIsClampedAndNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := New(Config{})
		note := turns.Answered(site1, http.StatusTooManyRequests, http.Header{"Retry-After": {"99999999"}}, time.Now())
		must.Contain(t, note, "wait for 27777h46m39s (Retry-After); it is kept for 1h0m0s")
		ask := Ask{Settings: &defaults, Origin: site1, Client: "a"}
		a := turns.Take(t.Context(), &ask)
		must.True(t, a.Refused && a.RetryAfter == time.Hour && a.Pause == time.Hour, "%+v", a)
		got := turns.Release("site.test")
		must.True(t, len(got) == 1, "released %v", got)
		a = turns.Take(t.Context(), &ask)
		must.True(t, !a.Refused, "after the release: %+v", a)
	})
}

// What is not understood, and what asks for nothing, is in the note, and the site is left alone
// as without a time.
func TestHeed_ARetryAfterThatIsNotUnderstoodIsNoted(t *testing.T) {
	for value, want := range map[string]string{
		"": "sent no Retry-After: no request starts there for 1s", "soon": `cannot be understood ("soon"): no request starts there for 1s`,
		"-5": `cannot be understood ("-5")`, "0": "a Retry-After of 0", "Mon, 21 Nov 2016 10:00:20 GMT": "that has passed", "later\x1b": `("later\x1b")`,
	} {
		h := http.Header{}
		if value != "" {
			h.Set("Retry-After", value)
		}
		must.Contain(t, New(Config{}).Answered(site1, http.StatusTooManyRequests, h, time.Now()), want, "%q", value)
	}
}

// A site that says "not now" and no more is left alone for longer each time, and
// trusted again bit by bit.
func TestHeed_PausesGrowAndDecay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := New(Config{})
		held := func() time.Duration {
			for _, s := range turns.List() {
				return s.Pause
			}
			return 0
		}
		for _, want := range []time.Duration{1, 2, 4, 8} {
			turns.Answered(site1, http.StatusServiceUnavailable, nil, time.Now())
			turns.Answered(site1, http.StatusServiceUnavailable, nil, time.Now().Add(-time.Second)) // of the same moment
			must.Equal(t, held(), want*time.Second, "held for")
			testkit.Advance(want*time.Second + time.Second)
		}
		turns.Answered(site1, http.StatusOK, nil, time.Now())
		turns.Answered(site1, http.StatusServiceUnavailable, nil, time.Now())
		must.Equal(t, held(), 8*time.Second, "after one good answer held for")
	})
}

// What waits at a site is bounded: those that would be served last are sent away.
func TestHeed_TheQueueIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.settings.MaxWait, c.bounds.queue = time.Hour, 100
		for range c.bounds.queue + 50 {
			c.ask("busy", delay("1"))
		}
		c.ask("quiet", delay("1"))
		c.wg.Wait()
		must.Equal(t, len(c.refused), 50, "refused")
		must.True(t, c.starts[2].who == "quiet" || c.starts[1].who == "quiet",
			"the quiet one was not among the first: %v", c.starts[:4])
	})
}

// While no request waits there is no timer, and state that is of no use is dropped.
func TestHeed_NothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.ask("a", delay("10"))
		c.ask("b", delay("10"))
		c.wg.Wait()
		s := c.find(site1)
		must.True(t, s.timer == nil && len(s.queue) == 0, "timer %v, queue %v", s.timer, s.queue)
		testkit.Advance(time.Hour)
		must.Same(t, c.List(), nil)
	})
}

// Visit-time is noted, or kept.
func TestConner_VisitTime(t *testing.T) {
	night := robots("A/1", "User-agent: *", "Visit-time: 0200-0400")
	synctest.Test(t, func(t *testing.T) { // begins at midnight UTC
		turns := New(Config{})
		own := defaults
		ask := Ask{Settings: &own, Origin: site1, Hints: night, Client: "a"}
		a := turns.Take(t.Context(), &ask)
		must.True(t, !a.Refused && a.Note == `outside of the Visit-time "0200-0400" (robots.txt line 2)`, "%+v", a)
		own.ObeyVisits = true
		a = turns.Take(t.Context(), &ask)
		must.True(t, a.Refused && a.RetryAfter == 2*time.Hour && a.Visit.Line == 2, "%+v", a)
		testkit.Advance(2*time.Hour - 10*time.Second)
		a = turns.Take(t.Context(), &ask)
		must.True(t, !a.Refused && a.Waited == 10*time.Second, "%+v", a)
	})
}

// A restart brings no burst.
func TestHeed_MarksOutliveTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := newCrowd(t)
		before.ask("a", delay("10"))
		before.wg.Wait()
		testkit.Advance(4 * time.Second)
		after := newCrowd(t)
		after.Restore(before.Checkpoints(), time.Time{})
		after.ask("b", delay("10"))
		after.expect("b 6s")
		testkit.Advance(4 * time.Second)
		crashed := newCrowd(t)
		crashed.Restore(after.Checkpoints(), time.Now())
		crashed.ask("c", delay("10"))
		crashed.expect("c 10s")
	})
}

// What runs at a time is bounded where the operator says so.
func TestHeed_MaxParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.settings.MaxParallel = 1
		first := c.Take(t.Context(), &Ask{Settings: &c.settings, Origin: site1, Client: "a"})
		first.Turn.Started()
		c.ask("b", nil)
		testkit.Advance(7 * time.Second)
		end(first)
		c.expect("b 7s")
	})
}
