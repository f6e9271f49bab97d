package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// maxWaiting is how many log lines wait for a run that does not read its log.
// What comes beyond is dropped and counted: a slow reader costs lines of its
// own log, and neither requests nor the log of heed itself.
const maxWaiting = 4096

// stream is the answer to a run that joined: lines, of which the last is the
// summary.
type stream struct {
	w http.ResponseWriter

	mu      sync.Mutex // guards ended, and lines against being closed
	lines   chan []byte
	ended   bool
	dropped atomic.Uint64 // log lines
	sent    chan struct{} // closed when every waiting line was sent or the run is gone
}

var errStream = errors.New("the run does not take its log any more")

// send writes one line at once. Only the first and the last line go this way.
func (s *stream) send(line streamLine) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	return s.write(append(text, '\n'))
}

func (s *stream) write(text []byte) error {
	if _, err := s.w.Write(text); err != nil {
		return errStream
	}
	if http.NewResponseController(s.w).Flush() != nil {
		return errStream
	}
	return nil
}

// open makes room for lines between the first and the last. It is called once.
func (s *stream) open() {
	s.lines, s.sent = make(chan []byte, maxWaiting), make(chan struct{})
}

// Write implements io.Writer for log lines. It never waits, and keeps nothing
// of p.
func (s *stream) Write(p []byte) (int, error) {
	ok, err := s.offer(streamLine{Log: bytes.TrimSpace(p)})
	if err != nil {
		return 0, err
	}
	if !ok {
		s.dropped.Add(1)
	}
	return len(p), nil
}

// notice sends a sentence for whoever looks on, if there is room for it.
func (s *stream) notice(sentence string) {
	_, _ = s.offer(streamLine{Notice: sentence})
}

// offer has a line sent when there is room for it among those that wait.
func (s *stream) offer(line streamLine) (ok bool, err error) {
	text, err := json.Marshal(line)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false, errStream
	}
	select {
	case s.lines <- append(text, '\n'):
		return true, nil
	default:
		return false, nil
	}
}

// pump sends these lines until close.
func (s *stream) pump() {
	defer close(s.sent)
	for text := range s.lines {
		if s.write(text) != nil {
			return // the run has gone
		}
	}
}

// close sends what is waiting and the last line, as long as the run takes them.
func (s *stream) close(last streamLine) {
	deadline := time.Now().Add(streamPatience)
	_ = http.NewResponseController(s.w).SetWriteDeadline(deadline) // sockets know deadlines
	s.mu.Lock()
	s.ended = true
	last.Dropped = s.dropped.Load()
	if s.lines != nil {
		close(s.lines)
	}
	s.mu.Unlock()
	if s.sent != nil {
		<-s.sent
	}
	_ = s.send(last) // who cannot read it has gone
}
