//go:build !race

package proxy

import (
	"flag"
	"fmt"
	"runtime"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// requestCost are the bounds of what a request costs the proxy, everything on. They
// are what was measured, with a twentieth more, and of the octets, which grow when a busy
// machine empties pools, a tenth: a change that exceeds one has to be worth it. The race detector changes all of them.
var requestCost = []struct {
	name, target        string
	allocations, bytes  float64 // per request on a connection that is kept
	goroutinesPerClient int     // with an idle connection, and one to the site
}{
	{name: "plain", target: "http://site.test/ok", allocations: 39, bytes: 6_200, goroutinesPerClient: 1},
	{name: "intercepted", target: "https://site.test/ok", allocations: 46, bytes: 6_400, goroutinesPerClient: 1},
}

// A change makes each request allocate more, or each connection keep one more
// goroutine: no test that looks at answers notices, and every user pays for it.
func TestRequestCost(t *testing.T) {
	const requests = "3000x"
	benchtime := flag.Lookup("test.benchtime").Value.String()
	must.OK(t, flag.Set("test.benchtime", requests))
	defer flag.Set("test.benchtime", benchtime)
	for _, bound := range requestCost {
		r := testing.Benchmark(func(b *testing.B) { benchProxied(b, bound.target, "HTTP/1.1") })
		allocations, bytes := r.Extra["allocs/req"], r.Extra["B/req"]
		t.Logf("%s: %.1f allocations and %.0f bytes per request", bound.name, allocations, bytes)
		if r.N == 0 || allocations > bound.allocations || bytes > bound.bytes {
			t.Errorf("%s: %.1f allocations and %.0f bytes per request; the bounds are %v and %v", bound.name, allocations, bytes, bound.allocations, bound.bytes)
		}
	}
}

func TestGoroutinesOfAConnection(t *testing.T) {
	const spare = benchConns / 4 // of all connections together, such as timers
	site, resolve := benchSite(t)
	for _, bound := range requestCost {
		addr, caPEM := benchProxy(t, resolve, site.Pool(), nil)
		client := startRole(t, "client", "http://"+addr, bound.target, caPEM, "HTTP/1.1")
		before := runtime.NumGoroutine()
		client.run(t, 8*benchConns)
		testkit.Until(t, fmt.Sprintf("%d goroutines or fewer for each %s connection", bound.goroutinesPerClient, bound.name), func() bool {
			return runtime.NumGoroutine()-before <= bound.goroutinesPerClient*benchConns+spare
		})
	}
}
