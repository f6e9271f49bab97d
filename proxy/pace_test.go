package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/pace"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// gentle is a robots.txt that asks for ten seconds between requests.
const gentle = "User-agent: *\nDisallow: /private\n\nUser-agent: slow\nCrawl-delay: 10\nDisallow: /private\n"

// turnstile is a Pacer that does as the test says, and remembers what it was told.
type turnstile struct {
	mu     sync.Mutex
	asked  []pace.Ask
	events []string
	late   atomic.Bool // the next request that goes is late
	answer func(ctx context.Context, q *pace.Ask) pace.Answer
}

func (p *turnstile) Paced(_ rules.Origin, wishes []*rules.RateHint) bool { return len(wishes) > 0 }

func (p *turnstile) Turn(ctx context.Context, q *pace.Ask) pace.Answer {
	p.mu.Lock()
	p.asked = append(p.asked, *q)
	p.mu.Unlock()
	a := p.answer(ctx, q)
	if !a.Refused && !a.Left {
		a.Turn = turnOf{p}
	}
	return a
}

func (p *turnstile) Answered(_ rules.Origin, status int, _ http.Header, sent time.Time) string {
	if sent.Year() == 1 { // the zero time, and how long it waited
		p.event("answered, never sent")
	}
	p.event("answered " + http.StatusText(status))
	return "noted"
}

func (p *turnstile) event(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, what)
}

// told returns what happened, each thing once, and forgets it.
func (p *turnstile) told() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, e := range p.events {
		if !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	p.events = nil
	return strings.Join(all, ", ")
}

// ended waits for the end of a turn and returns what happened, each thing once.
// The turn of a tunnel ends a moment after its entry does.
func (p *turnstile) ended(t testing.TB) string {
	t.Helper()
	testkit.Until(t, "the end of the turn", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.Contains(p.events, "ended")
	})
	return p.told()
}

type turnOf struct{ *turnstile }

func (t turnOf) Going() bool {
	t.event("going")
	return !t.late.CompareAndSwap(true, false)
}

func (t turnOf) Started() { t.event("started") }
func (t turnOf) End()     { t.event("ended") }

// newPaced is a rig whose site asks for delays, which the turnstile keeps.
func newPaced(t *testing.T, p *turnstile, changes ...func(*Config)) *rig {
	s := newSite(t, hello)
	s.robots = gentle
	return newRigBefore(t, s, append(changes, func(c *Config) { c.Pacer = p })...)
}

// at once lets everybody start.
func atOnce(context.Context, *pace.Ask) pace.Answer {
	return pace.Answer{Position: pace.Position{Asked: 10 * time.Second, Delay: 10 * time.Second}, Waited: time.Second}
}

var slow = []string{"User-Agent: slow/1.0"}

// A request waits before it is recorded, is recorded before it leaves, and its
// turn begins when it leaves and ends with it.
func TestHeed_ATurnIsTakenBeforeTheRecordAndBeginsWithTheRequest(t *testing.T) {
	p := &turnstile{}
	r := newPaced(t, p, func(c *Config) {
		settle(c, &acl.Rules{Clients: []acl.Client{{Name: "lab", UserAgent: acl.NewGlob("lab/*"), Terms: acl.Terms{AlsoObey: acl.Names{"Slow"}}}}})
	})
	p.answer = func(ctx context.Context, q *pace.Ask) pace.Answer {
		for _, e := range r.records.all() {
			if e.Target == q.Target {
				p.event("recorded before its turn")
			}
		}
		p.event("turn")
		return atOnce(ctx, q)
	}
	eachMode(t, allModes, func(t *testing.T, m mode) {
		path := "/" + string(m)
		must.Is(t, r.in(t).ask(m, question{path: path, header: slow}).StatusCode, 200)
		e := r.records.target(t, path)
		got := p.ended(t) // HTTP/2 reports the headers while the answer is being handled
		if !strings.HasPrefix(got, "turn, going, ") || !strings.Contains(got, "answered OK") || m == plain && got != "turn, going, started, answered OK, ended" {
			t.Error(got)
		}
		if e.DelayAsked != 10*time.Second || e.TurnWaited != time.Second || e.Outcome.Waited < time.Second || e.Outcome.Note != "noted" {
			t.Errorf("%+v", e)
		}
	})
	r.ask(plain, question{path: "/quick", header: []string{"User-Agent: quick/1.0"}})
	r.records.target(t, "/quick")
	must.Equal(t, p.told(), "answered OK", "a request that is not paced")
	r.ask(plain, question{path: "/obeys", header: []string{"User-Agent: lab/1.0"}})
	if e := r.records.target(t, "/obeys"); e.DelayAsked != 10*time.Second || !strings.HasPrefix(p.ended(t), "turn, going") {
		t.Errorf("the delay of a name that the client also obeys: %+v", e)
	}
}

