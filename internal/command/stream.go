package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
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

	mu      sync.Mutex // guards the next three
	log     chan []byte
	dropped uint64
	ended   bool
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

// openLog returns where the run's log lines go, one per Write. It is called
// once, after the first line was sent.
func (s *stream) openLog() *stream {
	s.log, s.sent = make(chan []byte, maxWaiting), make(chan struct{})
	return s
}

// Write implements io.Writer for log lines. It never waits, and keeps nothing
// of p.
func (s *stream) Write(p []byte) (int, error) {
	text, err := json.Marshal(streamLine{Log: bytes.TrimSpace(p)})
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return 0, errStream
	}
	select {
	case s.log <- append(text, '\n'):
	default:
		s.dropped++
	}
	return len(p), nil
}

// pump sends the log lines until close.
func (s *stream) pump() {
	defer close(s.sent)
	for text := range s.log {
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
	last.Dropped = s.dropped
	if s.log != nil {
		close(s.log)
	}
	s.mu.Unlock()
	if s.sent != nil {
		<-s.sent
	}
	_ = s.send(last) // who cannot read it has gone
}
