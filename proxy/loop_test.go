package proxy

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/rules"
)

func prefix(text string) netip.Prefix { return clientKey(netip.MustParseAddr(text)) }

// An honest crawler that is refused tens of thousands of addresses in a row, each
// once or a few times, as fast as it can ask, is not slowed.
func TestHeed_AnHonestCrawlerMayBeRefusedOften(t *testing.T) {
	var l loops
	now, crawler := time.Now(), prefix("192.0.2.1")
	for i := range 20_000 {
		for range 3 { // some crawlers ask again
			if late := l.take(crawler, fmt.Sprint("/", i), DefaultRefusals, now); late != nil {
				t.Fatalf("slowed at address %d: %+v", i, late)
			}
		}
		now = now.Add(time.Millisecond)
	}
}

// One that asks for one address again and again is told so soon, about this
// address alone, and told the truth about when to come back.
func TestHeed_ARetryLoopIsSlowedByItsAddress(t *testing.T) {
	var l loops
	now, looping := time.Now(), prefix("192.0.2.1")
	n := 0
	var late *lateness
	for ; late == nil; n++ {
		late = l.take(looping, "/same", DefaultRefusals, now)
	}
	if n != leastTarget*10+1 {
		t.Errorf("slowed at %d", n)
	}
	if other := l.take(looping, "/other", DefaultRefusals, now); other != nil {
		t.Errorf("another address is slowed too: %+v", other)
	}
	early, due := now.Add(late.pause+late.retry-10*time.Millisecond), now.Add(late.pause+late.retry)
	if l.take(looping, "/same", DefaultRefusals, early) == nil {
		t.Error("it was said to be due later than it is")
	}
	if again := l.take(looping, "/same", DefaultRefusals, due); again != nil {
		t.Errorf("it had waited as long as it was told, and is slowed again: %+v", again)
	}
}

// Whoever asks for ever new addresses has a share, and others have their own.
func TestHeed_AClientHasItsShareOfRefusals(t *testing.T) {
	var l loops
	now := time.Now()
	rows, dropped := 0, uint64(0)
	const asked = 200_000
	for i := range asked { // 2000 a second
		switch late := l.take(prefix("2001:db8::1"), fmt.Sprint("/", i), DefaultRefusals, now); {
		case late == nil:
			rows++
		case late.drop:
		default:
			rows++
			dropped += late.unanswered
		}
		now = now.Add(time.Second / 2000)
	}
	if most := DefaultRefusals*10 + 100*(DefaultRefusals/60+5) + 200; rows > most || rows < DefaultRefusals*10 {
		t.Errorf("%d rows of %d requests, at most %d expected", rows, asked, most)
	}
	dropped += l.clients[prefix("2001:db8::1")].unanswered
	if uint64(rows)+dropped != asked {
		t.Errorf("%d recorded and %d counted are not the %d asked", rows, dropped, asked)
	}
	l.take(prefix("2001:db8::2:1"), "", DefaultRefusals, now) // what has become due
	if l.take(prefix("2001:db8::2:2"), "", DefaultRefusals, now) == nil {
		t.Error("an address of the same /64 has a share of its own")
	}
	if late := l.take(prefix("2001:db8:0:1::1"), "", DefaultRefusals, now); late != nil {
		t.Errorf("another client is slowed: %+v", late)
	}
}

// The memory for clients is bounded, and the one that loops is not forgotten for
// those that come and go.
func TestHeed_LoopsAreRememberedInABoundedMemory(t *testing.T) {
	var l loops
	now, looping := time.Now(), prefix("192.0.2.1")
	for range 100 {
		l.take(looping, "", 6, now)
	}
	for i := range 20 * loopClients {
		l.take(clientKey(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})), "/", 6, now)
	}
	if len(l.clients) > loopClients || len(l.targets) != loopTargets {
		t.Errorf("%d clients, %d addresses", len(l.clients), len(l.targets))
	}
	if l.take(looping, "", 6, now) == nil {
		t.Error("it was forgotten")
	}
}

