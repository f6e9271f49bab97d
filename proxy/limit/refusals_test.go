package limit

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

func prefix(text string) netip.Prefix { return ClientKey(netip.MustParseAddr(text)) }

// An honest crawler that is refused tens of thousands of addresses in a row, each
// once or a few times, as fast as it can ask, is not slowed.
func TestRefusalLimiter_AnHonestCrawlerIsNotSlowed(t *testing.T) {
	var l refusalLimiter
	now, crawler := time.Now(), prefix("192.0.2.1")
	for i := range 20_000 {
		for range 3 { // some crawlers ask again
			late := l.take(crawler, Target{Path: fmt.Sprint("/", i)}, DefaultRefusals, now)
			must.Need(t, late == nil, "slowed at address %d: %+v", i, late)
		}
		now = now.Add(time.Millisecond)
	}
}

// A client that requests one refused address again and again is slowed soon, for this
// address only, and its Retry-After is true.
func TestRefusalLimiter_ARetryLoopIsSlowedByItsTarget(t *testing.T) {
	var l refusalLimiter
	now, looping := time.Now(), prefix("192.0.2.1")
	n := 0
	var late *Penalty
	for ; late == nil; n++ {
		late = l.take(looping, Target{Path: "/same"}, DefaultRefusals, now)
	}
	must.Equal(t, n, leastTarget*10+1, "slowed at")
	other := l.take(looping, Target{Path: "/other"}, DefaultRefusals, now)
	must.True(t, other == nil, "another address is slowed too: %+v", other)
	early, due := now.Add(late.Pause+late.RetryAfter-10*time.Millisecond), now.Add(late.Pause+late.RetryAfter)
	must.True(t, l.take(looping, Target{Path: "/same"}, DefaultRefusals, early) != nil,
		"it was said to be due later than it is")
	again := l.take(looping, Target{Path: "/same"}, DefaultRefusals, due)
	must.True(t, again == nil, "it had waited as long as it was told, and is slowed again: %+v", again)
}

// A client that requests ever new addresses uses up its own allowance, not that of
// others.
func TestRefusalLimiter_EachClientHasItsAllowance(t *testing.T) {
	var l refusalLimiter
	now := time.Now()
	rows, dropped := 0, uint64(0)
	const asked = 200_000
	for i := range asked { // 2000 a second
		switch late := l.take(prefix("2001:db8::1"), Target{Path: fmt.Sprint("/", i)}, DefaultRefusals, now); {
		case late == nil:
			rows++
		case late.Drop:
		default:
			rows++
			dropped += late.Unanswered
		}
		now = now.Add(time.Second / 2000)
	}
	most := DefaultRefusals*10 + 100*(DefaultRefusals/60+5) + 200
	must.True(t, rows <= most && rows >= DefaultRefusals*10, "%d rows of %d requests, at most %d expected", rows, asked, most)
	dropped += l.clients[prefix("2001:db8::1")].unanswered
	must.Equal(t, uint64(rows)+dropped, asked, "%d recorded and %d counted are not the %d asked", rows, dropped, asked)
	l.take(prefix("2001:db8::2:1"), Target{}, DefaultRefusals, now) // what has become due
	must.True(t, l.take(prefix("2001:db8::2:2"), Target{}, DefaultRefusals, now) != nil,
		"an address of the same /64 has a share of its own")
	late := l.take(prefix("2001:db8:0:1::1"), Target{}, DefaultRefusals, now)
	must.True(t, late == nil, "another client is slowed: %+v", late)
}

// The memory for clients is bounded, and the one that loops is not forgotten for
// those that come and go.
func TestRefusalLimiter_ItsMemoryIsBounded(t *testing.T) {
	var l refusalLimiter
	now, looping := time.Now(), prefix("192.0.2.1")
	for range 100 {
		l.take(looping, Target{}, 6, now)
	}
	for i := range 20 * maxClients {
		l.take(ClientKey(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})), Target{Path: "/"}, 6, now)
	}
	must.True(t, len(l.clients) <= maxClients && len(l.targets) == maxTargets,
		"%d clients, %d addresses", len(l.clients), len(l.targets))
	must.True(t, l.take(looping, Target{}, 6, now) != nil, "it was forgotten")
}

// The addresses that a client loops on are not forgotten for the many that others are
// refused once.
func TestRefusalLimiter_OtherTargetsDoNotEndALoop(t *testing.T) {
	var l refusalLimiter
	now, looping := time.Now(), prefix("192.0.2.1")
	loops := []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h"}
	for _, target := range loops {
		for l.take(looping, Target{Path: target}, DefaultRefusals, now) == nil {
		}
	}
	for i := range 3 * maxTargets {
		other := ClientKey(netip.AddrFrom4([4]byte{10, byte(i)}))
		late := l.take(other, Target{Path: fmt.Sprint("/", i)}, DefaultRefusals, now)
		must.Need(t, late == nil, "%v is slowed: %+v", other, late)
	}
	for _, target := range loops {
		must.True(t, l.take(looping, Target{Path: target}, DefaultRefusals, now) != nil, "%s was forgotten", target)
	}
}
