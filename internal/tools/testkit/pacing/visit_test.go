package pacing

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// Sites whose robots.txt redirects to another site cannot have heed ask that one faster than
// it allows, nor for what it disallows.
func TestHeed_OtherSitesCannotAimHeedAtASite(t *testing.T) {
	var mu sync.Mutex
	var starts []testkit.Arrival
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // a proxy that is all sites
		name, _, _ := strings.Cut(r.Host, ".")
		switch {
		case r.Host != "victim.test" && r.URL.Path == "/robots.txt":
			http.Redirect(w, r, "http://victim.test/"+map[bool]string{true: "files/", false: "private/"}[len(name)%2 == 0]+name, http.StatusFound)
		case r.Host != "victim.test":
			io.WriteString(w, "a page")
		default:
			mu.Lock()
			starts = append(starts, testkit.Arrival{At: time.Now(), Method: r.Method, Target: r.URL.Path})
			mu.Unlock()
			io.WriteString(w, "User-agent: *\nDisallow: /private/\nCrawl-delay: 0.3\n")
		}
	}))
	t.Cleanup(web.Close)
	h := testkit.Start(t, testkit.Options{Config: testkit.AnyPort + "[upstream]\nproxy = \"" + web.URL + "\"\n"})
	c := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: h.Addr})}}
	t.Cleanup(c.CloseIdleConnections)
	var all sync.WaitGroup
	for n := range 16 {
		name := fmt.Sprintf("n%0*d", 1+n%2, n/2)
		all.Go(func() {
			resp, err := c.Get("http://" + name + ".test/page")
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if allowed := len(name)%2 == 0; allowed != (resp.StatusCode == http.StatusOK) || !allowed && !strings.Contains(string(body), "does not let heed fetch") {
				t.Errorf("%s: %s %s", name, resp.Status, body)
			}
		})
	}
	all.Wait()
	must.True(t, len(starts) == 1+8 && starts[0].Target == "/robots.txt", "the site was asked for %v", starts)
	testkit.Keep(t, "heed's own requests", starts[1:], 300*time.Millisecond)
}
