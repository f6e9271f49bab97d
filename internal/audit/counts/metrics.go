package counts

import (
	"cmp"
	_ "embed" // of the files of folder monitoring
	"maps"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/reason"
	"heed/rules"
)

// MetricsConfig defines the values of labels and the sources of a Metrics.
type MetricsConfig struct {
	Version string // of heed
	Commit  string // that it was built from; empty: unknown

	FetchOutcomes []string // of FetchDone
	SiteAnswers   []string // kinds of refusals by sites, as in audit.Outcome.SiteAnswer
	Limits        []string // names of limits, keys of Gauges.LimitHits
	FleetOps      []string // of FleetFailed

	Gauges func() Gauges // what is read at each scrape; must not be nil
}

// Metrics counts for Prometheus; a Counter hands it the requests. Make it with NewMetrics; it
// is safe for concurrent use.
type Metrics struct {
	config  MetricsConfig
	reasons map[rules.Reason]bool // those that this heed knows

	mu       sync.Mutex // of what follows
	total    int64
	requests map[requestKey]int64
	duration [answerers]histogram
	turnWait histogram
	traffic  traffic
	answers  map[string]int64 // by kind; a kind that is not in it is not counted, as in those below

	fetches   map[string]int64 // by outcome
	fetchTime histogram
	commits   histogram
	fleet     map[string]int64 // by operation
	fleetTime histogram
	clients   [2]int64 // TLS handshakes: those that failed, and those that succeeded
	reloadOK  bool
	reloadAt  time.Time
}

// Buckets of histograms, in seconds.
var (
	requestBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	waitBuckets    = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300}
	fetchBuckets   = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30}
	commitBuckets  = []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5}
)

// By whom a request was answered, as values of the label by.
const (
	bySite = iota
	byHeed
	byTunnel // an unread tunnel, or a protocol that a connection was upgraded to
	answerers
)

var answererNames = [answerers]string{"site", "heed", "tunnel"}

// NewMetrics returns metrics for c, all of them 0.
func NewMetrics(c MetricsConfig) *Metrics {
	m := &Metrics{
		config: c, requests: usualRequests(), reasons: map[rules.Reason]bool{},
		turnWait: newHistogram(waitBuckets), fetchTime: newHistogram(fetchBuckets),
		commits: newHistogram(commitBuckets), fleetTime: newHistogram(commitBuckets),
		answers: zeroes(c.SiteAnswers), fetches: zeroes(c.FetchOutcomes), fleet: zeroes(c.FleetOps),
	}
	for k := range m.requests {
		m.reasons[k.reason] = true
	}
	for i := range m.duration {
		m.duration[i] = newHistogram(requestBuckets)
	}
	return m
}

// zeroes returns a count for each of the names.
func zeroes(names []string) map[string]int64 {
	all := map[string]int64{}
	for _, name := range names {
		all[name] = 0
	}
	return all
}

// Handler returns the handler of /metrics, and of the two files below it that belong to
// the metrics: /metrics/alerts.yml, alert rules for Prometheus, and /metrics/grafana.json,
// a dashboard for Grafana.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathMetrics, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", textType)
		_, _ = w.Write(m.text()) // the client may have left
	})
	mux.Handle("GET "+pathAlerts, file("application/yaml", alerts))
	mux.Handle("GET "+pathGrafana, file("application/json", grafana))
	return mux
}

// text returns all metrics.
func (m *Metrics) text() []byte {
	now := m.config.Gauges()
	x := &exposition{}
	writeRuntime(x)
	writeProcess(x)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writeRequests(x)
	m.traffic.write(x)
	m.writeOwn(x)
	now.write(x, &m.config, m.clients)
	return x.Bytes()
}

// writeOwn writes what methods of m count.
func (m *Metrics) writeOwn(x *exposition) {
	const durations = "heed_request_duration_seconds"
	x.family(durations, histogramKind, "Time from the head of a request to the end of the answer, or of the tunnel, by who answered it.")
	for i, name := range answererNames {
		m.duration[i].write(x, durations, "by", name)
	}
	for _, h := range []struct {
		name, help string
		of         *histogram
	}{
		{"heed_turn_wait_seconds", "Time that requests waited for their turn at a site, of those that waited.", &m.turnWait},
		{"heed_policy_fetch_duration_seconds", "Time of a fetch of a robots.txt, the wait for its place included.", &m.fetchTime},
		{"heed_fleet_duration_seconds", "Time of an answer of the fleet's store.", &m.fleetTime},
		{"heed_audit_commit_duration_seconds", "Time of a write of decisions to the record, which their requests wait for.", &m.commits},
	} {
		x.family(h.name, histogramKind, h.help)
		h.of.write(x, h.name)
	}
	for _, c := range []struct {
		name, help, label string
		of                map[string]int64
	}{
		{"heed_policy_fetches_total", "Fetches of a robots.txt, by outcome.", "outcome", m.fetches},
		{"heed_site_refusals_total", "Answers of sites that refuse an allowed request or ask for something, by kind.", "kind", m.answers},
		{"heed_fleet_errors_total", "Questions that the store of the fleet did not answer, or was not asked while it was away, by operation.", "op", m.fleet},
	} {
		x.family(c.name, counterKind, c.help)
		for _, value := range slices.Sorted(maps.Keys(c.of)) {
			x.sample(c.name, float64(c.of[value]), c.label, value)
		}
	}
	x.one("heed_config_last_reload_successful", gaugeKind, "1 when the last reading of the settings succeeded, the start included, else 0.", truth[m.reloadOK])
	x.one("heed_config_last_reload_success_timestamp_seconds", gaugeKind, "When the settings were last read successfully.", seconds(m.reloadAt))
	const build = "heed_build_info"
	x.family(build, gaugeKind, "Always 1; the labels name the build.")
	x.sample(build, 1, "goversion", runtime.Version(), "revision", m.config.Commit, "version", m.config.Version)
}

