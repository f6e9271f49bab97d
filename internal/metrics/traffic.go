package metrics

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"heed/internal/audit"
	"heed/internal/busy"
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
	clients, sites map[string]*busy.Traffic
	all            busy.Traffic
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

// add counts the octets of e.
func (t *traffic) add(e *audit.Entry) {
	of := busy.TrafficOf(e)
	if of == (busy.Traffic{}) {
		return
	}
	client := busy.Named(e)
	if client == "" {
		client = unnamed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	count(&t.clients, label(client), &of)
	count(&t.sites, label(busy.Site(e)), &of)
	t.all.Add(&of)
}

// label returns a name as a label, which is UTF-8: names that differ in other octets alone are
// one before they are counted, since two series with the same labels would end the scrape.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// count adds of to the traffic of a name.
func count(all *map[string]*busy.Traffic, name string, of *busy.Traffic) {
	n := (*all)[name]
	if n == nil && len(*all) >= maxNamed {
		name = audit.Other
		n = (*all)[name]
	}
	if n == nil {
		if *all == nil {
			*all = map[string]*busy.Traffic{}
		}
		n = &busy.Traffic{}
		(*all)[strings.Clone(name)] = n
	}
	n.Add(of)
}

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
	for desc, all := range map[*prometheus.Desc]map[string]*busy.Traffic{clientBytesDesc: t.clients, siteBytesDesc: t.sites} {
		send := func(name string, n *busy.Traffic) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n.BytesIn), name, "in")
			ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n.BytesOut), name, "out")
		}
		for name, n := range all {
			send(name, n)
		}
		if all[audit.Other] == nil {
			send(audit.Other, &busy.Traffic{})
		}
	}
	at := 0.0
	if s := t.all.Success; !s.IsZero() {
		at = seconds(s)
	}
	ch <- prometheus.MustNewConstMetric(successDesc, prometheus.GaugeValue, at)
}
