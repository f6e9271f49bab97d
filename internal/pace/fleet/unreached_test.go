package fleet

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/pace"
	"heed/internal/tools/testkit/must"
)

// askWithout asks for a turn while the store does not answer, for some minutes of the
// fake clock at most, and returns the last answer.
func askWithout(t *testing.T, before func(*Lanes)) (a pace.SharedAnswer, h Health) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := budgetStore(t)
		s.markAway(nil, []string{heedsKey}, errors.New("WRONGPASS invalid username-password pair"))
		lanes := s.Lanes()
		before(lanes)
		for range 100 {
			if a = lanes.Ask(t.Context(), "https://site.test", "ticket", []pace.Lane{{Name: "group", Delay: time.Second}}); a.Now {
				break
			}
			time.Sleep(a.Again)
		}
		h = s.Health()
	})
	return a, h
}

// How many other heeds there are is unknown before the store was reached: whatever a heed
// starts then comes in addition to what they start.
func TestHeed_AHeedThatHasNeverReachedItsStoreGivesNoTurn(t *testing.T) {
	a, h := askWithout(t, func(*Lanes) {})
	must.True(t, !a.Now && a.Unreached == "store.test:6379" && h.Unreached, "%+v; health %+v", a, h)
	known := Membership{Store: "other.test:6379", Size: 1, Heeds: 1}
	a, _ = askWithout(t, func(l *Lanes) { l.Expect(known) })
	must.True(t, !a.Now, "what is known of another store counts: %+v", a)
	known.Store = "store.test:6379"
	a, h = askWithout(t, func(l *Lanes) { l.Expect(known) })
	must.True(t, a.Now && !h.Unreached, "what an earlier process knew of this store does not count: %+v; health %+v", a, h)
	if a, h := askWithout(t, func(l *Lanes) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.member.seen = true
	}); !a.Now || h.Unreached {
		t.Errorf("a heed that has reached its store does not go on without it: %+v; health %+v", a, h)
	}
}
