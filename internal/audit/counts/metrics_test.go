package counts

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/reason"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func newMetrics() *Metrics {
	return NewMetrics(MetricsConfig{
		Version: "v1", FetchOutcomes: []string{"available", "unreachable"}, SiteAnswers: []string{"forbidden"}, Limits: []string{"tunnels"},
		FleetOps: []string{"turns"},
		Gauges: func() Gauges {
			return Gauges{Listeners: []Listener{{Address: "127.0.0.1:1344", Mode: "icap", Trust: "10.0.0.5", Refused: 4}}, InFlight: 3, Policies: map[rules.State]int{rules.Available: 7}, LimitHits: map[string]uint64{"tunnels": 2}, CANotAfter: time.Unix(1e9, 0), SiteHandshakes: [2]uint64{1, 5}}
		},
	})
}

// text returns what Prometheus gets.
func text(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	must.Need(t, w.Code == http.StatusOK, "%d\n%s", w.Code, w.Body)
	return w.Body.String()
}

func expect(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, want := range lines {
		must.Contain(t, text, "\n"+want+"\n", "there is no line %q", want)
	}
}

// The manual and the program have the same metrics, all of them from the start.
func TestMetrics_AreThoseOfTheManualAndPresentFromTheStart(t *testing.T) {
	t.Parallel()
	exist(t, "the manual", manualText(t))
	exported := 0
	for name := range exportedMetrics(t) {
		if strings.HasPrefix(name, "heed_") {
			exported++
			must.True(t, regexp.MustCompile(`\b`+name+`\b`).MatchString(manualText(t)), "%s is not in the manual", name)
		}
	}
	must.True(t, exported == 32, "%d metrics", exported)
}

// Octets have the names of clients and sites, a bounded number of them; addresses and octets
// that are no text are no names.
func TestMetrics_CountOctetsByABoundedNumberOfNames(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	counter := New(m)
	expect(t, text(t, m), `heed_client_bytes_total{client="(others)",direction="out"} 0`, `heed_last_success_timestamp_seconds 0`)
	end := func(clientName, user, host string, o audit.Outcome) {
		counter.Ended(&audit.Entry{Time: time.Unix(1e9, 0), Client: "192.0.2.7:1", ClientName: clientName, User: user, Host: host, Decision: rules.Decision{Verdict: rules.Allow}, Outcome: o})
	}
	answer := audit.Outcome{Status: 200, FromSite: true, BytesOut: 5, BytesIn: 2, Duration: time.Second}
	end("newsbot", "", "a.test", answer)
	end("newsbot", "ann", "b.test", answer)
	end("", "ann", "b.test", answer)
	end("", "", "b.test", answer)
	end("", "x\xff", "b.test", answer)
	end("", "x\xfe", "b.test", answer)
	for i := range 3 * maxNamed {
		end(fmt.Sprint("flood", i), "", fmt.Sprint("flood", i, ".test"), audit.Outcome{Status: 403, BytesOut: 1})
	}
	got := text(t, m)
	expect(t, got,
		`heed_client_bytes_total{client="newsbot",direction="out"} 10`, `heed_client_bytes_total{client="newsbot",direction="in"} 4`,
		`heed_client_bytes_total{client="ann",direction="out"} 5`, `heed_client_bytes_total{client="(no name)",direction="out"} 5`,
		`heed_client_bytes_total{client="x�",direction="out"} 10`, `heed_client_bytes_total{client="(others)",direction="out"} 204`,
		`heed_site_bytes_total{direction="out",site="b.test"} 25`, `heed_site_bytes_total{direction="out",site="(others)"} 202`,
		`heed_last_success_timestamp_seconds 1.000000001e+09`)
	n := strings.Count(got, "\nheed_client_bytes_total{")
	must.True(t, n == 2*(maxNamed+1) && !strings.Contains(got, "192.0.2.7"), "%d series of clients", n)
}

// Prometheus reads the text, whatever the labels are, and finds nothing to blame in it.
func TestMetrics_AreReadByPrometheus(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	counter := New(m)
	for _, name := range []string{"quote \" and \\", "line\nend", "{}=,", "x\xff"} {
		counter.Ended(&audit.Entry{ClientName: name, Host: "a.test", Outcome: audit.Outcome{Status: 200, FromSite: true, BytesOut: 1, Duration: time.Second}})
	}
	got := text(t, m)
	expect(t, got, `heed_client_bytes_total{client="quote \" and \\",direction="out"} 1`, `heed_client_bytes_total{client="line\nend",direction="out"} 1`,
		`heed_request_duration_seconds_bucket{by="site",le="0.5"} 0`, `heed_request_duration_seconds_bucket{by="site",le="1"} 4`, `heed_request_duration_seconds_bucket{by="site",le="+Inf"} 4`)
	cmd := exec.Command(testkit.Program(t, "promtool"), "check", "metrics")
	cmd.Stdin = strings.NewReader(got)
	out, err := cmd.CombinedOutput()
	must.True(t, err == nil && len(out) == 0, "promtool: %v\n%s", err, out)
	for _, name := range []string{"go_goroutines", "go_memstats_heap_inuse_bytes", "go_threads", "process_resident_memory_bytes", "process_open_fds", "process_max_fds", "process_start_time_seconds"} {
		n := value(t, got, name)
		must.True(t, n >= 1, "%s is %v", name, n)
	}
	started, now := value(t, got, "process_start_time_seconds"), float64(time.Now().Unix()+1)
	must.True(t, started <= now && started >= 1.7e9, "the process started at %v, now it is %v", started, now)
}

