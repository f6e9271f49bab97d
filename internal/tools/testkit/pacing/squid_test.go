package pacing

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// Clients of a Squid that asks heed come to a site with Crawl-delay one after another, although
// Squid sends the requests: 10 with a delay of 0.1 s, or with HEED_TEST_FULL=1 50 with 1 s, by the
// site's clock. In the short form the gaps count together: Squid may be late with one of them.
func TestSquidThatAsksHeedKeepsTheDelay(t *testing.T) {
	t.Parallel()
	clients, delay := 10, 100*time.Millisecond
	if testkit.Full {
		clients, delay = 50, time.Second
	}
	var mu sync.Mutex
	var came []time.Time
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprintf(w, "User-agent: *\nCrawl-delay: %g\n", delay.Seconds())
			return
		}
		mu.Lock()
		defer mu.Unlock()
		came = append(came, time.Now())
	}))
	t.Cleanup(site.Close)
	at, address := testkit.FreeAddr(t), site.Listener.Addr().String()
	_, port, _ := strings.Cut(address, ":")
	testkit.Start(t, testkit.Options{Config: testkit.AnyPort + "[access]\nprivate_destinations = \"allow\"\n" +
		fmt.Sprintf("[upstream.resolve]\n\"site.test:%s\" = %q\n", port, address) +
		strings.Replace(testkit.ManualLines(t, "other-proxies", "# heed.toml"), "127.0.0.1:1344", at, 1) + "\nmax_wait = \"90s\"\n"})
	lines := strings.Replace(testkit.ManualLines(t, "other-proxies", "# squid.conf"), "127.0.0.1:1344", at, 1)
	squid := testkit.NewAsking(t, lines+"\n", nil, testkit.NewCA(t), "site.test").Addr
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			c := http.Client{Timeout: 2 * testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: squid})}}
			resp, err := c.Get(fmt.Sprintf("http://site.test:%s/%d", port, i))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			must.True(t, resp.StatusCode == 200, "client %d: %s %s", i, resp.Status, body)
		})
	}
	all.Wait()
	must.Need(t, len(came) == clients, "%d requests came to the site, want %d", len(came), clients)
	slices.SortFunc(came, time.Time.Compare)
	least := came[clients-1].Sub(came[0]) / time.Duration(clients-1)
	if testkit.Full {
		for i := range clients - 1 {
			least = min(least, came[i+1].Sub(came[i]))
		}
	}
	t.Logf("the gap is %v with a delay of %v", least, delay)
	must.True(t, least >= delay*9/10, "requests come to the site with gaps of %v, although its delay is %v", least, delay)
}
