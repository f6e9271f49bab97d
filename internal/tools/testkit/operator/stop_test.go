package operator

import (
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A load balancer that asks /readyz, as HAProxy does it without a Host, learns of a stop
// while all requests are served still, and kept connections end with their answers.
func TestHeed_ServesOnBeforeItStops(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a page") }))
	t.Cleanup(site.Close)
	admin := testkit.FreeAddr(t)
	h := testkit.Start(t, testkit.Options{Config: testkit.AnyPort + "drain_after = \"10m\"\n[admin]\nlisten = \"" + admin +
		"\"\n[upstream.resolve]\n\"site.test:80\" = \"" + site.Listener.Addr().String() + "\"\n"})
	ask := func(c *testkit.Conn, request string) *testkit.Answer {
		c.Send(request)
		return c.Answer(http.MethodGet)
	}
	ready := func() int { return ask(testkit.Dial(t, admin), "GET /readyz HTTP/1.0\r\n\r\n").StatusCode }
	must.Equal(t, ready(), http.StatusOK, "before the stop")
	page := "GET http://site.test/page HTTP/1.1\r\nHost: site.test\r\n\r\n"
	kept := testkit.Dial(t, h.Addr)
	a := ask(kept, page)
	must.True(t, a.StatusCode == http.StatusOK && !a.Close, "before the stop: %s, close %v", a.Status, a.Close)
	h.Signal(syscall.SIGTERM)
	testkit.Until(t, "heed is not ready", func() bool { return ready() == http.StatusServiceUnavailable })
	for _, c := range []*testkit.Conn{kept, testkit.Dial(t, h.Addr)} {
		a := ask(c, page)
		must.True(t, a.StatusCode == http.StatusOK && a.Close, "while heed is to stop: %s, close %v", a.Status, a.Close)
	}
	h.Signal(syscall.SIGTERM)
	must.Equal(t, h.Exit(), 128+int(syscall.SIGTERM), "after the second signal: status")
}
