package command

import (
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// maxPending is how much of a log waits to be written, in bytes. While more
	// is waiting nothing new is decided: only what was under way adds to it.
	maxPending = 4 << 20
	// retryEvery is how often a log that could not be written is tried again.
	retryEvery = 200 * time.Millisecond
	// logPatience is how long an ending heed waits for its log to be written.
	logPatience = 2 * time.Second
)

var errPending = errors.New("its lines are not taken fast enough")

// steady is a log's way out that loses nothing, tears no line apart and holds
// nobody up: lines wait in order while they cannot be written, or while
// whoever should read them does not. It is safe for concurrent use.
type steady struct {
	out io.Writer

	mu      sync.Mutex
	pending []byte // what is not written yet
	spare   []byte // memory of the last pending, for the next
	err     error  // of the last attempt; nil when it succeeded
	wake    chan struct{}
	empty   chan struct{} // closed when nothing is pending; nil while nobody waits
}

// newSteady returns a way out to out, whose writes may fail or block. It
// starts a goroutine that lasts as long as the process.
func newSteady(out io.Writer) *steady {
	s := &steady{out: out, wake: make(chan struct{}, 1)}
	go s.pump()
	return s
}

// Write puts p behind what is pending; it never waits. The error is that of the
// last attempt to write, or that too much is pending; p is kept all the same
// as long as it fits.
func (s *steady) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending)+len(p) > maxPending {
		return 0, errPending
	}
	s.pending = append(s.pending, p...)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return len(p), s.err
}

// retry says why the log cannot be written; nil when it can.
func (s *steady) retry() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && len(s.pending) > maxPending/2 {
		return errPending
	}
	return s.err
}

// pump writes what is pending.
func (s *steady) pump() {
	for {
		s.mu.Lock()
		text := s.pending
		s.pending = s.spare[:0]
		s.mu.Unlock()
		n, err := 0, error(nil)
		if len(text) > 0 {
			n, err = s.out.Write(text)
		}
		if s.settle(text, n, err) {
			<-s.wake
		} else if err != nil {
			time.Sleep(retryEvery)
		}
	}
}

// settle notes what became of text and reports whether nothing is left to write.
func (s *steady) settle(text []byte, n int, err error) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	if rest := text[n:]; len(rest) > 0 {
		s.pending = append(append([]byte(nil), rest...), s.pending...)
		return false
	}
	if s.spare = text[:0]; cap(s.spare) > maxPending/4 {
		s.spare = nil
	}
	if len(s.pending) > 0 {
		return false
	}
	if s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
	return true
}

// drain waits until everything is written, at most for limit; the error says
// why it is not.
func (s *steady) drain(limit time.Duration) error {
	s.mu.Lock()
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	empty := s.empty
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	select {
	case <-empty:
		return nil
	case <-time.After(limit):
	}
	if err := s.retry(); err != nil {
		return err
	}
	return errPending
}
