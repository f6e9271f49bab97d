package upstream_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/upstream"
)

// A crawl has left connections to many sites open, and the process has no file descriptor
// for the next site: the idle connections are closed, and the site is reached.
func TestRoundTrip_IdleConnectionsGiveWayWhenFilesAreScarce(t *testing.T) {
	t.Parallel()
	var open atomic.Int32
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) }))
	site.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	site.Start()
	defer site.Close()
	addr := site.Listener.Addr().String()
	var scarce atomic.Bool
	dialer := net.Dialer{ControlContext: func(context.Context, string, string, syscall.RawConn) error {
		if scarce.Load() && open.Load() > 0 {
			scarce.Store(false) // they are being closed from now on
			return syscall.EMFILE
		}
		return nil
	}}
	transports := upstream.NewHostTransports(upstream.TransportConfig{
		Dialer: dialer, Resolve: map[string]string{"a.test:80": addr, "b.test:80": addr, "c.test:80": addr},
	})
	ask := func(host string) *http.Response {
		t.Helper()
		r := must.Get(http.NewRequest(http.MethodGet, "http://"+host+"/", nil))(t)
		return must.Get(transports.RoundTrip(r))(t)
	}
	read := func(resp *http.Response, want string) {
		t.Helper()
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		must.True(t, err == nil && string(body) == want, "%q, %v", body, err)
	}
	read(ask("a.test"), "a.test")
	read(ask("b.test"), "b.test")
	must.Is(t, open.Load(), 2, "connections that are kept")
	scarce.Store(true)
	last := ask("c.test")
	// Its connection is in use until the answer is read; a Transport may close it then.
	testkit.Until(t, "only the last connection is open", func() bool { return open.Load() == 1 })
	read(last, "c.test")
}
