package counts

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"heed/internal/audit"
	"heed/internal/reason"
	"heed/rules"
)

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
