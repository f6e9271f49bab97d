package pace

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// Hundreds of names at one address get one request per MinDelay together, each of them no
// more than it asks for; names at another address are not delayed by them.
func TestHeed_NamesOfOneAddressKeepMinDelayTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		settings := Settings{MinDelay: time.Second, MaxDelay: time.Hour, MaxWait: time.Hour, ByAddress: true}
		begun := time.Now()
		type begin struct {
			name string
			at   time.Duration
		}
		var mu sync.Mutex
		var starts []begin
		var all sync.WaitGroup
		ask := func(name, address string, hints []*rules.RateHint) {
			all.Go(func() {
				a := s.TakeAt(t.Context(), &Ask{Settings: &settings, Origin: rules.Origin{Scheme: "http", Host: name, Port: 80}, Hints: hints, Client: name, Target: "GET /x"}, netip.MustParseAddr(address))
				must.True(t, !a.Refused && !a.Left, "%s: %+v", name, a)
				must.True(t, a.Waited > 0 == strings.Contains(a.Note, address) || name == "slow.test",
					"%s waited for %v: %q", name, a.Waited, a.Note)
				a.Turn.Going()
				a.Turn.Started()
				a.Turn.End()
				mu.Lock()
				defer mu.Unlock()
				starts = append(starts, begin{name, time.Since(begun)})
			})
		}
		for i := range 30 {
			ask(fmt.Sprint("name", i, ".test"), "192.0.2.1", nil)
		}
		for range 3 {
			ask("slow.test", "192.0.2.1", delay("10"))
		}
		ask("other.test", "192.0.2.2", nil)
		synctest.Wait()
		found := false
		for _, x := range s.List() {
			found = found || x.Address == "192.0.2.1" && x.Place() == "all names at 192.0.2.1" &&
				slices.ContainsFunc(x.Waiters, func(w Waiter) bool { return strings.HasPrefix(w.Request, "GET http://name") })
		}
		must.True(t, found, "the address is not listed: %+v", s.List())
		all.Wait()
		last := map[string]time.Duration{}
		for _, x := range starts {
			key, apart := "192.0.2.1", time.Second
			if x.name == "other.test" {
				key = "192.0.2.2"
			}
			before, ok := last[key]
			must.True(t, !ok || x.at-before >= apart, "%s starts %v after the one before", x.name, x.at-before)
			before, ok = last[x.name]
			must.True(t, !ok || x.at-before >= 10*time.Second, "%s starts %v after its last", x.name, x.at-before)
			last[key], last[x.name] = x.at, x.at
		}
		must.True(t, len(starts) == 34 && last["192.0.2.2"] == 0 && last["192.0.2.1"] <= 55*time.Second,
			"%d starts, the last ones at %v and %v", len(starts), last["192.0.2.1"], last["192.0.2.2"])
		c := s.Counts()
		must.True(t, c.Turns == 34, "counted %d turns", c.Turns)
	})
}

// A turn at the address that is too far off gives the one at the site back, and so does a
// client that leaves.
func TestHeed_ATurnThatIsRefusedAtTheAddressIsGivenBackAtTheSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		settings := Settings{MinDelay: time.Minute, MaxDelay: time.Hour, MaxWait: 10 * time.Second, ByAddress: true}
		address := netip.MustParseAddr("2001:db8::1")
		take := func(ctx context.Context, name string) Answer {
			return s.TakeAt(ctx, &Ask{Settings: &settings, Origin: rules.Origin{Scheme: "http", Host: name, Port: 80}, Hints: delay("5"), Client: name, Target: "GET /x"}, address)
		}
		first := take(t.Context(), "a.test")
		first.Turn.Started()
		first.Turn.End()
		refused := take(t.Context(), "b.test")
		must.True(t, refused.Refused && refused.Address == "2001:db8::1" && refused.RetryAfter >= 59*time.Second && refused.Turn == nil,
			"%+v", refused)
		settings.MaxWait = time.Hour
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		left := take(ctx, "b.test")
		must.True(t, left.Left && left.Turn == nil, "%+v", left)
		begun := time.Now()
		again := take(t.Context(), "b.test") // its site has no turn that was not given back
		must.True(t, !again.Refused && time.Since(begun) <= time.Minute, "after %v: %+v", time.Since(begun), again)
		again.Turn.End()
		place, err := parsePlace("address", AddressOrigin(address).Authority())
		must.True(t, err == nil && place == AddressOrigin(address), "%v, %v of %s", place, err, AddressOrigin(address).Authority())
	})
}
