package testkit_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
)

func TestHeedIsStartedWatchedAndStopped(t *testing.T) {
	o := newSite(t)
	h := testkit.Start(t, testkit.Options{Config: o.Config("")})

	c := testkit.Dial(t, h.Addr)
	c.Send("GET http://site.test/page.html HTTP/1.1\r\nHost: site.test\r\nUser-Agent: kit/1\r\n\r\n")
	if a := c.Answer("GET"); a.StatusCode != http.StatusOK || string(a.Body) != "<p>hello" {
		t.Errorf("plain: %s %q", a.Status, a.Body)
	}
	record := h.AwaitURL("http://site.test/page.html")
	if record.Text("verdict") != "allow" || record.Number("status") != http.StatusOK {
		t.Errorf("record = %v", record)
	}

	h2 := testkit.Dial(t, h.Addr).Connect("site.test:443").TLS(&tls.Config{
		ServerName: "site.test", RootCAs: h.Roots(), NextProtos: []string{"h2"},
	}).HTTP2()
	req, _ := http.NewRequest(http.MethodGet, "https://site.test/page.html", nil)
	resp, err := h2.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "<p>hello" {
		t.Errorf("through a tunnel over h2: %s %q", resp.Status, body)
	}
	if hits := o.HitsOf("site.test", "/page.html"); len(hits) != 2 || hits[0].Via == "" || hits[1].Via == "" {
		t.Errorf("the site saw %+v", hits)
	}

	h.Signal(syscall.SIGTERM)
	if status := h.Exit(); status != 0 {
		t.Errorf("exit status %d:\n%s", status, h.Stderr())
	}
}

func TestLaunchedHeedMayRefuseToStart(t *testing.T) {
	h := testkit.Launch(t, testkit.Options{Config: "lisen = \"\"\n"})
	if status := h.Exit(); status != 2 || !strings.Contains(h.Stderr(), "lisen") {
		t.Errorf("exit status %d:\n%s", status, h.Stderr())
	}
}
