//go:build !race

package proxy

import (
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/tools/testkit/must"
)

// BenchmarkRecorded holds a proxy that keeps the record of decisions against one
// that does not: ratio is what one request costs with it, in CPU time of this
// process, over what it costs without. They take turns, so that what else the
// machine does meets both.
func BenchmarkRecorded(b *testing.B) {
	site, resolve := benchSite(b)
	privacy := must.Get(audit.NewPrivacy(audit.ClientsFull, []string{"*token", "key", "sig", "*password*"}, make([]byte, audit.PrivacyKeySize)))(b)
	record := must.Get(store.Open(b.TempDir()+"/audit.db", store.Options{Heed: "bench", Privacy: privacy}))(b)
	b.Cleanup(func() { record.Close("") })
	const turns = 10
	var clients [2]*role
	var cpu [2]time.Duration
	for i, kept := range []Recorder{nil, record} {
		addr, caPEM := benchProxy(b, resolve, site.Pool(), kept)
		clients[i] = startRole(b, "client", "http://"+addr, "http://site.test/ok", caPEM, "HTTP/1.1")
		clients[i].run(b, 4*benchConns)
	}
	b.ResetTimer()
	for range turns {
		for i, c := range clients {
			before := cpuTime(b)
			c.run(b, max(1, b.N/turns))
			must.OK(b, record.Complete())
			cpu[i] += cpuTime(b) - before
		}
	}
	b.ReportMetric(float64(cpu[0].Microseconds())/float64(b.N), "off-us/req")
	b.ReportMetric(float64(cpu[1].Microseconds())/float64(b.N), "on-us/req")
	b.ReportMetric(float64(cpu[1])/float64(cpu[0]), "ratio")
}
