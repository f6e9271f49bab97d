package command

import (
	"errors"
	"io"
	"sync"
)

// maxPending is how much of a log is kept while it cannot be written, in bytes.
// Nothing new is decided meanwhile: only what was under way still adds to it.
const maxPending = 4 << 20

var errPending = errors.New("more log lines than can be kept are waiting to be written")

// steady is a log's way out that loses nothing and tears no line apart: what
// could not be written is kept and goes first when writing works again. It is
// safe for concurrent use.
type steady struct {
	mu      sync.Mutex
	out     io.Writer
	pending []byte
}

// Write writes p behind what is pending. With an error p is pending itself.
func (s *steady) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.flushLocked()
	n := 0
	if err == nil {
		n, err = s.out.Write(p)
	}
	if err == nil {
		return n, nil
	}
	if len(s.pending)+len(p)-n > maxPending {
		return n, errPending
	}
	s.pending = append(s.pending, p[n:]...)
	return n, err
}

// retry writes what is pending.
func (s *steady) retry() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flushLocked()
}

func (s *steady) flushLocked() error {
	if len(s.pending) == 0 {
		return nil
	}
	n, err := s.out.Write(s.pending)
	s.pending = s.pending[n:]
	if len(s.pending) == 0 {
		s.pending = nil
	}
	return err
}