// add counts q.
func (m *Metrics) add(q *request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count(q)
	m.traffic.add(q)
	m.duration[answererOf(q.Entry)].observe(q.Outcome.Duration)
	if q.TurnWaited > 0 {
		m.turnWait.observe(q.TurnWaited)
	}
	increase(m.answers, q.Outcome.SiteAnswer)
}

// increase counts a name that is one of those counted.
func increase(counts map[string]int64, name string) (counted bool) {
	n, counted := counts[name]
	if counted {
		counts[name] = n + 1
	}
	return counted
}

// Requests returns how many requests were counted.
func (m *Metrics) Requests() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total
}

func answererOf(e *audit.Entry) int {
	switch {
	case e.Decision.Verdict != rules.Refuse && e.Outcome.Status == http.StatusSwitchingProtocols, e.Became() == "tunnelled":
		return byTunnel
	case e.Outcome.FromSite:
		return bySite
	}
	return byHeed
}

// FetchDone counts a fetch of a robots.txt.
func (m *Metrics) FetchDone(outcome string, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if increase(m.fetches, outcome) {
		m.fetchTime.observe(took)
	}
}

// CommitDone counts a write of decisions to the record.
func (m *Metrics) CommitDone(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commits.observe(took)
}

// FleetFailed counts a question that the store of the fleet did not answer.
func (m *Metrics) FleetFailed(op string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	increase(m.fleet, op)
}

// FleetAnswered counts an answer of the store of the fleet.
func (m *Metrics) FleetAnswered(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fleetTime.observe(took)
}

// ClientHandshake counts a TLS handshake with a client, which failed unless err is nil.
func (m *Metrics) ClientHandshake(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.clients[0]++
	} else {
		m.clients[1]++
	}
}

// Reloaded notes that the settings were read at a time, the start included, or could not
// be read. A nil Metrics does nothing.
func (m *Metrics) Reloaded(at time.Time, err error) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reloadOK = err == nil; m.reloadOK {
		m.reloadAt = at
	}
}

// seconds returns a time as metrics have it: in seconds since 1970; 0 for the zero Time.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixNano()) / float64(time.Second)
}

// truth is a bool as metrics have it.
var truth = map[bool]float64{true: 1}

// requestKey is what requests are counted by.
type requestKey struct {
	class   reason.Class
	verdict rules.Verdict
	reason  rules.Reason // empty: one that this heed does not know
	judged  audit.Judged
}

// usualRequests returns a count for each combination that is usual. Others, such as a rule that
// decided on a request that was not judged, do not occur.
func usualRequests() map[requestKey]int64 {
	all := map[requestKey]int64{}
	for _, info := range append(reason.All(), reason.Info{}) {
		r := info.Reason
		for _, v := range []rules.Verdict{rules.Refuse, rules.Allow, rules.WouldRefuse} {
			for _, j := range []audit.Judged{audit.NotJudged, audit.ByPath, audit.ByHost} {
				for _, failed := range []bool{false, true} {
					if usual(r, v, j) {
						all[requestKey{reason.ClassOf(v, r, failed), v, r, j}] = 0
					}
				}
			}
		}
	}
	return all
}

// count counts q by its decision.
func (m *Metrics) count(q *request) {
	m.total++
	k := requestKey{q.class, q.decision.Verdict, q.decision.Reason, q.judged}
	if !m.reasons[k.reason] {
		k.reason = ""
	}
	m.requests[k]++
}

// writeRequests writes what count counted.
func (m *Metrics) writeRequests(x *exposition) {
	const name = "heed_requests_total"
	x.family(name, counterKind, "Requests that ended, by class, verdict, reason and what was judged: the decisions that this process recorded.")
	for _, k := range slices.SortedFunc(maps.Keys(m.requests), func(a, b requestKey) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.judged, b.judged), cmp.Compare(a.reason, b.reason), cmp.Compare(a.verdict, b.verdict))
	}) {
		x.sample(name, float64(m.requests[k]),
			"class", k.class.Key(), "judged", k.judged.String(), "reason", cmp.Or(string(k.reason), "unknown"), "verdict", k.verdict.String())
	}
}

// usual reports whether the combination is present from the start.
func usual(r rules.Reason, v rules.Verdict, j audit.Judged) bool {
	switch {
	case r == "":
		return v == rules.Refuse && j == audit.NotJudged
	case reason.ClassOf(rules.Refuse, r, false) == reason.NotJudged:
		return j == audit.NotJudged && v != rules.WouldRefuse
	}
	return true
}

// The files for Prometheus and for Grafana, in folder monitoring. They refer to metrics of
// this package alone.
var (
	//go:embed monitoring/alerts.yml
	alerts []byte
	//go:embed monitoring/grafana.json
	grafana []byte
)

// Paths of Handler, below that of the metrics themselves.
const (
	pathMetrics = "/metrics"
	pathAlerts  = pathMetrics + "/alerts.yml"   // alert rules for Prometheus
	pathGrafana = pathMetrics + "/grafana.json" // a dashboard for Grafana
)

// file returns the handler of an embedded file.
func file(kind string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(content) // the client may have left
	}
}
