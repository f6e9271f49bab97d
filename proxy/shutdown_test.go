package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// awaitClosing returns when the proxy takes no new connections.
func (r *rig) awaitClosing() {
	r.t.Helper()
	for deadline := time.Now().Add(testkit.Patience); time.Now().Before(deadline); {
		c, err := net.DialTimeout("tcp", r.addr, testkit.Patience)
		if err != nil {
			return
		}
		c.Close() // accepted in the last moment
	}
	r.t.Fatal("the proxy goes on accepting")
}

// shutdown begins a Shutdown and returns a channel for its result.
func (r *rig) shutdown(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() { done <- r.proxy.Shutdown(ctx) }()
	return done
}

func (r *rig) awaitShutdown(done <-chan error) error {
	r.t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(testkit.Patience):
		r.t.Fatal("Shutdown does not return")
		return nil
	}
}

// A download that runs when the proxy is shut down arrives whole, also in tunnels; idle
// connections are closed, new ones are not accepted.
func TestShutdownLetsDownloadsEnd(t *testing.T) {
	eachMode(t, allModes, func(t *testing.T, m mode) {
		goOn := make(chan bool)
		r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "begun ")
			w.(http.Flusher).Flush()
			<-goOn
			fmt.Fprint(w, "whole")
		})
		resp := r.streaming(m, "GET", "/download", nil)
		expect(t, resp.Body, "begun ")
		idle := testkit.Dial(t, r.addr).Connect("site.test:443").TLS(r.trusting("site.test", "http/1.1"))
		idle.Send(get("", "/private"))
		idle.Answer("GET")

		done := r.shutdown(context.Background())
		r.awaitClosing()
		idle.Closed()
		select {
		case err := <-done:
			t.Fatalf("Shutdown returned with a download running: %v", err)
		default:
		}
		close(goOn)
		rest, err := io.ReadAll(resp.Body)
		must.True(t, string(rest) == "whole" && err == nil, "the end of the download: %q %v", rest, err)
		err = r.awaitShutdown(done)
		must.True(t, err == nil, "Shutdown: %v", err)
		must.True(t, !r.proxy.config.Self.Has(r.addr), "the address is still held for heed's own")
		e := r.records.target(t, "/download")
		must.True(t, !e.Outcome.Truncated && e.Outcome.BytesOut == int64(len("begun whole")), "record %+v", e.Outcome)
	})
}

// What does not end within the limit is closed, and never looks whole; the
// site is let go as well.
func TestShutdownClosesWhatIsLeftAtItsLimit(t *testing.T) {
	eachMode(t, allModes, func(t *testing.T, m mode) {
		left := make(chan bool)
		r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "begun ")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			close(left)
		})
		resp := r.streaming(m, "GET", "/endless", nil)
		expect(t, resp.Body, "begun ")
		ctx, limit := context.WithCancel(context.Background())
		done := r.shutdown(ctx)
		r.awaitClosing()
		limit()
		err := r.awaitShutdown(done)
		must.True(t, errors.Is(err, context.Canceled), "Shutdown at its limit: %v", err)
		rest, err := io.ReadAll(resp.Body)
		must.True(t, err != nil, "a download cut off looks whole: %q", rest)
		select {
		case <-left:
		case <-time.After(testkit.Patience):
			t.Error("the site still serves a client that has gone")
		}
		e := r.records.target(t, "/endless")
		must.True(t, e.Outcome.Truncated, "record %+v", e.Outcome)
	})
}

// WebSockets have no end of their own: Shutdown waits for them and closes them
// at its limit, on both sides.
func TestShutdownWaitsForWebSocketsUpToItsLimit(t *testing.T) {
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		ended := make(chan string, 2)
		r := newRig(t, webSocketSite(ended))
		c := r.openWebSocket(m, "/chat")
		ctx, limit := context.WithCancel(context.Background())
		done := r.shutdown(ctx)
		r.awaitClosing()
		c.Send("still there") // while it drains
		r.expect(c, "still there")
		limit()
		err := r.awaitShutdown(done)
		must.True(t, errors.Is(err, context.Canceled), "Shutdown at its limit: %v", err)
		c.Closed()
		select {
		case <-ended:
		case <-time.After(testkit.Patience):
			t.Error("the site's side is still open")
		}
	})
	t.Run("ends by itself", func(t *testing.T) {
		ended := make(chan string, 2)
		r := newRig(t, webSocketSite(ended))
		c := r.openWebSocket(plain, "/chat")
		done := r.shutdown(context.Background())
		r.awaitClosing()
		c.Send("bye")
		c.Closed()
		must.OK(t, r.awaitShutdown(done), "Shutdown")
	})
}

// A client that stalls in its handshake does not outlive the limit.
func TestShutdownClosesStalledHandshakes(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { c.Limits.ConnectTime = time.Hour })
	silent := testkit.Dial(t, r.addr).Connect("site.test:443")
	half := testkit.Dial(t, r.addr).Connect("site.test:443")
	half.Send("\x16\x03\x01\x02\x00\x01")
	ctx, limit := context.WithCancel(context.Background())
	done := r.shutdown(ctx)
	r.awaitClosing()
	limit()
	err := r.awaitShutdown(done)
	must.True(t, errors.Is(err, context.Canceled), "Shutdown at its limit: %v", err)
	silent.Closed()
	half.Closed()
}
