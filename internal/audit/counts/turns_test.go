package counts

import (
	"fmt"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// The cost of turns is logged for each site: requests that waited, that were refused, and
// that left, with how much longer they would have waited.
func TestHeed_WhatTurnsCostAtEachSite(t *testing.T) {
	tally := &Tally{}
	add := func(host string, waited, owed time.Duration, reason rules.Reason) {
		e := &audit.Entry{Host: host, Judged: audit.ByPath, TurnWaited: waited, Owed: owed, Decision: rules.Decision{Reason: reason}, Outcome: audit.Outcome{Waited: waited}}
		if reason == rules.ReasonNoRule {
			e.Decision.Verdict = rules.Allow
		}
		tally.Ended(e)
	}
	add("slow.test", 4*time.Second, 0, rules.ReasonNoRule)
	add("slow.test", 6*time.Second, 0, rules.ReasonNoRule)
	add("slow.test", 0, 40*time.Second, rules.ReasonPaced)
	add("slow.test", 2*time.Second, 8*time.Second, rules.ReasonClientLeft)
	add("quick.test", 0, 0, rules.ReasonNoRule)
	add("other.test", time.Second, 0, rules.ReasonNoRule)
	got := fmt.Sprintf("%+v", tally.Summary().Paced)
	want := "[{Host:slow.test Waits:{Requests:3 Total:12s Longest:6s} Refused:1 Left:1 Owed:8s} " +
		"{Host:other.test Waits:{Requests:1 Total:1s Longest:1s} Refused:0 Left:0 Owed:0s}]"
	must.Equal(t, got, want)
	for n := range 2 * maxHosts {
		add(fmt.Sprintf("h%d.test", n), time.Second, 0, rules.ReasonNoRule)
	}
	if got := len(tally.Summary().Paced); got != maxHosts+1 {
		t.Errorf("%d hosts are counted by name", got-1)
	}
}
