package fleet_test

import (
	"bytes"
	"flag"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/pace/fleet"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

const tag = "https://site.test"

// TestMain runs more tests side by side than there are processors: they wait for
// the clocks of their servers most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

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
	s := must.Get(fleet.Open(fleet.Options{URL: url, Log: slog.New(slog.NewTextHandler(log, nil))}))(t)
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

// lease takes the lease of tag, which must be free. On a busy machine the store may
// count as away for a moment.
func lease(t *testing.T, p *fleet.Policies, name string, known int64) (end fleet.End) {
	t.Helper()
	testkit.Until(t, "the store is asked for the lease", func() bool {
		var wait time.Duration
		end, wait = p.Lease(t.Context(), tag, name, known)
		must.Need(t, wait <= 0, "no lease of %q; wait %v", name, wait)
		return end != nil
	})
	return end
}
