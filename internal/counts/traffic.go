package counts

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"heed/internal/audit"
	"heed/internal/memo"
)

// maxNamed bounds the clients and the sites that have time series of their own, so that no
// client can fill Prometheus with names. It has each for the time that this process runs.
const maxNamed = 100

// unnamed is the label of clients without a name. Addresses are no labels: the settings may
// keep them from the record, and a Prometheus keeps them for long.
const unnamed = "(no name)"

// traffic counts octets by client and by site, and when an exchange last succeeded.
type traffic struct {
	mu             sync.Mutex
	clients, sites memo.Bounded[string, Traffic]
	all            Traffic
}

var (
	clientBytesDesc = prometheus.NewDesc("heed_client_bytes_total",
		"Octets of bodies by client and direction (in: uploads, out: answers), of exchanges that ended. The first 100 names, and (others).",
		[]string{"client", "direction"}, nil)
	siteBytesDesc = prometheus.NewDesc("heed_site_bytes_total",
		"Octets of bodies by site and direction (in: uploads, out: answers), of exchanges that ended. The first 100 hosts, and (others).",
		[]string{"site", "direction"}, nil)
	successDesc = prometheus.NewDesc("heed_last_success_timestamp_seconds",
		"When an exchange last ended that a site answered without a refusal or an error; 0: none did since the start.", nil, nil)
)

// add counts the octets of q.
func (t *traffic) add(q *request) {
	if q.traffic == (Traffic{}) {
		return
	}
	client := namedClient(q.Entry)
	if client == "" {
		client = unnamed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients.At(label(client), audit.Other, maxNamed, strings.Clone).Add(&q.traffic)
	t.sites.At(label(siteOf(q)), audit.Other, maxNamed, strings.Clone).Add(&q.traffic)
	t.all.Add(&q.traffic)
}

// label returns a name as a label, which is UTF-8: names that differ in other octets alone are
// one before they are counted, since two series with the same labels would end the scrape.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// Describe implements prometheus.Collector.
func (t *traffic) Describe(ch chan<- *prometheus.Desc) {
	ch <- clientBytesDesc
	ch <- siteBytesDesc
	ch <- successDesc
}

// Collect implements prometheus.Collector. The series of all others are there from the start.
func (t *traffic) Collect(ch chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for desc, all := range map[*prometheus.Desc]memo.Bounded[string, Traffic]{clientBytesDesc: t.clients, siteBytesDesc: t.sites} {
		send := func(name string, n *Traffic) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n.BytesIn), name, "in")
			ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n.BytesOut), name, "out")
		}
		for name, n := range all {
			send(name, n)
		}
		if all[audit.Other] == nil {
			send(audit.Other, &Traffic{})
		}
	}
	at := 0.0
	if s := t.all.Success; !s.IsZero() {
		at = seconds(s)
	}
	ch <- prometheus.MustNewConstMetric(successDesc, prometheus.GaugeValue, at)
}
