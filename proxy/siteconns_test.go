package proxy

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync"
	"testing"

	"heed/internal/testkit"
)

// What comes beyond the connections that one site may have waits for one of
// them, and is answered all the same.
func TestHeed_ASiteHasOnlySoManyConnections(t *testing.T) {
	var mu sync.Mutex
	from := map[string]bool{}
	release := make(chan bool)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		from[r.RemoteAddr] = true
		mu.Unlock()
		<-release
	})
	transport := NewTransport(TransportConfig{Resolve: s.resolve, ConnsPerHost: 1})
	t.Cleanup(transport.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	var asked, done sync.WaitGroup
	for range 3 {
		asked.Add(1)
		hook := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) { asked.Done() }})
		done.Go(func() {
			r, err := http.NewRequestWithContext(hook, "GET", "http://site.test/", nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		})
	}
	asked.Wait() // all three want a connection before the first gives one back
	for range 3 {
		release <- true
	}
	done.Wait()
	if len(from) != 1 {
		t.Errorf("three requests at once came on %d connections, not 1", len(from))
	}
}
