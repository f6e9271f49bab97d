package fleet

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"
)

// markAway records that the part of the store that has keys is unreachable, and starts to probe
// it with them. of is the script that failed; nil: its earlier
// answers do not count.
func (s *Store) markAway(of *script, keys []string, err error) {
	s.mu.Lock()
	s.missed++
	p := s.parts.of(keys[0])
	first, node := !p.away && !s.closed, p.node
	if first {
		if p.back.IsZero() || time.Since(p.back) > steadyTime || p.kept[of] {
			p.every = probeEvery
		} else {
			p.every = min(2*p.every, maxProbeEvery)
		}
		clear(p.kept)
		p.away, p.since, p.why = true, time.Now(), err.Error()
		s.outages++
	}
	s.mu.Unlock()
	if !first {
		return
	}
	if node == "" {
		s.log.Warn("the fleet's store is away: heed goes on with what it has, and looks for it", "store", s.hosts, "error", err)
	} else {
		s.log.Warn("a node of the fleet's store is away: heed goes on with what it has where its keys are there, and looks for it", "store", s.hosts, "node", node, "error", err)
	}
	s.spawn(func() { s.reconnect(p, keys) })
}

// reconnect waits until p, which has keys, is writable again, or until another part has them.
func (s *Store) reconnect(p *part, keys []string) {
	s.mu.Lock()
	every := p.every
	s.mu.Unlock()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(every):
		}
		ctx, cancel := context.WithTimeout(s.ctx, opTimeout)
		err := guard(func() error { return s.probe(ctx, keys, false) })
		cancel()
		if err == nil {
			break
		}
		s.mu.Lock()
		p.why = explain(err, s.cluster).Error() // the first error may have been a timeout only
		s.mu.Unlock()
	}
	s.mu.Lock()
	since, node := p.since, p.node
	p.away, p.since, p.why, p.back = false, time.Time{}, "", time.Now()
	s.mu.Unlock()
	after := time.Since(since).Milliseconds()
	if node == "" {
		s.log.Info("the fleet's store is back", "store", s.hosts, "after_ms", after)
	} else {
		s.log.Info("a node of the fleet's store is back, or another has its keys", "store", s.hosts, "node", node, "after_ms", after)
	}
}

// probe checks whether the node of keys can be written to, runs scripts and returns what was
// written, and does what turns need if they are used, or turns is set. It fails while one of the
// keys has a value of another type than heed's.
func (s *Store) probe(ctx context.Context, keys []string, turns bool) error {
	s.mu.Lock()
	turns = turns || s.lanes != nil
	s.mu.Unlock()
	of, at := plainProbeScript, besides(keys[0], ":probe")
	if turns {
		of, at = probeScript, besides(keys[0], ":turns:probe")
	}
	token := rand.Text()
	args := []any{opTimeout.Milliseconds(), token}
	for _, key := range keys {
		args = append(args, readsKey(key))
	}
	reply, err := s.call(ctx, of, append([]string{at}, keys...), args...)
	if err == nil && reply.Val() != token {
		err = fmt.Errorf("%w: a probe wrote %s and read %.40q", errNonsense, token, reply.Val())
	}
	return err
}
