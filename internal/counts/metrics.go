package counts

import (
	"cmp"
	_ "embed" // of the files of folder monitoring
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"heed/internal/audit"
	"heed/internal/reason"
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
	PolicyStates  []string // keys of Gauges.Policies

	Gauges func() Gauges // what is read at each scrape; must not be nil
}

// Metrics counts for Prometheus; a Counter hands it the requests. Make it with NewMetrics; it
// is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	reasons  map[rules.Reason]bool // those that this heed knows
	requests map[requestKey]prometheus.Counter
	all      *prometheus.CounterVec // requests, with what is not usual
	total    atomic.Int64
	duration [answerers]prometheus.Observer
	turnWait prometheus.Histogram
	traffic  traffic
	answers  map[string]prometheus.Counter

	fetches   map[string]prometheus.Counter
	fetchTime prometheus.Histogram
	commits   prometheus.Histogram
	fleet     map[string]prometheus.Counter
	fleetTime prometheus.Histogram
	clients   [2]atomic.Uint64 // TLS handshakes: those that failed, and those that succeeded
	reloadOK  prometheus.Gauge
	reloadAt  prometheus.Gauge
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
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registerRequests()
	r := m.registry
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "heed_request_duration_seconds", Buckets: requestBuckets,
		Help: "Time from the head of a request to the end of the answer, or of the tunnel, by who answered it.",
	}, []string{"by"})
	for i, name := range answererNames {
		m.duration[i] = durations.WithLabelValues(name)
	}
	m.turnWait = histogram("heed_turn_wait_seconds", "Time that requests waited for their turn at a site, of those that waited.", waitBuckets)
	m.fetchTime = histogram("heed_policy_fetch_duration_seconds", "Time of a fetch of a robots.txt, the wait for its place included.", fetchBuckets)
	m.fleetTime = histogram("heed_fleet_duration_seconds", "Time of an answer of the fleet's store.", commitBuckets)
	m.commits = histogram("heed_audit_commit_duration_seconds", "Time of a write of decisions to the record, which their requests wait for.", commitBuckets)
	r.MustRegister(durations, m.turnWait, m.fetchTime, m.fleetTime, m.commits)

	m.fetches = m.counters("heed_policy_fetches_total", "Fetches of a robots.txt, by outcome.", "outcome", c.FetchOutcomes)
	m.answers = m.counters("heed_site_refusals_total", "Answers of sites that refuse an allowed request or ask for something, by kind.", "kind", c.SiteAnswers)
	m.fleet = m.counters("heed_fleet_errors_total", "Questions that the store of the fleet did not answer, or was not asked while it was away, by operation.", "op", c.FleetOps)
	m.reloadOK = m.gauge("heed_config_last_reload_successful", "1 when the last reading of the settings succeeded, the start included, else 0.")
	m.reloadAt = m.gauge("heed_config_last_reload_success_timestamp_seconds", "When the settings were last read successfully.")
	m.registerBuild(c)
	r.MustRegister(&m.traffic, newGauges(m, &c),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func (m *Metrics) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	m.registry.MustRegister(g)
	return g
}

// counters registers a counter with one label and returns it by the value of that label.
func (m *Metrics) counters(name, help, label string, values []string) map[string]prometheus.Counter {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	m.registry.MustRegister(v)
	all := map[string]prometheus.Counter{}
	for _, value := range values {
		all[value] = v.WithLabelValues(value)
	}
	return all
}

func (m *Metrics) registerBuild(c MetricsConfig) {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "heed_build_info", Help: "Always 1; the labels name the build.",
		ConstLabels: prometheus.Labels{"version": c.Version, "revision": c.Commit, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(build)
}

// Handler returns the handler of /metrics, and of the two files below it that belong to
// the metrics: /metrics/alerts.yml, alert rules for Prometheus, and /metrics/grafana.json,
// a dashboard for Grafana.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+pathMetrics, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError, EnableOpenMetrics: true}))
	mux.Handle("GET "+pathAlerts, file("application/yaml", alerts))
	mux.Handle("GET "+pathGrafana, file("application/json", grafana))
	return mux
}

