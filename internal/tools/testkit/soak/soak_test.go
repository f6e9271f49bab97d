// Package soak has heed work for a long time at full load, as a person sees it:
// the real program as a child process, with clients and sites that break off
// whenever they like. Afterwards nothing is left over and nothing is missing.
//
// It lasts twenty seconds, and half an hour with
//
//	HEED_TEST_FULL=1 go test -count=1 ./internal/tools/testkit/soak -timeout 1h -v
package soak

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"os/exec"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// quiet takes what servers say of clients that break off.
var quiet = log.New(io.Discard, "", 0)

// heed works at full load, over plain HTTP, intercepted HTTP/1.1 and HTTP/2, for
// clients that leave and read slowly, and sites that break off. Every request is
// judged right, client, log and site agree on each single one, and afterwards
// heed holds what it held before.
func TestHeed_Soak(t *testing.T) {
	// The Go runtime returns memory slowly: only a long round distinguishes a leak
	// from that.
	// In so short a time the heap has not found its size, and the race detector
	// multiplies it: memory is what the long form without it is about.
	lasts, warm, calm, slack := 3*time.Second, time.Second, testkit.Patience, int64(1<<30)
	if testkit.Full && !testkit.Race {
		lasts, warm, calm, slack = 30*time.Minute, 3*time.Minute, 5*time.Minute, 16<<20
	}
	ledger := newLedger()
	sites := newWeb(t, ledger)
	h := testkit.Start(t, testkit.Options{Config: sites.config, EachLine: ledger.line})
	work := func(d time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		load(ctx, h.Addr, h.Roots(), ledger)
		sites.hangUp()
	}
	fresh := usageOf(t, h)
	work(warm) // so that pools and heap have the size that the load needs
	before := rest(t, h, usage{descriptors: fresh.descriptors, resident: 1 << 40}, testkit.Patience)
	begun := ledger.next.Load()
	work(lasts)
	rate := float64(ledger.next.Load()-begun) / lasts.Seconds()
	loaded := usageOf(t, h)
	limit := usage{descriptors: before.descriptors, resident: before.resident + before.resident/4 + slack}
	after := rest(t, h, limit, calm)
	t.Logf("%v at %.0f requests a second: %d descriptors and %d MiB before, %d MiB at the end of the load, %d and %d MiB after it",
		lasts, rate, before.descriptors, before.resident>>20, loaded.resident>>20, after.descriptors, after.resident>>20)
	must.True(t, after.descriptors <= limit.descriptors && after.resident <= limit.resident,
		"heed holds %+v, before it was %+v: %q", after, before, descriptors(h))
	until(t, "every answer is in the log", ledger.settled)
	ledger.check(t)
	sameTally(t, h, ledger)
	count, stacks := h.Goroutines()
	if idle := idleGoroutines(t); count > idle {
		t.Errorf("%d goroutines are left, an idle heed has %d:\n%s", count, idle, stacks)
	} else {
		t.Logf("%d goroutines are left, an idle heed has %d", count, idle)
	}
}

// sameTally compares what `heed status` counted with what the log says.
func sameTally(t *testing.T, h *testkit.Heed, l *ledger) {
	t.Helper()
	hour := statusOf(t, h)
	allowed, refused := uint64(l.allowed.count.Load()), uint64(l.refused.count.Load())
	refused -= uint64(l.early.Load()) // which count as not judged
	must.True(t, hour.Allowed == allowed && hour.Refused == refused,
		"heed status counts %+v, its log has %d allowed and %d refused", hour, allowed, refused)
}

// counts are what `heed status` reports of the last hour.
type counts struct{ Requests, Allowed, Refused uint64 }

func statusOf(t *testing.T, h *testkit.Heed) counts {
	t.Helper()
	cmd := exec.Command(testkit.Binary(t), "status", "--json")
	cmd.Env = []string{"HEED_STATE=" + h.State, "HOME=" + h.State, testkit.RaceOptions}
	out, _ := cmd.Output() // it exits with 1: the robots.txt of one site cannot be fetched
	var status struct {
		Hour counts `json:"last_hour"`
	}
	if err := json.Unmarshal(out, &status); err != nil {
		t.Fatalf("heed status: %v: %s", err, out)
	}
	return status.Hour
}

// idleGoroutines is how many goroutines a heed has that does nothing.
func idleGoroutines(t *testing.T) int {
	t.Helper()
	h := testkit.Start(t, testkit.Options{})
	statusOf(t, h) // by then all of it runs
	count, _ := h.Goroutines()
	return count
}

// until waits for something that another process does.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	late := time.After(testkit.Patience)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			t.Errorf("it did not come to this: %s", what)
			return
		}
	}
}
