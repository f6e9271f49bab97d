package operator

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit"
)

// ticks returns the time on the processor of a process so far, in clock ticks of 10 ms.
func ticks(t *testing.T, pid int) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	for _, f := range fields[11:13] { // utime and stime, proc(5)
		v, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		n += v
	}
	return n
}

// watch opens the live overview of the dashboard and requests the metrics each second,
// until the function that it returns is called.
func (h *heed) watch() (end func()) {
	done := make(chan struct{})
	var tasks sync.WaitGroup
	stream, err := http.Get("http://" + h.admin + "/live/overview")
	if err != nil || stream.StatusCode != http.StatusOK {
		h.t.Fatalf("the live overview: %v %v", stream, err)
	}
	tasks.Go(func() { _, _ = io.Copy(io.Discard, stream.Body) })
	tasks.Go(func() {
		for tick := time.NewTicker(time.Second); ; {
			select {
			case <-done:
				tick.Stop()
				stream.Body.Close()
				return
			case <-tick.C:
				h.read("/metrics")
			}
		}
	})
	return func() { close(done); tasks.Wait() }
}

// Two heeds serve the same requests in turns: one without an admin listener, and one whose
// dashboard is open and whose metrics are requested each second.
func TestCost_OfBeingWatched(t *testing.T) {
	rounds, each := 1, 200
	if testkit.Full {
		rounds, each = 20, 5000
	}
	o := testkit.NewOrigin(t, testkit.Site{Name: "site.test", Robots: "User-agent: *\nDisallow: /private\n", Files: map[string]string{"/page": "hello"}})
	quiet := "[log]\nlevel = \"error\"\n"
	alone := &heed{testkit.Start(t, testkit.Options{Config: o.Config("") + quiet}), t, ""}
	watched := start(t, o, testkit.FreeAddr(t), quiet)
	load := func(h *heed, c *http.Client) int {
		before := ticks(t, h.Pid())
		var workers sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				for range each / 4 {
					resp, err := c.Get("http://site.test/page")
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		}
		workers.Wait()
		return ticks(t, h.Pid()) - before
	}
	clients := map[*heed]*http.Client{alone: alone.client(), watched: watched.client()}
	load(alone, clients[alone])
	load(watched, clients[watched])
	var shares []float64
	sum := map[*heed]int{}
	for round := range rounds {
		spent := map[*heed]int{}
		for turn := range 2 {
			h := []*heed{alone, watched}[(round+turn)%2]
			end := func() {}
			if h == watched {
				end = h.watch()
			}
			spent[h] = load(h, clients[h])
			sum[h] += spent[h]
			end()
		}
		shares = append(shares, float64(spent[watched])/float64(max(1, spent[alone])))
	}
	slices.Sort(shares)
	median := shares[len(shares)/2]
	t.Logf("%d requests each: %d ms without, %d ms watched; median of the rounds %+.1f %%, half of them from %+.1f to %+.1f %%",
		rounds*each, 10*sum[alone], 10*sum[watched], 100*(median-1), 100*(shares[len(shares)/4]-1), 100*(shares[len(shares)*3/4]-1))
	if all := float64(sum[watched]) / float64(sum[alone]); testkit.Full && median > 1.02 && all > 1.02 {
		t.Errorf("being watched costs %.1f %% more per request, %.1f %% in the median round", 100*(all-1), 100*(median-1))
	}
}
