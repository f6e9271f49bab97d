package proxy

import (
	"net"
	"sync"
	"time"
)

// Bounds of trusts.
const (
	maxTrusts   = 4096
	trustMemory = 10 * time.Minute
)

// trusts remembers which clients were seen to accept the CA: browsers open
// spare connections and close them unused, which looks just like a client
// that rejects a certificate after the handshake. The zero value is ready.
type trusts struct {
	mu   sync.Mutex
	seen map[trust]time.Time
}

// trust is a client's address, without port, and a host it asked.
type trust struct{ client, host string }

func trustOf(t *tunnel) trust {
	client, _, err := net.SplitHostPort(t.client)
	if err != nil {
		client = t.client
	}
	return trust{client, t.origin.Host}
}

// saw notes that a request came through t.
func (s *trusts) saw(t *tunnel, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil || len(s.seen) >= maxTrusts {
		s.seen = make(map[trust]time.Time) // forgetting costs a remark too many, no more
	}
	s.seen[trustOf(t)] = now
}

// recently reports whether a request came from t's client to t's host lately.
func (s *trusts) recently(t *tunnel, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.seen[trustOf(t)]
	return ok && now.Sub(at) < trustMemory
}
