package operator

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"heed/internal/audit/store"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// rows returns the number of decisions in the record of h.
func (h *heed) rows() int {
	h.t.Helper()
	r := must.Get(store.OpenRecord(filepath.Join(h.State, "audit.db")))(h.t)
	return int(r.Last - r.First + 1)
}

// random sends n requests, nearly each to another host under another name, and every
// fourth to a site that disallows half of its pages.
func (h *heed) random(n int) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			c := h.client()
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				url := fmt.Sprintf("http://127.%d.%d.%d:9/%d", 1+rand.IntN(254), rand.IntN(256), rand.IntN(256), i)
				if i%4 == 0 {
					url = fmt.Sprintf("http://site.test/%s/%d", []string{"private", "page"}[i/4%2], i)
				}
				q, _ := http.NewRequest(http.MethodGet, url, nil)
				q.Header.Set("User-Agent", fmt.Sprintf("Agent%d/1.%d", rand.IntN(1<<20), i))
				resp, err := c.Do(q)
				if err != nil {
					h.t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	workers.Wait()
}

// A real Prometheus scrapes heed while clients request random hosts under random names.
// The series stay bounded, and their sum is the number of rows of the record.
func TestPrometheus_CountsTheRowsOfTheRecord(t *testing.T) {
	t.Parallel()
	n := 800
	if testkit.Full {
		n = 100_000
	}
	o := testkit.NewOrigin(t, testkit.Site{Name: "site.test", Robots: "User-agent: *\nDisallow: /private\n"})
	h := start(t, o, testkit.FreeAddr(t), "[limits]\nrefusals_per_client = 1000000\n[log]\nlevel = \"error\"\n")
	p := scrape(t, h)
	// Those by name are of at most 100 clients and sites, and of all others together.
	const byName, others = `count({job="heed",__name__=~"heed_(client|site)_bytes_total"})`, `count({job="heed",__name__!~"heed_(client|site)_bytes_total"})`
	series := p.query(others)
	h.random(n)

	testkit.Until(t, "all requests have ended and are in Prometheus", func() bool {
		return h.sum("heed_requests_total") == n && p.query("sum(heed_requests_total)") == float64(n)
	})
	h.command("audit", "report") // completes the record
	must.Equal(t, h.rows(), n, "rows and %d requests", n)
	for _, c := range []struct {
		query string
		want  float64
	}{
		{`sum(heed_requests_total{reason="rule",verdict="refuse"})`, float64(n / 8)},
		{`sum(heed_requests_total{class="allowed"})`, float64(n / 8)},
		{`sum(heed_requests_total{class="failed"})`, float64(n - n/4)},
		{`sum(heed_request_duration_seconds_count)`, float64(n)},
		{`heed_audit_unrecorded_total`, 0},
	} {
		must.Equal(t, p.query(c.query), c.want, c.query)
	}
	now := p.query(others)
	t.Logf("%d requests: %v series, before %v; commit p99 %v s", n, now, series, p.query(`histogram_quantile(0.99, heed_audit_commit_duration_seconds_bucket)`))
	must.True(t, now < 2000 && now <= series+10, "%v series, at first %v", now, series)
	names := p.query(byName)
	must.True(t, names >= 100 && names <= 4*101, "%v series of clients and sites", names) // two directions
	got := p.query(`heed_policies{state="unreachable"}`)
	must.True(t, got >= float64(n)/2, "%v origins unreachable", got)
	must.Equal(t, p.query(`count(ALERTS{alertstate="firing"})`), -1, "alerts of a healthy heed")
	testkit.Until(t, "many unreachable sites are noticed", func() bool {
		return p.query(`ALERTS{alertname="HeedPoliciesUnreachable",alertstate="pending"}`) == 1
	})
	_, text := h.read("/metrics")
	promtool := exec.Command(testkit.Program(t, "promtool"), "check", "metrics")
	promtool.Stdin = strings.NewReader(text)
	out, err := promtool.CombinedOutput()
	must.True(t, err == nil && len(out) == 0, "promtool: %v\n%s", err, out)
}

// The counts do not depend on the record, and a run counts as well.
func TestMetrics_CountWithoutARecord(t *testing.T) {
	t.Parallel()
	o := testkit.NewOrigin(t, testkit.Site{Name: "site.test", Robots: "User-agent: *\nDisallow: /private\n"})
	h := start(t, o, testkit.FreeAddr(t), "[audit]\nenabled = false\n")
	for _, path := range []string{"/private", "/page", "/robots.txt"} {
		resp := must.Get(h.client().Get("http://site.test" + path))(t)
		resp.Body.Close()
	}
	testkit.Until(t, "three requests are counted", func() bool { return h.sum("heed_requests_total") == 3 })
	must.Equal(t, h.sum("heed_audit_bytes"), 0, "the bytes of a record")
	must.Equal(t, h.sum(`heed_policy_fetches_total{outcome="available"}`), 1, "fetches")
	n := h.sum(`heed_upstream_connections{state="open"}`)
	must.True(t, n >= 1, "%d connections to the site", n)
}
