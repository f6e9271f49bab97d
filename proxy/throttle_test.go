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

	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
	"heed/rules"
)

// On the wire: 403 as long as it is within bounds, then 429 with Retry-After and
// the reason, late; what is allowed goes on, and every answer has its Entry.
func TestThrottleRefusal_ALoopingClientGets429(t *testing.T) {
	t.Parallel()
	r := newRig(t, hello, func(c *Config) { c.Limits = limit.Limits{RefusalsPerClient: 1} })
	eachMode(t, []mode{plain, mitmH1, mitmH2}, func(t *testing.T, m mode) {
		r := r.in(t)
		for i := range 30 {
			path := fmt.Sprintf("/private/%s/%d", m, i)
			a := r.ask(m, question{path: path})
			e := r.records.target(t, path)
			if m == plain && i < 10 {
				must.Need(t, a.StatusCode == 403 && e.Decision.Reason == rules.ReasonRule,
					"%s: %s, %+v", path, a.Status, e.Decision)
				continue
			}
			after, _ := strconv.Atoi(a.Header.Get("Retry-After"))
			if a.StatusCode != 429 || after < 30 || after > 60 || e.Decision.Reason != rules.ReasonLimit || e.Outcome.Status != 429 ||
				!strings.Contains(e.Detail, "refused as well: rule") || !strings.Contains(a.body, "refusals_per_client") {
				t.Fatalf("%s: %s, Retry-After %d, %+v %s\n%s", path, a.Status, after, e.Decision, e.Detail, a.body)
			}
			break
		}
		must.Status(t, r.ask(m, question{path: "/page"}).Response, 200, "what is allowed")
	})
	c := r.from("127.0.0.9")
	c.Send(get("http://site.test", "/private/other"))
	must.Status(t, c.Answer("GET").Response, 403, "another client")
}

// What says itself when asking again can help is not asked for before that.
func TestThrottleRefusal_RetryAfterIsNotBeforeThatOfTheRefusal(t *testing.T) {
	t.Parallel()
	s := newSite(t, hello)
	s.serve(t, "sick.test", &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })})
	r := newRigBefore(t, s, func(c *Config) { c.Limits = limit.Limits{RefusalsPerClient: 60} })
	told := func(i int) (status, after int) {
		a := r.ask(plain, question{host: "sick.test", path: fmt.Sprint("/", i)})
		after, _ = strconv.Atoi(a.Header.Get("Retry-After"))
		return a.StatusCode, after
	}
	status, after := told(0)
	for i, before := 1, after; status == 503; i++ {
		status, after = told(i)
		must.True(t, (status != 429 || after >= before-5) && after != 0, "unreachable for %d s, and due in %d", before, after)
		before = after
	}
}

// A flood from one client leaves rows for what was answered, in which those are
// counted that were not.
func TestThrottleRefusal_UnansweredRequestsAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, hello, func(c *Config) { c.Limits = limit.Limits{RefusalsPerClient: 1} })
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
	r.awaitLoad("the flood has come", func(s limit.Status) bool { return s.Reached["refusals_per_client"] == asked-10 })
	r.proxy.endLasting() // as a stop does: who waits is answered now
	flood.Wait()
	rows := r.records.all()
	must.True(t, len(rows) == statuses[403]+statuses[429] && statuses[403] == 10 && statuses[429] >= 150 && statuses[200] == 0,
		"%d rows of answers %v", len(rows), statuses)
	counted := int(r.proxy.gate.CountRefusal(netip.MustParseAddr("127.0.0.1"), limit.Target{}, r.proxy.limits(), time.Now().Add(20*time.Second)).Unanswered) // of the next row
	for _, e := range rows {
		if _, text, found := strings.Cut(e.Detail, "; "); found {
			text = text[strings.LastIndex(text, "; ")+1:]
			n := 0
			_, _ = fmt.Sscanf(text, "%d before it got no answer", &n)
			counted += n
		}
	}
	must.Equal(t, counted, statuses[0], "without an answer are counted")
}