// value returns the value of a metric without labels.
func value(t *testing.T, text, name string) float64 {
	t.Helper()
	_, after, _ := strings.Cut(text, "\n"+name+" ")
	return must.Get(strconv.ParseFloat(strings.TrimSpace(strings.SplitN(after, "\n", 2)[0]), 64))(t)
}

// A request counts where the record has it: by the verdict that came last, and as failed
// when the site was not reached.
func TestMetrics_CountAnEntryAsTheRecordDoes(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	counter := New(m)
	refused := audit.Entry{Judged: audit.ByPath, Decision: rules.Decision{Reason: rules.ReasonRule}, Outcome: audit.Outcome{Status: 403, Duration: 2 * time.Millisecond}}
	allowed := audit.Entry{Judged: audit.ByPath, Decision: rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonNoRule}, TurnWaited: 3 * time.Second,
		Outcome: audit.Outcome{Status: 403, FromSite: true, SiteAnswer: "forbidden", Duration: 4 * time.Second}}
	failed := audit.Entry{Judged: audit.ByPath, Decision: rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonNoRule}, Outcome: audit.Outcome{Status: 504}}
	late := audit.Entry{Decision: rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonRulesPending},
		Outcome: audit.Outcome{Status: 200, FromSite: true, Late: &rules.Decision{Verdict: rules.WouldRefuse, Reason: rules.ReasonRule}}}
	tunnel := audit.Entry{Method: http.MethodConnect, Judged: audit.ByHost, Decision: rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonHostOnly}, Outcome: audit.Outcome{Status: 200}}
	unknown := audit.Entry{Decision: rules.Decision{Reason: "of-a-later-heed"}}
	revision := audit.Entry{Revises: &tunnel.ID, Decision: rules.Decision{Reason: rules.ReasonHostMismatch}} // counts as the tunnel
	revised := tunnel
	revised.Outcome.Revision = &revision
	for _, e := range []*audit.Entry{&refused, &refused, &allowed, &failed, &late, &tunnel, &unknown, &revision, &revised} {
		counter.Ended(e)
	}
	m.FetchDone("available", time.Second)
	m.FetchDone("of a site's choice", time.Second)
	m.FleetFailed("turns")
	m.FleetAnswered(time.Millisecond)
	m.ClientHandshake(errors.New("no trust"))
	m.ClientHandshake(nil)
	m.Reloaded(time.Unix(1e9, 0), nil)
	m.Reloaded(time.Unix(2e9, 0), errors.New("a mistake"))
	got := text(t, m)
	expect(t, got,
		`heed_requests_total{class="refused_by_rule",judged="path",reason="rule",verdict="refuse"} 2`,
		`heed_requests_total{class="allowed",judged="path",reason="no-rule",verdict="allow"} 1`,
		`heed_requests_total{class="failed",judged="path",reason="no-rule",verdict="allow"} 1`,
		`heed_requests_total{class="allowed",judged="path",reason="rule",verdict="would-refuse"} 1`,
		`heed_requests_total{class="not_judged",judged="host",reason="host-only",verdict="allow"} 1`,
		`heed_requests_total{class="not_judged",judged="host",reason="host-mismatch",verdict="refuse"} 1`,
		`heed_requests_total{class="failed",judged="no",reason="unknown",verdict="refuse"} 1`,
		`heed_request_duration_seconds_count{by="heed"} 4`, `heed_request_duration_seconds_count{by="site"} 2`, `heed_request_duration_seconds_count{by="tunnel"} 2`,
		`heed_turn_wait_seconds_sum 3`, `heed_turn_wait_seconds_count 1`, `heed_site_refusals_total{kind="forbidden"} 1`,
		`heed_policy_fetches_total{outcome="available"} 1`, `heed_policy_fetch_duration_seconds_count 1`, `heed_fleet_errors_total{op="turns"} 1`, `heed_fleet_duration_seconds_count 1`,
		`heed_tls_handshakes_total{result="failed",side="client"} 1`, `heed_tls_handshakes_total{result="ok",side="client"} 1`, `heed_tls_handshakes_total{result="ok",side="site"} 5`,
		`heed_config_last_reload_successful 0`, `heed_config_last_reload_success_timestamp_seconds 1e+09`,
		`heed_requests_in_flight 3`, `heed_limit_hits_total{limit="tunnels"} 2`, `heed_policies{state="available"} 7`, `heed_fleet_up 0`)
	must.Equal(t, m.Requests(), 8, "requests")
}

// Whatever is counted, the number of series stays the same, but for combinations that are
// not expected to occur, of which there are a fixed number.
func TestMetrics_EveryReasonIsThereAndNothingElseAddsSeries(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	counter := New(m)
	before := strings.Count(text(t, m), "\n")
	var infos []rules.Reason
	for _, info := range reason.All() {
		infos = append(infos, info.Reason)
		must.Contain(t, text(t, m), `reason="`+string(info.Reason)+`"`, "the reason %s is missing at the start", info.Reason)
	}
	for _, r := range append(infos, "", "x", "y") {
		for v := range rules.Verdict(4) {
			for _, j := range []audit.Judged{audit.NotJudged, audit.ByPath, audit.ByHost} {
				for _, status := range []int{200, 502} {
					counter.Ended(&audit.Entry{Host: string(r) + ".test", UserAgent: "agent", Judged: j, Decision: rules.Decision{Verdict: v, Reason: r}, Outcome: audit.Outcome{Status: status, SiteAnswer: string(r)}})
				}
			}
		}
	}
	lines := strings.Split(text(t, m), "\n")
	if len(lines) > before+400 || len(lines) > 1500 || slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, ".test") }) {
		t.Errorf("%d lines, at first %d", len(lines), before)
	}
}
