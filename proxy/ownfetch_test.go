package proxy

import (
	"net/http"
	"sync"
	"testing"

	"heed/internal/tools/testkit/must"
)

// heed's fetch of robots.txt counts as the request's client: the request follows on the
// same connection, so that a crawl of many sites makes no second connection to each.
func TestARequestFollowsItsRobotsTxtOnOneConnection(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	from := map[string]bool{}
	s := newSite(t, hello)
	s.serve(t, "first.test", &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		from[r.RemoteAddr] = true
		hello(w, r)
	})})
	r := newRigBefore(t, s)
	must.Is(t, r.ask(plain, question{host: "first.test", path: "/page"}).StatusCode, 200)
	must.True(t, len(from) == 1, "robots.txt and its page came on %d connections", len(from))
}
