package counts

import (
	"fmt"
	"time"

	"heed/rules"
)

// Gauges are what is read from the running heed at each scrape.
type Gauges struct {
	InFlight     int // requests under way
	TurnsWaiting int
	SitesPaused  int

	Policies      map[rules.State]int // origins in memory by the state of their policy
	PoliciesBytes int64

	Connecting, Open int64     // connections to sites and upstream proxies
	SiteHandshakes   [2]uint64 // of TLS, since the start: those that failed, and those that succeeded

	CANotAfter time.Time
	Unrecorded int64 // decisions that took effect unrecorded, since the start
	AuditBytes int64 // 0 without a record
	// AuditWaiting are the octets of the tail that audit.db does not have; Healings is how often
	// the record was opened again, since the start.
	AuditWaiting int64
	Healings     int
	LogUp        bool // the log can be written
	FleetUp      bool // true without a fleet

	Listeners []Listener // that are no proxies for clients

	LimitHits map[string]uint64 // since the start; limits that were not reached may be missing
}

// Listener is a [[listener]] for redirected connections, or for proxies that ask heed.
type Listener struct {
	Address string `json:"address"`         // host:port that heed listens on
	Mode    string `json:"mode"`            // transparent, tproxy, authorize or icap
	Trust   string `json:"trust,omitempty"` // the networks of the proxies that ask

	// Their questions, by the answer, since the start; Faulty could not be understood.
	Allowed int64 `json:"allowed,omitempty"`
	Refused int64 `json:"refused,omitempty"`
	Faulty  int64 `json:"faulty,omitempty"`
}

// String returns l as a person reads it.
func (l Listener) String() string {
	if l.Trust == "" {
		return fmt.Sprintf("%s (%s)", l.Address, l.Mode)
	}
	return fmt.Sprintf("%s (%s) by %s: %d allowed, %d refused, %d not understood", l.Address, l.Mode, l.Trust, l.Allowed, l.Refused, l.Faulty)
}

// write writes g, and the TLS handshakes of both sides.
func (g *Gauges) write(x *exposition, c *MetricsConfig, clients [2]int64) {
	x.one("heed_requests_in_flight", gaugeKind, "Requests under way.", float64(g.InFlight))
	x.one("heed_turns_waiting", gaugeKind, "Requests that wait for their turn at a site.", float64(g.TurnsWaiting))
	x.one("heed_sites_paused", gaugeKind, "Sites at which no request may start now, since they asked for a pause or failed.", float64(g.SitesPaused))
	const policies, connections = "heed_policies", "heed_upstream_connections"
	x.family(policies, gaugeKind, "Origins in memory, by the state of their robots.txt.")
	for state, name := range rules.StateNames {
		x.sample(policies, float64(g.Policies[rules.State(state)]), "state", name)
	}
	x.one("heed_policies_bytes", gaugeKind, "Memory that the stored robots.txt files hold.", float64(g.PoliciesBytes))
	x.family(connections, gaugeKind, "Connections to sites and upstream proxies, by state.")
	x.sample(connections, float64(g.Connecting), "state", "connecting")
	x.sample(connections, float64(g.Open), "state", "open")
	x.one("heed_ca_not_after_timestamp_seconds", gaugeKind, "When the CA certificate expires.", seconds(g.CANotAfter))
	x.one("heed_audit_unrecorded_total", counterKind, "Decisions that took effect although they could not be recorded (audit.on_failure).", float64(g.Unrecorded))
	x.one("heed_audit_bytes", gaugeKind, "Size of the record with the files beside it; 0 without a record.", float64(g.AuditBytes))
	x.one("heed_audit_waiting_bytes", gaugeKind, "Recorded decisions that audit.db does not have yet, since they are new or another program holds it.", float64(g.AuditWaiting))
	x.one("heed_audit_healings_total", counterKind, "Times that the record was opened again, since another program had removed or replaced its files.", float64(g.Healings))
	const listeners, questions = "heed_listener_info", "heed_questions_total"
	x.family(listeners, gaugeKind, "Always 1, for each [[listener]]; the labels name it, and the proxies that ask there.")
	for _, l := range g.Listeners {
		x.sample(listeners, 1, "address", l.Address, "mode", l.Mode, "trust", l.Trust)
	}
	x.family(questions, counterKind, "Questions of other proxies, by the [[listener]] and heed's answer.")
	for _, l := range g.Listeners {
		if l.Trust != "" {
			x.sample(questions, float64(l.Allowed), "address", l.Address, "answer", "allowed")
			x.sample(questions, float64(l.Faulty), "address", l.Address, "answer", "faulty")
			x.sample(questions, float64(l.Refused), "address", l.Address, "answer", "refused")
		}
	}
	x.one("heed_log_up", gaugeKind, "1 while the log can be written, 0 while it cannot.", truth[g.LogUp])
	x.one("heed_fleet_up", gaugeKind, "1 while the store of the fleet answers, or without a fleet; 0 while it, or a node of its Cluster, is unreachable.", truth[g.FleetUp])
	const limits, handshakes = "heed_limit_hits_total", "heed_tls_handshakes_total"
	x.family(limits, counterKind, "Requests and connections that a limit has stopped, by limit.")
	for _, limit := range c.Limits {
		x.sample(limits, float64(g.LimitHits[limit]), "limit", limit)
	}
	x.family(handshakes, counterKind, "TLS handshakes, by side and result.")
	for i, result := range []string{"failed", "ok"} {
		x.sample(handshakes, float64(clients[i]), "result", result, "side", "client")
		x.sample(handshakes, float64(g.SiteHandshakes[i]), "result", result, "side", "site")
	}
}
