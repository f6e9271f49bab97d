package testkit_test

import (
	"io"
	"net/http"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func newSite(t *testing.T) *testkit.Origin {
	return testkit.NewOrigin(t, testkit.Site{
		Name:      "site.test",
		Robots:    "User-agent: *\nDisallow: /private\n",
		Files:     map[string]string{"/page.html": "<p>hello", "/private/a.txt": "secret"},
		Redirects: map[string]string{"/go": "/private/a.txt"},
		Config:    "location = /gone { return 410; }",
	}, testkit.Site{Name: "other.test"})
}

func get(t *testing.T, client *http.Client, url string) (*http.Response, string) {
	t.Helper()
	resp, err := client.Get(url)
	must.OK(t, err, "GET %s", url)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must.OK(t, err, "reading %s", url)
	return resp, string(body)
}

func TestOriginLogsEveryRequestInOrder(t *testing.T) {
	o := newSite(t)
	if hits := o.Hits(); len(hits) != 0 {
		t.Fatalf("hits before any request: %v", hits)
	}
	get(t, o.Client(), "http://site.test/page.html?q=1")
	get(t, o.Client(), "https://site.test/page.html")
	get(t, o.Client(), o.URL("other.test", "/x"))
	hits := o.Hits()
	must.Need(t, len(hits) == 3, "hits = %v, want 3", hits)
	for i, want := range []testkit.Hit{
		{Host: "site.test", Scheme: "http", Proto: "HTTP/1.1", Target: "/page.html?q=1", Status: "200"},
		{Host: "site.test", Scheme: "https", Proto: "HTTP/2.0", Target: "/page.html", Status: "200"},
		{Host: "127.0.0.1", Scheme: "http", Proto: "HTTP/1.1", Target: "/x", Status: "404"},
	} {
		want.Method, want.Agent = "GET", hits[i].Agent
		must.Equal(t, hits[i], want, "hit %d =", i)
	}
	must.Equal(t, len(o.HitsOf("site.test", "/page.html")), 1, "hits of /page.html")
}
