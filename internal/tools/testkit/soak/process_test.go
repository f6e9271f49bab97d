package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// usage is what a heed holds.
type usage struct {
	descriptors int
	resident    int64 // octets
}

func usageOf(t *testing.T, h *testkit.Heed) usage {
	t.Helper()
	names := must.Get(os.ReadDir(fmt.Sprintf("/proc/%d/fd", h.Pid())))(t)
	text := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/statm", h.Pid())))(t)
	var size, pages int64
	must.Get(fmt.Sscan(string(text), &size, &pages))(t)
	return usage{len(names), pages * int64(os.Getpagesize())}
}

// rest waits until h holds no more than limit, or no more time is left, and
// returns what it holds then.
func rest(t *testing.T, h *testkit.Heed, limit usage, patience time.Duration) usage {
	t.Helper()
	late := time.After(patience)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		is := usageOf(t, h)
		if is.descriptors <= limit.descriptors && is.resident <= limit.resident {
			return is
		}
		select {
		case <-late:
			return is
		case <-tick.C:
		}
	}
}

// descriptors says what each descriptor of h is.
func descriptors(h *testkit.Heed) (all []string) {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", h.Pid())) // the pattern is good
	for _, link := range links {
		what, _ := os.Readlink(link) // it may have been closed meanwhile
		all = append(all, what)
	}
	return all
}
