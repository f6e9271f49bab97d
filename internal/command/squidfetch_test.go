package command

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// heed reaches https sites through the Squid that asks it, with the lines of the manual: the tunnel
// for its fetch of robots.txt passes, and a client's to the same site does not.
func TestHeedsOwnTunnelPassesTheSquidThatAsks(t *testing.T) {
	t.Parallel()
	var fetched atomic.Int64
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fetched.Add(1)
			io.WriteString(w, "User-agent: *\nDisallow: /private\n")
		}
	}))
	ca, at, free := testkit.NewCA(t), testkit.FreeAddr(t), testkit.FreeAddr(t)
	cert, err := tls.LoadX509KeyPair(ca.Leaf(t, "site.test"))
	must.OK(t, err)
	site.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	site.StartTLS()
	t.Cleanup(site.Close)
	lines := strings.ReplaceAll(testkit.ManualLines(t, "other-proxies", "# squid.conf")+"\n"+testkit.ManualLines(t, "other-proxies", "# squid.conf: heed's own"), "127.0.0.1:1344", at)
	squid := testkit.NewAsking(t, lines+"\n", nil, ca, "site.test").Addr
	testkit.Start(t, testkit.Options{Config: fmt.Sprintf("listen = %q\nupstream.proxy = %q\nupstream.ca_file = %q\n[access]\nprivate_destinations = \"allow\"\n%s", free, "http://"+squid, ca.File,
		strings.Replace(testkit.ManualLines(t, "other-proxies", "# heed.toml"), "127.0.0.1:1344", at, 1)) + "\n"})
	_, port, _ := strings.Cut(site.Listener.Addr().String(), ":")
	client := func(proxy string) *http.Client {
		return &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: proxy}), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	}
	for path, want := range map[string]int{"/page": 200, "/private/x": 403} { // of clients of heed, which sends through Squid
		resp := must.Get(client(free).Get("https://site.test:" + port + path))(t)
		resp.Body.Close()
		must.True(t, resp.StatusCode == want, "%s: %s, want %d", path, resp.Status, want)
	}
	must.True(t, fetched.Load() == 1, "robots.txt was fetched %d times, want once", fetched.Load())
	_, err = client(squid).Get("https://site.test:" + port + "/page")
	must.True(t, err != nil && strings.Contains(err.Error(), "Forbidden"), "a tunnel of a client of Squid: %v", err)
}
