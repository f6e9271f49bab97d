package fleet_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/fleet"
	"heed/internal/testkit"
)

const tag = "https://site.test"

// book is a log that can be read while it is written.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *book) count(what string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.text.String(), what)
}

func open(t *testing.T, url string) (*fleet.Store, *book) {
	t.Helper()
	log := &book{}
	s, err := fleet.Open(fleet.Options{URL: url, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, log
}

// heeds opens the store for two heeds.
func heeds(t *testing.T, url string) (one, other *fleet.Policies) {
	t.Helper()
	a, _ := open(t, url)
	b, _ := open(t, url)
	return a.Policies("space"), b.Policies("space")
}

// lease takes the lease of tag, which must be free.
func lease(t *testing.T, p *fleet.Policies, name string, known int64) fleet.End {
	t.Helper()
	end, wait := p.Lease(t.Context(), tag, name, known)
	if end == nil {
		t.Fatalf("no lease of %q; wait %v", name, wait)
	}
	return end
}

// await waits until done.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(testkit.Patience)
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within %v: %s", testkit.Patience, what)
		}
	}
}
