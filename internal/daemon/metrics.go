package daemon

import (
	"heed/cache"
	"heed/internal/console"
	"heed/internal/counts"
	"heed/internal/fleet"
	"heed/internal/signal"
	"heed/proxy/limit"
	"heed/proxy/upstream"
)

// openMetrics begins to count for /metrics. It is called before the other resources are
// opened, which report to it.
func (d *daemon) openMetrics() {
	c := counts.MetricsConfig{
		Version: console.Version(), Commit: console.Revision(), FetchOutcomes: cache.FetchOutcomes(),
		FleetOps: fleet.Ops(), Gauges: d.gauges,
	}
	for _, a := range signal.SiteAnswers() {
		c.SiteAnswers = append(c.SiteAnswers, string(a))
	}
	for _, k := range limit.Kinds() {
		c.Limits = append(c.Limits, k.String())
	}
	d.metrics = counts.NewMetrics(c)
	d.Connections, d.Fetched = &upstream.Counts{}, d.metrics.FetchDone
	d.store.Failed, d.store.Answered = d.metrics.FleetFailed, d.metrics.FleetAnswered
}

// gauges returns what metrics reads at each scrape.
func (d *daemon) gauges() counts.Gauges {
	load, turns, policies, conns := d.shared.Load.Status(), d.Turns.Counts(), d.Memory.Counts(), d.Connections.Read()
	g := counts.Gauges{
		InFlight: load.Requests, TurnsWaiting: turns.Waiting, SitesPaused: turns.Paused,
		Policies: policies.States, PoliciesBytes: policies.Bytes,
		Connecting: conns.Connecting, Open: conns.Open, SiteHandshakes: [2]uint64{conns.Failed, conns.OK},
		CANotAfter: d.authority.NotAfter(), LimitHits: load.Reached, LogUp: d.decisionLog.Err() == nil, FleetUp: d.Fleet == nil || !d.Fleet.Health().Away,
	}
	switch {
	case d.unrecorded != nil: // since the start: the record could not be opened
		g.Unrecorded = d.metrics.Requests()
	case d.record != nil:
		g.Unrecorded = d.record.Lost()
	}
	if d.recordSpace != nil {
		g.AuditBytes = d.recordSpace.Now(d.now()).Bytes
	}
	return g
}
