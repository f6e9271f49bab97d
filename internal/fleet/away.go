package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// Health is how a store has been.
type Health struct {
	Hosts string `json:"hosts"`
	// Away is set while the store does not do what it is asked: nobody waits for
	// it then, and it is tried again and again.
	Away  bool      `json:"away"`
	Since time.Time `json:"since,omitzero"` // when it was found away
	Why   string    `json:"why,omitempty"`  // what it said last, or did not

	Heeds   int    `json:"heeds,omitempty"` // that take turns, this one among them, when it was last there; 0: none do
	Outages uint64 `json:"outages"`         // how often it was found away
	Missed  uint64 `json:"missed"`          // questions that were not answered for it
}

// Health returns how the store is and has been.
func (s *Store) Health() Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.health
	h.Hosts = s.hosts
	if s.turns != nil {
		h.Heeds = s.turns.Heeds()
	}
	return h
}

// do runs op, which asks the store about key, within opTimeout, and reports
// whether it was answered. While the store is away it is not even asked.
func (s *Store) do(ctx context.Context, key string, op func(context.Context) error) bool {
	if s.missing() {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	err := op(limited)
	if err == nil || errors.Is(err, redis.Nil) {
		return true
	}
	if ctx.Err() == nil { // else the caller has lost patience, and the store no part in it
		s.lost(key, err)
	}
	return false
}

// missing counts a question that is not asked, if the store is away.
func (s *Store) missing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.health.Away || s.closed {
		s.health.Missed++
		return true
	}
	return false
}

// lost notes that the store is away, and begins to look for it with the key
// that failed: in a Cluster each node has its own.
func (s *Store) lost(key string, err error) {
	s.mu.Lock()
	s.health.Missed++
	first := !s.health.Away && !s.closed
	if first {
		s.health.Away, s.health.Since, s.health.Why = true, time.Now(), err.Error()
		s.health.Outages++
	}
	s.mu.Unlock()
	if !first {
		return
	}
	s.log.Warn("the fleet's store is away: heed goes on with what it has, and looks for it", "store", s.hosts, "error", err)
	s.spawn(func() { s.seek(key) })
}

// seek waits until the store can be written to again.
func (s *Store) seek(key string) {
	probe := s.probe(key)
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(probeEvery):
		}
		ctx, cancel := context.WithTimeout(s.ctx, opTimeout)
		err := probe(ctx)
		cancel()
		if err == nil {
			break
		}
		s.mu.Lock()
		s.health.Why = err.Error() // the first may have been no more than a delay
		s.mu.Unlock()
	}
	s.mu.Lock()
	since := s.health.Since
	s.health.Away, s.health.Since, s.health.Why, s.back = false, time.Time{}, "", time.Now()
	s.mu.Unlock()
	s.log.Info("the fleet's store is back", "store", s.hosts, "after", time.Since(since).Round(time.Millisecond))
}

// probe returns what tells whether the node of key can be written to, and does
// what turns need if there are any.
func (s *Store) probe(key string) func(context.Context) error {
	return func(ctx context.Context) error {
		s.mu.Lock()
		turns := s.turns
		s.mu.Unlock()
		if turns != nil {
			return probeScript.Run(ctx, s.client, []string{key + ":turns:probe"}, opTimeout.Milliseconds()).Err()
		}
		return s.client.Set(ctx, key+":probe", "", opTimeout).Err()
	}
}
