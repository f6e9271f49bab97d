package proxy

import (
	"net/http"
	"sync"
	"testing"
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
	if a := r.ask(plain, question{host: "first.test", path: "/page"}); a.StatusCode != 200 {
		t.Fatal(a.Status)
	}
	if len(from) != 1 {
		t.Errorf("robots.txt and its page came on %d connections", len(from))
	}
}
