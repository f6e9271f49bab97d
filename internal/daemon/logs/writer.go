// Package logs writes log lines: without blocking those who log (Writer), into a file of
// bounded size (OpenFile), in a format and without secrets (Handler), and with the priorities
// of systemd's journal (Prefixed).
package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"heed/internal/base/safetext"
)

const (
	// maxPending bounds the unwritten log, in octets. Above half of it Err returns
	// ErrPending; what does not fit is lost and counted.
	maxPending = 4 << 20
	// RetryEvery is the interval between attempts to write after an error.
	RetryEvery = 200 * time.Millisecond
	// writeEvery is the least time between two writes: lines of that time share one.
	writeEvery = 10 * time.Millisecond
	// DrainTimeout bounds the wait for unwritten log lines at exit.
	DrainTimeout = 2 * time.Second
)

// ErrPending is the error of an Writer with too much unwritten text.
var ErrPending = errors.New("its lines are not taken fast enough")

// Writer writes a log without blocking its callers. It keeps lines whole and in
// order, and buffers them while the writer fails or blocks. A line is written
// immediately, or within writeEvery when another one was written just before. It is
// safe for concurrent use.
type Writer struct {
	out   io.Writer
	every time.Duration // writeEvery

	mu      sync.Mutex
	gather  func()        // see Gather; nil: there is nothing to gather
	broken  func(error)   // see Broken; nil after its call
	lost    uint64        // see Lost
	pending []byte        // what is not written yet
	spare   []byte        // memory of the last pending, for the next
	err     error         // of the last attempt; nil when it succeeded
	wake    chan struct{} // there is text
	hurry   chan struct{} // it is to be written now
	empty   chan struct{} // closed when nothing is pending; nil while no Drain waits
	closing chan struct{} // empty, if it was there before text was gathered; else nil
}

// NewWriter returns a writer to out, whose writes may fail or block. It starts a
// goroutine that runs until the process ends.
func NewWriter(out io.Writer) *Writer { return newWriter(out, writeEvery) }

func newWriter(out io.Writer, every time.Duration) *Writer {
	s := &Writer{out: out, every: every, wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1)}
	go s.pump()
	return s
}

// Write appends p to the pending text and never blocks. The error is that of the last
// attempt to write, or ErrPending; p is kept even then, as long as it fits.
func (s *Writer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending)+len(p) > maxPending {
		s.lost++
		return 0, ErrPending
	}
	s.pending = append(s.pending, p...)
	signal(s.wake)
	return len(p), s.err
}

// Gather makes the writer call f before each of its writes, for text that is made only
// then: f calls Write. Wake announces that there is such text.
func (s *Writer) Gather(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gather = f
}

// Wake makes the writer write soon, as Write does. It does not wait for that.
func (s *Writer) Wake() { signal(s.wake) }

// Hurry writes the pending text without the delay of writeEvery. It does not wait for
// that.
func (s *Writer) Hurry() { signal(s.hurry) }

// signal leaves a signal in c, unless there is one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Err returns why the log cannot be written; nil when it can.
func (s *Writer) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && len(s.pending) > maxPending/2 {
		return ErrPending
	}
	return s.err
}

// Lost returns the number of writes since the start that there was no room for.
func (s *Writer) Lost() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Broken makes the writer call f, once, with the error of a pipe or socket that has no
// reader any more: no later attempt can succeed.
func (s *Writer) Broken(f func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = f
}

// pump writes the pending text.
func (s *Writer) pump() {
	for {
		text := s.take()
		n, err := 0, error(nil)
		if len(text) > 0 {
			n, err = s.out.Write(text)
		}
		done := s.settle(text, n, err)
		switch {
		case err != nil:
			time.Sleep(RetryEvery)
			continue
		case len(text) > 0:
			s.pause()
		}
		if done {
			<-s.wake
		}
	}
}

// take gathers the pending text and returns it.
func (s *Writer) take() (text []byte) {
	s.mu.Lock()
	gather := s.gather
	s.closing = s.empty
	s.mu.Unlock()
	if gather != nil {
		gather()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text, s.pending = s.pending, s.spare[:0]
	return text
}

// pause lets lines gather for writeEvery, or until Hurry is called.
func (s *Writer) pause() {
	select {
	case <-time.After(s.every):
	case <-s.hurry:
	}
}

// settle records the result of writing text, of which n octets were written, and
// reports whether nothing is pending.
func (s *Writer) settle(text []byte, n int, err error) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	if s.broken != nil && errors.Is(err, syscall.EPIPE) {
		go s.broken(err)
		s.broken = nil
	}
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
	if s.closing != nil {
		close(s.closing)
		s.empty, s.closing = nil, nil
	}
	return true
}

// Drain waits up to limit until everything is written; the error is the reason why it
// is not.
func (s *Writer) Drain(limit time.Duration) error {
	s.mu.Lock()
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	empty := s.empty
	s.mu.Unlock()
	signal(s.wake)
	s.Hurry()
	select {
	case <-empty:
		return nil
	case <-time.After(limit):
	}
	if err := s.Err(); err != nil {
		return err
	}
	return ErrPending
}

// Handler returns the handler that writes log lines to w: as JSON, or as text for people.
// redact returns a text without its secrets, and whether it had any: none without one of = @ % ?.
func Handler(w io.Writer, json bool, level slog.Leveler, redact func(string) (string, bool)) slog.Handler {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		text := ""
		switch a.Value.Kind() {
		case slog.KindString:
			text = a.Value.String()
		case slog.KindAny:
			text = fmt.Sprint(a.Value.Any())
		}
		if kept, hidden := redact(text); hidden {
			a.Value = slog.StringValue(kept)
		}
		return a
	}}
	if json {
		return &lines{Handler: slog.NewJSONHandler(safetext.EscapingWriter{Writer: w}, options), json: true, redact: redact, out: w}
	}
	return &lines{Handler: slog.NewTextHandler(safetext.EscapingWriter{Writer: w}, options), redact: redact, out: w}
}

// Prefixed writes lines of Handler, each with the priority of its level, which systemd's journal
// takes from its beginning: "<4>" is a warning (sd-daemon(3)).
type Prefixed struct{ io.Writer }

// Write writes the prefix and the line, with one call. The level follows the time in every line.
func (p Prefixed) Write(line []byte) (int, error) {
	_, level, _ := bytes.Cut(line, []byte("level"))
	prefix := "<3>"
	switch level = bytes.TrimLeft(level, `=":`); {
	case bytes.HasPrefix(level, []byte("DEBUG")):
		prefix = "<7>"
	case bytes.HasPrefix(level, []byte("INFO")):
		prefix = "<6>"
	case bytes.HasPrefix(level, []byte("WARN")):
		prefix = "<4>"
	}
	if _, err := p.Writer.Write(append(append(make([]byte, 0, len(prefix)+len(line)), prefix...), line...)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Events is the handler of all lines but those of decisions, which are written
// later. It keeps the order of both, and writes errors without delay, in case they are the
// last lines of this process.
type Events struct {
	slog.Handler
	Decisions func() // writes the lines of decisions that wait: audit.Log.Flush
	Hurry     func() // Writer.Hurry
}

// Handle implements slog.Handler.
func (h Events) Handle(ctx context.Context, r slog.Record) error {
	h.Decisions()
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelError {
		h.Hurry()
	}
	return err
}

// WithAttrs implements slog.Handler.
func (h Events) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h Events) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
