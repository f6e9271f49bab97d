package counts

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Gauges are what is read from the running heed at each scrape.
type Gauges struct {
	InFlight     int // requests under way
	TurnsWaiting int
	SitesPaused  int

	Policies      map[string]int // origins in memory by the state of their policy
	PoliciesBytes int64

	Connecting, Open int64     // connections to sites and upstream proxies
	SiteHandshakes   [2]uint64 // of TLS, since the start: those that failed, and those that succeeded

	CANotAfter time.Time
	Unrecorded int64 // decisions that took effect unrecorded, since the start
	AuditBytes int64 // 0 without a record
	LogUp      bool  // the log can be written
	FleetUp    bool  // true without a fleet

	LimitHits map[string]uint64 // since the start; limits that were not reached may be missing
}

// gauges collects Gauges, and the TLS handshakes of both sides.
type gauges struct {
	metrics *Metrics
	config  *MetricsConfig
	descs   map[string]*prometheus.Desc
}

var gaugeHelp = []struct{ name, help, label string }{
	{"heed_requests_in_flight", "Requests under way.", ""},
	{"heed_turns_waiting", "Requests that wait for their turn at a site.", ""},
	{"heed_sites_paused", "Sites at which no request may start now, since they asked for a pause or failed.", ""},
	{"heed_policies", "Origins in memory, by the state of their robots.txt.", "state"},
	{"heed_policies_bytes", "Memory that the stored robots.txt files hold.", ""},
	{"heed_upstream_connections", "Connections to sites and upstream proxies, by state.", "state"},
	{"heed_ca_not_after_timestamp_seconds", "When the CA certificate expires.", ""},
	{"heed_audit_unrecorded_total", "Decisions that took effect although they could not be recorded (audit.on_failure).", ""},
	{"heed_audit_bytes", "Size of the record with the files beside it; 0 without a record.", ""},
	{"heed_log_up", "1 while the log can be written, 0 while it cannot.", ""},
	{"heed_fleet_up", "1 while the store of the fleet answers, or without a fleet; 0 while it, or a node of its Cluster, is unreachable.", ""},
	{"heed_limit_hits_total", "Requests and connections that a limit has stopped, by limit.", "limit"},
	{handshakes, "TLS handshakes, by side and result.", ""},
}

// handshakes is the one metric here with two labels.
const handshakes = "heed_tls_handshakes_total"

func newGauges(m *Metrics, c *MetricsConfig) *gauges {
	g := &gauges{metrics: m, config: c, descs: map[string]*prometheus.Desc{}}
	for _, h := range gaugeHelp {
		var labels []string
		switch {
		case h.name == handshakes:
			labels = []string{"side", "result"}
		case h.label != "":
			labels = []string{h.label}
		}
		g.descs[h.name] = prometheus.NewDesc(h.name, h.help, labels, nil)
	}
	return g
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range g.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	now := g.config.Gauges()
	send := func(kind prometheus.ValueType, name string, value float64, label ...string) {
		ch <- prometheus.MustNewConstMetric(g.descs[name], kind, value, label...)
	}
	gauge := func(name string, value float64, label ...string) { send(prometheus.GaugeValue, name, value, label...) }
	gauge("heed_requests_in_flight", float64(now.InFlight))
	gauge("heed_turns_waiting", float64(now.TurnsWaiting))
	gauge("heed_sites_paused", float64(now.SitesPaused))
	for _, state := range g.config.PolicyStates {
		gauge("heed_policies", float64(now.Policies[state]), state)
	}
	gauge("heed_policies_bytes", float64(now.PoliciesBytes))
	gauge("heed_upstream_connections", float64(now.Connecting), "connecting")
	gauge("heed_upstream_connections", float64(now.Open), "open")
	gauge("heed_ca_not_after_timestamp_seconds", seconds(now.CANotAfter))
	send(prometheus.CounterValue, "heed_audit_unrecorded_total", float64(now.Unrecorded))
	gauge("heed_audit_bytes", float64(now.AuditBytes))
	up := map[bool]float64{true: 1}
	gauge("heed_log_up", up[now.LogUp])
	gauge("heed_fleet_up", up[now.FleetUp])
	for i, result := range []string{"failed", "ok"} {
		send(prometheus.CounterValue, handshakes, float64(g.metrics.clients[i].Load()), "client", result)
		send(prometheus.CounterValue, handshakes, float64(now.SiteHandshakes[i]), "site", result)
	}
	for _, limit := range g.config.Limits {
		send(prometheus.CounterValue, "heed_limit_hits_total", float64(now.LimitHits[limit]), limit)
	}
}