// On the wire: 403 as long as it is within bounds, then 429 with Retry-After and
// the reason, late; what is allowed goes on, and every answer has its Entry.
func TestHeed_AClientThatLoopsOnRefusalsIsTold429(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { c.Limits = Limits{RefusalsPerClient: 1} })
	eachMode(t, []mode{plain, mitmH1, mitmH2}, func(t *testing.T, m mode) {
		r := r.in(t)
		for i := range 30 {
			path := fmt.Sprintf("/private/%s/%d", m, i)
			a := r.ask(m, question{path: path})
			e := r.records.target(t, path)
			if m == plain && i < 10 {
				if a.StatusCode != 403 || e.Decision.Reason != rules.ReasonRule {
					t.Fatalf("%s: %s, %+v", path, a.Status, e.Decision)
				}
				continue
			}
			after, _ := strconv.Atoi(a.Header.Get("Retry-After"))
			if a.StatusCode != 429 || after < 30 || after > 60 || e.Decision.Reason != rules.ReasonLimit || e.Outcome.Status != 429 ||
				!strings.Contains(e.Detail, "refused as well: rule") || !strings.Contains(a.body, "refusals_per_client") {
				t.Fatalf("%s: %s, Retry-After %d, %+v %s\n%s", path, a.Status, after, e.Decision, e.Detail, a.body)
			}
			break
		}
		if a := r.ask(m, question{path: "/page"}); a.StatusCode != 200 {
			t.Errorf("what is allowed: %s", a.Status)
		}
	})
	c := r.from("127.0.0.9")
	c.Send(get("http://site.test", "/private/other"))
	if a := c.Answer("GET"); a.StatusCode != 403 {
		t.Errorf("another client: %s", a.Status)
	}
}

// What says itself when asking again can help is not asked for before that.
func TestHeed_ASlowedRefusalIsNotDueBeforeItsCauseIsOver(t *testing.T) {
	s := newSite(t, hello)
	s.serve(t, "sick.test", &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })})
	r := newRigBefore(t, s, func(c *Config) { c.Limits = Limits{RefusalsPerClient: 60} })
	told := func(i int) (status, after int) {
		a := r.ask(plain, question{host: "sick.test", path: fmt.Sprint("/", i)})
		after, _ = strconv.Atoi(a.Header.Get("Retry-After"))
		return a.StatusCode, after
	}
	status, after := told(0)
	for i, before := 1, after; status == 503; i++ {
		if status, after = told(i); status == 429 && after < before-5 || after == 0 {
			t.Errorf("unreachable for %d s, and due in %d", before, after)
		}
		before = after
	}
}

// A flood from one client leaves rows for what was answered, in which those are
// counted that were not.
func TestHeed_AFloodOfRefusalsIsCountedWhole(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { c.Limits = Limits{RefusalsPerClient: 1} })
	const asked = 400
	var flood sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range asked {
		flood.Go(func() {
			resp, err := r.client(plain).Get("http://site.test/private/flood")
			status := 0
			if err == nil {
				status = resp.StatusCode
				resp.Body.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	r.awaitLoad("the flood has come", func(s LoadStatus) bool { return s.Reached["refusals_per_client"] == asked-10 })
	r.proxy.endLasting() // as a stop does: who waits is answered now
	flood.Wait()
	rows := r.records.all()
	if len(rows) != statuses[403]+statuses[429] || statuses[403] != 10 || statuses[429] < int(maxLateAnswer/lateEvery) || statuses[200] > 0 {
		t.Errorf("%d rows of answers %v", len(rows), statuses)
	}
	counted := int(r.proxy.Load.loops.clients[prefix("127.0.0.1")].unanswered) // of the next row
	for _, e := range rows {
		if _, text, found := strings.Cut(e.Detail, "; "); found {
			text = text[strings.LastIndex(text, "; ")+1:]
			n := 0
			_, _ = fmt.Sscanf(text, "%d before it got no answer", &n)
			counted += n
		}
	}
	if counted != statuses[0] {
		t.Errorf("%d without an answer are counted, not %d", counted, statuses[0])
	}
}
