package counts

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"heed/internal/audit"
	"heed/internal/base/memo"
)

// maxNamed bounds the clients and the sites that have time series of their own, so that no
// client can fill Prometheus with names. It has each for the time that this process runs.
const maxNamed = 100

// unnamed is the label of clients without a name. Addresses are no labels: the settings may
// keep them from the record, and a Prometheus keeps them for long.
const unnamed = "(no name)"

// traffic counts octets by client and by site, and when an exchange last succeeded.
type traffic struct {
	clients, sites memo.Bounded[string, Traffic]
	all            Traffic
}

// add counts the octets of q.
func (t *traffic) add(q *request) {
	if q.traffic == (Traffic{}) {
		return
	}
	t.clients.At(label(cmp.Or(namedClient(q.Entry), unnamed)), audit.Other, maxNamed, strings.Clone).Add(&q.traffic)
	t.sites.At(label(siteOf(q)), audit.Other, maxNamed, strings.Clone).Add(&q.traffic)
	t.all.Add(&q.traffic)
}

// label returns a name as a label, which is UTF-8: names that differ in other octets alone are
// one before they are counted, since two series with the same labels would end the scrape.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// write writes what t counted. The series of all others are there from the start.
func (t *traffic) write(x *exposition) {
	const clients, sites = "heed_client_bytes_total", "heed_site_bytes_total"
	x.family(clients, counterKind, "Octets of bodies by client and direction (in: uploads, out: answers), of exchanges that ended. The first 100 names, and (others).")
	writeTraffic(t.clients, func(direction, name string, n uint64) {
		x.sample(clients, float64(n), "client", name, "direction", direction)
	})
	x.family(sites, counterKind, "Octets of bodies by site and direction (in: uploads, out: answers), of exchanges that ended. The first 100 hosts, and (others).")
	writeTraffic(t.sites, func(direction, name string, n uint64) {
		x.sample(sites, float64(n), "direction", direction, "site", name)
	})
	x.one("heed_last_success_timestamp_seconds", gaugeKind,
		"When an exchange last ended that a site answered without a refusal or an error; 0: none did since the start.", seconds(t.all.Success))
}

// writeTraffic calls sample with the octets of each name and of all others.
func writeTraffic(all memo.Bounded[string, Traffic], sample func(direction, name string, n uint64)) {
	names := slices.Sorted(maps.Keys(all))
	if all[audit.Other] == nil {
		names = append(names, audit.Other)
	}
	for _, name := range names {
		n := cmp.Or(all[name], &Traffic{})
		sample("in", name, n.BytesIn)
		sample("out", name, n.BytesOut)
	}
}