// A turn that is too far off is a 429 that says which line asks, how many wait,
// and when to come back; nothing reaches the site.
func TestHeed_ATurnTooFarOffIsRefused(t *testing.T) {
	p := &turnstile{answer: func(_ context.Context, q *pace.Ask) pace.Answer {
		delay, by := q.Hints[0].Delay(time.Now())
		return pace.Answer{
			Refused: true, RetryAfter: 40 * time.Second, Owed: 40 * time.Second,
			Position: pace.Position{Asked: delay, Delay: delay, By: by, Wait: 40 * time.Second, Others: 12},
		}
	}}
	r := newPaced(t, p)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		path := "/" + string(m)
		a := r.in(t).ask(m, question{path: path, header: slow})
		if a.StatusCode != 429 || a.Header.Get("Retry-After") != "40" || proxyStatusOf(t, a.Header) != "http_request_error" {
			t.Fatalf("%s %v", a.Status, a.Header)
		}
		var told struct {
			Title, Reason, Detail string
			Line                  int
			Queue                 struct {
				Waiting int
				Delay   float64 `json:"delay_seconds"`
			}
			Quoted struct{ Rule string } `json:"quoted_from_site"`
		}
		must.OK(t, json.Unmarshal([]byte(a.body), &told))
		if told.Title != "Refused by heed: site.test asks for 10 s between requests (robots.txt line 5), 12 others wait; ask again after 40 s" ||
			told.Reason != "paced" || told.Line != 5 || told.Quoted.Rule != "crawl-delay: 10" || told.Queue.Waiting != 13 || told.Queue.Delay != 10 ||
			!strings.Contains(told.Detail, "The same request is served after 40 seconds.") {
			t.Errorf("%s", a.body)
		}
		if e := r.records.target(t, path); e.Decision.Reason != rules.ReasonPaced || e.Owed != 40*time.Second || e.DelayAsked != 10*time.Second {
			t.Errorf("%+v", e)
		}
	})
	for _, seen := range r.site.reached() {
		must.Contain(t, seen, "/robots.txt", "the site saw")
	}
}

// Who leaves while it waits is recorded with what it owed, and its turn is not used.
func TestHeed_WhoLeavesBeforeItsTurnIsRecorded(t *testing.T) {
	waiting := make(chan struct{}, 1)
	p := &turnstile{answer: func(ctx context.Context, _ *pace.Ask) pace.Answer {
		waiting <- struct{}{}
		<-ctx.Done()
		return pace.Answer{Left: true, Waited: 2 * time.Second, Owed: 8 * time.Second}
	}}
	r := newPaced(t, p)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		r, path := r.in(t), "/left/"+string(m)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		go func() { <-waiting; leave() }()
		if m == mitmH2 {
			req, _ := http.NewRequestWithContext(ctx, "GET", "https://site.test"+path, nil)
			req.Header.Set("User-Agent", "slow/1.0")
			_, err := r.h2("site.test").RoundTrip(req)
			must.True(t, err != nil, "an answer came")
		} else {
			c, prefix := r.raw(m)
			c.Send(get(prefix, path, slow...))
			<-ctx.Done()
			depart(c)
		}
		e := r.records.target(t, path)
		if e.Decision.Reason != rules.ReasonClientLeft || e.Owed != 8*time.Second || e.TurnWaited != 2*time.Second ||
			e.Detail != "the client left before its turn came: it had waited for 2 s and would have had to for 8 s more" {
			t.Errorf("%+v", e)
		}
	})
}

// A request that cannot be sent gives its turn back without having started.
func TestHeed_WhatCannotBeSentDoesNotBeginItsTurn(t *testing.T) {
	p := &turnstile{answer: atOnce}
	site := newSite(t, hello)
	site.resolve["dead.test:80"] = testkit.FreeAddr(t)
	pattern := must.Get(acl.ParseHostPattern("dead.test"))(t)
	r := newRigBefore(t, site, func(c *Config) {
		c.Pacer = p
		c.Rules = &acl.Rules{Hosts: []acl.Host{{Match: []acl.HostPattern{pattern}, Robots: func(o rules.Origin) *rules.Policy {
			return rules.New(rules.Source{Origin: o, State: rules.Available}, []byte(gentle))
		}}}}
	})
	a := r.ask(plain, question{host: "dead.test", path: "/dead", header: slow})
	must.True(t, a.StatusCode == 502, "%s", a.Status)
	r.records.target(t, "/dead")
	must.Equal(t, p.ended(t), "ended")
}

