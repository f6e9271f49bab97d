package dashboard_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heed/internal/daemon/admin/dashboard"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// stream opens a stream of events and returns its status and the rest of the answer.
func stream(t testing.TB, address, path string) (status int, c net.Conn, rest *bufio.Reader) {
	t.Helper()
	c = must.Get(net.Dial("tcp", strings.TrimPrefix(address, "http://")))(t)
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	rest = bufio.NewReader(c)
	_ = c.SetReadDeadline(time.Now().Add(testkit.Patience))
	r := must.Get(http.ReadResponse(rest, nil))(t)
	return r.StatusCode, c, bufio.NewReader(r.Body)
}

// A thousand programs open the stream and read nothing. A few are served, the others are
// refused, and the pages are as quick as before; when they leave, their places are free.
func TestStreams_AreBounded(t *testing.T) {
	h, path, _ := visited(t)
	address, d := serve(t, dashboard.Options{Heed: h.heed(), Record: path})
	before := runtime.NumGoroutine()
	var served, refused int
	var open []net.Conn
	for i := range 1000 {
		status, c, _ := stream(t, address, []string{"/live/overview", "/live/decisions"}[i%2])
		switch status {
		case 200:
			served++
			open = append(open, c)
		case 503:
			refused++
			c.Close()
		default:
			t.Fatalf("status %d", status)
		}
	}
	must.True(t, served == 64 && refused == 936, "%d streams are served and %d refused", served, refused)
	n := runtime.NumGoroutine() - before
	must.True(t, n <= 4*served, "%d goroutines serve %d streams", n, served)
	status, _ := get(t, address, "/")
	must.True(t, status == 200, "a page meanwhile: %d", status)
	for _, c := range open {
		c.Close()
	}
	testkit.Until(t, "a place is free", func() bool {
		status, c, _ := stream(t, address, "/live/overview")
		c.Close()
		return status == 200
	})
	d.Close()
	status, _, _ = stream(t, address, "/live/overview")
	must.True(t, status == 503, "after Close a stream is answered with %d", status)
}

// An event is a state of the page in HTML; Close ends the stream.
func TestStreams_SendTheStateOfThePage(t *testing.T) {
	t.Parallel()
	h, path, entries := visited(t)
	address, d := serve(t, dashboard.Options{Heed: h.heed(), Record: path})
	status, _, rest := stream(t, address, "/live/decisions")
	must.Need(t, status == 200, "status %d", status)
	var event strings.Builder
	for {
		line := must.Get(rest.ReadString('\n'))(t)
		if line == "\n" {
			break
		}
		must.Need(t, strings.HasPrefix(line, "data: "), "the event has the line %q", line)
		event.WriteString(line)
	}
	must.True(t, strings.Contains(event.String(), entries[3].ID.String()) && !strings.Contains(event.String(), "<script"),
		"the event is\n%s", event.String())
	d.Close()
	_, err := io.Copy(io.Discard, rest)
	must.True(t, err == nil, "after Close the stream ends with %v", err)
}

// A stream ends with the credentials that it was opened with, also when its page does not
// change.
func TestStreams_EndWhenTheyAreNotAdmitted(t *testing.T) {
	t.Parallel()
	h, path, _ := visited(t)
	var withdrawn atomic.Bool
	address, _ := serve(t, dashboard.Options{Heed: h.heed(), Record: path, Admitted: func(context.Context) bool { return !withdrawn.Load() }})
	status, _, rest := stream(t, address, "/live/decisions")
	if _, err := rest.ReadString('\n'); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	withdrawn.Store(true)
	_, err := io.Copy(io.Discard, rest)
	must.True(t, err == nil, "it ends with %v", err)
}

// A reader that takes nothing is disconnected when it does not take one event in time: it
// holds no more than that.
func TestStreams_ASlowReaderIsDisconnected(t *testing.T) {
	t.Parallel()
	h, path, _ := visited(t)
	d := dashboard.New(complete(dashboard.Options{Heed: h.heed(), Record: path}))
	defer d.Close()
	ended := make(chan struct{})
	var once sync.Once
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer once.Do(func() { close(ended) })
		d.ServeHTTP(&stuck{ResponseWriter: w}, r)
	}))
	s.Start()
	defer s.Close()
	c := must.Get(net.Dial("tcp", s.Listener.Addr().String()))(t)
	defer c.Close()
	fmt.Fprint(c, "GET /live/overview HTTP/1.1\r\nHost: localhost\r\n\r\n")
	select {
	case <-ended:
	case <-time.After(testkit.Patience):
		t.Error("the stream goes on")
	}
}

// stuck is a connection whose reader takes nothing: a write ends at its deadline.
type stuck struct {
	http.ResponseWriter
	deadline time.Time
}

// SetWriteDeadline implements what http.ResponseController needs.
func (s *stuck) SetWriteDeadline(at time.Time) error {
	s.deadline = at
	return nil
}

// Write blocks until the deadline.
func (s *stuck) Write([]byte) (int, error) {
	<-time.After(time.Until(s.deadline))
	return 0, fmt.Errorf("timeout")
}

// FlushError implements what http.ResponseController needs.
func (s *stuck) FlushError() error { return nil }
