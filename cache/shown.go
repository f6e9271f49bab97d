package cache

import (
	"sync/atomic"

	"heed/rules"
)

// shown is what a place tells at once: the policy that answers for every client
// from one moment until another. Who reads it waits for nobody, and finds none
// while it is being changed. The zero value shows none.
type shown struct {
	changes     atomic.Uint32 // odd while the others are being changed
	policy      atomic.Pointer[rules.Policy]
	from, until atomic.Int64 // nanoseconds since 1970; until is not included
}

// at returns the policy that answers at now; nil when another look is needed.
func (s *shown) at(now int64) *rules.Policy {
	changes := s.changes.Load()
	policy := s.policy.Load()
	if now < s.from.Load() || now >= s.until.Load() || changes%2 == 1 || changes != s.changes.Load() {
		return nil
	}
	return policy
}

// show has e shown while it is fresh, unless the site may tell each client
// something else. One caller at a time may show or hide.
func (s *shown) show(e *entry) {
	if e.personal() {
		s.hide()
		return
	}
	s.set(e.policy, e.madeAt.Add(-clockSlack).UnixNano(), e.askAt.UnixNano())
}

// hide has nothing shown.
func (s *shown) hide() { s.set(nil, 0, 0) }

func (s *shown) set(policy *rules.Policy, from, until int64) {
	s.changes.Add(1)
	s.policy.Store(policy)
	s.from.Store(from)
	s.until.Store(until)
	s.changes.Add(1)
}
