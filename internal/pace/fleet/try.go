package fleet

import (
	"context"
	"fmt"
	"log/slog"
)

// Try connects to the store and returns why a heed could not use it; nil when it could. It
// uses each right that heed needs: it writes a key that lives for a second on each master of a
// Cluster, and subscribes. It does not count as a heed.
func Try(ctx context.Context, o Options) error {
	o.Log = slog.New(slog.DiscardHandler)
	s, err := Open(o)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := guard(func() error { return s.try(ctx) }); err != nil {
		return fmt.Errorf("the store %s cannot be used: %w", s.hosts, explain(err, s.cluster))
	}
	return nil
}

func (s *Store) try(ctx context.Context) error {
	if err := s.tryKey(ctx, heedsKey); err != nil {
		return err
	}
	for _, key := range s.keysOfAll() {
		if err := s.tryKey(ctx, key); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	channel := s.subscribe(turnsChannel)
	if channel == nil {
		return ErrAway
	}
	defer channel.Close()
	_, err := channel.Receive(ctx)
	return err
}

// tryKey runs the operations of turns on the server that has key.
func (s *Store) tryKey(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	return s.probe(ctx, []string{key}, true)
}

// keysOfAll returns a key for each known master of a Cluster, none otherwise.
func (s *Store) keysOfAll() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[*part]bool{}
	for i := 0; len(seen) < len(s.parts.nodes) && i < slotCount; i++ {
		key := fmt.Sprintf("%s{%d}", keyPrefix, i)
		if p := s.parts.of(key); !seen[p] {
			seen[p] = true
			keys = append(keys, key)
		}
	}
	return keys
}
