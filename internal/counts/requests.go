package counts

import (
	"github.com/prometheus/client_golang/prometheus"

	"heed/internal/audit"
	"heed/internal/reason"
	"heed/rules"
)

// Each reason has one slot for each combination of the other labels that can occur: the
// class follows from the verdict, the reason and whether the request failed.
const (
	verdicts = 3
	judgeds  = 3
	slots    = verdicts * judgeds * 2 // with and without failure
)

// slotOf returns the index of the count that q belongs to.
func (m *Metrics) slotOf(q *request) int {
	d := q.decision
	slot := m.reasons[d.Reason]*slots + (int(d.Verdict)%verdicts*judgeds+int(q.judged)%judgeds)*2
	if q.failed {
		slot++
	}
	return slot
}

var requestsDesc = prometheus.NewDesc("heed_requests_total",
	"Requests that ended, by class, verdict, reason and what was judged: the decisions that this process recorded.",
	[]string{"class", "verdict", "reason", "judged"}, nil)

// requestsCollector collects heed_requests_total.
type requestsCollector struct{ *Metrics }

// Describe implements prometheus.Collector.
func (c requestsCollector) Describe(ch chan<- *prometheus.Desc) { ch <- requestsDesc }

// Collect implements prometheus.Collector. It leaves out the combinations without a
// meaning, unless one has occurred: two slots of one class are one series.
func (c requestsCollector) Collect(ch chan<- prometheus.Metric) {
	for r, i := range c.reasons {
		c.collect(ch, r, i)
	}
	c.collect(ch, "", 0)
}

func (c requestsCollector) collect(ch chan<- prometheus.Metric, r rules.Reason, i int) {
	name := string(r)
	if name == "" {
		name = "unknown"
	}
	for v := range rules.Verdict(verdicts) {
		for j := range audit.Judged(judgeds) {
			at := i*slots + (int(v)*judgeds+int(j))*2
			plain, failed := c.requests[at].Load(), c.requests[at+1].Load()
			class, classFailed := reason.ClassOf(v, r, false), reason.ClassOf(v, r, true)
			send := func(class reason.Class, n uint64) {
				if n > 0 || usual(r, v, j) {
					ch <- prometheus.MustNewConstMetric(requestsDesc, prometheus.CounterValue, float64(n), class.Key(), v.String(), name, j.String())
				}
			}
			if class == classFailed {
				send(class, plain+failed)
				continue
			}
			send(class, plain)
			send(classFailed, failed)
		}
	}
}

// usual reports whether the combination is present from the start. Others, such as a rule
// that decided on a request that was not judged, do not occur.
func usual(r rules.Reason, v rules.Verdict, j audit.Judged) bool {
	notJudged := reason.ClassOf(rules.Refuse, r, false) == reason.NotJudged
	switch {
	case r == "":
		return v == rules.Refuse && j == audit.NotJudged
	case notJudged:
		return j == audit.NotJudged && v != rules.WouldRefuse
	}
	return true
}
