package fleet

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/tools/testkit/must"
)

// budgetStore is a Store without a server, inside a testing/synctest bubble. It does not
// look for the server when that is away.
func budgetStore(t *testing.T) *Store {
	ctx, end := context.WithCancel(t.Context())
	end()
	s := &Store{log: slog.New(slog.DiscardHandler), hosts: "store.test:6379", ctx: ctx, end: end, settle: settleTime}
	t.Cleanup(s.tasks.Wait)
	return s
}

// answerAfter asks s a question that is answered after d, or fails when s waits no longer.
// It returns how long s waited, on the fake clock.
func answerAfter(t *testing.T, s *Store, of *script, d time.Duration) time.Duration {
	t.Helper()
	asked := time.Now()
	s.do(t.Context(), of, []string{"key"}, func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return time.Since(asked)
}

// Fast answers to other questions do not make up for slow ones: the questions of a request
// cost about opTimeout in all, then the store counts as away.
func TestStore_AlwaysSlowCostsOneTimeoutInAll(t *testing.T) {
	for name, between := range map[string]time.Duration{"all are slow": 900 * time.Millisecond, "every other is fast": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, waited := budgetStore(t), time.Duration(0)
				for range 3 {
					waited += answerAfter(t, s, nil, 900*time.Millisecond)
					answerAfter(t, s, newerScript, between)
				}
				must.True(t, s.Health().Away && waited <= opTimeout+fastAnswer,
					"away is %v after %v", s.Health().Away, waited)
			})
		})
	}
}

// A store that never answers costs one timeout: after that no question is asked.
func TestStore_SilentCostsOneTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, waited := budgetStore(t), time.Duration(0)
		for range 4 {
			waited += answerAfter(t, s, askScript, time.Hour)
		}
		must.True(t, s.Health().Missed == 4 && waited == opTimeout, "%d questions missed in %v", s.Health().Missed, waited)
	})
}

// What an outage costs is counted: also the questions that are not asked meanwhile.
func TestStore_QuestionsOfAnOutageAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, failed, answered := budgetStore(t), map[string]int{}, 0
		s.failed, s.took = func(op string) { failed[op]++ }, func(time.Duration) { answered++ }
		answerAfter(t, s, askScript, time.Millisecond)
		for range 3 {
			answerAfter(t, s, askScript, time.Hour)
			answerAfter(t, s, newerScript, time.Hour)
		}
		must.True(t, failed[opTurns] == 3 && failed[opPolicies] == 3 && answered == 1,
			"failed %v, answered %d", failed, answered)
	})
}

// A store on another continent answers everything, and nothing fast: it stays in use.
func TestStore_DistantStaysInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := budgetStore(t)
		for range 1000 {
			answerAfter(t, s, askScript, 140*time.Millisecond)
		}
		h := s.Health()
		must.True(t, !h.Away && h.Missed == 0, "%+v", h)
	})
}

// All heeds have to notice at about the same time that a store is back: it is looked for as
// often after each outage. Only a store that fails at the same question whenever it is back
// is looked for less and less often.
func TestStore_IsLookedForAsOftenAfterEachOutage(t *testing.T) {
	for name, answers := range map[string]bool{"it has answered": true, "it never answers": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, want := budgetStore(t), probeEvery
				for range 8 {
					if answers {
						answerAfter(t, s, askScript, time.Millisecond)
					}
					s.do(t.Context(), askScript, []string{"key"}, func(context.Context) error { return errors.New("reset") })
					if s.mu.Lock(); s.parts.whole.every != want {
						t.Errorf("it is looked for every %v, want %v", s.parts.whole.every, want)
					}
					s.parts.whole.away, s.parts.whole.back = false, time.Now() // as reconnect finds
					s.mu.Unlock()
					if !answers {
						want = min(2*want, maxProbeEvery)
					}
				}
			})
		})
	}
}
