package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"heed/internal/control"
	"heed/internal/output/console"
)

// maxQueued is the greatest number of log lines that wait for a slow run. Further lines
// are dropped and counted, so that a slow reader delays neither requests nor other logs.
const maxQueued = 4096

// stream writes the response to a run that joined: lines, the last of which is the
// summary.
type stream struct {
	w http.ResponseWriter

	mu      sync.Mutex // guards ended, and lines against being closed
	lines   chan []byte
	ended   bool
	dropped atomic.Uint64 // log lines
	sent    chan struct{} // closed when every queued line was sent or the run has disconnected
}

var errStream = errors.New("the run does not read its log any more")

// send writes one line immediately. It is used for the first and the last line.
func (s *stream) send(line control.StreamLine) { s.write(append(console.MustJSON(line), '\n')) }

// write reports whether the run still reads.
func (s *stream) write(text []byte) bool {
	_, err := s.w.Write(text)
	return err == nil && http.NewResponseController(s.w).Flush() == nil
}

// newStream returns a stream of lines to w.
func newStream(w http.ResponseWriter) *stream {
	return &stream{w: w, lines: make(chan []byte, maxQueued), sent: make(chan struct{})}
}

// Write implements io.Writer for log lines. It never blocks and does not retain p.
func (s *stream) Write(p []byte) (int, error) {
	ok, err := s.offer(control.StreamLine{Log: bytes.TrimSpace(p)})
	if err != nil {
		return 0, err
	}
	if !ok {
		s.dropped.Add(1)
	}
	return len(p), nil
}

// notice queues a sentence to print, if there is room for it.
func (s *stream) notice(sentence string) {
	_, _ = s.offer(control.StreamLine{Notice: sentence})
}

// offer queues a line and reports whether there was room for it.
func (s *stream) offer(line control.StreamLine) (ok bool, err error) {
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

// pump sends the queued lines until close.
func (s *stream) pump() {
	defer close(s.sent)
	for text := range s.lines {
		if !s.write(text) {
			return // the run has disconnected
		}
	}
}

// close sends the queued lines and the last line, within streamTimeout.
func (s *stream) close(last control.StreamLine) {
	deadline := time.Now().Add(streamTimeout)
	_ = http.NewResponseController(s.w).SetWriteDeadline(deadline) // sockets support deadlines
	s.mu.Lock()
	s.ended = true
	last.Dropped = s.dropped.Load()
	close(s.lines)
	s.mu.Unlock()
	<-s.sent
	s.send(last)
}
