package command

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// heed reaches sites through the nginx that asks it, with the lines of the manual: heed's own
// fetch of robots.txt passes, and the site sees nothing of how.
func TestHeedsOwnFetchPassesTheProxyThatAsks(t *testing.T) {
	t.Parallel()
	var fetched, marked atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Heed-Fetch") != "" {
			marked.Add(1)
		}
		if r.URL.Path == "/robots.txt" {
			fetched.Add(1)
			io.WriteString(w, "User-agent: *\nDisallow: /private\n")
		}
	}))
	t.Cleanup(site.Close)
	asked, gateway, dir := testkit.FreeAddr(t), testkit.FreeAddr(t), t.TempDir()
	lines := strings.NewReplacer("127.0.0.1:3130", asked, "127.0.0.1:8080", gateway, "http://$http_host$request_uri", site.URL+"$request_uri").
		Replace(testkit.ManualLines(t, "other-proxies", "# nginx.conf, in http"))
	nginx := exec.Command(testkit.Program(t, "nginx"), "-c", testkit.Write(t, filepath.Join(dir, "nginx.conf"), testkit.NginxAround(dir, lines)))
	testkit.NotOrphaned(nginx)
	must.OK(t, nginx.Start())
	t.Cleanup(func() { nginx.Process.Signal(syscall.SIGTERM); nginx.Wait() }) // its worker ends with it
	testkit.Start(t, testkit.Options{Config: fmt.Sprintf("listen = \"127.0.0.1:0\"\naccess.private_destinations = \"allow\"\nupstream.proxy = %q\n[[listener]]\naddress = %q\nmode = \"authorize\"\ntrust = [\"127.0.0.1\"]\n", "http://"+gateway, asked)})
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: gateway})}, Timeout: testkit.Patience}
	for path, want := range map[string]int{"/page": 200, "/private/x": 403} {
		testkit.Until(t, "an answer of nginx", func() bool {
			resp, err := client.Get("http://site.test" + path)
			if err != nil {
				return false
			}
			resp.Body.Close()
			must.Equal(t, resp.StatusCode, want, "%s: %s, want %d", path, resp.Status, want)
			return true
		})
	}
	must.True(t, fetched.Load() == 1 && marked.Load() == 0,
		"the site was asked %d times for robots.txt, and saw the mark %d times; want 1 and 0", fetched.Load(), marked.Load())
}
