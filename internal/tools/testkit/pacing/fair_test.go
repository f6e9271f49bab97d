package pacing

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit"
)

// One client that asks a hundred times as much as another does not starve it: a few
// requests of the other start before one of the quiet one, however many wait, and on
// however many connections or streams they are.
func TestHeed_TheQuietClientIsServedInTime(t *testing.T) {
	const delay, atOnce = 500 * time.Millisecond, 100
	for _, c := range []struct {
		name   string
		busy   way
		pacing string
	}{
		{"a hundred connections", plain, "max_wait = \"10m\"\n"},
		{"a hundred streams on one connection", h2, "max_wait = \"10m\"\n"},
		{"more than may wait", plain, "max_wait = \"5s\"\n"}, // the busy one is refused with a Retry-After
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, testkit.GaugeOptions{Robots: delayed("0.5")}, c.pacing)
			origin := c.busy.scheme() + "://site.test"
			quiet := b.client(c.busy, 1)
			quiet.get(t, origin+"/quiet/first") // robots.txt has been read
			enough := b.flood(t, b.client(c.busy, 0), origin+"/busy", atOnce)
			defer enough()
			// Where the machine holds the quiet client up before heed has its request, the
			// busy one has a turn more.
			var before []int
			for n := range tenth(60) {
				had := len(b.site.Starts())
				quiet.get(t, numbered(origin+"/quiet")(n))
				before = append(before, len(b.site.Starts())-had-1)
			}
			slices.Sort(before)
			t.Logf("requests of the busy one before one of the quiet one: %v", before)
			if usual := before[len(before)/2]; usual > 3 {
				t.Errorf("before a request of the quiet client come %d of the busy one, want its turn, and one under way", usual)
			}
			testkit.Keep(t, "both clients", testkit.Pages(b.site.Starts(), origin), delay)
		})
	}
}

// flood keeps n requests of a client under way until the function it returns is
// called, which waits for their end. It returns when the first of them wait.
func (b *bed) flood(t testing.TB, c *client, address string, n int) (enough func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	for range n {
		busy.Go(func() {
			for ctx.Err() == nil {
				a, err := c.ask(ctx, http.MethodGet, address)
				if err == nil && a.StatusCode == http.StatusTooManyRequests {
					select { // as a client in a hurry does
					case <-ctx.Done():
					case <-time.After(100 * time.Millisecond):
					}
				}
			}
		})
	}
	b.site.Await(t, 2, func(a testkit.Arrival) bool { return a.Target == "/busy" })
	return func() { cancel(); busy.Wait() }
}
