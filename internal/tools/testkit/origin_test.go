package testkit_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
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
	if err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading %s: %v", url, err)
	}
	return resp, string(body)
}

func TestOriginServesEachSiteOverHTTPAndHTTPS(t *testing.T) {
	o := newSite(t)
	for url, want := range map[string]string{
		"http://site.test/page.html":      "200 <p>hello",
		"https://site.test/page.html":     "200 <p>hello",
		"https://site.test/robots.txt":    "200 User-agent: *\nDisallow: /private\n",
		"https://site.test/private/a.txt": "200 secret",
	} {
		resp, body := get(t, o.Client(), url)
		if got := resp.Status[:4] + body; got != want {
			t.Errorf("GET %s = %q, want %q", url, got, want)
		}
	}
	for url, want := range map[string]int{
		"http://other.test/robots.txt": 404,
		"https://site.test/gone":       410,
	} {
		if resp, _ := get(t, o.Client(), url); resp.StatusCode != want {
			t.Errorf("GET %s = %d, want %d", url, resp.StatusCode, want)
		}
	}
	resp, _ := get(t, o.Client(), "http://site.test/go")
	if got := resp.Header.Get("Location"); resp.StatusCode != 302 || got != "/private/a.txt" {
		t.Errorf("redirect = %d to %q", resp.StatusCode, got)
	}
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
	if len(hits) != 3 {
		t.Fatalf("hits = %v, want 3", hits)
	}
	for i, want := range []testkit.Hit{
		{Host: "site.test", Scheme: "http", Proto: "HTTP/1.1", Target: "/page.html?q=1", Status: "200"},
		{Host: "site.test", Scheme: "https", Proto: "HTTP/2.0", Target: "/page.html", Status: "200"},
		{Host: "127.0.0.1", Scheme: "http", Proto: "HTTP/1.1", Target: "/x", Status: "404"},
	} {
		want.Method, want.Agent = "GET", hits[i].Agent
		if hits[i] != want {
			t.Errorf("hit %d = %+v, want %+v", i, hits[i], want)
		}
	}
	if n := len(o.HitsOf("site.test", "/page.html")); n != 1 {
		t.Errorf("hits of /page.html = %d, want 1", n)
	}
}

func TestExpiredSiteIsNotTrusted(t *testing.T) {
	o := testkit.NewOrigin(t, testkit.Site{Name: "old.test", Expired: true})
	_, err := o.Client().Get("https://old.test/")
	if err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("err = %v, want one about an expired certificate", err)
	}
}

func TestConnSpeaksToTheOriginInBytes(t *testing.T) {
	o := newSite(t)
	c := testkit.Dial(t, o.Addr("site.test", "http"))
	c.Send("GET /page.html HTTP/1.1\r\nHost: site.test\r\n\r\nHEAD /page.html HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n")
	if a := c.Answer("GET"); a.StatusCode != 200 || string(a.Body) != "<p>hello" {
		t.Errorf("GET = %d %q", a.StatusCode, a.Body)
	}
	if a := c.Answer("HEAD"); a.StatusCode != 200 || a.ContentLength != 8 || len(a.Body) != 0 {
		t.Errorf("HEAD = %d, length %d, body %q", a.StatusCode, a.ContentLength, a.Body)
	}
	c.Closed()

	s := testkit.Dial(t, o.Addr("site.test", "https")).TLS(&tls.Config{
		ServerName: "site.test", RootCAs: o.CA.Pool(), NextProtos: []string{"http/1.1"},
	})
	s.Send("GET /page.html HTTP/1.1\r\nHost: site.test\r\n\r\n")
	if a := s.Answer("GET"); string(a.Body) != "<p>hello" {
		t.Errorf("over TLS = %q", a.Body)
	}

	h2 := testkit.Dial(t, o.Addr("site.test", "https")).TLS(&tls.Config{
		ServerName: "site.test", RootCAs: o.CA.Pool(), NextProtos: []string{"h2"},
	}).HTTP2()
	req, _ := http.NewRequest("GET", "https://site.test/page.html", nil)
	resp, err := h2.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.ProtoMajor != 2 || string(body) != "<p>hello" {
		t.Errorf("over h2 = %s %q", resp.Proto, body)
	}
}