// A request whose turn is over before it can be written takes another one, and is not sent
// when that is too far off.
func TestHeed_ARequestThatIsLateTakesAnotherTurn(t *testing.T) {
	p := &turnstile{}
	r := newPaced(t, p)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		path := "/" + string(m)
		p.answer, p.asked = atOnce, nil
		p.late.Store(true)
		a := r.ask(m, question{path: path + "/late", header: slow})
		must.True(t, a.StatusCode == 200, "%s", a.Status)
		e := r.records.target(t, path+"/late")
		must.True(t, e.Outcome.Err == "" && len(p.asked) == 2, "%d turns, %q", len(p.asked), e.Outcome.Err)
		turns := 0
		p.answer = func(ctx context.Context, q *pace.Ask) pace.Answer {
			if turns++; turns > 1 {
				return pace.Answer{Position: pace.Position{Asked: 10 * time.Second, Wait: time.Minute}, Refused: true, RetryAfter: time.Minute}
			}
			return atOnce(ctx, q)
		}
		p.late.Store(true)
		if a := r.ask(m, question{path: path + "/never", header: slow}); a.StatusCode != 429 || a.Header.Get("Retry-After") != "60" {
			t.Errorf("%s, Retry-After %q", a.Status, a.Header.Get("Retry-After"))
		}
		must.Equal(t, r.records.target(t, path+"/never").Outcome.Err, "site: "+errLate.Error())
	})
	must.Lack(t, strings.Join(r.site.reached(), "\n"), "/never", "was sent")
	observed := newPaced(t, p, func(c *Config) { c.Rules = &acl.Rules{Mode: acl.Observe} })
	turns := 0
	p.answer = func(ctx context.Context, q *pace.Ask) pace.Answer {
		turns++
		return pace.Answer{Refused: turns > 1}
	}
	p.late.Store(true)
	a := observed.ask(plain, question{path: "/observed", header: slow})
	must.True(t, a.StatusCode == 200 && turns == 2, "only observed: %s after %d turns", a.Status, turns)
}

// Requests of an exempt client do not wait, and requests that are only observed are
// passed to the Pacer as such.
func TestHeed_WhoIsNotPaced(t *testing.T) {
	p := &turnstile{answer: atOnce}
	r := newPaced(t, p, func(c *Config) {
		c.Rules = &acl.Rules{
			Mode: acl.Observe,
			Clients: []acl.Client{
				{Name: "people", UserAgent: acl.NewGlob("slow/people"), Mode: new(acl.Exempt)},
			},
		}
	})
	r.ask(plain, question{path: "/people", header: []string{"User-Agent: slow/people"}})
	r.records.target(t, "/people")
	must.Equal(t, p.told(), "", "people")
	r.ask(plain, question{path: "/observed", header: slow})
	r.records.target(t, "/observed")
	must.True(t, len(p.asked) == 1 && p.asked[0].Observed, "%+v", p.asked)
}

// A long wait is reported when it begins, once per host in half a minute.
func TestHeed_LongWaitsAreAnnounced(t *testing.T) {
	place := pace.Position{Asked: 10 * time.Second, Delay: 10 * time.Second, By: rules.Field{Kind: rules.CrawlDelay, Line: 5}, Wait: 40 * time.Second, Others: 11}
	var told []string
	p := &turnstile{answer: func(ctx context.Context, q *pace.Ask) pace.Answer {
		q.Waiting(place)
		return atOnce(ctx, q)
	}}
	r := newPaced(t, p, func(c *Config) {
		c.Announce = func(forClient, forLog string) { told = append(told, forClient, forLog) }
	})
	for range 3 {
		r.ask(plain, question{path: "/", header: slow})
	}
	const cause = "site.test asks for 10 s between requests (robots.txt line 5): 12 waiting, "
	want := []string{cause + "yours in 40 s", cause + "that of 127.0.0.1 in 40 s"}
	must.True(t, slices.Equal(told, want), "%q", told)
}

// Tunnels that are judged by their host take turns too: each opens a connection.
func TestHeed_TunnelsTakeTurns(t *testing.T) {
	p := &turnstile{answer: atOnce}
	r := newPaced(t, p, func(c *Config) { c.Rules = &acl.Rules{HTTPS: acl.HostOnly} })
	testkit.Dial(t, r.addr).Connect("site.test:443", slow...).Close()
	r.records.await(t, "the tunnel", func(e *audit.Entry) bool { return e.Method == "CONNECT" })
	must.Equal(t, p.ended(t), "started, ended")
}

// Of the requests that begin to wait for a site at the same time, the wait of one is announced.
func TestAnnounced_OneOfRequestsAtTheSameTime(t *testing.T) {
	t.Parallel()
	for range 20000 {
		var a announced
		var due atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if a.due(rules.Origin{Host: "a.test"}, time.Unix(0, 0)) {
					due.Add(1)
				}
			})
		}
		if all.Wait(); due.Load() != 1 {
			t.Fatalf("%d waits were announced", due.Load())
		}
	}
}
