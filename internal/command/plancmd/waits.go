package plancmd

import (
	"fmt"
	"sync"
	"time"

	"heed/internal/base/memo"
	"heed/internal/output/console"
	"heed/internal/output/figures"
)

// waits are the sitemaps that are waited for, for the progress. The zero value is ready; it is
// safe for concurrent use.
type waits struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// begin adds an address until end is called.
func (w *waits) begin(address string) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	memo.Set(&w.since, address, time.Now())
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.since, address)
	}
}

// oldest names the address that is waited for the longest, and how many others there are;
// empty: none for a second.
func (w *waits) oldest(now time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	first, begun := "", now
	for address, since := range w.since {
		if since.Before(begun) {
			first, begun = address, since
		}
	}
	waited := now.Sub(begun).Truncate(time.Second)
	if first == "" || waited == 0 {
		return ""
	}
	text := fmt.Sprintf("waiting for %s for %v", console.Printable(first), waited)
	if n := len(w.since) - 1; n > 0 {
		text += fmt.Sprintf(" (and for %s)", figures.Number(int64(n), "other sitemap"))
	}
	return text
}