// add counts q.
func (m *Metrics) add(q *request) {
	m.count(q)
	m.traffic.add(q)
	m.duration[answererOf(q.Entry)].Observe(q.Outcome.Duration.Seconds())
	if q.TurnWaited > 0 {
		m.turnWait.Observe(q.TurnWaited.Seconds())
	}
	if q.Outcome.SiteAnswer != "" {
		if c := m.answers[q.Outcome.SiteAnswer]; c != nil {
			c.Inc()
		}
	}
}

// Requests returns how many requests were counted.
func (m *Metrics) Requests() int64 { return m.total.Load() }

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
	if c := m.fetches[outcome]; c != nil {
		c.Inc()
		m.fetchTime.Observe(took.Seconds())
	}
}

// CommitDone counts a write of decisions to the record.
func (m *Metrics) CommitDone(took time.Duration) { m.commits.Observe(took.Seconds()) }

// FleetFailed counts a question that the store of the fleet did not answer.
func (m *Metrics) FleetFailed(op string) {
	if c := m.fleet[op]; c != nil {
		c.Inc()
	}
}

// FleetAnswered counts an answer of the store of the fleet.
func (m *Metrics) FleetAnswered(took time.Duration) { m.fleetTime.Observe(took.Seconds()) }

// ClientHandshake counts a TLS handshake with a client, which failed unless err is nil.
func (m *Metrics) ClientHandshake(err error) {
	if err != nil {
		m.clients[0].Add(1)
	} else {
		m.clients[1].Add(1)
	}
}

// Reloaded notes that the settings were read at a time, the start included, or could not
// be read. A nil Metrics does nothing.
func (m *Metrics) Reloaded(at time.Time, err error) {
	switch {
	case m == nil:
	case err != nil:
		m.reloadOK.Set(0)
	default:
		m.reloadOK.Set(1)
		m.reloadAt.Set(seconds(at))
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / float64(time.Second) }

// requestKey is what requests are counted by.
type requestKey struct {
	class   reason.Class
	verdict rules.Verdict
	reason  rules.Reason // empty: one that this heed does not know
	judged  audit.Judged
}

// labels returns the values of the labels of heed_requests_total.
func (k requestKey) labels() []string {
	return []string{k.class.Key(), k.verdict.String(), cmp.Or(string(k.reason), "unknown"), k.judged.String()}
}

// registerRequests registers heed_requests_total with the combinations that are usual. Others,
// such as a rule that decided on a request that was not judged, do not occur.
func (m *Metrics) registerRequests() {
	m.all = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "heed_requests_total", Help: "Requests that ended, by class, verdict, reason and what was judged: the decisions that this process recorded.",
	}, []string{"class", "verdict", "reason", "judged"})
	m.registry.MustRegister(m.all)
	m.requests, m.reasons = map[requestKey]prometheus.Counter{}, map[rules.Reason]bool{}
	for _, info := range append(reason.All(), reason.Info{}) {
		r := info.Reason
		m.reasons[r] = true
		for _, v := range []rules.Verdict{rules.Refuse, rules.Allow, rules.WouldRefuse} {
			for _, j := range []audit.Judged{audit.NotJudged, audit.ByPath, audit.ByHost} {
				for _, failed := range []bool{false, true} {
					if k := (requestKey{reason.ClassOf(v, r, failed), v, r, j}); usual(r, v, j) {
						m.requests[k] = m.all.WithLabelValues(k.labels()...)
					}
				}
			}
		}
	}
}

// count counts q by its decision.
func (m *Metrics) count(q *request) {
	m.total.Add(1)
	k := requestKey{q.class, q.decision.Verdict, q.decision.Reason, q.judged}
	if !m.reasons[k.reason] {
		k.reason = ""
	}
	c := m.requests[k]
	if c == nil {
		c = m.all.WithLabelValues(k.labels()...)
	}
	c.Inc()
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
